#include "base/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

namespace erda {
namespace {

// The numbers of the published algorithm. They are the same on every machine, so a seed in a report stays valid.
TEST(RandomTest, SeedGivesThePublishedNumbers) {
  Random random(0);
  EXPECT_EQ(random.Next(), 0x99ec5f36cb75f2b4U);
  EXPECT_EQ(random.Next(), 0xbf6e1f784956452aU);
  EXPECT_EQ(random.Next(), 0x1a5f849d4933e6e0U);
  EXPECT_NE(Random(1).Next(), Random(2).Next());
}

TEST(RandomTest, UniformReachesAllOfItsRangeAndNoMore) {
  Random random(1);
  std::array<int, 10> count{};
  for (int i = 0; i < 10'000; ++i) ++count.at(random.Uniform(10));
  EXPECT_GT(*std::min_element(count.begin(), count.end()), 850);
  EXPECT_LT(*std::max_element(count.begin(), count.end()), 1150);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(random.Uniform(1), 0U);
}

TEST(RandomTest, BetweenIncludesBothEnds) {
  Random random(2);
  std::set<uint64_t> seen;
  for (int i = 0; i < 200; ++i) seen.insert(random.Between(5, 8));
  EXPECT_EQ(seen, (std::set<uint64_t>{5, 6, 7, 8}));
  EXPECT_EQ(random.Between(7, 7), 7U);
}

TEST(RandomTest, ChanceIsTrueWithItsProbability) {
  Random random(3);
  int hits = 0;
  for (int i = 0; i < 10'000; ++i) {
    EXPECT_FALSE(random.Chance(0));
    EXPECT_TRUE(random.Chance(1));
    hits += random.Chance(0.25) ? 1 : 0;
  }
  EXPECT_NEAR(hits, 2500, 200);
}

TEST(RandomTest, ShuffleKeepsAllElements) {
  Random random(4);
  std::set<std::array<int, 3>> orders;
  for (int i = 0; i < 200; ++i) {
    std::array<int, 3> items = {1, 2, 3};
    random.Shuffle(std::span<int>(items));
    orders.insert(items);
  }
  EXPECT_EQ(orders.size(), 6U);
}

}  // namespace
}  // namespace erda
