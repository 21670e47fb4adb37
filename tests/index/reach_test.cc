// If more keys have one home than a neighbourhood has slots, the window of their class grows (format/reach.h, I15).
#include "format/reach.h"

#include <gtest/gtest.h>

#include <cstring>
#include <unordered_set>

#include "index/fixture.h"
#include "index/read_only_index.h"

namespace erda::index {
namespace {

using format::EntryMeta;
using format::kNeighbourhood;
using format::Reaches;

// The index has two blocks of 1024 slots. A crowd is keys with one home in block 0.
class ReachTest : public testing::Test {
 protected:
  static constexpr uint64_t kSlots = 2048;
  static constexpr uint64_t kBlockSlots = 1024;
  static constexpr uint64_t kHigh = uint64_t{0x7123} << 48;

  static uint64_t Crowd(uint64_t i) { return kHigh | i << 1; }
  void Fill(uint64_t keys) {
    for (uint64_t i = 0; i < keys; ++i) {
      ASSERT_TRUE(index_.InsertFar(Crowd(i))) << i;
      keys_.insert(Crowd(i));
    }
  }

  TestIndex index_{kSlots};
  std::unordered_set<uint64_t> keys_;
};

TEST_F(ReachTest, AWindowGrowsWhenItIsFullAndNotBefore) {
  ASSERT_EQ(index_.geometry().block_slots(), kBlockSlots);
  for (uint64_t keys = 0; keys < kBlockSlots; ++keys) {
    ASSERT_TRUE(index_.InsertFar(Crowd(keys))) << keys;
    keys_.insert(Crowd(keys));
    uint32_t exponent = 0;
    while (uint64_t{kNeighbourhood} << exponent < keys + 1) ++exponent;
    ASSERT_EQ(index_->layout().reaches().Exponent(kHigh), exponent) << keys;
    ASSERT_EQ(index_.told_reaches(), index_->layout().reaches());
    ASSERT_EQ(index_->At(*index_.Find(Crowd(keys))).entry_meta().distance() == EntryMeta::kFar, keys >= kNeighbourhood);
  }
  EXPECT_TRUE(index_.IsSound(keys_));
  EXPECT_FALSE(index_.InsertFar(Crowd(kBlockSlots))) << "the block is full";
  EXPECT_FALSE(index_.Find(Crowd(kBlockSlots)));
  EXPECT_EQ(index_->layout().reaches(), Reaches().Raised(kHigh).Raised(kHigh).Raised(kHigh).Raised(kHigh))
      << "the reach of another class changed";
  // A key that is freed makes room.
  ASSERT_TRUE(index_.Free(Crowd(700)));
  keys_.erase(Crowd(700));
  ASSERT_TRUE(index_.InsertFar(Crowd(kBlockSlots)));
  keys_.insert(Crowd(kBlockSlots));
  EXPECT_TRUE(index_.IsSound(keys_));
}

TEST_F(ReachTest, WithoutARaiseAKeyBeyondItsNeighbourhoodIsRefused) {
  Fill(kNeighbourhood);
  EXPECT_FALSE(index_.Insert(Crowd(kNeighbourhood)));
  EXPECT_TRUE(index_->layout().reaches().none());
}

TEST_F(ReachTest, ReachesOutliveTheirServer) {
  Fill(300);
  const Reaches reaches = index_->layout().reaches();
  ASSERT_EQ(reaches.Exponent(kHigh), 3U);
  index_.Reopen();
  EXPECT_EQ(index_->layout().reaches(), reaches);
  EXPECT_EQ(index_.told_reaches(), reaches);
  EXPECT_TRUE(index_.IsSound(keys_));
}

TEST_F(ReachTest, ADamagedRecordBecomesTheFarthestReaches) {
  Fill(300);
  const uint64_t at = format::ShardRecordOffset(TestIndex::kShard) + offsetof(format::ShardRecord, reaches);
  auto* const record = reinterpret_cast<uint64_t*>(index_.pool().view().bytes.data() + at);
  *record ^= uint64_t{1} << 30;
  index_.Reopen();
  EXPECT_EQ(index_->layout().reaches(), Reaches::Farthest());
  EXPECT_EQ(index_.told_reaches(), Reaches::Farthest());
  EXPECT_TRUE(index_.IsSound(keys_));
  EXPECT_EQ(format::CheckedWord(*record).number(), Reaches::Farthest().number());
}

// Its slot does not tell its home.
TEST_F(ReachTest, AFarEntryMakesRoomForNoOther) {
  // The crowd has home 0, and stands in the slots up to 150. A key with a home among them finds the next slots free.
  const auto insert = [&](uint64_t key) {
    keys_.insert(key);
    return index_.InsertFar(key);
  };
  for (uint64_t i = 0; i < 150; ++i) ASSERT_TRUE(insert(i << 1));
  const uint64_t moves = *index_.displacements();
  uint64_t other = 10'000;
  while (index_->layout().HomeOf(other) < 70) other += uint64_t{1} << 40;
  ASSERT_EQ(index_->layout().HomeOf(other), 70U);
  EXPECT_FALSE(index_.Insert(other));
  EXPECT_EQ(*index_.displacements(), moves);
  EXPECT_TRUE(insert(other));
  EXPECT_TRUE(index_.IsSound(keys_));
}

// The cleaner is such a reader.
TEST_F(ReachTest, AReaderInAnotherThreadLearnsOfALargerWindow) {
  ReadOnlyIndex reader(index_.nvm(), index_.geometry(), TestIndex::kShard, index_.published());
  Fill(100);
  const auto any = [](Slot, const format::IndexEntry&) { return true; };
  EXPECT_FALSE(reader.Find(Crowd(99), any));
  EXPECT_TRUE(reader.Refresh());
  EXPECT_TRUE(reader.Find(Crowd(99), any));
  EXPECT_FALSE(reader.Refresh()) << "no window has grown since";
}

}  // namespace
}  // namespace erda::index
