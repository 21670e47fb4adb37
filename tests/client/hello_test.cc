// The client checks the server that it connects to: which servers it takes, and which it does not.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "client/engine.h"
#include "fabric/sim/network.h"
#include "format/durability.h"
#include "format/hello.h"
#include "format/proof.h"

namespace erda::client {
namespace {

using format::Durability;
using format::FlushMethod;
using format::HelloReply;

// A server by hand, and a client that connects to it. They go on until the client has taken the server, or has an
// error.
class ByHand {
 public:
  explicit ByHand(const EngineOptions& options = {})
      : engine_(*Engine::Create(network_.CreateFabric("client"), "sim:server", options, network_)) {}

  // Returns a hello that is in order. The server offers a reader no region to write to.
  [[nodiscard]] HelloReply Reply(bool read_only = false) const {
    HelloReply reply{};
    reply.magic = format::kHelloMagic;
    reply.protocol_version = format::kProtocolVersion;
    reply.slots = 1;
    reply.slot_bytes = 4096;
    reply.read_only = read_only ? 1 : 0;
    reply.placing = static_cast<uint8_t>(read_only ? format::Placing::kNone : format::Placing::kPool);
    reply.geometry = geometry_;
    return reply;
  }
  // place_bytes: the size of the region where the client places values.
  void Accept(fabric::Incoming& incoming, const HelloReply& reply, size_t regions = SIZE_MAX,
              std::optional<uint64_t> place_bytes = std::nullopt) {
    if (place_bytes) {
      place_ = *server_->Register({std::span(memory_).first(*place_bytes), -1, -1}, fabric::Access::kRemoteReadWrite);
    }
    fabric::Region* const place = place_ ? place_.get() : writable_.get();
    fabric::Region* const offer[] = {readable_.get(), readable_.get(), writable_.get(), place};
    regions = std::min<size_t>(regions, reply.read_only != 0 ? 2 : 4);
    channel_ = *incoming.Accept({queue_.get(), std::span(offer).first(regions), BytesOf(reply)});
  }
  // `serve` answers each request to connect.
  Status Connect(const std::function<void(fabric::Incoming&)>& serve) {
    for (int step = 0; step < 10'000; ++step) {
      const auto up = engine_->connections().Connect();
      if (!up.ok()) return up.status();
      if (*up) return {};
      if (const auto incoming = listener_->Poll()) serve(*incoming);
      network_.Step();
      engine_->Poll();
      if (auto status = engine_->connections().TakeConnectError(); !status.ok()) return status;
    }
    return {Code::kTimeout, "neither taken nor refused"};
  }

 private:
  fabric::SimNetwork network_{1};
  const std::shared_ptr<fabric::Fabric> server_ = network_.CreateFabric("server");
  const std::unique_ptr<fabric::CompletionQueue> queue_ = *server_->CreateQueue();
  const std::unique_ptr<fabric::Listener> listener_ = *server_->Listen("sim:server");
  const format::Geometry geometry_ = *format::ChooseGeometry({4 << 20, 1, 64 << 10, 16 << 10, 0});
  std::vector<std::byte> memory_ = std::vector<std::byte>(geometry_.pool_size);
  const std::unique_ptr<fabric::Region> readable_ = *server_->Register({memory_, -1, -1}, fabric::Access::kRemoteRead);
  const std::unique_ptr<fabric::Region> writable_ =
      *server_->Register({memory_, -1, -1}, fabric::Access::kRemoteReadWrite);
  const std::unique_ptr<Engine> engine_;
  std::unique_ptr<fabric::Region> place_;
  std::unique_ptr<fabric::Channel> channel_;
};

// Connects to a server whose hello is in order, but for the change. Returns the error. Returns ok once the client has
// taken the server.
Status ConnectTo(const std::function<void(HelloReply&)>& change) {
  ByHand by_hand;
  return by_hand.Connect([&](fabric::Incoming& incoming) {
    HelloReply reply = by_hand.Reply();
    change(reply);
    by_hand.Accept(incoming, reply);
  });
}

Status ConnectTo(Durability durability, uint8_t flush_method) {
  return ConnectTo([&](HelloReply& reply) {
    reply.durability = static_cast<uint8_t>(durability);
    reply.flush_method = flush_method;
  });
}

void ExpectRefused(const Status& status, const std::string& words) {
  EXPECT_EQ(status.code(), Code::kInvalidArgument) << status.ToString();
  EXPECT_NE(status.message().find(words), std::string_view::npos) << status.ToString();
}

TEST(HelloTest, FlushMethodThatFitsTheDurabilityIsAccepted) {
  for (const FlushMethod method : {FlushMethod::kReadAfterWrite, FlushMethod::kServerFlush}) {
    EXPECT_TRUE(ConnectTo(Durability::kPowerSafe, static_cast<uint8_t>(method)).ok());
  }
  for (const Durability durability : {Durability::kVolatile, Durability::kProcessSafe}) {
    EXPECT_TRUE(ConnectTo(durability, static_cast<uint8_t>(FlushMethod::kNone)).ok());
  }
}

// With any of these, a put that asked for kPersisted could be acknowledged before it is on the medium.
TEST(HelloTest, UnknownOrTooWeakFlushMethodIsRefused) {
  ExpectRefused(ConnectTo(Durability::kPowerSafe, 3), "flush method");
  ExpectRefused(ConnectTo(Durability::kVolatile, 255), "flush method");
  ExpectRefused(ConnectTo(Durability{3}, static_cast<uint8_t>(FlushMethod::kServerFlush)), "flush method");
  ExpectRefused(ConnectTo(Durability::kPowerSafe, static_cast<uint8_t>(FlushMethod::kNone)), "fit together");
}

TEST(HelloTest, HelloWithAnImpossibleFieldIsRefused) {
  ExpectRefused(ConnectTo([](HelloReply& reply) { reply.slots = 0; }), "fit together");
  ExpectRefused(ConnectTo([](HelloReply& reply) { reply.slots = 10'000; }), "fit together");
  ExpectRefused(ConnectTo([](HelloReply& reply) { reply.slot_bytes = 8; }), "fit together");
  ExpectRefused(ConnectTo([](HelloReply& reply) { reply.geometry.pool_size *= 2; }), "fit together");
  ExpectRefused(ConnectTo([](HelloReply& reply) { reply.protocol_version = 1; }), "protocol version");
  ExpectRefused(ConnectTo([](HelloReply& reply) { reply.magic = 1; }), "no Erda server");
}

// The client must know the way to place values. A staging buffer must have room for any value, or a put would wait for
// ever.
TEST(HelloTest, UnknownPlacingAndTooSmallWriteRegionAreRefused) {
  using format::Placing;
  for (const Placing placing : {Placing::kNone, Placing::kPool, Placing::kStaging, Placing::kWindow}) {
    EXPECT_TRUE(ConnectTo([&](HelloReply& reply) { reply.placing = static_cast<uint8_t>(placing); }).ok());
  }
  ExpectRefused(ConnectTo([](HelloReply& reply) { reply.placing = 4; }), "fit together");
  ExpectRefused(ConnectTo([](HelloReply& reply) { reply.placing = 255; }), "fit together");
  for (const Placing placing : {Placing::kPool, Placing::kStaging, Placing::kWindow}) {
    ByHand by_hand;
    const Status status = by_hand.Connect([&](fabric::Incoming& incoming) {
      HelloReply reply = by_hand.Reply();
      reply.placing = static_cast<uint8_t>(placing);
      by_hand.Accept(incoming, reply, 4, reply.geometry.segment_size - 1);
    });
    ExpectRefused(status, "fit together");
  }
}

// A server that refuses has proved nothing. So the client takes no code from it that would be the outcome of an
// operation.
TEST(HelloTest, RefusalCannotGiveTheOutcomeOfAnOperation) {
  const std::map<Code, Code> taken = {{Code::kOk, Code::kUnavailable},
                                      {Code::kNotFound, Code::kUnavailable},
                                      {Code::kInvalidArgument, Code::kInvalidArgument},
                                      {Code::kConflict, Code::kUnavailable},
                                      {Code::kResourceExhausted, Code::kResourceExhausted},
                                      {Code::kPermissionDenied, Code::kPermissionDenied},
                                      {Code::kCorruption, Code::kUnavailable},
                                      {Code{200}, Code::kUnavailable}};
  for (const auto& each : taken) {
    const Code said = each.first;  // Clang 14 cannot capture a structured binding.
    const Status status = ByHand().Connect([&](fabric::Incoming& incoming) {
      format::HelloRefusal refusal{};
      refusal.magic = format::kHelloMagic;
      refusal.protocol_version = format::kProtocolVersion;
      refusal.code = static_cast<uint8_t>(said);
      std::memcpy(refusal.message.data(), "no\x1b[2J", 6);
      incoming.Reject(BytesOf(refusal));
    });
    EXPECT_EQ(status.code(), each.second) << static_cast<int>(said);
    EXPECT_NE(status.message().find("no\\x1b[2J"), std::string_view::npos) << status.message();
  }
}

// --- Tokens

const std::string kToken = "the token of this client";

// Connects with the token to a server that sends this number of challenges, each of `bytes` bytes, and then accepts.
// Returns the error, or ok.
Status Prove(const std::function<void(HelloReply&)>& change, int challenges = 1, const std::string& token = kToken,
             size_t bytes = sizeof(format::HelloChallenge), size_t regions = SIZE_MAX) {
  EngineOptions options;
  if (!token.empty()) options.token = [&]() -> Result<std::string> { return token; };
  ByHand by_hand(options);
  format::HelloChallenge challenge{};
  int asked = 0;
  return by_hand.Connect([&](fabric::Incoming& incoming) {
    const auto hello = LoadAs<format::HelloRequest>(incoming.peer_data());
    EXPECT_EQ(hello.challenge, challenge.challenge);
    if (asked > 0) {
      EXPECT_TRUE(format::SameProof(hello.proof, format::ClientProof(kToken, challenge.nonce, hello)));
    }
    if (asked++ < challenges) {
      challenge = {format::kHelloMagic,
                   format::kProtocolVersion,
                   static_cast<uint8_t>(Code::kPermissionDenied),
                   1,
                   static_cast<uint64_t>(asked),
                   {}};
      challenge.nonce.fill(static_cast<uint8_t>(asked));
      incoming.Reject(BytesOf(challenge).first(bytes));
    } else {
      HelloReply reply = by_hand.Reply(true);
      reply.proof = format::ServerProof(kToken, challenge.nonce, reply);
      change(reply);
      by_hand.Accept(incoming, reply, regions);
    }
  });
}

void ExpectDenied(const Status& status, const std::string& words) {
  EXPECT_EQ(status.code(), Code::kPermissionDenied) << status.ToString();
  EXPECT_NE(status.message().find(words), std::string_view::npos) << status.ToString();
}

TEST(HelloTest, ServerThatProvesTheTokenIsAccepted) {
  for (const int challenges : {1, 2, 3}) EXPECT_TRUE(Prove([](HelloReply&) {}, challenges).ok()) << challenges;
}

TEST(HelloTest, ServerThatDoesNotProveTheTokenIsRefused) {
  ExpectDenied(Prove([](HelloReply& reply) { reply.proof[15] ^= 1; }), "does not prove");
  ExpectDenied(Prove([](HelloReply& reply) { reply.proof = {}; }), "does not prove");
  ExpectDenied(Prove([](HelloReply& reply) { reply.server_id = 1; }), "does not prove");  // Another server's hello.
  ExpectDenied(Prove([](HelloReply&) {}, 0), "does not ask");
  ExpectDenied(Prove([](HelloReply&) {}, 4), "again after 3 proofs");
  ExpectDenied(Prove([](HelloReply&) {}, 1, ""), "has no token");
}

TEST(HelloTest, HelloThatLetsAReaderWriteIsRefused) {
  const auto writable = [](HelloReply& reply) {
    format::Nonce nonce;
    nonce.fill(1);
    reply.placing = static_cast<uint8_t>(format::Placing::kPool);
    reply.proof = format::ServerProof(kToken, nonce, reply);
  };
  ExpectRefused(Prove(writable), "fit together");
}

TEST(HelloTest, ReaderNeedsThePoolAndTheControlBlock) {
  const auto as_it_is = [](HelloReply&) {};
  EXPECT_TRUE(Prove(as_it_is, 1, kToken, sizeof(format::HelloChallenge), 2).ok());
  ExpectRefused(Prove(as_it_is, 1, kToken, sizeof(format::HelloChallenge), 1), "fit together");
}

// Half a challenge is an ordinary refusal: the client makes no proof for bytes that did not arrive.
TEST(HelloTest, TruncatedChallengeGetsNoProof) {
  const Status status = Prove([](HelloReply&) {}, 1, kToken, sizeof(format::HelloChallenge) - 1);
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.code(), Code::kTimeout) << status.ToString();
}

}  // namespace
}  // namespace erda::client
