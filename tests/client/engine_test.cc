// The engine against a server that answers by hand: what has to wait for what.
#include "client/engine.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "client/hand_fabric.h"
#include "format/control_block.h"
#include "format/durability.h"
#include "format/messages.h"

namespace erda::client {
namespace {

using fabric::OpKind;
using fabric::WorkRequest;
using format::Reply;
using format::Request;
using format::RequestOp;

constexpr const char* kKey = "key";
// In memory of its own, which is given back when the operation ends.
constexpr size_t kLargeValue = kLargeBytesKept + 1;

class HandClock final : public Clock {
 public:
  [[nodiscard]] Nanoseconds Now() const override { return now; }
  Nanoseconds now{1};
};

class EngineTest : public testing::Test {
 protected:
  // A client that is connected, to a power-safe pool that the server flushes.
  void SetUp() override {
    format::HelloReply hello{};
    hello.magic = format::kHelloMagic;
    hello.protocol_version = format::kProtocolVersion;
    hello.flush_method = static_cast<uint8_t>(format::FlushMethod::kServerFlush);
    hello.durability = static_cast<uint8_t>(format::Durability::kPowerSafe);
    hello.slots = 4;
    hello.slot_bytes = 4096;
    hello.pool_writable = 1;
    hello.geometry = *format::ChooseGeometry({64 << 20, 1, 8 << 20, 4 << 20, 0});
    geometry_ = hello.geometry;
    const auto data = BytesOf(hello);
    fabric_->peer_data.assign(data.begin(), data.end());
    fabric_->peer_regions.assign(4, {hello.geometry.pool_size, fabric::Access::kRemoteReadWrite});
    EngineOptions options;
    options.timeout = kTimeout;
    auto engine = Engine::Create(fabric_, "hand:server", options, clock_);
    ASSERT_TRUE(engine.ok()) << engine.status().ToString();
    engine_ = *std::move(engine);
    ASSERT_TRUE(engine_->Connect().ok());
    fabric_->Accept();
    engine_->Poll();
    TellSlots(1);
    engine_->Poll();
    const auto up = engine_->Connect();
    ASSERT_TRUE(up.ok() && *up);
  }

  // Answers the Read of the control block that is posted next: each slot of each head has the first region.
  void TellSlots(uint32_t generation) {
    const WorkRequest control = fabric_->Take();
    ASSERT_EQ(control.kind, OpKind::kRead);
    ASSERT_GT(control.local.size(), format::kControlHeadsOffset);
    const auto slot = format::HeadSlot::Of(0, generation);
    for (size_t at = format::kControlHeadsOffset; at + sizeof(slot) <= control.local.size(); at += sizeof(slot)) {
      std::memcpy(control.local.data() + at, &slot, sizeof(slot));
    }
    fabric_->Complete(control);
  }
  void Put(size_t value_bytes) {
    const Status started =
        engine_->Put(kKey, std::string(value_bytes, 'v'), [this](const Status& status) { End(status); });
    ASSERT_TRUE(started.ok()) << started.ToString();
  }
  virtual void End(const Status& status) { end_ = CodeName(status.code()); }

  // The next that is posted, which is to be a request.
  WorkRequest TakeRequest(RequestOp op) {
    const WorkRequest work = fabric_->Take();
    EXPECT_EQ(work.kind, OpKind::kWriteImm);
    EXPECT_EQ(LoadAs<Request>(work.local).op, static_cast<uint8_t>(op));
    return work;
  }
  // The server's answer, which the next Poll finds.
  void Answer(const WorkRequest& request, Reply reply) {
    reply.id = LoadAs<Request>(request.local).id;
    std::memcpy(fabric_->offered().data() + request.imm * sizeof(Reply), &reply, sizeof(reply));
    fabric_->ReceiveImm(request.imm);
  }
  void Refuse(const WorkRequest& request) {
    Reply reply{};
    reply.code = static_cast<uint8_t>(Code::kResourceExhausted);
    Answer(request, reply);
  }
  void Reserve(const WorkRequest& request, size_t value_bytes, uint32_t generation = 1) {
    Reply reply{};
    reply.address = format::LogAddress::At(0, 4096).raw();
    reply.generation = generation;
    reply.header.key_size = static_cast<uint16_t>(std::string_view(kKey).size());
    reply.header.value_size = static_cast<uint32_t>(value_bytes);
    reply.header.key_hash = HashKey(kKey);
    Answer(request, reply);
  }

  static constexpr Nanoseconds kTimeout{1'000'000'000};
  HandClock clock_;
  format::Geometry geometry_{};
  const std::shared_ptr<HandFabric> fabric_ = std::make_shared<HandFabric>();
  std::unique_ptr<Engine> engine_;
  std::string_view end_;  // how the put ended; empty while it goes on
};

// --- What is sent from memory that goes with the operation. The device may send it again, as long as it has not
// completed; and the reply, which is another message, may come first.

using LargePutTest = EngineTest;

TEST_F(LargePutTest, EndsOnlyWhenItsRequestIsSentThoughItIsRefused) {
  Put(kLargeValue);
  const WorkRequest reserve = TakeRequest(RequestOp::kReserve);
  EXPECT_TRUE(reserve.signaled) << "nobody would say when it is sent";
  Refuse(reserve);
  engine_->Poll();
  EXPECT_EQ(end_, "") << "its request is not sent";
  ASSERT_TRUE(fabric_->Knows(reserve.local)) << "what is not sent is not registered any more";
  fabric_->Complete(reserve);
  engine_->Poll();
  EXPECT_EQ(end_, CodeName(Code::kResourceExhausted));
  EXPECT_FALSE(fabric_->Knows(reserve.local)) << "the memory goes with it";
}

TEST_F(LargePutTest, EndsOnlyWhenBothItsRequestsAreSent) {
  Put(kLargeValue);
  const WorkRequest reserve = TakeRequest(RequestOp::kReserve);
  Reserve(reserve, kLargeValue);
  engine_->Poll();
  EXPECT_EQ(fabric_->Take().kind, OpKind::kWrite);
  const WorkRequest commit = TakeRequest(RequestOp::kCommit);
  EXPECT_TRUE(commit.signaled) << "nobody would say when it is sent";
  Answer(commit, {});
  engine_->Poll();
  EXPECT_EQ(end_, "") << "neither request is sent";
  ASSERT_TRUE(fabric_->Knows(commit.local)) << "what is not sent is not registered any more";
  fabric_->Complete(reserve);
  engine_->Poll();
  EXPECT_EQ(end_, "") << "the second request is not sent";
  ASSERT_TRUE(fabric_->Knows(commit.local)) << "what is not sent is not registered any more";
  fabric_->Complete(commit);
  engine_->Poll();
  EXPECT_EQ(end_, CodeName(Code::kOk));
}

TEST_F(LargePutTest, LeavesItsTurnToTheNextOnlyThen) {
  Put(kLargeValue);
  const WorkRequest reserve = TakeRequest(RequestOp::kReserve);
  ASSERT_TRUE(engine_->Delete(kKey, [](const Status&) {}).ok());
  Refuse(reserve);
  engine_->Poll();
  EXPECT_TRUE(fabric_->posted.empty()) << "the delete did not wait";
  fabric_->Complete(reserve);
  engine_->Poll();
  TakeRequest(RequestOp::kDelete);
}

// A put that knows its outcome keeps it. When the callback runs, the channel that might still send is gone.
class ClosedLargePutTest : public LargePutTest {
 protected:
  void End(const Status& status) override {
    EXPECT_EQ(fabric_->channel(), nullptr) << "the channel could still send what goes now";
    LargePutTest::End(status);
  }
};

TEST_F(ClosedLargePutTest, EndsWithItsOutcomeWhenTheConnectionEnds) {
  Put(kLargeValue);
  const WorkRequest reserve = TakeRequest(RequestOp::kReserve);
  Refuse(reserve);
  engine_->Poll();
  ASSERT_EQ(end_, "");
  fabric_->Close();
  engine_->Poll();
  EXPECT_EQ(end_, CodeName(Code::kResourceExhausted));
}

// --- The slots of the heads (I10)

class SlotsTest : public EngineTest {
 protected:
  // An entry of the key, in the Read of a neighbourhood.
  static void GiveEntry(const WorkRequest& read) {
    format::IndexEntry entry{};
    entry.word = format::EntryWord().Published(format::LogAddress::At(0, 4096)).Settled().raw();
    entry.meta = format::EntryMeta::Make(format::EntryMeta::TagOf(HashKey(kKey)), 0, 0, 4).raw();
    std::memset(read.local.data(), 0, read.local.size());
    std::memcpy(read.local.data(), &entry, sizeof(entry));
  }
};

TEST_F(SlotsTest, AGetGoesOnWhenTheControlBlockIsReadAndTellsNothingNew) {
  ASSERT_TRUE(engine_->Get(kKey, [](const Result<std::string_view>&) {}).ok());
  const WorkRequest entry = fabric_->Take();
  ASSERT_EQ(entry.remote.offset, geometry_.SlotOffset(0, geometry_.HomeOf(HashKey(kKey))));
  ASSERT_TRUE(engine_->BeginReadControls().ok());
  TellSlots(1);
  engine_->Poll();
  GiveEntry(entry);
  fabric_->Complete(entry);
  engine_->Poll();
  EXPECT_EQ(fabric_->Take().remote.offset, geometry_.RegionOffset(0) + 4096) << "the version";
}

TEST_F(SlotsTest, AGetReadsItsEntryAnewWhenSlotsHaveChangedSince) {
  ASSERT_TRUE(engine_->Get(kKey, [](const Result<std::string_view>&) {}).ok());
  const WorkRequest entry = fabric_->Take();
  ASSERT_TRUE(engine_->BeginReadControls().ok());
  TellSlots(2);
  engine_->Poll();
  GiveEntry(entry);
  fabric_->Complete(entry);
  engine_->Poll();
  EXPECT_EQ(fabric_->Take().remote.offset, entry.remote.offset) << "the entry";
}

TEST_F(SlotsTest, APutWritesOnlyIntoTheUseOfTheRegionThatItGot) {
  Put(kLargeValue);
  const WorkRequest reserve = TakeRequest(RequestOp::kReserve);
  fabric_->Complete(reserve);
  // One that is on its way may be older than the reservation, and is not the last word.
  ASSERT_TRUE(engine_->BeginReadControls().ok());
  Reserve(reserve, kLargeValue, 2);
  engine_->Poll();
  TellSlots(1);
  engine_->Poll();
  TellSlots(2);
  engine_->Poll();
  EXPECT_EQ(fabric_->Take().kind, OpKind::kWrite);
  EXPECT_EQ(end_, "");
}

using SmallPutTest = EngineTest;

TEST_F(SmallPutTest, EndsWithTheReply) {
  Put(100);
  const WorkRequest put = TakeRequest(RequestOp::kPutInline);
  EXPECT_FALSE(put.signaled) << "its memory stays, whatever becomes of it";
  Answer(put, {});
  engine_->Poll();
  EXPECT_EQ(end_, CodeName(Code::kOk));
}

// --- Time

using TimeoutTest = EngineTest;

// A call that sleeps between its looks polls rarely. It may not take many Polls until one looks at the clock.
TEST_F(TimeoutTest, EachPollBehindAWaitLooksAtTheClock) {
  Put(100);
  TakeRequest(RequestOp::kPutInline);
  engine_->Wait(Nanoseconds(1));
  engine_->Poll();  // its time begins
  clock_.now += kTimeout;
  engine_->Wait(Nanoseconds(1));
  engine_->Poll();
  engine_->Poll();  // callbacks of what ended
  EXPECT_EQ(end_, "") << "its time is not over";
  clock_.now += Nanoseconds(1) + kTimeout / 16;  // from one look to the next
  engine_->Wait(Nanoseconds(1));
  engine_->Poll();
  engine_->Poll();
  EXPECT_EQ(end_, CodeName(Code::kTimeout));
}

}  // namespace
}  // namespace erda::client
