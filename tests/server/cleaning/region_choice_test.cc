#include "server/cleaning/region_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "server/cleaning/cleaning_fixture.h"

namespace erda::server {
namespace {

// A store with full regions and a few keys of one size in each. Nothing is cleaned.
class RegionChoiceTest : public CleaningTest {
 protected:
  static constexpr CleaningGoal kSpace{.few_free = true};
  static constexpr CleaningGoal kPutWaits{.few_free = true, .put_needs_region = true};

  RegionChoiceTest() {
    store_->CountKeys(store_->versions().index().size());
    for (uint64_t i = 0; i < 250; ++i) PutHere(Key(i));
    for (uint64_t i = 0; i < 250; ++i) keys_of_[RegionOfKey(Key(i))].push_back(Key(i));
    for (const auto& [region, keys] : keys_of_) order_.push_back(region);
    std::sort(order_.begin(), order_.end(), [&](uint32_t a, uint32_t b) { return Linked(a) < Linked(b); });
  }

  void PutHere(const std::string& key) { ASSERT_EQ(store_->Inline(key, ValueOf(++puts_, 200)).code, Code::kOk); }
  [[nodiscard]] uint32_t RegionOfKey(const std::string& key) const {
    return RegionOf(store_->WordOf(key).new_address()).region();
  }
  // Returns the generation of the region, which tells when it was linked. Requires: its keys have their first values.
  [[nodiscard]] uint32_t Linked(uint32_t region) const {
    return RegionOf(store_->WordOf(keys_of_.at(region).front()).new_address()).generation();
  }
  // Puts other values for this many keys of the region, which then stand in another region.
  void KillIn(uint32_t region, size_t keys) {
    ASSERT_LE(keys, keys_of_.at(region).size());
    for (size_t i = 0; i < keys; ++i) PutHere(keys_of_.at(region)[i]);
  }
  RegionChoice Choose(const CleaningGoal& goal) {
    const log::RegionCounts counts = store_->versions().CountRegions();
    return ChooseRegion(store_->versions().log(), counts, store_->geometry(), tried_, merged_, goal);
  }

  TriedRegions tried_{store_->geometry()};
  MergedRegions merged_{store_->geometry()};
  std::map<uint32_t, std::vector<std::string>> keys_of_;
  std::vector<uint32_t> order_;  // regions, the oldest first
};

TEST_F(RegionChoiceTest, RegionThatNothingNamesIsUnneeded) {
  EXPECT_TRUE(Choose(kSpace).unneeded.empty());
  KillIn(order_[1], keys_of_[order_[1]].size());
  const RegionChoice choice = Choose(kSpace);
  ASSERT_EQ(choice.unneeded.size(), 1U);
  EXPECT_EQ(choice.unneeded[0].region, order_[1]);
}

TEST_F(RegionChoiceTest, OldRegionIsPreferredUnlessAPutWaits) {
  KillIn(order_[0], 15);
  KillIn(order_[1], 17);
  ASSERT_TRUE(Choose(kSpace).best);
  EXPECT_EQ(Choose(kSpace).best->region, order_[0]) << "it changes less from now on";
  ASSERT_TRUE(Choose(kPutWaits).best);
  EXPECT_EQ(Choose(kPutWaits).best->region, order_[1]) << "it gains more now";
}

TEST_F(RegionChoiceTest, NothingIsMergedWithoutAGoal) {
  KillIn(order_[0], 15);
  EXPECT_FALSE(Choose({}).best);
}

TEST_F(RegionChoiceTest, AskingReachesTheRegionsLinkedBefore) {
  const uint32_t until = Linked(order_[0]);
  KillIn(order_[0], 10);
  KillIn(order_[1], 30);
  const RegionChoice choice = Choose({.asked = until});
  ASSERT_TRUE(choice.best);
  EXPECT_EQ(choice.best->region, order_[0]) << "the other one gains more, and is newer";
}

TEST_F(RegionChoiceTest, LittleDeadSpaceCountsOnlyForAPutThatWaits) {
  KillIn(order_[0], 1);
  EXPECT_FALSE(Choose(kSpace).best);
  ASSERT_TRUE(Choose(kPutWaits).best);
  EXPECT_EQ(Choose(kPutWaits).best->region, order_[0]);
}

TEST_F(RegionChoiceTest, HeldRegionIsLeftAloneAndReported) {
  KillIn(order_[0], 15);
  const format::LogAddress there = store_->WordOf(keys_of_[order_[0]].back()).new_address();
  log::ShardLog& log = store_->versions().log();
  log.Hold(0, there);
  EXPECT_TRUE(Choose(kSpace).held);
  EXPECT_FALSE(Choose(kSpace).best);
  log.Release(0, there);
  EXPECT_FALSE(Choose(kSpace).held);
  EXPECT_TRUE(Choose(kSpace).best);
}

TEST_F(RegionChoiceTest, RegionThatWasMergedWithoutGainIsLeftAloneUntilItChanges) {
  KillIn(order_[0], 15);
  tried_.Add(*Choose(kSpace).best);
  EXPECT_FALSE(Choose(kSpace).best);
  KillIn(order_[0], 16);  // one key more
  EXPECT_TRUE(Choose(kSpace).best);
  tried_.Add(*Choose(kSpace).best);
  tried_.Clear();
  EXPECT_TRUE(Choose(kSpace).best);
}

}  // namespace
}  // namespace erda::server
