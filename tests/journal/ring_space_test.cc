#include "journal/ring_space.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <set>

#include "base/random.h"

namespace erda::journal {
namespace {

TEST(RingSpaceTest, RecordsFollowEachOther) {
  RingSpace space(10, 2);
  EXPECT_EQ(space.Find(3), 2U);
  space.Take(3, {2, 100, 1});
  EXPECT_EQ(space.Find(5), 5U);
  EXPECT_FALSE(space.Find(6));
  EXPECT_EQ(space.free_blocks(), 5U);
}

TEST(RingSpaceTest, RecordThatDoesNotFitBeforeTheEndGoesToTheFirstBlock) {
  RingSpace space(10, 2);
  space.Take(3, {2, 100, 1});
  space.Take(3, {5, 200, 1});
  space.Free(100);
  EXPECT_EQ(space.LongestFree(), 3U);
  EXPECT_EQ(space.free_blocks(), 5U);
  EXPECT_EQ(space.Find(2), 8U);
  EXPECT_EQ(space.Find(3), 2U);
  space.Take(3, {2, 300, 1});
  // The two blocks at the end wait until the records before them are free.
  EXPECT_FALSE(space.Find(1));
  EXPECT_EQ(space.LongestFree(), 0U);
  space.Free(200);
  EXPECT_EQ(space.Find(5), 5U);
}

TEST(RingSpaceTest, RecordUpToTheEndIsFollowedAtTheFirstBlock) {
  RingSpace space(10, 2);
  space.Take(8, {2, 100, 1});
  EXPECT_EQ(space.next(), 2U);
  EXPECT_FALSE(space.Find(1));
  space.Free(100);
  EXPECT_EQ(space.Find(8), 2U);
}

TEST(RingSpaceTest, EmptyRingTakesALongRecordWhereverTheLastOneEnded) {
  RingSpace space(10, 6);
  EXPECT_EQ(space.LongestFree(), 8U);
  EXPECT_EQ(space.Find(4), 6U);
  EXPECT_EQ(space.Find(5), 2U);
  EXPECT_EQ(space.Find(8), 2U);
  EXPECT_FALSE(space.Find(9));
}

TEST(RingSpaceTest, CheckpointTellsWhereTheReaderBegins) {
  RingSpace space(10, 2);
  space.Take(4, {2, 100, 1});
  space.Take(3, {6, 200, 2});
  EXPECT_FALSE(space.After(99));
  EXPECT_FALSE(space.After(300));
  EXPECT_EQ(space.After(100)->first_block, 6U);
  EXPECT_EQ(space.After(100)->place_epoch, 1U);
  EXPECT_EQ(space.After(200)->first_block, 9U);
  EXPECT_EQ(space.After(200)->place_epoch, 2U);
  space.Free(100);
  space.Take(2, {2, 300, 2});
  EXPECT_EQ(space.After(200)->first_block, 2U);
  EXPECT_EQ(space.After(300)->first_block, 4U);
}

// A second account of the blocks: the set of the live ones.
TEST(RingSpaceTest, RandomRecordsNeverReachLiveOnes) {
  Random random(1);
  for (int round = 0; round < 200; ++round) {
    const uint64_t end = random.Between(3, 20);
    RingSpace space(end, random.Between(2, end - 1));
    std::deque<std::pair<Place, std::set<uint64_t>>> live;
    const auto is_free = [&](uint64_t first, uint64_t blocks) {
      return std::ranges::none_of(live, [&](const auto& record) {
        const auto at = record.second.lower_bound(first);
        return at != record.second.end() && *at < first + blocks;
      });
    };
    Place place = 0;
    for (int step = 0; step < 200; ++step) {
      uint64_t longest = 0;
      for (uint64_t blocks = 1; blocks <= end; ++blocks) {
        const auto found = space.Find(blocks);
        if (!found) continue;
        longest = blocks;
        ASSERT_TRUE(*found == space.next() || *found == kFirstRecordBlock);
        ASSERT_LE(*found + blocks, end);
        ASSERT_TRUE(is_free(*found, blocks));
      }
      ASSERT_EQ(longest, space.LongestFree());
      for (uint64_t blocks = 1; blocks <= longest; ++blocks) ASSERT_TRUE(space.Find(blocks));
      ASSERT_GE(space.free_blocks(), longest);
      if (longest > 0 && random.Chance(0.6)) {
        const uint64_t blocks = random.Between(1, longest);
        const uint64_t block = *space.Find(blocks);
        std::set<uint64_t> taken;
        for (uint64_t i = block; i < block + blocks; ++i) taken.insert(i);
        space.Take(blocks, {block, ++place, 1});
        live.emplace_back(place, taken);
      } else if (!live.empty()) {
        const uint64_t gone = random.Between(1, live.size());
        const Place until = live[gone - 1].first;
        const auto after = space.After(until);
        ASSERT_TRUE(after.has_value());
        ASSERT_EQ(after->first_block, gone < live.size() ? *live[gone].second.begin() : space.next());
        space.Free(until);
        live.erase(live.begin(), live.begin() + static_cast<std::ptrdiff_t>(gone));
      }
      if (live.empty()) {
        ASSERT_EQ(space.free_blocks(), end - kFirstRecordBlock);
      }
    }
  }
}

}  // namespace
}  // namespace erda::journal
