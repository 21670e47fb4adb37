// How an index finds a bit that flipped while no server ran (index/rest_check.h).
#include "index/rest_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/random.h"
#include "index/fixture.h"

namespace erda::index {
namespace {

using format::IndexEntry;

class IndexAtRestTest : public testing::Test {
 protected:
  static constexpr uint64_t kSlots = 512;

  void Close() { sum_ = index_->census().Total(); }
  void Flip(Slot slot, uint64_t bit) {
    const uint64_t at = index_.geometry().FirstSlotOffset(TestIndex::kShard, slot) + (bit < 64 ? 0 : 8);
    index_.nvm().Store64(at, index_.nvm().Load64(at) ^ uint64_t{1} << (bit % 64));
  }
  void Open() { index_->Open(sum_.used, sum_.sum); }
  Mender::News EndRest() {
    index_->mender().EndRest();
    return index_->mender().TakeNews();
  }
  std::vector<IndexEntry> Entries() {
    std::vector<IndexEntry> entries;
    for (Slot slot = 0; slot < kSlots; ++slot) entries.push_back(index_->At(slot));
    return entries;
  }
  // Does what a server may do to the index, at random.
  void Change(Random& random) {
    switch (random.Uniform(5)) {
      case 0:
        hashes_.push_back(keys_.Next());
        if (!index_.Insert(hashes_.back(), static_cast<uint32_t>(random.Between(1, 5000)))) hashes_.pop_back();
        break;
      case 1:
        if (!hashes_.empty()) {
          (void)index_.Free(hashes_.back());
          hashes_.pop_back();
        }
        break;
      case 2:
        hashes_.push_back(keys_.Next());
        if (!index_.InsertFar(hashes_.back(), 7)) hashes_.pop_back();
        break;
      default: {
        if (hashes_.empty()) return;
        const auto slot = index_.Find(hashes_[random.Uniform(hashes_.size())]);
        if (!slot) return;
        if (random.Chance(0.5)) return index_->StoreSizeHint(*slot, random.Uniform(100'000));
        index_->StoreWord(*slot, WordOf(static_cast<uint32_t>(random.Between(1, 5000))));
      }
    }
  }

  TestIndex index_{kSlots};
  KeySource keys_{9};
  std::vector<uint64_t> hashes_;
  Census::Totals sum_;
};

TEST_F(IndexAtRestTest, StoresBeforeAllIsCountedAreNoChange) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    for (uint64_t i = random.Uniform(40); i > 0; --i) Change(random);
    Close();
    Open();
    while (!index_->Count(random.Between(1, 60))) {
      for (uint64_t i = random.Uniform(20); i > 0; --i) Change(random);
    }
    ASSERT_TRUE(index_->mender().may_end_rest());
    EXPECT_FALSE(EndRest().changed_at_rest);
    EXPECT_EQ(index_->mender().flips_undone(), 0U);
    EXPECT_FALSE(index_->mender().rest_is_due());
  }
}

// The index names the flip if the flipped half of the entry still stands as it was found, and never another one.
TEST_F(IndexAtRestTest, AFlipIsFoundAmongStores) {
  int undone = 0;
  int overwritten = 0;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    for (uint64_t i = random.Uniform(20); i > 0; --i) Change(random);
    Close();
    const Slot slot = random.Uniform(kSlots);
    const IndexEntry before = index_->At(slot);
    const uint64_t bit = random.Uniform(128);
    Flip(slot, bit);
    const IndexEntry flipped = index_->At(slot);
    Open();
    while (!index_->Count(random.Between(1, 300))) {
      for (uint64_t i = random.Uniform(40); i > 0; --i) Change(random);
    }
    const std::vector<IndexEntry> all = Entries();
    const IndexEntry found = all[slot];
    const bool stands = bit < 64 ? found.word == flipped.word : found.meta == flipped.meta;
    const bool mended = bit < 64 ? found.word == before.word : found.meta == before.meta;
    const uint64_t undone_before = index_->mender().flips_undone();
    EXPECT_EQ(EndRest().changed_at_rest, !stands && !mended);
    ASSERT_EQ(index_->mender().flips_undone() - undone_before, stands ? 1U : 0U);
    (stands ? undone : overwritten) += 1;
    std::vector<IndexEntry> expected = all;
    if (stands) (bit < 64 ? expected[slot].word : expected[slot].meta) = bit < 64 ? before.word : before.meta;
    EXPECT_TRUE(std::ranges::equal(Entries(), expected, [](const IndexEntry& a, const IndexEntry& b) {
      return a.word == b.word && a.meta == b.meta;
    }));
    EXPECT_TRUE(index_->mender().Fits(slot));
  }
  EXPECT_GT(undone, 500);
  EXPECT_GT(overwritten, 5);
}

TEST_F(IndexAtRestTest, AnUnknownSumIsNotCompared) {
  Random random(1);
  for (int i = 0; i < 50; ++i) Change(random);
  Close();
  Flip(3, 5);
  index_->Open(sum_.used);
  index_->Count(kSlots);
  EXPECT_FALSE(index_->mender().may_end_rest());
  EXPECT_FALSE(index_->mender().rest_is_due());
}

}  // namespace
}  // namespace erda::index
