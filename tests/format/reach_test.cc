#include "format/reach.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"
#include "format/index_layout.h"
#include "format/superblock.h"

namespace erda::format {
namespace {

Geometry WithBlocksOf(uint64_t slots) {
  const auto geometry = ChooseGeometry({.pool_size = uint64_t{16} << 20,
                                        .shards = 1,
                                        .region_size = uint64_t{64} << 10,
                                        .segment_size = uint64_t{16} << 10,
                                        .index_entries = 2 * slots});
  EXPECT_TRUE(geometry.ok()) << geometry.status().ToString();
  Geometry g = *geometry;
  g.block_shift = static_cast<uint16_t>(std::countr_zero(slots));
  return g;
}

TEST(ReachesTest, EachClassHasItsExponent) {
  Reaches reaches;
  EXPECT_TRUE(reaches.none());
  for (uint64_t of = 0; of < Reaches::kClasses; ++of) {
    const uint64_t key_hash = of << 60 | 0x123456789abcdef;
    EXPECT_EQ(Reaches::ClassOf(key_hash), of);
    for (uint32_t e = 0; e < of % 6; ++e) reaches = reaches.Raised(key_hash);
  }
  for (uint64_t of = 0; of < Reaches::kClasses; ++of) EXPECT_EQ(reaches.Exponent(of << 60), of % 6) << of;
  EXPECT_EQ(Reaches(reaches.number()), reaches);
  EXPECT_LT(reaches.number(), uint64_t{1} << 48) << "what a checked word has room for";
}

TEST(ReachesTest, UnionHasTheHigherExponentOfEachClass) {
  const uint64_t last = UINT64_MAX;
  const Reaches one = Reaches().Raised(0).Raised(0).Raised(last);
  const Reaches other = Reaches().Raised(0).Raised(last).Raised(last).Raised(last);
  EXPECT_EQ(one.With(other), Reaches().Raised(0).Raised(0).Raised(last).Raised(last).Raised(last));
  EXPECT_EQ(one.With(other), other.With(one));
  EXPECT_EQ(one.With(Reaches()), one);
}

TEST(ReachesTest, ADamagedRecordCountsAsTheFarthest) {
  const Reaches some = Reaches().Raised(0).Raised(UINT64_MAX);
  const uint64_t raw = CheckedWord::Of(some.number()).raw();
  EXPECT_EQ(ReachesIn(CheckedWord(raw)), some);
  EXPECT_TRUE(ReachesIn(CheckedWord()).none());
  for (int bit = 0; bit < 64; ++bit) {
    EXPECT_EQ(ReachesIn(CheckedWord(raw ^ uint64_t{1} << bit)), Reaches::Farthest()) << bit;
    EXPECT_EQ(ReachesIn(CheckedWord(uint64_t{1} << bit)), Reaches::Farthest()) << bit;
  }
}

// For each home, a window is in one block, and includes the neighbourhood and the window of the smaller exponent.
TEST(ReachesTest, AWindowHasTheNeighbourhoodAndTheSmallerWindows) {
  Random random(5);
  for (const uint64_t slots : {128, 256, 1024, 2048}) {
    const Geometry g = WithBlocksOf(slots);
    const std::vector<uint32_t> runs(g.runs_max());
    IndexLayout layout(g, 0, runs);
    for (int i = 0; i < 2000; ++i) {
      const uint64_t hash = i == 0 ? 0 : i == 1 ? UINT64_MAX : random.Next();
      layout.SetReaches({});
      const auto near = layout.NeighbourhoodOf(hash);
      const uint64_t first = layout.FirstOf(layout.BlockOf(hash));
      auto before = layout.WindowOf(hash);
      ASSERT_EQ(before.begin, near.begin);
      ASSERT_EQ(before.slots(), kNeighbourhood);
      for (uint32_t e = 1; e <= 7; ++e) {
        layout.SetReaches(layout.reaches().Raised(hash));
        const auto window = layout.WindowOf(hash);
        ASSERT_EQ(window.slots(), std::min(uint64_t{64} << e, slots));
        ASSERT_GE(window.begin, first);
        ASSERT_LE(window.end, first + slots);
        ASSERT_LE(window.begin, before.begin);
        ASSERT_GE(window.end, before.end);
        before = window;
        const uint64_t other = hash ^ uint64_t { 1 } << 63;  // A hash of another class.
        ASSERT_EQ(layout.WindowOf(other).slots(), kNeighbourhood);
      }
      ASSERT_EQ(before.slots(), slots) << "the farthest, in any block";
    }
  }
}

TEST(ReachesTest, AnEntrySaysItsDistanceOrThatItIsFar) {
  const Geometry g = WithBlocksOf(1024);
  const std::vector<uint32_t> runs(g.runs_max());
  IndexLayout layout(g, 0, runs);
  const uint64_t hash = uint64_t{7} << 60;
  const uint64_t home = layout.HomeOf(hash);
  layout.SetReaches(layout.reaches().Raised(hash));
  const uint64_t far = home + kNeighbourhood;
  EXPECT_EQ(layout.DistanceTo(home + 63, hash), 63U);
  EXPECT_EQ(layout.DistanceTo(far, hash), EntryMeta::kFar);
  EXPECT_EQ(layout.DistanceTo(home - 1, hash), EntryMeta::kFar);
  EXPECT_TRUE(layout.IsPlaceOf(hash, home + 63, 63));
  EXPECT_FALSE(layout.IsPlaceOf(hash, home + 63, EntryMeta::kFar));
  EXPECT_TRUE(layout.IsPlaceOf(hash, far, EntryMeta::kFar));
  EXPECT_FALSE(layout.IsPlaceOf(hash, far, 64));
  EXPECT_FALSE(layout.IsPlaceOf(hash, home + 2 * kNeighbourhood, EntryMeta::kFar)) << "beyond the window";
  EXPECT_FALSE(layout.IsPlaceOf(hash, home - 1, EntryMeta::kFar)) << "beyond the window";
}

}  // namespace
}  // namespace erda::format
