// The words of a handshake, without a connection. hello_test.cc has the same over a fabric.
#include "client/handshake.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "format/proof.h"

namespace erda::client {
namespace {

using format::HelloChallenge;
using format::HelloRequest;

constexpr uint32_t kAskedShard = 2;
constexpr uint64_t kAskingClient = 99;

class HandshakeTest : public testing::Test {
 protected:
  static HelloChallenge Challenge(uint64_t number) {
    HelloChallenge challenge{};
    challenge.magic = format::kHelloMagic;
    challenge.protocol_version = format::kProtocolVersion;
    challenge.is_challenge = 1;
    challenge.challenge = number;
    challenge.nonce.fill(static_cast<uint8_t>(number));
    return challenge;
  }

  Handshake handshake_{"hand:server", kAskedShard, kAskingClient};
};

TEST_F(HandshakeTest, RequestNamesShardSlotsAndClient) {
  handshake_.Begin(5);
  const HelloRequest hello = handshake_.Request();
  EXPECT_EQ(hello.magic, format::kHelloMagic);
  EXPECT_EQ(hello.protocol_version, format::kProtocolVersion);
  EXPECT_EQ(hello.shard, kAskedShard);
  EXPECT_EQ(hello.slots, 5U);
  EXPECT_EQ(hello.client_id, kAskingClient);
  EXPECT_EQ(hello.challenge, 0U);
}

TEST_F(HandshakeTest, ClientOffersAtMostTheSlotsThatAServerTakes) {
  handshake_.Begin(format::kSlotsMax + 1);
  EXPECT_EQ(handshake_.slots_offered(), format::kSlotsMax);
  EXPECT_EQ(handshake_.Request().slots, format::kSlotsMax);
}

TEST_F(HandshakeTest, RequestProvesTheTokenToTheLastChallenge) {
  handshake_.Begin(5);
  for (const uint64_t number : {7U, 8U}) {
    const HelloChallenge challenge = Challenge(number);
    ASSERT_TRUE(handshake_.IsChallenged(BytesOf(challenge)));
    handshake_.Answer(BytesOf(challenge), "token");
    const HelloRequest hello = handshake_.Request();
    EXPECT_EQ(hello.challenge, number);
    EXPECT_TRUE(format::SameProof(hello.proof, format::ClientProof("token", challenge.nonce, hello)));
  }
}

TEST_F(HandshakeTest, ClientAnswersThreeTimesInOneHandshake) {
  const HelloChallenge challenge = Challenge(7);
  handshake_.Begin(5);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(handshake_.IsChallenged(BytesOf(challenge))) << i;
    handshake_.Answer(BytesOf(challenge), "token");
  }
  EXPECT_FALSE(handshake_.IsChallenged(BytesOf(challenge)));
  EXPECT_EQ(handshake_.ReasonOf(BytesOf(challenge))->code(), Code::kPermissionDenied);
  handshake_.Begin(5);
  EXPECT_TRUE(handshake_.IsChallenged(BytesOf(challenge))) << "the next handshake counts from the start";
  EXPECT_EQ(handshake_.Request().challenge, 0U);
}

TEST_F(HandshakeTest, ChallengeMustBeWholeAndOfThisProtocol) {
  handshake_.Begin(5);
  const HelloChallenge challenge = Challenge(7);
  EXPECT_FALSE(handshake_.IsChallenged({}));
  EXPECT_FALSE(handshake_.IsChallenged(BytesOf(challenge).first(sizeof(challenge) - 1)));
  EXPECT_FALSE(handshake_.IsChallenged(BytesOf(Challenge(0))));
  HelloChallenge other = challenge;
  other.magic ^= 1;
  EXPECT_FALSE(handshake_.IsChallenged(BytesOf(other)));
  other = challenge;
  other.protocol_version ^= 1;
  EXPECT_FALSE(handshake_.IsChallenged(BytesOf(other)));
}

TEST_F(HandshakeTest, OnlyARefusalHasAReason) {
  format::HelloRefusal refusal{};
  refusal.magic = format::kHelloMagic;
  refusal.code = static_cast<uint8_t>(Code::kResourceExhausted);
  std::memcpy(refusal.message.data(), "full", 4);
  const auto reason = handshake_.ReasonOf(BytesOf(refusal));
  ASSERT_TRUE(reason.has_value());
  EXPECT_EQ(reason->code(), Code::kResourceExhausted);
  EXPECT_EQ(reason->message(), "hand:server: full");
  EXPECT_FALSE(handshake_.ReasonOf({}).has_value());
  EXPECT_FALSE(handshake_.ReasonOf(BytesOf(refusal).first(sizeof(refusal) - 1)).has_value());
  refusal.magic ^= 1;
  EXPECT_FALSE(handshake_.ReasonOf(BytesOf(refusal)).has_value());
}

TEST_F(HandshakeTest, ServerThatTheClientRefusesLeavesTheHelloUnchanged) {
  handshake_.Begin(5);
  format::HelloReply reply{};
  reply.magic = format::kHelloMagic;
  reply.protocol_version = format::kProtocolVersion;
  reply.slots = 1;
  EXPECT_EQ(handshake_.Take(BytesOf(reply), {}, false).code(), Code::kInvalidArgument);
  EXPECT_EQ(handshake_.hello().slots, 0U);
}

}  // namespace
}  // namespace erda::client
