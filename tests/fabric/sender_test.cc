// The sending half of an shm channel, with the peer's end made by hand: its ring, its memory and its beacon.
#include "fabric/shm/sender.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/shared_memory.h"
#include "fabric/fixture.h"
#include "fabric/meeting.h"

namespace erda::fabric {
namespace {

using shm::Beacon;
using shm::Descriptor;
using shm::Ring;
using shm::Sender;

class SenderTest : public testing::Test {
 protected:
  static constexpr uint32_t kDepth = 4;
  static constexpr size_t kPeerBytes = 4096;
  static constexpr uint32_t kToRead = 0;  // The peer offers this region to read, and the next one to write, too.
  static constexpr uint32_t kToWrite = 1;

  SenderTest()
      : rings_(*SharedMemory::Create("ring", Ring::Bytes(kDepth))),
        peer_(*SharedMemory::Create("peer", kPeerBytes)),
        sender_(Ring(rings_.bytes().data(), kDepth)),
        consumer_(rings_.bytes().data(), kDepth) {
    Connect(nullptr);
  }
  void Connect(std::shared_ptr<shm::Mapping> beacon) {
    shm::Greeting greeting;
    greeting.regions = 2;
    greeting.region_sizes = {kPeerBytes, kPeerBytes};
    greeting.region_access = {static_cast<uint32_t>(Access::kRemoteRead),
                              static_cast<uint32_t>(Access::kRemoteReadWrite)};
    std::vector<UniqueFd> fds;
    for (int i = 0; i < 2; ++i) fds.emplace_back(::dup(peer_.view().fd));
    auto memory = shm::PeerMemory::Map(greeting, fds, &maps_, shm::MemoryMaps::Trust::kPeerMayNotHarm);
    ASSERT_TRUE(memory.ok()) << memory.status().ToString();
    sender_.Connect(*std::move(memory), std::move(beacon));
  }
  // Both ends begin again, with the same memory.
  void BeginAgain() {
    std::memset(rings_.bytes().data(), 0, rings_.bytes().size());
    shm::PeerMemory memory = sender_.memory();
    sender_ = Sender(Ring(rings_.bytes().data(), kDepth));
    sender_.Connect(std::move(memory), nullptr);
    consumer_ = Ring(rings_.bytes().data(), kDepth);
  }
  WorkRequest Request(OpKind kind, uint32_t region, uint64_t offset = 0) {
    WorkRequest request;
    request.kind = kind;
    request.imm = 17;
    request.local = local_;
    request.remote = {.region = region, .offset = offset};
    return request;
  }
  // Executes one request in a batch for itself.
  Code Execute(const WorkRequest& request) { return Sender::Batch(sender_).Execute(request); }
  [[nodiscard]] std::vector<std::byte> PeerBytes(uint64_t offset) const {
    const auto bytes = peer_.bytes().subspan(offset, local_.size());
    return {bytes.begin(), bytes.end()};
  }
  [[nodiscard]] std::vector<std::byte> LocalBytes() const { return {local_.begin(), local_.end()}; }
  // Takes the next message as the peer does. Returns nothing if the ring is empty.
  std::optional<Descriptor> TakeMessage(std::span<std::byte> message = {}) {
    Descriptor descriptor{};
    if (consumer_.Peek(&descriptor) != Ring::Look::kMessage) return std::nullopt;
    consumer_.Copy(message);
    consumer_.Advance();
    return descriptor;
  }

  const SharedMemory rings_;
  const SharedMemory peer_;
  shm::MemoryMaps maps_;
  std::array<std::byte, 16> local_{std::byte{1}, std::byte{2}, std::byte{3}};
  Sender sender_;
  Ring consumer_;
};

TEST_F(SenderTest, WritePlacesTheBytesInThePeersMemory) {
  EXPECT_EQ(Execute(Request(OpKind::kWrite, kToWrite, 100)), Code::kOk);
  EXPECT_EQ(PeerBytes(100), LocalBytes());
  EXPECT_FALSE(TakeMessage());
}

TEST_F(SenderTest, ReadTakesTheBytesOfThePeersMemory) {
  peer_.bytes()[104] = std::byte{9};
  EXPECT_EQ(Execute(Request(OpKind::kRead, kToRead, 100)), Code::kOk);
  EXPECT_EQ(local_[4], std::byte{9});
  EXPECT_EQ(local_[0], std::byte{0});
}

TEST_F(SenderTest, MessageIsSeenOnlyAfterPublish) {
  EXPECT_EQ(Execute(Request(OpKind::kSend, 0)), Code::kOk);
  EXPECT_FALSE(TakeMessage());
  EXPECT_FALSE(sender_.Publish()) << "the peer does not sleep";
  std::vector<std::byte> message(local_.size());
  const auto descriptor = TakeMessage(message);
  ASSERT_TRUE(descriptor);
  EXPECT_EQ(descriptor->kind, static_cast<uint32_t>(OpKind::kReceive));
  EXPECT_EQ(descriptor->bytes, local_.size());
  EXPECT_EQ(message, LocalBytes());
}

TEST_F(SenderTest, WriteImmPlacesTheBytesAndSendsTheNumber) {
  EXPECT_EQ(Execute(Request(OpKind::kWriteImm, kToWrite, 8)), Code::kOk);
  EXPECT_EQ(PeerBytes(8), LocalBytes());
  EXPECT_FALSE(sender_.Publish());
  const auto descriptor = TakeMessage();
  ASSERT_TRUE(descriptor);
  EXPECT_EQ(descriptor->kind, static_cast<uint32_t>(OpKind::kReceiveImm));
  EXPECT_EQ(descriptor->imm, 17U);
  EXPECT_EQ(descriptor->bytes, local_.size());
}

TEST_F(SenderTest, SendDoesWhatABatchOfOneMessageDoes) {
  EXPECT_TRUE(sender_.Send(Request(OpKind::kWriteImm, kToWrite, 8)));
  EXPECT_FALSE(consumer_.IsPlacing());
  EXPECT_FALSE(TakeMessage()) << "it is not published yet";
  EXPECT_FALSE(sender_.Publish());
  EXPECT_EQ(PeerBytes(8), LocalBytes());
  WorkRequest empty = Request(OpKind::kWriteImm, kToRead);
  empty.local = {};
  empty.imm = 18;
  EXPECT_TRUE(sender_.Send(empty)) << "no bytes need no right";
  EXPECT_FALSE(sender_.Publish());
  auto descriptor = TakeMessage();
  ASSERT_TRUE(descriptor);
  EXPECT_EQ(descriptor->kind, static_cast<uint32_t>(OpKind::kReceiveImm));
  EXPECT_EQ(descriptor->imm, 17U);
  EXPECT_EQ(descriptor->bytes, local_.size());
  descriptor = TakeMessage();
  ASSERT_TRUE(descriptor);
  EXPECT_EQ(descriptor->imm, 18U);
  EXPECT_EQ(descriptor->bytes, 0U);
}

TEST_F(SenderTest, SendDoesNothingWithoutTheRightOrWithoutRoom) {
  EXPECT_FALSE(sender_.Send(Request(OpKind::kWriteImm, kToRead)));
  EXPECT_FALSE(sender_.Send(Request(OpKind::kWriteImm, kToWrite, kPeerBytes - 1)));
  EXPECT_FALSE(consumer_.IsPlacing());
  for (uint32_t i = 0; i < kDepth; ++i) EXPECT_TRUE(sender_.Send(Request(OpKind::kWriteImm, kToWrite, 8)));
  EXPECT_FALSE(sender_.Send(Request(OpKind::kWriteImm, kToWrite, 64)));
  EXPECT_FALSE(sender_.Publish());
  EXPECT_EQ(PeerBytes(64), std::vector<std::byte>(local_.size()));
  for (uint32_t i = 0; i < kDepth; ++i) EXPECT_TRUE(TakeMessage());
  EXPECT_FALSE(TakeMessage());
  EXPECT_TRUE(sender_.Send(Request(OpKind::kWriteImm, kToWrite, 64)));
}

// The message needs no completion, but a later look at the peer has to come after its bytes.
TEST_F(SenderTest, SentBytesAreSeenByAPeerThatLeavesOrTheSenderFindsItGone) {
  uint64_t written = 0;
  uint64_t found = 0;
  bool sent = false;
  bool gone = false;
  Meeting(150'000).Run(
      [&] {
        ++written;
        std::memcpy(local_.data(), &written, sizeof(written));
        sent = sender_.Send(Request(OpKind::kWriteImm, kToWrite));
        gone = sender_.PeerIsGone();
      },
      [&] {
        consumer_.Leave();
        found = std::atomic_ref(*reinterpret_cast<uint64_t*>(peer_.bytes().data())).load(std::memory_order_relaxed);
      },
      [&](uint32_t round) {
        EXPECT_TRUE(!sent || gone || found == written) << "round " << round << ": bytes that came too late";
        BeginAgain();
        return !HasFailure();
      });
}

TEST_F(SenderTest, PublishTellsOfAPeerThatSleeps) {
  consumer_.BeginSleep();
  EXPECT_EQ(Execute(Request(OpKind::kSend, 0)), Code::kOk);
  EXPECT_TRUE(sender_.Publish());
}

TEST_F(SenderTest, AccessThatThePeerDidNotGrantIsDenied) {
  EXPECT_EQ(Execute(Request(OpKind::kWrite, kToRead)), Code::kPermissionDenied);
  EXPECT_EQ(Execute(Request(OpKind::kWriteImm, kToRead)), Code::kPermissionDenied);
  EXPECT_EQ(Execute(Request(OpKind::kWrite, kToWrite, kPeerBytes - 1)), Code::kPermissionDenied);
  EXPECT_EQ(Execute(Request(OpKind::kRead, kToWrite + 1)), Code::kPermissionDenied);
  EXPECT_EQ(PeerBytes(0), std::vector<std::byte>(local_.size()));
  EXPECT_FALSE(sender_.Publish());
  EXPECT_FALSE(TakeMessage()) << "a WriteImm without its bytes";
  EXPECT_FALSE(sender_.Read(local_, {.region = kToWrite + 1}));
}

TEST_F(SenderTest, PeerSeesThatABatchPlacesUntilItEnds) {
  for (const bool explicitly : {true, false}) {
    {
      Sender::Batch batch(sender_);
      EXPECT_EQ(batch.Execute(Request(OpKind::kRead, kToRead)), Code::kOk);
      EXPECT_EQ(batch.Execute(Request(OpKind::kSend, 0)), Code::kOk);
      EXPECT_FALSE(consumer_.IsPlacing()) << "the batch has placed nothing yet";
      EXPECT_EQ(batch.Execute(Request(OpKind::kWrite, kToWrite)), Code::kOk);
      EXPECT_TRUE(consumer_.IsPlacing());
      EXPECT_EQ(batch.Execute(Request(OpKind::kRead, kToRead)), Code::kOk);
      EXPECT_TRUE(consumer_.IsPlacing());
      if (explicitly) batch.EndPlacing();
      EXPECT_EQ(consumer_.IsPlacing(), !explicitly);
    }
    EXPECT_FALSE(consumer_.IsPlacing());
  }
}

TEST_F(SenderTest, NothingIsPlacedAtAPeerThatClosedTheChannel) {
  EXPECT_TRUE(sender_.PeerWasThere());
  consumer_.Leave();
  EXPECT_TRUE(sender_.PeerIsGone());
  EXPECT_EQ(Execute(Request(OpKind::kWrite, kToWrite)), Code::kUnavailable);
  EXPECT_EQ(Execute(Request(OpKind::kWriteImm, kToWrite)), Code::kUnavailable);
  EXPECT_FALSE(sender_.Send(Request(OpKind::kWriteImm, kToWrite)));
  EXPECT_EQ(PeerBytes(0), std::vector<std::byte>(local_.size()));
  EXPECT_FALSE(consumer_.IsPlacing());
  EXPECT_EQ(Execute(Request(OpKind::kRead, kToRead)), Code::kOk);
  EXPECT_FALSE(sender_.PeerWasThere()) << "the bytes of that Read are out of date";
}

// A peer that was killed has told nothing in the ring.
TEST_F(SenderTest, NothingIsPlacedAtAPeerWhoseBeaconIsOut) {
  std::shared_ptr<Beacon> lit = *Beacon::Light();
  const UniqueFd fd(::dup(lit->fd()));
  Connect(*maps_.Map(fd, Beacon::kBytes, false, shm::MemoryMaps::Trust::kPeerIsTrusted));
  EXPECT_EQ(Execute(Request(OpKind::kWrite, kToWrite, 64)), Code::kOk);
  EXPECT_TRUE(sender_.PeerWasThere());
  lit.reset();
  EXPECT_TRUE(sender_.PeerIsGone());
  EXPECT_EQ(Execute(Request(OpKind::kWrite, kToWrite)), Code::kUnavailable);
  EXPECT_FALSE(sender_.Send(Request(OpKind::kWriteImm, kToWrite)));
  EXPECT_EQ(PeerBytes(0), std::vector<std::byte>(local_.size()));
  EXPECT_FALSE(sender_.PeerWasThere());
}

TEST_F(SenderTest, CheckAllowsAsManyMessagesAsTheRingHolds) {
  std::vector<WorkRequest> batch(kDepth, Request(OpKind::kSend, 0));
  EXPECT_TRUE(sender_.Check(batch).ok());
  batch.push_back(Request(OpKind::kWrite, kToWrite));
  EXPECT_TRUE(sender_.Check(batch).ok()) << "a Write is no message";
  batch.push_back(Request(OpKind::kWriteImm, kToWrite));
  EXPECT_EQ(sender_.Check(batch).code(), Code::kResourceExhausted);
  EXPECT_EQ(Execute(Request(OpKind::kSend, 0)), Code::kOk);
  EXPECT_FALSE(sender_.Publish());
  batch.resize(kDepth);
  EXPECT_EQ(sender_.Check(batch).code(), Code::kResourceExhausted);
  ASSERT_TRUE(TakeMessage());
  EXPECT_TRUE(sender_.Check(batch).ok());
}

TEST_F(SenderTest, CheckRefusesRequestsThatCannotBePosted) {
  EXPECT_EQ(sender_.Check(std::vector{Request(OpKind::kReceive, 0)}).code(), Code::kInvalidArgument);
  std::vector<std::byte> longest(kSendBytesMax);
  WorkRequest message = Request(OpKind::kSend, 0);
  message.local = longest;
  EXPECT_TRUE(sender_.Check(std::vector{message}).ok());
  longest.push_back({});
  message.local = longest;
  EXPECT_EQ(sender_.Check(std::vector{message}).code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace erda::fabric
