// The index finds changes of its slots by their checks (index/slot_checks.h, index/mender.h).
#include "index/slot_checks.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "index/fixture.h"

namespace erda::index {
namespace {

using format::IndexEntry;

IndexEntry Flipped(IndexEntry entry, uint32_t bit) {
  (bit < 64 ? entry.word : entry.meta) ^= uint64_t{1} << (bit % 64);
  return entry;
}

TEST(SlotChecksTest, EachFlippedBitIsFoundAndUndone) {
  SlotChecks checks(6);
  checks.Grow(128);
  Random random(7);
  for (int i = 0; i < 300; ++i) {
    const IndexEntry entry = i == 0 ? IndexEntry{} : IndexEntry{random.Next(), random.Next()};
    checks.Keep(70, entry);
    EXPECT_TRUE(checks.Fits(70, entry));
    for (uint32_t bit = 0; bit < 128; ++bit) {
      const IndexEntry damaged = Flipped(entry, bit);
      EXPECT_FALSE(checks.Fits(70, damaged)) << bit;
      const auto mended = checks.WithoutFlip(70, damaged);
      ASSERT_TRUE(mended) << bit;
      EXPECT_EQ(mended->word, entry.word) << bit;
      EXPECT_EQ(mended->meta, entry.meta) << bit;
    }
  }
}

// Two flips may look like a third one. That is rare: 128 of 65,536 changes look like one flip.
TEST(SlotChecksTest, TwoFlippedBitsAreHardlyEverTakenForOne) {
  SlotChecks checks(6);
  checks.Grow(64);
  Random random(8);
  int taken = 0;
  for (int i = 0; i < 20; ++i) {
    const IndexEntry entry{random.Next(), random.Next()};
    checks.Keep(0, entry);
    for (uint32_t one = 0; one < 128; ++one) {
      for (uint32_t two = 0; two < one; ++two) {
        const IndexEntry damaged = Flipped(Flipped(entry, one), two);
        taken += checks.Fits(0, damaged) || checks.WithoutFlip(0, damaged) ? 1 : 0;
      }
    }
  }
  EXPECT_LT(taken, 20 * 8128 / 50);
}

TEST(SlotChecksTest, OldSlotsKeepTheirChecks) {
  SlotChecks checks(6);
  checks.Keep(3, {1, 2});  // The slot has no check, so nothing happens.
  checks.Grow(64);
  checks.Keep(3, {1, 2});
  checks.Grow(192);
  EXPECT_EQ(checks.slots(), 192U);
  EXPECT_TRUE(checks.Fits(3, {1, 2}));
}

class MendTest : public testing::Test {
 protected:
  void SetUp() override {
    KeySource keys(3);
    for (int i = 0; i < 40; ++i) {
      hashes_.push_back(keys.Next());
      ASSERT_TRUE(index_.Insert(hashes_.back(), static_cast<uint32_t>(100 + i)));
    }
    ASSERT_TRUE(index_->Count(index_->size()));
  }
  void Flip(Slot slot, uint32_t bit) {
    const uint64_t at = index_.geometry().FirstSlotOffset(TestIndex::kShard, slot) + (bit < 64 ? 0 : 8);
    index_.nvm().Store64(at, index_.nvm().Load64(at) ^ uint64_t{1} << (bit % 64));
  }

  TestIndex index_{128};
  std::vector<uint64_t> hashes_;
};

TEST_F(MendTest, AllStoresOfTheIndexFit) {
  index_->StoreSizeHint(*index_.Find(hashes_[3]), 4096);
  index_->StoreWord(*index_.Find(hashes_[4]), WordOf(900).Published(format::LogAddress(901)));
  ASSERT_TRUE(index_.Free(hashes_[5]));
  for (Slot slot = 0; slot < index_->size(); ++slot) EXPECT_TRUE(index_->mender().Fits(slot)) << slot;
}

TEST_F(MendTest, AFlipIsUndoneInAnySlot) {
  for (Slot slot = 0; slot < index_->size(); ++slot) {
    const IndexEntry before = index_->At(slot);
    const auto bit = static_cast<uint32_t>(slot % 128);
    Flip(slot, bit);
    EXPECT_EQ(index_->mender().Mend(slot), Mender::Mended::kUndone) << slot;
    EXPECT_EQ(index_->At(slot).word, before.word);
    EXPECT_EQ(index_->At(slot).meta, before.meta);
    EXPECT_EQ(index_->mender().Mend(slot), Mender::Mended::kFits);
  }
  EXPECT_EQ(index_->mender().flips_undone(), index_->size());
}

TEST_F(MendTest, ALargerChangeIsKeptAndFitsFromThenOn) {
  const Slot slot = *index_.Find(hashes_[0]);
  for (const uint32_t bit : {1U, 33U, 64U, 90U}) Flip(slot, bit);
  const IndexEntry damaged = index_->At(slot);
  EXPECT_EQ(index_->mender().Mend(slot), Mender::Mended::kAccepted);
  EXPECT_EQ(index_->At(slot).word, damaged.word);
  EXPECT_EQ(index_->mender().Mend(slot), Mender::Mended::kFits);
  EXPECT_EQ(index_->mender().flips_undone(), 0U);
}

// The census takes the slot for used, and the slot is free.
TEST_F(MendTest, TotalIsRightAfterAnAcceptedChange) {
  const Slot slot = *index_.Find(hashes_[0]);
  index_.nvm().Store64(index_.geometry().FirstSlotOffset(TestIndex::kShard, slot), 0);
  EXPECT_EQ(index_->mender().Mend(slot), Mender::Mended::kAccepted);
  EXPECT_EQ(index_->census().used(), hashes_.size());
  EXPECT_EQ(index_->census().Total().used, hashes_.size() - 1);
}

TEST_F(MendTest, FindMendedSeesTheEntryAsItWas) {
  for (const uint64_t hash : hashes_) {
    const Slot slot = *index_.Find(hash);
    const IndexEntry before = index_->At(slot);
    Flip(slot, 63);
    const auto found =
        index_->mender().FindMended(hash, [&](Slot, const IndexEntry& entry) { return entry.word == before.word; });
    EXPECT_EQ(found, slot);
    EXPECT_EQ(index_->At(slot).word, before.word);
  }
}

// The index does not know what an earlier server stored. So the entry in the slot counts.
TEST_F(MendTest, AnUncountedSlotIsTakenAsItStands) {
  const Slot slot = *index_.Find(hashes_[0]);
  Flip(slot, 0);
  index_.Reopen();
  const IndexEntry flipped = index_->At(slot);
  EXPECT_EQ(index_->mender().Mend(slot), Mender::Mended::kFits);
  while (!index_->Count(8)) {
  }
  EXPECT_EQ(index_->mender().Mend(slot), Mender::Mended::kFits);
  EXPECT_EQ(index_->At(slot).word, flipped.word);
}

}  // namespace
}  // namespace erda::index
