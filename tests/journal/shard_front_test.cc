#include "journal/shard_front.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "journal/ring_fixture.h"
#include "journal/stream_fixture.h"
#include "nvm/writer.h"
#include "server/crash_pool.h"

namespace erda::journal {
namespace {

class ShardFrontTest : public testing::Test {
 protected:
  static constexpr uint64_t kCapacity = 4096;
  static constexpr uint64_t kSize = sizeof(FrontHeader) + kCapacity;
  static constexpr uint64_t kEntry = EntrySpace(240);

  ShardFrontTest() : part_(FrontPart::Format(nvm_, 0, kSize, kRingIdentity, 1, 0)) {
    auto stream = Stream::Format(stream_memory_.bytes(), kRingIdentity.uuid, 0, 0);
    EXPECT_TRUE(stream.ok());
    stream_.emplace(*stream);
    front_.emplace(memory_, part_, *stream_, disk_, health_, [this] { ++asks_; });
  }
  // Appends entries to the stream.
  void Flush(int entries) {
    for (; entries > 0; --entries) {
      const std::string bytes(240, static_cast<char>('a' + (next_++ % 26)));
      ASSERT_TRUE(stream_->Append(64, AsBytes(bytes)));
    }
  }
  void ExpectHas(Place from, Place end) {
    const auto found = FrontPart::Open(nvm_, 0, kSize, kRingIdentity);
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(found->end(), end);
    const auto bytes = found->Read();
    ASSERT_LE(bytes.from, from);
    const auto expected = stream_->Bytes(from, end)[0];
    EXPECT_TRUE(std::ranges::equal(std::span(bytes.bytes).subspan(from - bytes.from), expected));
  }

  server::CrashPool memory_{kSize};
  nvm::Writer nvm_{memory_};
  FrontPart part_;
  const SharedPages stream_memory_{Stream::MemoryFor(Stream::kCapacityMin)};
  std::optional<Stream> stream_;
  std::atomic<Place> disk_{0};
  Health health_{[] {}, [](const Status& /*status*/) {}};
  std::optional<ShardFront> front_;
  int next_ = 0;
  int asks_ = 0;
};

TEST_F(ShardFrontTest, HoldsWhatTheStreamHas) {
  EXPECT_TRUE(front_->HoldAll());
  EXPECT_EQ(front_->end(), 0U);
  Flush(2);
  EXPECT_TRUE(front_->HoldAll());
  EXPECT_EQ(front_->end(), 2 * kEntry);
  Flush(1);
  EXPECT_EQ(front_->end(), 2 * kEntry);
  EXPECT_TRUE(front_->HoldAll());
  ExpectHas(0, 3 * kEntry);
  EXPECT_EQ(asks_, 0);
}

TEST_F(ShardFrontTest, DiskIsAskedWhenAQuarterIsUsed) {
  Flush(4);
  EXPECT_TRUE(front_->HoldAll());
  EXPECT_EQ(asks_, 0);
  Flush(1);
  EXPECT_TRUE(front_->HoldAll());
  EXPECT_EQ(asks_, 1);
  disk_ = 3 * kEntry;
  Flush(1);
  EXPECT_TRUE(front_->HoldAll());
  EXPECT_EQ(asks_, 1) << "the part has three of them";
}

TEST_F(ShardFrontTest, FullPartLeavesItToTheDisk) {
  Flush(17);
  EXPECT_FALSE(front_->HoldAll());
  EXPECT_FALSE(front_->HoldAll());
  EXPECT_EQ(front_->full_times(), 1U);
  EXPECT_EQ(front_->end(), 0U);
  disk_ = 16 * kEntry;
  EXPECT_TRUE(front_->HoldAll());
  EXPECT_EQ(front_->end(), 17 * kEntry);
  ExpectHas(16 * kEntry, 17 * kEntry);
  Flush(15);
  EXPECT_TRUE(front_->HoldAll());
  Flush(1);
  EXPECT_FALSE(front_->HoldAll());
  EXPECT_EQ(front_->full_times(), 2U);
  disk_ = 20 * kEntry;
  EXPECT_TRUE(front_->HoldAll()) << "the part has room again";
  ExpectHas(20 * kEntry, 33 * kEntry);
}

// Bytes for which nobody waits go to the disk alone.
TEST_F(ShardFrontTest, FrontLeavesOutWhatTheDiskHas) {
  Flush(3);
  disk_ = 3 * kEntry;
  EXPECT_TRUE(front_->HoldAll());
  EXPECT_EQ(part_.end(), 0U);
  Flush(1);
  EXPECT_TRUE(front_->HoldAll());
  const auto found = FrontPart::Open(nvm_, 0, kSize, kRingIdentity);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->Read().from, 3 * kEntry);
  EXPECT_EQ(found->end(), 4 * kEntry);
}

// The stream may lack bytes then.
TEST_F(ShardFrontTest, NothingIsHeldAfterTheDiskHasFailed) {
  Flush(1);
  EXPECT_TRUE(front_->HoldAll());
  health_.Fail({Code::kUnavailable, "the disk is broken"});
  Flush(1);
  EXPECT_FALSE(front_->HoldAll());
  EXPECT_EQ(front_->end(), kEntry);
}

// The memory of a disk's region may break, at a fence.
class FailingMemory final : public nvm::Pool {
 public:
  FailingMemory(nvm::Pool& memory, int fences) : memory_(memory), left_(fences) { bytes_ = memory.view().bytes; }
  [[nodiscard]] MemoryView view() const override { return memory_.view(); }
  [[nodiscard]] bool created() const override { return false; }
  [[nodiscard]] bool failed() const override { return left_ <= 0; }
  void RemoveIfCreated() override {}
  Status Widen(uint64_t /*kept*/, uint64_t /*size*/) override { return {}; }

 private:
  void FlushRange(const std::byte* /*begin*/, size_t /*size*/) override {}
  void Drain() override { --left_; }

  nvm::Pool& memory_;
  int left_;
};

// The fence before the space is used again fails. So the bytes that stood there have to stay.
TEST_F(ShardFrontTest, BrokenMemoryIsNotUsedAgain) {
  Flush(16);
  ASSERT_TRUE(front_->HoldAll());
  disk_ = 16 * kEntry;
  const auto area = memory_.view().bytes.subspan(sizeof(FrontHeader), kCapacity);
  const std::vector<std::byte> before(area.begin(), area.end());
  FailingMemory broken(memory_, 2);  // Open has a fence.
  nvm::Writer writer(broken);
  FrontPart part = FrontPart::Open(writer, 0, kSize, kRingIdentity).value();
  ShardFront front(broken, part, *stream_, disk_, health_, [] {});
  Flush(1);
  EXPECT_FALSE(front.HoldAll());
  EXPECT_FALSE(health_.ok());
  EXPECT_TRUE(std::ranges::equal(before, area));
}

TEST_F(ShardFrontTest, BrokenMemoryHoldsNothing) {
  Flush(1);
  for (const int fences : {1, 2}) {
    SCOPED_TRACE(fences);
    FailingMemory broken(memory_, fences + 1);  // Open has a fence.
    nvm::Writer writer(broken);
    FrontPart part = FrontPart::Open(writer, 0, kSize, kRingIdentity).value();
    Health health([] {}, [](const Status& /*status*/) {});
    ShardFront front(broken, part, *stream_, disk_, health, [] {});
    EXPECT_FALSE(front.HoldAll());
    EXPECT_EQ(front.end(), 0U);
    EXPECT_FALSE(health.ok());
    EXPECT_EQ(front.full_times(), 0U);
    // No later store says that the bytes are there.
    if (fences == 1) {
      EXPECT_EQ(nvm_.Load64(offsetof(FrontHeader, end)), 0U);
    }
    EXPECT_FALSE(front.HoldAll());
  }
}

}  // namespace
}  // namespace erda::journal
