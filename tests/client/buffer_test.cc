// Buffers: the engine sends values from them, and reads values into them.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "base/test_hash.h"
#include "client/engine_fixture.h"
#include "client/expiry.h"
#include "client/hand_fabric.h"
#include "format/index_entry.h"
#include "format/object.h"

namespace erda::client {
namespace {

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
  // Answers the Reads of a get: the entry says that the object has `said_bytes` bytes. With
  // deadline 0 the value does not expire.
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

TEST_F(BufferTest, InlinePutIsSentFromTheBuffer) {
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

TEST_F(BufferTest, ReservedPutWritesItsValueFromTheBuffer) {
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

TEST_F(BufferTest, GetReadsTheValueIntoTheBuffer) {
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

// The value is read a few bytes after its place, if need be into the room that follows the buffer.
TEST_P(ExpiringInBufferTest, GetMovesTheValueToTheBeginningOfTheBuffer) {
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
TEST_F(BufferTest, ValueSmallerThanItsHintIsCopiedIntoTheBuffer) {
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

TEST_P(LargerThanBufferTest, GetReportsTheSizeOfAValueThatDoesNotFit) {
  MakeBuffer(100);
  ASSERT_TRUE(GetBuffer().ok());
  AnswerGet(std::string(GetParam(), 'x'), format::ObjectSpace(3, GetParam()));
  EXPECT_NE(got_.find("the value has " + std::to_string(GetParam()) + " bytes, and the buffer only 100"),
            std::string::npos)
      << got_;
}

TEST_F(BufferTest, BufferServesOneOperationAtATime) {
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

TEST_F(BufferTest, BufferMustFitTheValueAndBelongToTheClient) {
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

TEST_F(BufferTest, BufferStaysRegisteredUntilItsOperationEnds) {
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
  // The next operation has separate memory again, which the fabric knows.
  Put(60);
  Answer(TakeRequest(RequestOp::kPutInline), {});
  engine_->Poll();
}

TEST_F(BufferTest, BufferIsFreeAgainWhenAWaitingOperationEnds) {
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

TEST_F(BufferTest, CallerGetsTheBufferBackAfterTheChannelIsGone) {
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

}  // namespace
}  // namespace erda::client
