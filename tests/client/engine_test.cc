// The engine against a server that answers by hand: what has to wait for what.
#include "client/engine.h"
#include "client/expiry.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/hand_clock.h"
#include "base/test_hash.h"
#include "client/hand_fabric.h"
#include "format/control_block.h"
#include "format/durability.h"
#include "format/messages.h"
#include "format/object.h"
#include "tests/format/first_blocks.h"

namespace erda::client {
namespace {

using fabric::OpKind;
using fabric::WorkRequest;
using format::LogAddress;
using format::Reply;
using format::Request;
using format::RequestOp;

constexpr const char* kKey = "key";
// In memory of its own, which is given back when the operation ends.
constexpr size_t kLargeValue = kLargeBytesKept + 1;

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
    hello.placing = static_cast<uint8_t>(placing());
    hello.time = kServerMillis * 1000;
    hello.geometry = *format::ChooseGeometry({64 << 20, 1, 8 << 20, 4 << 20, 0});
    hello.hash_seed = kTestHashSeed;
    geometry_ = hello.geometry;
    const auto data = BytesOf(hello);
    fabric_->peer_data.assign(data.begin(), data.end());
    fabric_->peer_regions.assign(4, {hello.geometry.pool_size, fabric::Access::kRemoteReadWrite});
    EngineOptions options;
    options.timeout = kTimeout;
    options.put_path = path();
    auto engine = Engine::Create(fabric_, "hand:server", options, clock_);
    ASSERT_TRUE(engine.ok()) << engine.status().ToString();
    engine_ = *std::move(engine);
    ASSERT_TRUE(engine_->connections().Connect().ok());
    fabric_->Accept();
    engine_->Poll();
    TellSlots(1);
    engine_->Poll();
    const auto up = engine_->connections().Connect();
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
  [[nodiscard]] virtual PutPath path() const { return PutPath::kAuto; }
  [[nodiscard]] virtual format::Placing placing() const { return format::Placing::kPool; }
  virtual void End(const Status& status) { end_ = CodeName(status.code()); }

  // What answers a request for a chunk: one of so many bytes.
  [[nodiscard]] static Reply ChunkFor(const WorkRequest& asks, uint64_t bytes) {
    Reply reply{};
    reply.address = LogAddress::At(0, 4096).raw();
    reply.head = LoadAs<Request>(asks.local).head;
    reply.generation = 1;
    reply.header.kind = static_cast<uint8_t>(format::ObjectKind::kChunk);
    reply.header.value_size = static_cast<uint32_t>(format::ChunkValueBytes(bytes));
    return reply;
  }

  // The next that is posted, which is to be a request.
  WorkRequest TakeRequest(RequestOp op) {
    const WorkRequest work = fabric_->Take();
    EXPECT_EQ(work.kind, OpKind::kWriteImm);
    EXPECT_EQ(LoadAs<Request>(work.local).op, static_cast<uint8_t>(op));
    return work;
  }
  // The same, of a put that is too large for a request. If a chunk could hold it, it asks for one first, and gets none.
  WorkRequest TakeReserve() {
    const bool asks = !fabric_->posted.empty() && fabric_->posted.front().local.size() == sizeof(Request);
    if (asks) Refuse(TakeRequest(RequestOp::kDelegate));
    return TakeRequest(RequestOp::kReserve);
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
    reply.address = LogAddress::At(0, 4096).raw();
    reply.generation = generation;
    reply.header.key_size = static_cast<uint16_t>(std::string_view(kKey).size());
    reply.header.value_size = static_cast<uint32_t>(value_bytes);
    reply.header.key_hash = HashKey(kKey);
    Answer(request, reply);
  }

  static constexpr Nanoseconds kTimeout{1'000'000'000};
  static constexpr uint64_t kServerMillis = 1'000'000;  // what the server says when it accepts
  HandClock clock_;
  format::Geometry geometry_{};
  const std::shared_ptr<HandFabric> fabric_ = std::make_shared<HandFabric>();
  std::unique_ptr<Engine> engine_;
  std::string_view end_;  // how the put ended; empty while it goes on
};

// A channel may still use it until it is destroyed (tests/client/hand_fabric.h looks).
TEST_F(EngineTest, MemoryOfALargeValueOutlivesTheChannel) {
  ASSERT_TRUE(engine_->Put("key", std::string(100 << 10, 'v'), [](const Status& /*status*/) {}).ok());
  ASSERT_FALSE(fabric_->posted.empty());
  ASSERT_FALSE(fabric_->posted.front().local.empty());
  engine_.reset();
}

// A request has 32 bits for the size. Nothing of the value is read: it lies where nobody may read.
TEST(UnconnectedTest, AValueOf4GiBIsRefusedThoughNoPoolIsKnown) {
  constexpr size_t kBytes = (size_t{4} << 30) + 5;
  void* const memory = ::mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  HandClock clock;
  auto engine = Engine::Create(std::make_shared<HandFabric>(), "hand:server", {}, clock);
  ASSERT_TRUE(engine.ok()) << engine.status().ToString();
  const Status status = (*engine)->Put(kKey, {static_cast<const char*>(memory), kBytes}, [](const Status&) {});
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("4 GiB"), std::string_view::npos) << status.ToString();
  ::munmap(memory, kBytes);
}

// --- What is sent from memory that goes with the operation. The device may send it again, as long as it has not
// completed; and the reply, which is another message, may come first.

using LargePutTest = EngineTest;

TEST_F(LargePutTest, EndsOnlyWhenItsRequestIsSentThoughItIsRefused) {
  Put(kLargeValue);
  const WorkRequest reserve = TakeReserve();
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
  const WorkRequest reserve = TakeReserve();
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
  const WorkRequest reserve = TakeReserve();
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
  const WorkRequest reserve = TakeReserve();
  Refuse(reserve);
  engine_->Poll();
  ASSERT_EQ(end_, "");
  fabric_->Close();
  engine_->Poll();
  EXPECT_EQ(end_, CodeName(Code::kResourceExhausted));
}

// --- Buffers: values are sent and read where they are

class BufferTest : public EngineTest {
 protected:
  void MakeBuffer(size_t bytes) {
    auto made = engine_->MakeBuffer(bytes);
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    buffer_ = *std::move(made);
    ASSERT_EQ(buffer_->value.size(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer_->value.data()) % 64, 0U);
  }
  Status PutBuffer(size_t size, std::string_view key = kKey) {
    return engine_->Put(key, buffer_, size, [this](const Status& status) { End(status); });
  }
  Status GetBuffer(std::string_view key = kKey) {
    return engine_->Get(key, buffer_, [this](const Result<std::string_view>& value) {
      got_ = value.ok() ? std::string(*value) : value.status().ToString();
      in_place_ = value.ok() && AsBytes(*value).data() == buffer_->value.data();
    });
  }
  // Answers the Reads of a get: the entry says that the object has so many bytes. deadline: 0, none.
  void AnswerGet(std::string_view value, uint64_t said_bytes, uint64_t deadline = 0) {
    const WorkRequest look = fabric_->Take();
    ASSERT_EQ(look.kind, OpKind::kRead);
    const uint64_t hash = HashKey(kKey);
    const format::EntryMeta meta =
        format::EntryMeta::Make(format::EntryMeta::TagOf(hash), geometry_.HeadOf(hash), 0, said_bytes);
    const auto address = LogAddress::At(0, 4096);
    const format::IndexEntry entry{format::EntryWord().Published(address).Settled().raw(), meta.raw()};
    std::memset(look.local.data(), 0, look.local.size());
    std::memcpy(look.local.data(), &entry, sizeof(entry));
    fabric_->Complete(look);
    engine_->Poll();
    const WorkRequest object = fabric_->Take();
    ASSERT_EQ(object.kind, OpKind::kRead);
    read_ = object.local;
    std::optional<WorkRequest> again;  // the entry, if there is more than one head
    if (!fabric_->posted.empty()) {
      again = fabric_->Take();
      std::memcpy(again->local.data(), &entry, sizeof(entry));
    }
    format::ObjectHeader header{};
    header.key_size = static_cast<uint16_t>(std::string_view(kKey).size());
    header.kind = static_cast<uint8_t>(format::ObjectKind::kValue);
    header.value_size = static_cast<uint32_t>(value.size());
    header.version = 7;
    header.key_hash = hash;
    if (deadline != 0) header.flags = format::ObjectHeader::kExpiresFlag;
    header.header_crc = format::HeaderCrc(
        {format::PoolSeed(std::array<uint8_t, 16>{}), geometry_.HeadOf(hash), address, 1}, header, kKey, deadline);
    const uint32_t checksum = format::ObjectChecksum(header, AsBytes(value));
    std::string bytes(AsString(BytesOf(header)));
    if (deadline != 0) bytes += AsString(BytesOf(deadline));
    bytes += kKey;
    bytes += AsString(BytesOf(checksum));
    bytes += value;
    ASSERT_GE(object.local.size(), bytes.size());
    std::memcpy(object.local.data(), bytes.data(), bytes.size());
    fabric_->Complete(object);
    if (again) fabric_->Complete(*again);
    engine_->Poll();
    if (deadline == 0) return;
    const WorkRequest time = fabric_->Take();
    ASSERT_EQ(time.remote.region, kTimeWord.region);
    ASSERT_EQ(time.remote.offset, kTimeWord.offset);
    ASSERT_EQ(time.local.size(), sizeof(kServerMillis));
    std::memcpy(time.local.data(), &kServerMillis, sizeof(kServerMillis));
    fabric_->Complete(time);
    engine_->Poll();
  }
  [[nodiscard]] bool IsInBuffer(std::span<const std::byte> bytes) const {
    return bytes.data() >= buffer_->registered.bytes.data() &&
           bytes.data() + bytes.size() <= buffer_->registered.bytes.data() + buffer_->registered.bytes.size();
  }

  std::shared_ptr<Buffer::Memory> buffer_;
  std::string got_;
  bool in_place_ = false;
  std::span<std::byte> read_;
};

TEST_F(BufferTest, AnInlinePutIsSentFromThere) {
  MakeBuffer(100);
  ASSERT_TRUE(PutBuffer(60).ok());
  const WorkRequest put = TakeRequest(RequestOp::kPutInline);
  const uint64_t value_at = format::InlineValueOffset(std::string_view(kKey).size());
  EXPECT_EQ(put.local.data() + value_at, buffer_->value.data());
  EXPECT_EQ(put.local.size(), value_at + 60);
  EXPECT_EQ(AsString(put.local.subspan(sizeof(Request), 3)), kKey);
  EXPECT_TRUE(put.signaled) << "nobody would say when it is sent";
  Answer(put, {});
  engine_->Poll();
  EXPECT_EQ(end_, "") << "the request is not sent: the caller must not have the buffer back";
  fabric_->Complete(put);
  engine_->Poll();
  EXPECT_EQ(end_, CodeName(Code::kOk));
}

TEST_F(BufferTest, AReservedPutIsWrittenFromThere) {
  MakeBuffer(10'000);
  ASSERT_TRUE(PutBuffer(9000).ok());
  const WorkRequest reserve = TakeReserve();
  Reserve(reserve, 9000);
  engine_->Poll();
  const WorkRequest write = fabric_->Take();
  EXPECT_EQ(write.kind, OpKind::kWrite);
  EXPECT_EQ(write.local.data() + format::kChecksumBytes, buffer_->value.data());
  const WorkRequest commit = TakeRequest(RequestOp::kCommit);
  Answer(commit, {});
  fabric_->Complete(reserve);
  engine_->Poll();
  EXPECT_EQ(end_, "");
  fabric_->Complete(commit);
  engine_->Poll();
  EXPECT_EQ(end_, CodeName(Code::kOk));
}

TEST_F(BufferTest, AGetReadsIntoIt) {
  MakeBuffer(1000);
  ASSERT_TRUE(GetBuffer().ok());
  const std::string value(900, 'x');
  AnswerGet(value, format::ObjectSpace(3, value.size()));
  EXPECT_TRUE(IsInBuffer(read_));
  EXPECT_EQ(got_, value);
  EXPECT_TRUE(in_place_);
}

class ExpiringInBufferTest : public BufferTest, public testing::WithParamInterface<size_t> {};
INSTANTIATE_TEST_SUITE_P(Sizes, ExpiringInBufferTest, testing::Values(0, 1, 7, 8, 9, 900, 8192));

// It is read a few bytes behind its place, into the room behind the buffer if need be.
TEST_P(ExpiringInBufferTest, AValueIsMovedToTheBeginning) {
  MakeBuffer(GetParam());
  std::string value;
  for (size_t i = 0; i < GetParam(); ++i) value += static_cast<char>('a' + i % 26);
  ASSERT_TRUE(GetBuffer().ok());
  AnswerGet(value, format::ObjectSpace(format::LabelSize(3, true), value.size()), kServerMillis + 1000);
  EXPECT_TRUE(IsInBuffer(read_));
  EXPECT_TRUE(got_ == value);
  EXPECT_TRUE(in_place_);
}

// The entry's hint is of a larger version than the one that is there.
TEST_F(BufferTest, AGetOfLessThanWasSaidGoesAnotherWay) {
  MakeBuffer(100);
  ASSERT_TRUE(GetBuffer().ok());
  AnswerGet("small", 4096);
  EXPECT_FALSE(IsInBuffer(read_));
  EXPECT_EQ(got_, "small");
  EXPECT_TRUE(in_place_);
}

class LargerThanBufferTest : public BufferTest, public testing::WithParamInterface<size_t> {};
// The first ones are read into its end.
INSTANTIATE_TEST_SUITE_P(Sizes, LargerThanBufferTest, testing::Values(101, 128, 5000));

TEST_P(LargerThanBufferTest, AGetSaysHowMuchItWouldTake) {
  MakeBuffer(100);
  ASSERT_TRUE(GetBuffer().ok());
  AnswerGet(std::string(GetParam(), 'x'), format::ObjectSpace(3, GetParam()));
  EXPECT_NE(got_.find("the value has " + std::to_string(GetParam()) + " bytes, and the buffer only 100"),
            std::string::npos)
      << got_;
}

TEST_F(BufferTest, IsOfOneOperationAtATime) {
  MakeBuffer(100);
  ASSERT_TRUE(PutBuffer(60).ok());
  EXPECT_EQ(GetBuffer("another").code(), Code::kInvalidArgument);
  EXPECT_EQ(PutBuffer(1, "another").code(), Code::kInvalidArgument);
  const WorkRequest put = TakeRequest(RequestOp::kPutInline);
  Answer(put, {});
  fabric_->Complete(put);
  engine_->Poll();
  EXPECT_TRUE(GetBuffer().ok());
}

TEST_F(BufferTest, MustBeAsLargeAsTheValueAndThisClients) {
  MakeBuffer(100);
  EXPECT_EQ(PutBuffer(101).code(), Code::kInvalidArgument);
  EXPECT_TRUE(PutBuffer(100).ok());
  MakeBuffer(100);
  buffer_->fabric = std::make_shared<HandFabric>();
  EXPECT_EQ(PutBuffer(1, "another").code(), Code::kInvalidArgument);
  buffer_->fabric = fabric_;
  const auto moved_away = std::exchange(buffer_, nullptr);
  EXPECT_EQ(PutBuffer(1, "another").code(), Code::kInvalidArgument);
  EXPECT_EQ(GetBuffer("another").code(), Code::kInvalidArgument);
}

TEST_F(BufferTest, StaysRegisteredUntilTheOperationIsOver) {
  MakeBuffer(100);
  const std::span<const std::byte> bytes = buffer_->registered.bytes;
  ASSERT_TRUE(PutBuffer(60).ok());
  buffer_.reset();
  const WorkRequest put = TakeRequest(RequestOp::kPutInline);
  EXPECT_TRUE(fabric_->Knows(bytes));
  Answer(put, {});
  fabric_->Complete(put);
  engine_->Poll();
  EXPECT_EQ(end_, CodeName(Code::kOk));
  EXPECT_FALSE(fabric_->Knows(bytes));
  // The next operation has memory of its own again: the fabric knows what it sends.
  Put(60);
  Answer(TakeRequest(RequestOp::kPutInline), {});
  engine_->Poll();
}

TEST_F(BufferTest, IsFreeAgainWhenItsOperationEndsBeforeItsTurn) {
  MakeBuffer(100);
  Put(60);  // another operation on the key, which the next one waits for
  ASSERT_TRUE(PutBuffer(60).ok());
  EXPECT_TRUE(buffer_->in_use);
  fabric_->Close();
  engine_->Poll();
  engine_->Poll();
  EXPECT_EQ(end_, CodeName(Code::kUnavailable));
  EXPECT_FALSE(buffer_->in_use);
}

TEST_F(BufferTest, IsTheCallersAgainOnlyWhenNoChannelCouldUseIt) {
  MakeBuffer(100);
  bool ended = false;
  ASSERT_TRUE(engine_
                  ->Get(kKey, buffer_,
                        [&](const Result<std::string_view>& value) {
                          ended = true;
                          EXPECT_EQ(value.status().code(), Code::kUnavailable);
                          EXPECT_EQ(fabric_->channel(), nullptr) << "the channel could still write there";
                          EXPECT_FALSE(buffer_->in_use);
                        })
                  .ok());
  fabric_->Close();
  engine_->Poll();
  EXPECT_TRUE(ended);
}

// --- Chunks: what the server says of one

class ChunkTest : public EngineTest {
 protected:
  [[nodiscard]] PutPath path() const override { return PutPath::kDelegate; }
  // The first put asks for a chunk, and goes inline.
  void SetUp() override {
    EngineTest::SetUp();
    Put(100);
    asks_ = TakeRequest(RequestOp::kDelegate);
    GoesWithout();
    engine_->Poll();
    ASSERT_EQ(end_, CodeName(Code::kOk));
  }
  virtual void GoesWithout() { Answer(TakeRequest(RequestOp::kPutInline), {}); }
  // Of so many bytes.
  [[nodiscard]] Reply Chunk(uint64_t bytes) const { return ChunkFor(asks_, bytes); }
  [[nodiscard]] uint64_t Least() const { return LoadAs<Request>(asks_.local).version; }
  [[nodiscard]] uint64_t Most() const { return LoadAs<Request>(asks_.local).value_size; }
  // Whether the client goes on.
  bool Takes(const Reply& reply) {
    Answer(asks_, reply);
    engine_->Poll();
    return fabric_->channel() != nullptr;
  }

  WorkRequest asks_;
};

TEST_F(ChunkTest, ThePutIsWrittenThereAndThenAsked) {
  ASSERT_TRUE(Takes(Chunk(Least())));
  Put(100);
  const WorkRequest write = fabric_->Take();
  EXPECT_EQ(write.kind, OpKind::kWrite);
  EXPECT_EQ(write.remote.region, format::kPoolWriteRegion);
  const uint64_t object = geometry_.RegionOffset(0) + 4096 + format::kChunkObjectsAt;
  EXPECT_EQ(write.remote.offset, object + format::ValueOffset(std::string_view(kKey).size()));
  EXPECT_EQ(write.local.size(), 100U);
  const auto request = LoadAs<Request>(TakeRequest(RequestOp::kPutDelegated).local);
  EXPECT_EQ(request.address, LogAddress::At(0, 4096 + format::kChunkObjectsAt).raw());
  EXPECT_EQ(request.value_crc, Crc32c(0, write.local));
}

TEST_F(ChunkTest, APutFromABufferThatIsRefusedEndsWhenBothItsRequestsAreSent) {
  ASSERT_TRUE(Takes(Chunk(Least())));
  auto buffer = engine_->MakeBuffer(100);
  ASSERT_TRUE(buffer.ok());
  end_ = "";
  ASSERT_TRUE(engine_->Put(kKey, *buffer, 60, [this](const Status& status) { End(status); }).ok());
  const WorkRequest write = fabric_->Take();
  EXPECT_EQ(write.kind, OpKind::kWrite);
  EXPECT_EQ(write.local.data(), (*buffer)->value.data());
  const WorkRequest delegated = TakeRequest(RequestOp::kPutDelegated);
  Reply refused{};
  refused.code = static_cast<uint8_t>(Code::kResourceExhausted);
  refused.reason = static_cast<uint8_t>(format::Reason::kNoChunk);
  Answer(delegated, refused);
  engine_->Poll();
  std::optional<WorkRequest> inline_put;
  while (!fabric_->posted.empty()) {
    const WorkRequest work = fabric_->Take();
    if (LoadAs<Request>(work.local).op == static_cast<uint8_t>(RequestOp::kPutInline)) inline_put = work;
  }
  ASSERT_TRUE(inline_put);
  Answer(*inline_put, {});
  engine_->Poll();
  EXPECT_EQ(end_, "");
  fabric_->Complete(delegated);
  engine_->Poll();
  EXPECT_EQ(end_, "") << "the second request is not sent";
  fabric_->Complete(*inline_put);
  engine_->Poll();
  EXPECT_EQ(end_, CodeName(Code::kOk));
}

TEST_F(ChunkTest, OneThatIsSmallerThanItIsOfUseEndsTheConnection) { EXPECT_FALSE(Takes(Chunk(Least() - 16))); }

TEST_F(ChunkTest, OneThatIsLargerThanWasAskedForEndsTheConnection) { EXPECT_FALSE(Takes(Chunk(Most() + 16))); }

TEST_F(ChunkTest, OneOfAnotherHeadEndsTheConnection) {
  Reply reply = Chunk(Least());
  ++reply.head;
  EXPECT_FALSE(Takes(reply));
}

TEST_F(ChunkTest, WhatIsNoneEndsTheConnection) {
  Reply reply = Chunk(Least());
  reply.header.kind = static_cast<uint8_t>(format::ObjectKind::kValue);
  EXPECT_FALSE(Takes(reply));
}

TEST_F(ChunkTest, OneWithAWindowThatNobodyAskedForEndsTheConnection) {
  Reply reply = Chunk(Least());
  reply.number = 5;
  EXPECT_FALSE(Takes(reply));
}

TEST_F(ChunkTest, AnAnswerToAnotherRequestEndsTheConnection) {
  Reply reply = Chunk(Least());
  reply.id = LoadAs<Request>(asks_.local).id + 1;
  std::memcpy(fabric_->offered().data() + asks_.imm * sizeof(Reply), &reply, sizeof(reply));
  fabric_->ReceiveImm(asks_.imm);
  engine_->Poll();
  EXPECT_EQ(fabric_->channel(), nullptr);
}

TEST_F(ChunkTest, AChunkInARegionThatTheClientDoesNotKnowYetIsNotUsed) {
  Reply reply = Chunk(Least());
  reply.generation = 2;
  ASSERT_TRUE(Takes(reply));
  Put(100);
  EXPECT_EQ(fabric_->Take().remote.region, format::kControlRegion) << "it asks";
  TakeRequest(RequestOp::kPutInline);
}

// It writes there through a window, whose key comes with the chunk.
class WindowedChunkTest : public ChunkTest {
 protected:
  [[nodiscard]] format::Placing placing() const override { return format::Placing::kWindow; }
  void GoesWithout() override {
    EXPECT_EQ(fabric_->Take().kind, OpKind::kWrite);  // into its staging buffer
    Answer(TakeRequest(RequestOp::kPutStaged), {});
  }
  Reply Chunk(uint64_t key) {
    Reply reply = ChunkTest::Chunk(Least());
    reply.number = key;
    return reply;
  }
};

TEST_F(WindowedChunkTest, ThePutIsWrittenByTheKeyThatCameWithIt) {
  ASSERT_TRUE(Takes(Chunk(UINT32_MAX)));
  Put(100);
  const WorkRequest write = fabric_->Take();
  EXPECT_EQ(write.kind, OpKind::kWrite);
  EXPECT_EQ(write.remote.window, UINT32_MAX);
  TakeRequest(RequestOp::kPutDelegated);
}

TEST_F(WindowedChunkTest, OneWithoutAKeyEndsTheConnection) { EXPECT_FALSE(Takes(Chunk(0))); }

TEST_F(WindowedChunkTest, OneWithWhatIsNoKeyEndsTheConnection) { EXPECT_FALSE(Takes(Chunk(uint64_t{1} << 32))); }

// --- The slots of the heads (I10)

class SlotsTest : public EngineTest {
 protected:
  // An entry of the key, in the Read of a neighbourhood.
  static void GiveEntry(const WorkRequest& read) {
    format::IndexEntry entry{};
    entry.word = format::EntryWord().Published(LogAddress::At(0, 4096)).Settled().raw();
    entry.meta = format::EntryMeta::Make(format::EntryMeta::TagOf(HashKey(kKey)), 0, 0, 4).raw();
    std::memset(read.local.data(), 0, read.local.size());
    std::memcpy(read.local.data(), &entry, sizeof(entry));
  }
};

TEST_F(SlotsTest, AGetGoesOnWhenTheControlBlockIsReadAndTellsNothingNew) {
  ASSERT_TRUE(engine_->Get(kKey, [](const Result<std::string_view>&) {}).ok());
  const WorkRequest entry = fabric_->Take();
  ASSERT_EQ(entry.remote.offset, geometry_.FirstSlotOffset(0, format::FirstHome(geometry_, HashKey(kKey))));
  ASSERT_TRUE(engine_->connections().BeginReadControls().ok());
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
  ASSERT_TRUE(engine_->connections().BeginReadControls().ok());
  TellSlots(2);
  engine_->Poll();
  GiveEntry(entry);
  fabric_->Complete(entry);
  engine_->Poll();
  EXPECT_EQ(fabric_->Take().remote.offset, entry.remote.offset) << "the entry";
}

// The version does not verify, and the entry is the same behind it. That is damage only if the slot was the same, too.
class SlotHoldsTest : public SlotsTest {
 protected:
  void SetUp() override {
    SlotsTest::SetUp();
    const Status started =
        engine_->Get(kKey, [this](const Result<std::string_view>& value) { got_ = CodeName(value.status().code()); });
    ASSERT_TRUE(started.ok());
    ReadEntry();
  }
  void ReadEntry() {
    const WorkRequest entry = fabric_->Take();
    ASSERT_EQ(entry.remote.offset, geometry_.FirstSlotOffset(0, format::FirstHome(geometry_, HashKey(kKey))));
    GiveEntry(entry);
    fabric_->Complete(entry);
    engine_->Poll();
  }
  // It is zeroes; then comes the second look.
  void ReadVersionInVain() {
    const WorkRequest version = fabric_->Take();
    ASSERT_EQ(version.remote.offset, geometry_.RegionOffset(0) + 4096);
    std::memset(version.local.data(), 0, version.local.size());
    fabric_->Complete(version);
    engine_->Poll();
    ReadEntry();
  }
  [[nodiscard]] bool ReadsControl() const {
    return !fabric_->posted.empty() && fabric_->posted.front().remote.region == format::kControlRegion;
  }

  std::string_view got_;
};

TEST_F(SlotHoldsTest, TheSameSlotBehindTheVersionMakesItDamage) {
  ReadVersionInVain();
  ASSERT_TRUE(ReadsControl());
  TellSlots(1);
  engine_->Poll();
  EXPECT_EQ(got_, CodeName(Code::kCorruption));
}

// In each round the entry leads to the same address, of another use.
TEST_F(SlotHoldsTest, AnotherSlotMeansThatTheGetStartsAgainHoweverOften) {
  for (uint32_t generation = 2; generation < 6; ++generation) {
    ReadVersionInVain();
    ASSERT_TRUE(ReadsControl());
    TellSlots(generation);
    engine_->Poll();
    ReadEntry();
  }
  ReadVersionInVain();
  TellSlots(5);
  engine_->Poll();
  EXPECT_EQ(got_, CodeName(Code::kCorruption));
}

TEST_F(SlotHoldsTest, AControlBlockThatWasAskedForBeforeTheVersionDoesNotCount) {
  const WorkRequest version = fabric_->Take();
  fabric_->Complete(version);  // whatever is there
  ASSERT_TRUE(engine_->connections().BeginReadControls().ok());
  engine_->Poll();
  const WorkRequest asked_behind = fabric_->Take();
  ASSERT_EQ(asked_behind.remote.region, format::kControlRegion);
  ReadEntry();
  EXPECT_TRUE(fabric_->posted.empty()) << "it waits for that one";
  fabric_->posted.push_front(asked_behind);
  TellSlots(2);
  engine_->Poll();
  // Another use: the get starts again, with a control block on its way that was asked for before the version.
  ASSERT_TRUE(engine_->connections().BeginReadControls().ok());
  const WorkRequest entry = fabric_->Take();
  const WorkRequest asked_before = fabric_->Take();
  ASSERT_EQ(asked_before.remote.region, format::kControlRegion);
  GiveEntry(entry);
  fabric_->Complete(entry);
  engine_->Poll();
  ReadVersionInVain();
  fabric_->posted.push_front(asked_before);
  TellSlots(2);
  engine_->Poll();
  EXPECT_EQ(got_, "");
  ASSERT_TRUE(ReadsControl());
  TellSlots(2);
  engine_->Poll();
  EXPECT_EQ(got_, CodeName(Code::kCorruption));
}

// In flight together with the version, it may have been read before it.
TEST_F(SlotHoldsTest, AControlBlockThatWasAskedForTogetherWithTheVersionDoesNotCount) {
  const WorkRequest version = fabric_->Take();
  ASSERT_TRUE(engine_->connections().BeginReadControls().ok());
  ASSERT_TRUE(ReadsControl());
  std::memset(version.local.data(), 0, version.local.size());
  fabric_->Complete(version);
  TellSlots(1);
  engine_->Poll();
  ReadEntry();
  EXPECT_EQ(got_, "");
  ASSERT_TRUE(ReadsControl()) << "another one, behind the version";
  TellSlots(1);
  engine_->Poll();
  EXPECT_EQ(got_, CodeName(Code::kCorruption));
}

TEST_F(SlotsTest, APutWritesOnlyIntoTheUseOfTheRegionThatItGot) {
  Put(kLargeValue);
  const WorkRequest reserve = TakeReserve();
  fabric_->Complete(reserve);
  // One that is on its way may be older than the reservation, and is not the last word.
  ASSERT_TRUE(engine_->connections().BeginReadControls().ok());
  Reserve(reserve, kLargeValue, 2);
  engine_->Poll();
  TellSlots(1);
  engine_->Poll();
  TellSlots(2);
  engine_->Poll();
  EXPECT_EQ(fabric_->Take().kind, OpKind::kWrite);
  EXPECT_EQ(end_, "");
}

// --- From an unsettled version to older ones, when the entry's old version was moved (I1)

class ChainTest : public EngineTest {
 protected:
  static constexpr auto kOlder = LogAddress::At(0, 4096);
  static constexpr auto kOriginal = LogAddress::At(0, 8192);
  static constexpr auto kMiddle = LogAddress::At(0, 12288);
  static constexpr auto kNewest = LogAddress::At(0, 16384);
  static constexpr auto kMoved = LogAddress::At(1, 20480);  // where the old version is now

  // A version in the log, whole. deadline: 0, none.
  void Write(LogAddress at, uint64_t version, LogAddress previous, std::string_view value, uint8_t flags,
             std::string_view key = kKey, uint64_t deadline = 0) {
    format::ObjectHeader header{};
    header.key_size = static_cast<uint16_t>(key.size());
    header.kind = static_cast<uint8_t>(format::ObjectKind::kValue);
    header.flags = static_cast<uint8_t>(flags | (deadline != 0 ? format::ObjectHeader::kExpiresFlag : 0));
    header.value_size = static_cast<uint32_t>(value.size());
    header.previous = previous.raw();
    header.version = version;
    header.key_hash = HashKey(key);
    const uint32_t pool_seed = format::PoolSeed(format::HelloReply{}.pool_uuid);
    header.header_crc = format::HeaderCrc({pool_seed, 0, at, 1}, header, key, deadline);
    const uint32_t checksum = format::ObjectChecksum(header, AsBytes(value));
    std::byte* const to = InLog(at);
    std::memcpy(to, &header, sizeof(header));
    if (deadline != 0) std::memcpy(to + format::kLabelOffset, &deadline, sizeof(deadline));
    std::memcpy(to + header.key_offset(), key.data(), key.size());
    std::memcpy(to + format::ChecksumOffset(header.label_size()), &checksum, sizeof(checksum));
    std::memcpy(to + format::ValueOffset(header.label_size()), value.data(), value.size());
  }
  std::byte* InLog(LogAddress at) { return log_.data() + at.offset_in_slot(); }
  // The newest version, which is not settled: a get of this client has to pass it.
  void WriteNewest(LogAddress previous) { Write(kNewest, 9, previous, "newest", format::ObjectHeader::kPersistedFlag); }

  void Get() {
    const Status started = engine_->Get(kKey, [this](const Result<std::string_view>& value) {
      got_ = value.ok() ? *value : CodeName(value.status().code());
    });
    ASSERT_TRUE(started.ok()) << started.ToString();
  }
  // Answers all that is posted, and what comes of it, until the version at `stop` is read.
  void Serve(LogAddress stop = format::kNoAddress) {
    while (!fabric_->posted.empty() && !Reads(fabric_->posted.front(), stop)) {
      Answer(fabric_->Take());
      if (fabric_->posted.empty()) engine_->Poll();
    }
  }
  void Answer(const WorkRequest& work) {
    ASSERT_EQ(work.kind, OpKind::kRead);
    std::memset(work.local.data(), 0, work.local.size());
    if (ReadsTime(work)) {
      std::memcpy(work.local.data(), &shard_time_, sizeof(shard_time_));
    } else if (work.remote.region == format::kControlRegion) {
      for (const uint32_t slot : {0U, 1U}) {
        std::memcpy(work.local.data() + format::HeadSlotOffset(0, slot), &slots_[slot], sizeof(slots_[slot]));
      }
    } else if (work.remote.offset >= geometry_.RegionOffset(0)) {
      const uint64_t from = work.remote.offset - geometry_.RegionOffset(0);
      ASSERT_LE(from + work.local.size(), log_.size());
      std::memcpy(work.local.data(), log_.data() + from, work.local.size());
      old_headers_ += work.local.size() == kOldHeaderBytes ? 1 : 0;
    } else {
      const format::IndexEntry entry{format::EntryWord::Make(true, kNewest, old_, false).raw(),
                                     format::EntryMeta::Make(format::EntryMeta::TagOf(HashKey(kKey)), 0, 0, 4).raw()};
      std::memcpy(work.local.data(), &entry, sizeof(entry));
    }
    fabric_->Complete(work);
  }
  [[nodiscard]] bool Reads(const WorkRequest& work, LogAddress at) const {
    return !at.none() && work.remote.offset == geometry_.RegionOffset(0) + at.offset_in_slot();
  }

  // The 8 bytes of the shard's time.
  [[nodiscard]] static bool ReadsTime(const WorkRequest& work) {
    return work.remote.region == kTimeWord.region && work.remote.offset == kTimeWord.offset &&
           work.local.size() == sizeof(uint64_t);
  }

  uint64_t shard_time_ = kServerMillis;
  std::vector<std::byte> log_ = std::vector<std::byte>(32768);  // the beginning of the first region
  format::HeadSlot slots_[2] = {format::HeadSlot::Of(0, 1), format::HeadSlot::Of(0, 1)};
  LogAddress old_ = kMoved;
  uint32_t old_headers_ = 0;  // how many were read
  std::string got_;
};

// --- A known location (I12)

class LocatedTest : public ChainTest {
 protected:
  static constexpr auto kPlace = LogAddress::At(0, 4096);
  static constexpr auto kOther = LogAddress::At(0, 8192);

  // The key's entry names the version at `at`, settled.
  void Name(LogAddress at) { entry_ = format::EntryWord().Published(at).Settled(); }
  // The Reads of one get, all of them answered: 'e' an entry, 'v' a version, 't' the time.
  std::string ReadsOfGet() {
    std::string reads;
    got_ = "";
    Get();
    while (!fabric_->posted.empty()) {
      const WorkRequest work = fabric_->Take();
      EXPECT_EQ(work.kind, OpKind::kRead);
      const bool version = work.remote.region == format::kPoolRegion && work.remote.offset >= geometry_.RegionOffset(0);
      const char control = ReadsTime(work) ? 't' : 'c';
      reads.push_back(version ? 'v' : work.remote.region == format::kControlRegion ? control : 'e');
      if (reads.back() == 'e') {
        AnswerEntry(work);
      } else {
        Answer(work);
      }
      if (fabric_->posted.empty()) engine_->Poll();
    }
    return reads;
  }
  void AnswerEntry(const WorkRequest& work) {
    const format::IndexEntry entry{entry_.raw(),
                                   format::EntryMeta::Make(format::EntryMeta::TagOf(HashKey(kKey)), 0, 0, 4).raw()};
    std::memset(work.local.data(), 0, work.local.size());
    std::memcpy(work.local.data(), &entry, sizeof(entry));
    fabric_->Complete(work);
  }
  void SetLeft(LogAddress at) {
    const auto first = format::WithLeft(LoadAs<uint64_t>(std::span(log_).subspan(at.offset_in_slot())));
    std::memcpy(InLog(at), &first, sizeof(first));
  }

  format::EntryWord entry_;
};

TEST_F(LocatedTest, ASecondGetReadsTheVersionAlone) {
  Write(kPlace, 1, format::kNoAddress, "value", 0);
  Name(kPlace);
  EXPECT_EQ(ReadsOfGet(), "ev");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(ReadsOfGet(), "v");
    EXPECT_EQ(got_, "value");
  }
  EXPECT_EQ(engine_->stats().cache_hits, 3U);
  EXPECT_EQ(engine_->stats().cache_misled, 0U);
}

TEST_F(LocatedTest, AVersionThatItsEntryHasLeftDoesNotCount) {
  Write(kPlace, 1, format::kNoAddress, "value", 0);
  Write(kOther, 2, kPlace, "newer", 0);
  Name(kPlace);
  EXPECT_EQ(ReadsOfGet(), "ev");
  SetLeft(kPlace);
  Name(kOther);
  EXPECT_EQ(ReadsOfGet(), "vev") << "one round trip more, and no more than one";
  EXPECT_EQ(got_, "newer");
  EXPECT_EQ(engine_->stats().cache_misled, 1U);
  // The flag says nothing to who comes by way of the entry, which may have been taken back.
  Name(kPlace);
  SetLeft(kOther);
  ReadsOfGet();
  EXPECT_EQ(got_, "value");
  // And it is not looked for again where it will not count.
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(ReadsOfGet(), "ev");
    EXPECT_EQ(got_, "value");
  }
}

TEST_F(LocatedTest, AReservedPutOfItsOwnIsKnown) {
  Put(kLargeValue);
  const WorkRequest reserve = TakeReserve();
  fabric_->Complete(reserve);
  Reserve(reserve, kLargeValue);
  engine_->Poll();
  EXPECT_EQ(fabric_->Take().kind, OpKind::kWrite);
  const WorkRequest commit = TakeRequest(RequestOp::kCommit);
  fabric_->Complete(commit);
  EngineTest::Answer(commit, {});
  engine_->Poll();
  ASSERT_EQ(end_, CodeName(Code::kOk));
  Get();
  const WorkRequest read = fabric_->Take();
  EXPECT_EQ(read.remote.offset, geometry_.RegionOffset(0) + 4096) << "the version";
  EXPECT_EQ(read.local.size(), format::ObjectSpace(std::string_view(kKey).size(), kLargeValue));
}

TEST_F(LocatedTest, WhatDoesNotVerifyThereDoesNotCount) {
  Write(kPlace, 1, format::kNoAddress, "value", 0);
  Write(kOther, 1, format::kNoAddress, "value", 0);
  Name(kPlace);
  EXPECT_EQ(ReadsOfGet(), "ev");
  std::memset(InLog(kPlace), 0, 64);
  Name(kOther);
  EXPECT_EQ(ReadsOfGet(), "vev");
  EXPECT_EQ(got_, "value");
}

TEST_F(LocatedTest, AVersionThatIsNotSettledIsNotRemembered) {
  Write(kPlace, 1, format::kNoAddress, "placed", 0);
  entry_ = format::EntryWord().Published(kPlace);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(ReadsOfGet(), "ev");
    EXPECT_EQ(got_, "placed");
  }
}

TEST_F(LocatedTest, AnotherUseOfTheRegionIsNotLookedInto) {
  Write(kPlace, 1, format::kNoAddress, "value", 0);
  Name(kPlace);
  EXPECT_EQ(ReadsOfGet(), "ev");
  ASSERT_TRUE(engine_->connections().BeginReadControls().ok());
  TellSlots(2);
  engine_->Poll();
  Get();
  ASSERT_FALSE(fabric_->posted.empty());
  EXPECT_EQ(fabric_->Take().remote.offset, geometry_.FirstSlotOffset(0, format::FirstHome(geometry_, HashKey(kKey))))
      << "the entry";
}

// --- Expiry

class ExpiryTest : public LocatedTest {
 protected:
  void WriteFor(uint64_t millis) {
    Write(kPlace, 1, format::kNoAddress, "value", 0, kKey, kServerMillis + millis);
    Name(kPlace);
  }
  // For the client, and for the shard, whose word tells it.
  void PassTime(uint64_t millis) {
    clock_.now += std::chrono::milliseconds(millis);
    shard_time_ += millis;
  }
  // The slot in which the server is asked for its time, by a message without bytes.
  uint32_t TakeTimeQuestion() {
    const WorkRequest work = fabric_->Take();
    EXPECT_EQ(work.kind, OpKind::kWriteImm);
    EXPECT_TRUE(work.local.empty());
    EXPECT_EQ(work.imm & format::kAsksTime, format::kAsksTime);
    return work.imm & ~format::kAsksTime;
  }
  void AnswerTime(uint32_t slot, const Reply& reply) {
    std::memcpy(fabric_->offered().data() + slot * sizeof(Reply), &reply, sizeof(reply));
    fabric_->ReceiveImm(slot);
  }
  // Answers the question for the server's time: so many milliseconds since it accepted.
  void TellTime(uint64_t millis) {
    Reply reply{};
    reply.number = (kServerMillis + millis) * 1000;
    AnswerTime(TakeTimeQuestion(), reply);
  }
  // The newest version cannot be returned, and the one before it was moved and expires. What it leads to is the
  // original.
  void WriteMoved() {
    entry_ = format::EntryWord::Make(true, kNewest, kMoved, false);
    WriteNewest(kOriginal);
    Write(kOriginal, 2, format::kNoAddress, "original", 0);
    Write(kMoved, 2, format::kNoAddress, "moved", 0, kKey, kServerMillis + 10);
  }
  bool ReadNow(std::span<std::byte> local, fabric::RemoteAddress remote) {
    if (remote.region == kTimeWord.region) {
      std::memcpy(local.data(), &shard_time_, sizeof(shard_time_));
    } else {
      std::memcpy(local.data(), log_.data() + (remote.offset - geometry_.RegionOffset(0)), local.size());
    }
    return true;
  }
  // Answers the Read of the version; then it gives way to another, and its deadline passes.
  void ReplaceBehindTheRead() {
    const WorkRequest read = fabric_->Take();
    ASSERT_TRUE(Reads(read, kPlace));
    Answer(read);
    Write(kOther, 2, kPlace, "newer", 0);
    SetLeft(kPlace);
    Name(kOther);
    PassTime(100);
    engine_->Poll();
  }
  // Gets, with answers to all Reads, until something else is posted.
  void GetUntilItAsks() {
    got_ = "";
    Get();
    ServeAll();
    ASSERT_EQ(got_, "");
  }
  void ServeAll() {
    for (int i = 0; !fabric_->posted.empty() && fabric_->posted.front().kind == OpKind::kRead; ++i) {
      ASSERT_LT(i, 1000) << "it begins anew for ever";
      const WorkRequest work = fabric_->Take();
      const bool entry = work.remote.region == format::kPoolRegion && work.remote.offset < geometry_.RegionOffset(0);
      entry ? AnswerEntry(work) : Answer(work);
      engine_->Poll();
    }
  }
};

TEST_F(ExpiryTest, AValueIsThereUntilTheShardsTimeReachesItsDeadline) {
  WriteFor(10);
  EXPECT_EQ(ReadsOfGet(), "evt");
  EXPECT_EQ(got_, "value");
  PassTime(9);
  EXPECT_EQ(ReadsOfGet(), "vt");
  EXPECT_EQ(got_, "value");
  // The first get that Reads such a time begins from the start: there may have been a put before the deadline.
  PassTime(1);
  EXPECT_EQ(ReadsOfGet(), "vtev");
  EXPECT_EQ(got_, "not found");
  EXPECT_EQ(ReadsOfGet(), "vt");
  EXPECT_EQ(got_, "not found");
  VersionedView found;
  fabric_->read_now = [this](auto local, auto remote) { return ReadNow(local, remote); };
  EXPECT_EQ(engine_->GetNow(kKey, &found), Engine::Now::kAbsent);
}

TEST_F(ExpiryTest, AClientWhoseClockStandsStillReturnsNothingThatHasExpired) {
  WriteFor(10);
  EXPECT_EQ(ReadsOfGet(), "evt");
  EXPECT_EQ(got_, "value");
  shard_time_ += 10;
  EXPECT_EQ(ReadsOfGet(), "vtev");
  EXPECT_EQ(got_, "not found");
  Write(kOther, 1, format::kNoAddress, "other", 0, kKey, kServerMillis + 11);
  Name(kOther);
  shard_time_ += 1;
  SetLeft(kPlace);
  ReadsOfGet();
  EXPECT_EQ(got_, "not found");
}

TEST_F(ExpiryTest, AValueWithoutADeadlineCostsNoReadOfTheTime) {
  Write(kPlace, 1, format::kNoAddress, "value", 0);
  Name(kPlace);
  EXPECT_EQ(ReadsOfGet(), "ev");
  EXPECT_EQ(ReadsOfGet(), "v");
  // Nor does the next value of a key that had one with a deadline.
  Write(kOther, 2, kPlace, "brief", 0, kKey, kServerMillis + 10);
  Name(kOther);
  SetLeft(kPlace);
  EXPECT_EQ(ReadsOfGet(), "vevt");
  EXPECT_EQ(ReadsOfGet(), "vt");
  Write(kPlace, 3, kOther, "stays", 0);
  Name(kPlace);
  SetLeft(kOther);
  EXPECT_EQ(ReadsOfGet(), "vtev");
  EXPECT_EQ(ReadsOfGet(), "v");
  EXPECT_EQ(got_, "stays");
}

// A version that the entry led to may have been published when its deadline had passed. Read before that, the time
// would not say so.
TEST_F(ExpiryTest, TheTimeIsReadBehindTheVersionThatTheEntryLedTo) {
  WriteFor(10);
  got_ = "";
  Get();
  AnswerEntry(fabric_->Take());
  engine_->Poll();
  const WorkRequest version = fabric_->Take();
  ASSERT_TRUE(Reads(version, kPlace));
  ASSERT_TRUE(fabric_->posted.empty());
  shard_time_ += 10;
  Answer(version);
  engine_->Poll();
  ASSERT_EQ(fabric_->posted.size(), 1U);
  EXPECT_TRUE(ReadsTime(fabric_->posted.front()));
  ServeAll();
  EXPECT_EQ(got_, "not found");
}

TEST_F(ExpiryTest, TheTimeIsReadTogetherWithAVersionWhosePlaceIsKnown) {
  WriteFor(10);
  ReadsOfGet();
  got_ = "";
  Get();
  ASSERT_EQ(fabric_->posted.size(), 2U) << "one round trip";
  EXPECT_TRUE(Reads(fabric_->posted.front(), kPlace));
  EXPECT_TRUE(ReadsTime(fabric_->posted.back()));
  ServeAll();
  EXPECT_EQ(got_, "value");
}

TEST_F(ExpiryTest, TheGreatestWordIsATimeToo) {
  WriteFor(10);
  shard_time_ = UINT64_MAX;
  ReadsOfGet();
  EXPECT_EQ(got_, "not found");
}

TEST_F(ExpiryTest, WhereTheOwnClockIsAheadTheServerIsAsked) {
  WriteFor(10);
  clock_.now += std::chrono::milliseconds(10);
  GetUntilItAsks();
  TellTime(9);  // its clock is a little slow
  shard_time_ += 9;
  engine_->Poll();
  ServeAll();
  EXPECT_EQ(got_, "value");
  clock_.now += std::chrono::milliseconds(1);
  GetUntilItAsks();
  TellTime(10);
  shard_time_ += 1;
  engine_->Poll();
  ServeAll();
  EXPECT_EQ(got_, "not found");
}

TEST_F(ExpiryTest, APutSendsItsTimeToLiveAndWritesBehindTheDeadline) {
  const auto started = [&](size_t bytes) {
    return engine_->Put(kKey, std::string(bytes, 'v'), PutOptions{{}, std::chrono::milliseconds(7)},
                        [this](const Result<uint64_t>& version) { End(version.status()); });
  };
  ASSERT_TRUE(started(10).ok());
  const WorkRequest inline_put = TakeRequest(RequestOp::kPutInline);
  EXPECT_EQ(LoadAs<Request>(inline_put.local).ttl, 7U);
  EngineTest::Answer(inline_put, {});
  engine_->Poll();
  ASSERT_TRUE(started(5000).ok());
  const WorkRequest reserve = TakeReserve();
  EXPECT_EQ(LoadAs<Request>(reserve.local).ttl, 7U);
  Reply reply{};
  reply.address = LogAddress::At(0, 4096).raw();
  reply.generation = 1;
  reply.header.key_size = static_cast<uint16_t>(std::string_view(kKey).size());
  reply.header.flags = format::ObjectHeader::kExpiresFlag;
  reply.header.value_size = 5000;
  reply.header.key_hash = HashKey(kKey);
  EngineTest::Answer(reserve, reply);
  engine_->Poll();
  const WorkRequest write = fabric_->Take();
  EXPECT_EQ(write.kind, OpKind::kWrite);
  EXPECT_EQ(write.remote.offset,
            geometry_.RegionOffset(0) + 4096 + format::ChecksumOffset(std::string_view(kKey).size() + 8));
}

TEST_F(ExpiryTest, AServerThatForgetsTheDeadlineIsNotBelieved) {
  ASSERT_TRUE(engine_
                  ->Put(kKey, std::string(5000, 'v'), PutOptions{{}, std::chrono::milliseconds(7)},
                        [this](const Result<uint64_t>& version) { End(version.status()); })
                  .ok());
  Reserve(TakeReserve(), 5000);
  engine_->Poll();
  EXPECT_EQ(end_, "unavailable");
}

TEST_F(ExpiryTest, ATimeToLiveHasLimits) {
  const auto put = [&](int64_t ttl, size_t bytes) {
    return engine_
        ->Put(kKey, std::string(bytes, 'v'), PutOptions{{}, std::chrono::milliseconds(ttl)},
              [this](const Result<uint64_t>& version) { End(version.status()); })
        .code();
  };
  for (const int64_t ttl : {INT64_MIN, int64_t{-1}, int64_t{0}, (int64_t{1} << 48) + 1, INT64_MAX}) {
    EXPECT_EQ(put(ttl, 10), Code::kInvalidArgument) << ttl;
  }
  const uint64_t most = format::ValueBytesMax(geometry_, std::string_view(kKey).size());
  EXPECT_EQ(put(1, most - format::kDeadlineBytes + 1), Code::kInvalidArgument);
  EXPECT_TRUE(fabric_->posted.empty());
  EXPECT_EQ(engine_->in_flight(), 0U);
  ASSERT_EQ(put(int64_t{1} << 48, 10), Code::kOk);
  EXPECT_EQ(LoadAs<Request>(TakeRequest(RequestOp::kPutInline).local).ttl, uint64_t{1} << 48);
  ASSERT_EQ(put(1, most - format::kDeadlineBytes), Code::kOk);
}

TEST_F(ExpiryTest, TheNextOperationHasNoTimeToLive) {
  ASSERT_TRUE(
      engine_->Put(kKey, "v", PutOptions{{}, std::chrono::milliseconds(7)}, [](const Result<uint64_t>&) {}).ok());
  EngineTest::Answer(TakeRequest(RequestOp::kPutInline), {});
  engine_->Poll();
  Put(10);
  const WorkRequest put = TakeRequest(RequestOp::kPutInline);
  EXPECT_EQ(LoadAs<Request>(put.local).ttl, 0U);
  EngineTest::Answer(put, {});
  engine_->Poll();
  ASSERT_TRUE(engine_->Increment(kKey, 1, [](const Result<int64_t>&) {}).ok());
  EXPECT_EQ(LoadAs<Request>(TakeRequest(RequestOp::kIncrement).local).ttl, 0U);
}

TEST_F(ExpiryTest, AGetSaysWhenItsValueExpires) {
  std::optional<Deadline> expires;
  const auto get = [&] {
    expires.reset();
    const Status started = engine_->GetVersioned(kKey, [&](const Result<VersionedView>& got) {
      ASSERT_TRUE(got.ok());
      EXPECT_EQ(got->value, "value");
      EXPECT_EQ(got->version, 1U);
      expires = got->expires;
    });
    ASSERT_TRUE(started.ok());
    ServeAll();
  };
  WriteFor(10);
  get();
  EXPECT_EQ(expires, Deadline(std::chrono::milliseconds(kServerMillis + 10)));
  get();
  EXPECT_EQ(expires, Deadline(std::chrono::milliseconds(kServerMillis + 10)));
  Write(kPlace, 1, format::kNoAddress, "value", 0);
  get();
  EXPECT_EQ(expires, std::nullopt);
}

// Between the Read and the deadline another put may have ended, and then the key was never absent.
TEST_F(ExpiryTest, AKeyIsNotAbsentByATimeThatWasReadBehindTheEntry) {
  WriteFor(10);
  Get();
  AnswerEntry(fabric_->Take());
  engine_->Poll();
  ReplaceBehindTheRead();
  EXPECT_EQ(got_, "");
  ServeAll();
  EXPECT_EQ(got_, "newer");
}

TEST_F(ExpiryTest, AKeyIsNotAbsentByATimeThatWasReadBehindItsKnownVersion) {
  WriteFor(10);
  EXPECT_EQ(ReadsOfGet(), "evt");
  got_ = "";
  Get();
  ReplaceBehindTheRead();
  EXPECT_EQ(got_, "");
  ServeAll();
  EXPECT_EQ(got_, "newer");
}

TEST_F(ExpiryTest, TheTimeIsAskedForOnceAtATime) {
  WriteFor(10);
  clock_.now += std::chrono::milliseconds(10);
  GetUntilItAsks();
  const uint32_t slot = TakeTimeQuestion();
  for (int i = 0; i < 10; ++i) {
    const WorkRequest work = fabric_->Take();
    ASSERT_EQ(work.kind, OpKind::kRead);
    Reads(work, kPlace) || ReadsTime(work) ? Answer(work) : AnswerEntry(work);
    engine_->Poll();
    ASSERT_EQ(got_, "");
  }
  Reply reply{};
  reply.number = (kServerMillis + 10) * 1000;
  AnswerTime(slot, reply);
  shard_time_ += 10;
  engine_->Poll();
  ServeAll();
  EXPECT_EQ(got_, "not found");
}

TEST_F(ExpiryTest, WithoutAnAnswerTheShardsTimeDecides) {
  WriteFor(10);
  clock_.now += std::chrono::milliseconds(10);
  GetUntilItAsks();
  TakeTimeQuestion();
  shard_time_ += 10;
  engine_->Poll();
  ServeAll();
  EXPECT_EQ(got_, "not found");
}

TEST_F(ExpiryTest, ATimeThatNobodyAskedForEndsTheConnectionAndTheNextOneIsAskedAnew) {
  for (const bool refused : {false, true}) {
    SCOPED_TRACE(refused);
    WriteFor(10);
    clock_.now += std::chrono::milliseconds(10);
    GetUntilItAsks();
    const uint32_t slot = TakeTimeQuestion();
    Reply reply{};
    reply.id = refused ? 0 : 1;
    reply.code = static_cast<uint8_t>(refused ? Code::kInternal : Code::kOk);
    AnswerTime(slot, reply);
    engine_->Poll();
    EXPECT_EQ(got_, "unavailable");
    ASSERT_EQ(fabric_->channel(), nullptr);
    got_ = "";
    Get();
    fabric_->Accept();
    engine_->Poll();
    TellSlots(1);
    engine_->Poll();
    ServeAll();
    EXPECT_EQ(got_, "value") << "the server that it is connected to said so just now";
  }
}

TEST_F(ExpiryTest, AConnectionThatEndsWhileTheTimeIsAskedForEndsTheGet) {
  WriteFor(10);
  clock_.now += std::chrono::milliseconds(10);
  GetUntilItAsks();
  fabric_->Close();
  engine_->Poll();
  EXPECT_EQ(got_, "unavailable");
  Get();
  fabric_->Accept();
  engine_->Poll();
  TellSlots(1);
  engine_->Poll();
  ServeAll();
  EXPECT_EQ(got_, "value");
  clock_.now += std::chrono::milliseconds(10);
  GetUntilItAsks();
  TellTime(10);
  shard_time_ += 10;
  engine_->Poll();
  ServeAll();
  EXPECT_EQ(got_, "not found");
}

// Its word begins lower, perhaps; what the word of the one before said does not count for it.
TEST_F(ExpiryTest, AnotherServersTimeCountsForItself) {
  WriteFor(10);
  PassTime(10);
  ReadsOfGet();
  EXPECT_EQ(got_, "not found");
  fabric_->Close();
  engine_->Poll();
  shard_time_ -= 10;
  Get();
  fabric_->Accept();
  engine_->Poll();
  TellSlots(1);
  engine_->Poll();
  ServeAll();
  EXPECT_EQ(got_, "value");
}

TEST_F(ExpiryTest, WithoutASlotToSpareTheTimeIsAskedForLater) {
  std::vector<WorkRequest> puts;
  for (const char* key : {"a", "b", "c", "d"}) {
    ASSERT_TRUE(engine_->Put(key, "v", [](const Status&) {}).ok());
    engine_->Poll();
    puts.push_back(TakeRequest(RequestOp::kPutInline));
  }
  WriteFor(10);
  clock_.now += std::chrono::milliseconds(10);
  got_ = "";
  Get();
  engine_->Poll();
  for (int i = 0; i < 10; ++i) {
    const WorkRequest work = fabric_->Take();
    ASSERT_EQ(work.kind, OpKind::kRead);
    Reads(work, kPlace) || ReadsTime(work) ? Answer(work) : AnswerEntry(work);
    engine_->Poll();
    ASSERT_EQ(got_, "");
  }
  EngineTest::Answer(puts.front(), {});
  engine_->Poll();
  ServeAll();
  TellTime(9);
  engine_->Poll();
  ServeAll();
  EXPECT_EQ(got_, "value");
}

TEST_F(ExpiryTest, WhatIsFoundByTheOldVersionExpiresToo) {
  WriteMoved();
  ReadsOfGet();
  EXPECT_EQ(got_, "moved");
  PassTime(11);
  ReadsOfGet();
  EXPECT_EQ(got_, "not found");
  // What is newer counts, and the deadline of the old one does not.
  Write(kOriginal, 3, format::kNoAddress, "newer", 0);
  ReadsOfGet();
  EXPECT_EQ(got_, "newer");
}

TEST_F(ExpiryTest, AnOldVersionWhoseDeadlineIsDamagedIsNone) {
  WriteMoved();
  *(InLog(kMoved) + format::kLabelOffset) ^= std::byte{1};
  ReadsOfGet();
  EXPECT_EQ(got_, "original") << "it need not be passed: the old one may be older";
}

class ExpiryNowTest : public ExpiryTest {
 protected:
  void SetUp() override {
    ExpiryTest::SetUp();
    fabric_->read_now = [this](auto local, auto remote) { return ReadNow(local, remote); };
  }
};

TEST_F(ExpiryNowTest, SaysOnlyWhatIsSureAndAsksNobody) {
  WriteFor(100);
  EXPECT_EQ(ReadsOfGet(), "evt");
  VersionedView found;
  const ClientStats first = engine_->stats();
  ASSERT_EQ(engine_->GetNow(kKey, &found), Engine::Now::kValue);
  EXPECT_EQ(found.value, "value");
  EXPECT_EQ(found.version, 1U);
  EXPECT_EQ(found.expires, Deadline(std::chrono::milliseconds(kServerMillis + 100)));
  const ClientStats before = engine_->stats();
  EXPECT_EQ(before.reads, first.reads + 2) << "the version, and the time";
  clock_.now += std::chrono::milliseconds(100);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(engine_->GetNow(kKey, &found), Engine::Now::kNo) << "the shard may not know";
  shard_time_ += 100;
  EXPECT_EQ(engine_->GetNow(kKey, &found), Engine::Now::kNo) << "the version was read before the time was";
  EXPECT_EQ(engine_->stats().gets, before.gets);
  EXPECT_TRUE(fabric_->posted.empty());
  EXPECT_EQ(engine_->GetNow(kKey, &found), Engine::Now::kAbsent);
  EXPECT_EQ(engine_->stats().gets, before.gets + 1);
}

TEST_F(ExpiryNowTest, AValueWithoutADeadlineCostsOneRead) {
  Write(kPlace, 1, format::kNoAddress, "value", 0);
  Name(kPlace);
  EXPECT_EQ(ReadsOfGet(), "ev");
  VersionedView found;
  const uint64_t before = engine_->stats().reads;
  ASSERT_EQ(engine_->GetNow(kKey, &found), Engine::Now::kValue);
  EXPECT_EQ(engine_->stats().reads, before + 1);
}

class ExpiryChunkTest : public ChunkTest {};

TEST_F(ExpiryChunkTest, ADelegatedPutIsWrittenBehindTheDeadline) {
  ASSERT_TRUE(Takes(Chunk(Most())));
  const uint64_t label = format::LabelSize(std::string_view(kKey).size(), true);
  uint64_t object = 4096 + format::kChunkObjectsAt;
  for (int i = 0; i < 2; ++i) {
    const Status started = engine_->Put(kKey, std::string(100, 'v'), PutOptions{{}, std::chrono::milliseconds(7)},
                                        [this](const Result<uint64_t>& version) { End(version.status()); });
    ASSERT_TRUE(started.ok());
    const WorkRequest write = fabric_->Take();
    EXPECT_EQ(write.kind, OpKind::kWrite);
    EXPECT_EQ(write.remote.offset, geometry_.RegionOffset(0) + object + format::ValueOffset(label));
    const WorkRequest put = TakeRequest(RequestOp::kPutDelegated);
    const auto request = LoadAs<Request>(put.local);
    EXPECT_EQ(request.ttl, 7U);
    EXPECT_EQ(request.address, LogAddress::At(0, object).raw());
    EXPECT_EQ(request.value_crc, Crc32c(0, write.local));
    Answer(put, {});
    engine_->Poll();
    EXPECT_EQ(end_, CodeName(Code::kOk));
    object += format::ObjectSpace(label, 100);
  }
}

// --- Without an operation

class GetNowTest : public LocatedTest {
 protected:
  // The location is known, and the fabric reads at once.
  void SetUp() override {
    LocatedTest::SetUp();
    Write(kPlace, 1, format::kNoAddress, "value", 0);
    Name(kPlace);
    ASSERT_EQ(ReadsOfGet(), "ev");
    fabric_->read_now = [this](std::span<std::byte> local, fabric::RemoteAddress remote) {
      ++reads_;
      std::memcpy(local.data(), log_.data() + (remote.offset - geometry_.RegionOffset(0)), local.size());
      return reads_now_;
    };
  }
  // "-" if it takes an operation.
  std::string GetNow(std::string_view key = kKey) {
    VersionedView found;
    return engine_->GetNow(key, &found) == Engine::Now::kValue ? std::string(found.value) : "-";
  }

  uint64_t reads_ = 0;
  bool reads_now_ = true;
};

TEST_F(GetNowTest, ReadsTheVersionAndPostsNothing) {
  const ClientStats before = engine_->stats();
  EXPECT_EQ(GetNow(), "value");
  EXPECT_EQ(reads_, 1U);
  EXPECT_TRUE(fabric_->posted.empty());
  EXPECT_EQ(engine_->in_flight(), 0U);
  EXPECT_EQ(engine_->stats().gets, before.gets + 1);
  EXPECT_EQ(engine_->stats().reads, before.reads + 1);
  EXPECT_EQ(engine_->stats().cache_hits, before.cache_hits + 1);
}

TEST_F(GetNowTest, WhatTheEntryHasLeftDoesNotCountAndIsLeftToTheGetThatFollows) {
  SetLeft(kPlace);
  EXPECT_EQ(GetNow(), "-");
  EXPECT_EQ(engine_->stats().cache_misled, 0U);
  Write(kOther, 2, kPlace, "newer", 0);
  Name(kOther);
  EXPECT_EQ(ReadsOfGet(), "vev");
  EXPECT_EQ(got_, "newer");
  EXPECT_EQ(engine_->stats().cache_misled, 1U);
  EXPECT_EQ(ReadsOfGet(), "ev") << "seen twice there";
  EXPECT_EQ(GetNow(), "newer");
}

TEST_F(GetNowTest, WhatDoesNotVerifyDoesNotCount) {
  *InLog(kPlace) ^= std::byte{1};
  EXPECT_EQ(GetNow(), "-");
  std::string other(kKey);
  other.back() ^= 1;
  Write(kPlace, 1, format::kNoAddress, "value", 0, other);
  EXPECT_EQ(GetNow(), "-") << "another key's, whole";
  Write(kPlace, 1, format::kNoAddress, "value", 0);
  EXPECT_EQ(GetNow(), "value");
}

TEST_F(GetNowTest, IsNotWhereTheFabricDoesNotReadAtOnce) {
  reads_now_ = false;
  EXPECT_EQ(GetNow(), "-");
}

TEST_F(GetNowTest, IsNotOfKeysWhosePlaceIsNotKnownNorOfWhatIsNone) {
  EXPECT_EQ(GetNow("unknown"), "-");
  EXPECT_EQ(GetNow(""), "-");
  EXPECT_EQ(GetNow(std::string(format::kKeyBytesMax + 1, 'k')), "-");
  EXPECT_EQ(reads_, 0U);
}

// Operations on one key keep their order, and a callback is not run inside another call.
TEST_F(GetNowTest, IsNotWhileAnythingIsUnderWay) {
  Get();
  EXPECT_EQ(GetNow(), "-");
  Serve();
  EXPECT_EQ(GetNow(), "value");
  EXPECT_EQ(reads_, 1U);
}

TEST_F(GetNowTest, IsNotInsideACallback) {
  std::string inside;
  ASSERT_TRUE(engine_->Get(kKey, [&](const Result<std::string_view>&) { inside = GetNow(); }).ok());
  Serve();
  EXPECT_EQ(inside, "-");
  EXPECT_EQ(GetNow(), "value");
}

// Its memory would be the next operation's.
TEST_F(GetNowTest, IsNotOfWhatIsLargerThanAnOperationsMemory) {
  const std::string large(kMessageBytes, 'l');
  Write(kPlace, 2, format::kNoAddress, large, 0);
  EXPECT_EQ(GetNow(), "-") << "the size that is known is another one";
  for (int i = 0; i < 3; ++i) ReadsOfGet();
  ASSERT_EQ(got_, large);
  const uint64_t reads = reads_;
  EXPECT_EQ(GetNow(), "-");
  EXPECT_EQ(reads_, reads);
}

// The server may ask it back, and who polls hears of that.
class GetNowChunkTest : public GetNowTest {
 protected:
  [[nodiscard]] PutPath path() const override { return PutPath::kDelegate; }
};

TEST_F(GetNowChunkTest, IsNotWithAChunk) {
  EXPECT_EQ(GetNow(), "value");
  ASSERT_TRUE(engine_->Put("another key", std::string(100, 'v'), [](const Status&) {}).ok());
  const WorkRequest asks = TakeRequest(RequestOp::kDelegate);
  EngineTest::Answer(TakeRequest(RequestOp::kPutInline), {});
  engine_->Poll();
  EngineTest::Answer(asks, ChunkFor(asks, LoadAs<Request>(asks.local).version));
  engine_->Poll();
  EXPECT_EQ(GetNow(), "-");
  EXPECT_EQ(reads_, 1U);
}

TEST_F(GetNowTest, IsNotWithoutAConnection) {
  fabric_->Close();
  engine_->Poll();
  EXPECT_EQ(GetNow(), "-");
  EXPECT_EQ(reads_, 0U);
}

// A client that gets, and nothing else, hears all the same what the server has to say.
TEST_F(GetNowTest, NowAndThenAGetPolls) {
  int polls = 0;
  for (int i = 0; i < 10'000; ++i) polls += GetNow() == "-" ? 1 : 0;
  EXPECT_GE(polls, 10);
  EXPECT_LE(polls, 100);
}

TEST_F(LocatedTest, AnInlinePutAndADeleteOfItsOwnAreKnown) {
  ASSERT_TRUE(engine_->Put(kKey, "value", [](const Status&) {}).ok());
  const WorkRequest put = TakeRequest(RequestOp::kPutInline);
  Write(kPlace, 1, format::kNoAddress, "value", 0);
  Reply reply{};
  reply.address = kPlace.raw();
  reply.generation = 1;
  EngineTest::Answer(put, reply);
  engine_->Poll();
  Name(kPlace);
  EXPECT_EQ(ReadsOfGet(), "v");
  EXPECT_EQ(got_, "value");
  ASSERT_TRUE(engine_->Delete(kKey, [](const Status&) {}).ok());
  EngineTest::Answer(TakeRequest(RequestOp::kDelete), {});
  engine_->Poll();
  Get();
  EXPECT_EQ(fabric_->Take().remote.offset, geometry_.FirstSlotOffset(0, format::FirstHome(geometry_, HashKey(kKey))))
      << "the entry";
}

TEST_F(ChainTest, AGetDoesNotPassTheOriginalOfTheOldVersion) {
  Write(kOlder, 1, format::kNoAddress, "older", 0);
  Write(kOriginal, 2, kOlder, "original", format::ObjectHeader::kPersistedFlag);
  Write(kMoved, 2, format::kNoAddress, "moved", format::ObjectHeader::kPersistedFlag);
  WriteNewest(kOriginal);
  Get();
  Serve();
  EXPECT_EQ(got_, "moved");
}

TEST_F(ChainTest, AGetTakesWhatIsNewerThanTheOldVersion) {
  Write(kMoved, 2, format::kNoAddress, "old", 0);
  Write(kMiddle, 3, kOriginal, "middle", 0);
  WriteNewest(kMiddle);
  Get();
  Serve(kMiddle);
  ASSERT_EQ(fabric_->posted.size(), 2U) << "version and old header are posted together";
  EXPECT_FALSE(Reads(fabric_->posted[0], kMoved));
  EXPECT_TRUE(Reads(fabric_->posted[1], kMoved));
  EXPECT_EQ(fabric_->posted[1].local.size(), kOldHeaderBytes);
  Serve();
  EXPECT_EQ(got_, "middle");
}

TEST_F(ChainTest, AGetComparesWhatItHasToReadTwice) {
  const std::string large(500, 'm');
  Write(kMoved, 2, format::kNoAddress, "old", 0);
  Write(kMiddle, 3, kOriginal, large, 0);
  WriteNewest(kMiddle);
  Get();
  Serve();
  EXPECT_EQ(got_, large);
  EXPECT_EQ(old_headers_, 2U) << "with each Read of the version";
  Write(kMiddle, 2, kOriginal, large, 0);
  Get();
  Serve();
  EXPECT_EQ(got_, "old");
}

TEST_F(ChainTest, AGetGoesToAnOldVersionWhoseHeaderDoesNotVerify) {
  const std::string_view other = "yek";
  ASSERT_EQ(other.size(), std::string_view(kKey).size());
  Write(kOlder, 1, format::kNoAddress, "older", 0);
  Write(kOriginal, 2, kOlder, "original", format::ObjectHeader::kPersistedFlag);
  WriteNewest(kOriginal);
  for (const bool damaged : {true, false}) {
    Write(kMoved, 2, format::kNoAddress, "moved", 0, damaged ? kKey : other);
    if (damaged) *InLog(kMoved) ^= std::byte{1};
    Get();
    Serve();
    EXPECT_EQ(got_, CodeName(Code::kCorruption)) << damaged;
  }
  // Nor is an original passed that is damaged itself.
  *(InLog(kOriginal) + format::ValueOffset(other.size())) ^= std::byte{1};
  Get();
  Serve();
  EXPECT_EQ(got_, CodeName(Code::kCorruption));
}

// A client writes what it likes into its own chunk, such as a chain that leads back. A get follows it to older versions
// alone, so it ends.
TEST_F(ChainTest, AChainThatLeadsBackEndsAGet) {
  Write(kMoved, 2, format::kNoAddress, "moved", 0);
  for (const LogAddress previous : {kNewest, kMiddle}) {
    Write(kMiddle, 10, kNewest, "middle", format::ObjectHeader::kPersistedFlag);
    WriteNewest(previous);
    Get();
    for (int reads = 0; reads < 100 && !fabric_->posted.empty(); ++reads) {
      Answer(fabric_->Take());
      if (fabric_->posted.empty()) engine_->Poll();
    }
    ASSERT_TRUE(fabric_->posted.empty());
    EXPECT_EQ(got_, "moved");
  }
}

TEST_F(ChainTest, AnOldVersionThatVerifiesAfterAllIsTaken) {
  Write(kOriginal, 2, kOlder, "original", format::ObjectHeader::kPersistedFlag);
  WriteNewest(kOriginal);
  Get();
  Serve(kOriginal);
  for (int i = 0; i < 2; ++i) Answer(fabric_->Take());
  Write(kMoved, 2, format::kNoAddress, "moved", 0);
  engine_->Poll();
  Serve();
  EXPECT_EQ(got_, "moved");
  EXPECT_EQ(engine_->stats().second_looks, 0U) << "not older than the original, it is still the old one";
}

// The put of what is in between may be acknowledged.
TEST_F(ChainTest, AGetTakesWhatItNeedNotPassThoughTheOldHeaderDoesNotVerify) {
  Write(kMiddle, 3, kOriginal, "middle", 0);
  WriteNewest(kMiddle);
  for (const std::string_view key : {"key", "yek", "another key"}) {
    Write(kMoved, 5, format::kNoAddress, "old", 0, key);
    if (key == kKey) *InLog(kMoved) ^= std::byte{1};
    Get();
    Serve();
    EXPECT_EQ(got_, "middle") << key;
  }
}

TEST_F(ChainTest, AGetReadsTheSlotsAnewIfTheOldVersionIsInNone) {
  Write(kOriginal, 2, format::kNoAddress, "original", 0);
  Write(kMoved, 2, format::kNoAddress, "moved", 0);
  WriteNewest(kOriginal);
  slots_[1] = {};
  ASSERT_TRUE(engine_->connections().BeginReadControls().ok());
  Serve();
  slots_[1] = format::HeadSlot::Of(0, 1);
  Get();
  Serve();
  EXPECT_EQ(got_, "moved");
}

// The old version was moved away and back to the same address of its slot, in another region, while the get had the
// slots of the time in between: for the newest version, which is damaged, they were enough.
TEST_F(ChainTest, AnOldVersionThatCameBackToItsAddressIsNotDamage) {
  WriteNewest(format::kNoAddress);
  *InLog(kNewest) ^= std::byte{1};
  Write(kMoved, 2, format::kNoAddress, "moved", 0);
  slots_[1] = format::HeadSlot::Of(0, 7).Emptied();
  ASSERT_TRUE(engine_->connections().BeginReadControls().ok());
  Serve();
  Get();
  // Until it has been told the slots anew, behind the newest version: nothing has changed so far.
  while (!fabric_->posted.empty() && fabric_->posted.front().remote.region != format::kControlRegion) {
    Answer(fabric_->Take());
    engine_->Poll();
  }
  ASSERT_FALSE(fabric_->posted.empty());
  Answer(fabric_->Take());
  slots_[1] = format::HeadSlot::Of(0, 1);
  engine_->Poll();
  Serve();
  EXPECT_EQ(got_, "moved");
}

TEST_F(ChainTest, AGetReadsNoHeaderThatWouldGoBeyondItsSegment) {
  WriteNewest(kOriginal);
  old_ = LogAddress::At(0, geometry_.segment_size - format::kGranuleBytes);
  log_.resize(geometry_.segment_size);
  Get();
  Serve();
  EXPECT_EQ(got_, CodeName(Code::kCorruption));
  EXPECT_EQ(old_headers_, 0U);
}

TEST_F(ChainTest, TheOldVersionStandsWhereItDidWhenItsHeaderWasAskedFor) {
  Write(kOriginal, 2, format::kNoAddress, "original", 0);
  Write(kMoved, 2, format::kNoAddress, "moved", 0);
  WriteNewest(kOriginal);
  Get();
  Serve(kOriginal);
  const WorkRequest reads[] = {fabric_->Take(), fabric_->Take()};
  slots_[1] = format::HeadSlot::Of(0, 2);
  ASSERT_TRUE(engine_->connections().BeginReadControls().ok());
  Serve();
  for (const WorkRequest& read : reads) Answer(read);
  engine_->Poll();
  EXPECT_EQ(got_, "") << "it was compared, and is not newer";
  ASSERT_FALSE(fabric_->posted.empty());
  EXPECT_EQ(fabric_->posted.front().remote.offset,
            geometry_.FirstSlotOffset(0, format::FirstHome(geometry_, HashKey(kKey))))
      << "the entry: slots have changed";
}

TEST_F(ChainTest, AGetReadsNoHeaderIfThereIsNothingToCompare) {
  Write(kMoved, 2, format::kNoAddress, "old", 0);
  WriteNewest(kMoved);
  Get();
  Serve();
  EXPECT_EQ(got_, "old");
  old_ = format::kNoAddress;
  Write(kMiddle, 3, format::kNoAddress, "middle", 0);
  WriteNewest(kMiddle);
  Get();
  Serve();
  EXPECT_EQ(got_, "middle");
  EXPECT_EQ(old_headers_, 0U);
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

// --- Gets that begin together, when the callbacks of a Poll are through

class TogetherTest : public EngineTest {
 protected:
  void Get(const std::string& key) {
    const Status started =
        engine_->Get(key, [this](const Result<std::string_view>& value) { ends_.push_back(value.status().code()); });
    ASSERT_TRUE(started.ok()) << started.ToString();
  }
  // The put's callback starts them.
  void End(const Status& status) override {
    EngineTest::End(status);
    Get("a");
    Get("b");
    EXPECT_TRUE(fabric_->posted.empty()) << "they have not begun";
  }
  std::vector<Code> ends_;
};

TEST_F(TogetherTest, TheyAreReadBehindOneDoorbell) {
  Put(100);
  const WorkRequest put = TakeRequest(RequestOp::kPutInline);
  Answer(put, {});
  fabric_->Complete(put);  // something else that this Poll finds
  const uint64_t posts = fabric_->posts;
  engine_->Poll();
  EXPECT_EQ(fabric_->posted.size(), 2U);
  EXPECT_EQ(fabric_->posts, posts + 1);
}

TEST_F(TogetherTest, TheyEndWithTheirConnectionThoughTheyHaveNotBegun) {
  Put(100);
  Answer(TakeRequest(RequestOp::kPutInline), {});
  fabric_->Close();
  engine_->Poll();
  EXPECT_EQ(end_, CodeName(Code::kOk));
  EXPECT_EQ(ends_, (std::vector{Code::kUnavailable, Code::kUnavailable}));
  EXPECT_EQ(engine_->in_flight(), 0U);
  // The next ones have the same places, and wait for the next connection.
  Get("c");
  Get("d");
  engine_->Poll();
  EXPECT_EQ(ends_.size(), 2U);
  EXPECT_EQ(engine_->in_flight(), 2U);
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
