#include "format/geometry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"
#include "base/test_hash.h"
#include "format/fixture.h"
#include "format/log_layout.h"
#include "tests/format/first_blocks.h"

namespace erda::format {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kGiB = uint64_t{1} << 30;

std::string Describe(const GeometryWish& wish) {
  return "pool " + std::to_string(wish.pool_size) + ", shards " + std::to_string(wish.shards) + ", region " +
         std::to_string(wish.region_size) + ", segment " + std::to_string(wish.segment_size) + ", index " +
         std::to_string(wish.index_entries);
}

// Returns whether the geometry is consistent. Computes with numbers that cannot overflow.
testing::AssertionResult HoldsTogether(const Geometry& g) {
  __extension__ using Wide = unsigned __int128;
  const auto power_of_two = [](uint64_t n) { return n != 0 && (n & (n - 1)) == 0; };
  const Wide regions = Wide{g.shards} * g.regions_per_shard;
  const Wide heads = Wide{g.shards} * g.heads_per_shard;
  const Wide index_end = Wide{g.index_offset} + Wide{g.shards} * g.index_slots * sizeof(IndexEntry);
  const Wide regions_end = Wide{g.regions_offset} + regions * g.region_size;
  const struct {
    bool holds;
    const char* what;
  } rules[] = {
      {power_of_two(g.region_size) && g.region_size <= kRegionBytesMax, "the region size"},
      {power_of_two(g.segment_size) && g.segment_size <= g.region_size, "the segment size"},
      {g.segment_size >= kSegmentBytesMin, "segments of less than the least"},
      {g.shards >= 1 && g.shards <= kShardsMax, "the shards"},
      {heads >= g.shards && heads <= kHeadsMax, "the heads"},
      {regions >= 2 * Wide{g.shards} && regions <= kRegionsMax, "the regions"},
      {heads * (Wide{g.more_layers} + 1) <= kHeadsMax, "layers that no region word can tell"},
      {g.region_size * (Wide{g.more_layers} + 1) <= kRegionBytesMax, "layers after the end of a slot"},
      {g.regions_per_shard <= Wide{g.heads_per_shard} * kSlotsPerHead * (Wide{g.more_layers} + 1),
       "more regions than slots"},
      {g.block_shift >= 7 && g.block_shift <= 11, "the blocks of the index"},
      {(Wide{16} << std::min<uint32_t>(g.block_shift, 64)) <= g.region_size, "blocks larger than regions"},
      {power_of_two(g.index_slots) && g.index_slots >= Wide{1} << std::min<uint32_t>(g.block_shift, 64),
       "the index slots"},
      {g.index_offset >= kRegionTableOffset + regions * sizeof(uint64_t), "the index over the region table"},
      {g.index_offset % 4096 == 0 && g.regions_offset % 4096 == 0, "an offset within a page"},
      {index_end <= g.regions_offset, "the regions over the index"},
      {regions_end <= g.pool_size, "regions after the end of the pool"},
  };
  for (const auto& rule : rules) {
    if (!rule.holds) return testing::AssertionFailure() << rule.what;
  }
  return testing::AssertionSuccess();
}

// Returns whether ChooseGeometry grants the wish, and both CheckGeometry and HoldsTogether accept the geometry.
testing::AssertionResult IsChosenWell(const GeometryWish& wish) {
  const auto geometry = ChooseGeometry(wish);
  if (!geometry.ok()) return testing::AssertionFailure() << Describe(wish) << ": " << geometry.status().ToString();
  if (auto status = CheckGeometry(*geometry); !status.ok())
    return testing::AssertionFailure() << Describe(wish) << ": " << status.ToString();
  if (auto holds = HoldsTogether(*geometry); !holds) return holds << " of " << Describe(wish);
  const Geometry& g = *geometry;
  if (g.pool_size != wish.pool_size || g.shards != wish.shards ||
      (wish.region_size != 0 && g.region_size != wish.region_size) ||
      (wish.segment_size != 0 && g.segment_size != wish.segment_size) || g.index_slots * g.shards < wish.index_entries)
    return testing::AssertionFailure() << "not what was wished: " << Describe(wish);
  return testing::AssertionSuccess();
}

testing::AssertionResult IsRefused(const GeometryWish& wish, std::string_view part) {
  const auto geometry = ChooseGeometry(wish);
  if (geometry.ok()) return testing::AssertionFailure() << "taken: " << Describe(wish);
  const Status& status = geometry.status();
  if (status.code() == Code::kInvalidArgument && status.message().find(part) != std::string_view::npos)
    return testing::AssertionSuccess();
  return testing::AssertionFailure() << status.ToString();
}

TEST(ChooseGeometryTest, EveryUsualPoolHasAGeometry) {
  const std::vector<uint64_t> sizes = {64 * kMiB,  65 * kMiB,   100'000'000,      127 * kMiB,
                                       128 * kMiB, kGiB,        10 * kGiB,        100 * kGiB - 4096,
                                       256 * kGiB, 1024 * kGiB, 10 * 1024 * kGiB, uint64_t{1} << 47};
  for (const uint64_t size : sizes) {
    for (uint32_t shards = 1; shards <= kShardsMax; ++shards)
      EXPECT_TRUE(IsChosenWell({.pool_size = size, .shards = shards}));
  }
}

// If the owner names no size to grow to, the pool can grow 16 times. It can grow fewer times if less than 0.85 of it
// would be usable then.
TEST(ChooseGeometryTest, UnplannedPoolsGrowSixteenTimes) {
  for (const uint64_t size : {8 * kMiB, 64 * kMiB, 100 * kMiB, kGiB, 2 * kGiB, 3 * kGiB, 4 * kGiB, 8 * kGiB, 20 * kGiB,
                              64 * kGiB, 100 * kGiB}) {
    for (const uint32_t shards : {1U, 2U, 4U}) {
      if (size < shards * 16 * kMiB && shards > 1) continue;
      SCOPED_TRACE(testing::Message() << size << " bytes, shards " << shards);
      const Geometry g = *ChooseGeometry({.pool_size = size, .shards = shards});
      EXPECT_GE(GrowthLimit(g), 16 * size);
      EXPECT_GE(UsableShare(g), 0.85);
      const auto grown = GrownGeometry(g, 16 * size);
      EXPECT_TRUE(grown.ok() && HoldsTogether(*grown));
    }
  }
  // A larger pool can grow as far as the formats allow. A size that the owner names counts.
  for (const uint64_t size : {256 * kGiB, 1024 * kGiB}) {
    const Geometry g = *ChooseGeometry({.pool_size = size});
    EXPECT_GE(GrowthLimit(g), 4 * size);
    EXPECT_GE(UsableShare(g), 0.85);
  }
  EXPECT_LT(GrowthLimit(*ChooseGeometry({.pool_size = 64 * kGiB, .grow_to = 65 * kGiB})), 128 * kGiB);
}

TEST(ChooseGeometryTest, LargePoolsTakeLargeValues) {
  for (const uint64_t size : {4 * kGiB, 8 * kGiB, 10 * kGiB, 64 * kGiB, 1024 * kGiB}) {
    for (const uint32_t shards : {1U, 2U, 8U}) {
      SCOPED_TRACE(testing::Message() << size << " bytes for each of " << shards << " shards");
      const Geometry g = *ChooseGeometry({.pool_size = size * shards, .shards = shards});
      EXPECT_EQ(g.segment_size, 64 * kMiB);
      EXPECT_GE(ValueBytesMax(g, kKeyBytesMax, true), 63 * kMiB);
      EXPECT_GE(UsableShare(g), 0.85);
    }
  }
  EXPECT_EQ(ChooseGeometry({.pool_size = 3 * kGiB})->segment_size, 8 * kMiB);
  EXPECT_EQ(ChooseGeometry({.pool_size = 8 * kGiB, .shards = 4})->segment_size, 8 * kMiB);
  // A size that the owner names counts.
  EXPECT_EQ(ChooseGeometry({.pool_size = 8 * kGiB, .segment_size = kMiB})->segment_size, kMiB);
  EXPECT_EQ(ChooseGeometry({.pool_size = 8 * kGiB, .region_size = 16 * kMiB})->segment_size, 4 * kMiB);
}

TEST(ChooseGeometryTest, ExplicitSizesAreKept) {
  for (uint64_t region = 16384; region <= kRegionBytesMax; region *= 4) {
    for (uint64_t segment = kSegmentBytesMin; segment <= region; segment *= 8) {
      for (const uint32_t shards : {1U, 2U, 3U, 5U, 7U, 8U, 48U, 63U, 64U}) {
        const GeometryWish wish = {
            .pool_size = 320 * kGiB, .shards = shards, .region_size = region, .segment_size = segment};
        EXPECT_TRUE(IsChosenWell(wish));
      }
    }
  }
  for (const uint64_t entries : {uint64_t{1}, uint64_t{63}, uint64_t{1'000'003}, uint64_t{10'000'000}}) {
    EXPECT_TRUE(IsChosenWell({.pool_size = kGiB, .index_entries = entries}));
    EXPECT_TRUE(IsChosenWell({.pool_size = kGiB, .shards = 7, .index_entries = entries}));
  }
}

TEST(ChooseGeometryTest, TinyPoolsForTestsArePossible) {
  EXPECT_TRUE(IsChosenWell({.pool_size = 256 << 10}));
  EXPECT_TRUE(IsChosenWell({.pool_size = 128 << 10, .region_size = 4096, .segment_size = 4096}));
  EXPECT_TRUE(IsChosenWell({.pool_size = kMiB, .shards = 4, .segment_size = 4096, .index_entries = 256}));
}

TEST(ChooseGeometryTest, AnyWishIsKeptOrRefused) {
  constexpr uint64_t kSeed = 7;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  Random random(kSeed);
  const auto any = [&](uint64_t bits) { return random.Next() >> (64 - random.Between(1, bits)); };
  const auto size = [&] {
    return random.Chance(0.2) ? 0 : random.Chance(0.2) ? any(64) : uint64_t{1} << random.Uniform(33);
  };
  int chosen = 0;
  for (int i = 0; i < 100'000; ++i) {
    GeometryWish wish;
    wish.pool_size = random.Chance(0.9) ? any(45) : any(64);
    wish.shards = static_cast<uint32_t>(random.Chance(0.9) ? random.Between(1, 64) : any(32));
    wish.region_size = size();
    wish.segment_size = size();
    wish.index_entries = random.Chance(0.5) ? 0 : random.Chance(0.5) ? any(32) : any(64);
    const auto geometry = ChooseGeometry(wish);
    if (geometry.ok()) {
      ASSERT_TRUE(IsChosenWell(wish));
      ++chosen;
    } else {
      ASSERT_EQ(geometry.status().code(), Code::kInvalidArgument);
      ASSERT_GT(geometry.status().message().size(), 20U) << Describe(wish);
    }
  }
  EXPECT_GT(chosen, 5000);
}

TEST(ChooseGeometryTest, AShardHasFourRegionsAtLeast) {
  const GeometryWish four = {.pool_size = 128 * 1024, .region_size = 8192, .segment_size = 4096};
  ASSERT_TRUE(IsChosenWell(four));
  Geometry g = *ChooseGeometry(four);
  EXPECT_EQ(g.regions_per_shard, 4U);
  const GeometryWish three = {.pool_size = 128 * 1024 - 8192, .region_size = 8192, .segment_size = 4096};
  EXPECT_TRUE(IsRefused(three, "each shard needs four regions"));
  // A pool that was made with fewer regions still opens.
  g.regions_per_shard = 2;
  EXPECT_TRUE(CheckGeometry(g).ok());
}

TEST(ChooseGeometryTest, ABadWishIsRefusedByTheNameOfItsLimit) {
  EXPECT_TRUE(IsRefused({.pool_size = kGiB, .shards = 0}, "1 to 64 shards, not 0"));
  EXPECT_TRUE(IsRefused({.pool_size = kGiB, .shards = 65}, "1 to 64 shards, not 65"));
  EXPECT_TRUE(IsRefused({.pool_size = kGiB, .region_size = 3 * kMiB}, "region size must be a power of two"));
  EXPECT_TRUE(IsRefused({.pool_size = 100 * kGiB, .region_size = 2 * kGiB}, "up to 256 MiB"));
  EXPECT_TRUE(IsRefused({.pool_size = kGiB, .region_size = kMiB, .segment_size = 2 * kMiB}, "up to the region size"));
  EXPECT_TRUE(IsRefused({.pool_size = kGiB, .segment_size = 2048}, "from 4096"));
  EXPECT_TRUE(IsRefused({.pool_size = kGiB, .segment_size = 12345}, "segment size must be a power of two"));
  EXPECT_TRUE(IsRefused({.pool_size = kGiB, .index_entries = kGiB}, "index would not fit"));
  EXPECT_TRUE(IsRefused({.pool_size = kGiB, .index_entries = kGiB / 16}, "too small"));
  EXPECT_TRUE(IsRefused({.pool_size = 0}, ""));
  EXPECT_TRUE(IsRefused({.pool_size = 4096}, ""));
  EXPECT_TRUE(IsRefused({.pool_size = 100'000}, "too small"));
  EXPECT_TRUE(IsRefused({.pool_size = kMiB, .shards = 64}, "too small"));
  EXPECT_TRUE(IsRefused({.pool_size = 64 * kMiB, .region_size = 16 * kMiB}, "each shard needs four regions"));
}

TEST(ChooseGeometryTest, AnIndexBeyondAllBoundsIsRefused) {
  for (const uint64_t entries : {UINT64_MAX, UINT64_MAX - 1, UINT64_MAX / 2, uint64_t{1} << 62}) {
    for (const uint32_t shards : {1U, 2U, 64U})
      EXPECT_TRUE(IsRefused({.pool_size = kGiB, .shards = shards, .index_entries = entries}, "index"));
  }
}

// Each case sets one field out of its limits.
TEST(CheckGeometryTest, AGeometryWithAWrongFieldIsRefused) {
  ASSERT_TRUE(CheckGeometry(TestGeometry()).ok());
  ASSERT_TRUE(HoldsTogether(TestGeometry()));
  const auto refused = [](auto Geometry::*field, std::initializer_list<uint64_t> values) {
    for (const uint64_t value : values) {
      Geometry geometry = TestGeometry();
      geometry.*field = static_cast<std::remove_reference_t<decltype(geometry.*field)>>(value);
      const Status status = CheckGeometry(geometry);
      EXPECT_EQ(status.code(), Code::kInvalidArgument) << value;
      EXPECT_FALSE(HoldsTogether(geometry)) << value;
    }
  };
  {
    SCOPED_TRACE("pool_size");
    refused(&Geometry::pool_size, {0, 1, kMiB, 63 * kMiB - 1});
  }
  {
    SCOPED_TRACE("region_size");
    refused(&Geometry::region_size, {0, 1, 4096, (1 << 18) - 1, 3 << 18, 2 << 20, 2 * kGiB, uint64_t{1} << 63});
  }
  {
    SCOPED_TRACE("segment_size");
    refused(&Geometry::segment_size, {0, 1, 2048, 4097, 3 << 12, 2 << 20, uint64_t{1} << 63, UINT64_MAX});
  }
  {
    SCOPED_TRACE("index_slots");
    refused(&Geometry::index_slots, {0, 1, 64, 1024, 4097, 6144, 1 << 15, 64 * kMiB, uint64_t{1} << 60, UINT64_MAX});
  }
  {
    SCOPED_TRACE("index_offset");
    refused(&Geometry::index_offset, {0, 4096, 24576, 0x16001, 1 << 20, 64 * kMiB, UINT64_MAX - 4095});
  }
  {
    SCOPED_TRACE("regions_offset");
    refused(&Geometry::regions_offset, {0, 0x16000, 0x35000, (1 << 20) + 16, 3 * kMiB, 64 * kMiB, UINT64_MAX - 4095});
  }
  {
    SCOPED_TRACE("regions_per_shard");
    refused(&Geometry::regions_per_shard, {0, 1, 32, 33, 1U << 31, (1U << 31) + 2, UINT32_MAX});
  }
  {
    SCOPED_TRACE("shards");
    refused(&Geometry::shards, {0, 3, 65, 1U << 31, UINT32_MAX});
  }
  {
    SCOPED_TRACE("heads_per_shard");
    refused(&Geometry::heads_per_shard, {0, 129, 1U << 31, (1U << 31) + 1, UINT32_MAX});
  }
  {
    SCOPED_TRACE("block_shift");
    refused(&Geometry::block_shift, {0, 1, 6, 12, 13, 63, 64, 1U << 15, UINT16_MAX});
  }
  {
    SCOPED_TRACE("more_layers");
    refused(&Geometry::more_layers, {128, 255, 256, 1U << 15, UINT16_MAX});
  }
}

// The low 32 bits of a hash choose a block. So keys would never come into some of more blocks.
TEST(CheckGeometryTest, MoreBlocksThanAHashCanChooseAreRefused) {
  Geometry geometry = TestGeometry();
  geometry.shards = 1;
  geometry.block_shift = 7;
  geometry.region_size = 1 << 12;
  geometry.segment_size = 1 << 12;
  const uint64_t more = geometry.runs_max() * (geometry.run_slots() >> 7);
  ASSERT_GT(more, 0U);
  for (const uint64_t blocks : {uint64_t{1} << 31, uint64_t{1} << 32}) {
    geometry.index_slots = blocks << 7;
    geometry.regions_offset = geometry.index_offset + geometry.index_slots * sizeof(IndexEntry);
    geometry.pool_size = geometry.regions_offset + geometry.regions() * geometry.region_size;
    ASSERT_EQ(geometry.blocks_max(), blocks + more);
    const Status status = CheckGeometry(geometry);
    EXPECT_EQ(status.ok(), blocks < uint64_t{1} << 32) << status.ToString();
    EXPECT_EQ(status.message().find("more blocks") != std::string_view::npos, !status.ok()) << status.ToString();
  }
}

// A pool file or a server may give any bytes as a geometry.
TEST(CheckGeometryTest, AcceptedGeometryIsConsistentForAnyFields) {
  constexpr uint64_t kSeed = 8;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  Random random(kSeed);
  const auto extreme = [&] {
    const uint64_t power = uint64_t{1} << random.Uniform(64);
    return power + random.Between(0, 4) - 2;
  };
  for (int i = 0; i < 1'000'000; ++i) {
    Geometry g = TestGeometry();
    for (uint64_t changes = random.Between(1, 4); changes > 0; --changes) {
      const uint64_t field = random.Uniform(11);
      const uint64_t value = extreme();
      const auto small = static_cast<uint32_t>(value);
      uint64_t* const wide[] = {&g.pool_size,   &g.region_size,  &g.segment_size,
                                &g.index_slots, &g.index_offset, &g.regions_offset};
      uint32_t* const narrow[] = {&g.regions_per_shard, &g.shards, &g.heads_per_shard};
      uint16_t* const narrowest[] = {&g.block_shift, &g.more_layers};
      if (field < 6) {
        *wide[field] = value;
      } else if (field < 9) {
        *narrow[field - 6] = small;
      } else {
        *narrowest[field - 9] = static_cast<uint16_t>(small);
      }
    }
    if (CheckGeometry(g).ok()) {
      ASSERT_TRUE(HoldsTogether(g)) << "input " << i;
    }
  }
}

TEST(GeometryTest, EveryKeyHasItsShardHeadAndHome) {
  constexpr int kKeys = 100'000;
  for (const uint32_t shards : {1U, 3U, 4U, 64U}) {
    Geometry g = TestGeometry();
    g.shards = shards;
    g.heads_per_shard = 256 / shards;
    g.index_slots = 512;
    g.block_shift = 7;
    std::vector<int> by_shard(shards);
    std::vector<int> by_head(g.heads());
    std::vector<int> by_home(g.index_slots);
    for (int i = 0; i < kKeys; ++i) {
      const uint64_t hash = HashKey("key " + std::to_string(i));
      const uint32_t shard = g.ShardOf(hash);
      ASSERT_LT(shard, shards);
      const uint32_t head = g.HeadOf(hash);
      ASSERT_EQ(head / g.heads_per_shard, shard);
      ASSERT_LT(head, g.heads());
      const uint64_t home = FirstHome(g, hash);
      ASSERT_LE(home % 128 + kNeighbourhood, 128U);
      ++by_shard[shard];
      ++by_head[head];
      ++by_home[home];
    }
    // The bound is six standard deviations. The keys are the same in every run.
    const auto even = [](const std::vector<int>& counts) {
      const double mean = static_cast<double>(kKeys) / static_cast<double>(counts.size());
      for (const int count : counts) EXPECT_NEAR(count, mean, 6 * std::sqrt(mean));
    };
    even(by_shard);
    even(by_head);
    std::erase(by_home, 0);
    EXPECT_EQ(by_home.size(), 4U * (128 - kNeighbourhood + 1));
    even(by_home);
  }
}

TEST(GeometryTest, TheExtremeHashesAreInRange) {
  for (const uint32_t shards : {1U, 2U, 3U, 63U, 64U}) {
    Geometry g = TestGeometry();
    g.shards = shards;
    g.heads_per_shard = 256 / shards;
    EXPECT_EQ(g.ShardOf(0), 0U);
    EXPECT_EQ(g.HeadOf(0), 0U);
    EXPECT_EQ(FirstHome(g, 0), 0U);
    EXPECT_EQ(g.ShardOf(UINT64_MAX), shards - 1);
    EXPECT_EQ(g.HeadOf(UINT64_MAX), g.heads() - 1);
    EXPECT_EQ(FirstHome(g, UINT64_MAX), g.index_slots - kNeighbourhood);
  }
}

TEST(GeometryTest, IndexesFollowEachOtherAndShardsGetRegionsInTurn) {
  const Geometry g = TestGeometry();
  EXPECT_EQ(g.FirstSlotOffset(0, 0), g.index_offset);
  EXPECT_EQ(g.FirstSlotOffset(0, g.index_slots), g.FirstSlotOffset(1, 0));
  EXPECT_LE(g.FirstSlotOffset(1, g.index_slots), g.regions_offset);
  EXPECT_EQ(g.RegionOffset(0), g.regions_offset);
  EXPECT_EQ(g.RegionOffset(g.regions() - 1) + g.region_size, 63 * kMiB);
  EXPECT_EQ(g.RegionOf(0, 0), 0U);
  EXPECT_EQ(g.RegionOf(1, 0), 1U);
  EXPECT_EQ(g.RegionOf(1, 30), g.regions() - 1);
  EXPECT_EQ(g.NumberInShard(g.RegionOf(1, 30)), 30U);
  EXPECT_EQ(g.segments_per_region(), 4U);
}

// --- Growth

TEST(GrownGeometryTest, GrowthMovesNoExistingPart) {
  constexpr uint64_t kSeed = 9;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  Random random(kSeed);
  int grown_times = 0;
  for (int i = 0; i < 3000; ++i) {
    const auto made = ChooseGeometry({.pool_size = uint64_t{1} << random.Between(18, 40),
                                      .shards = static_cast<uint32_t>(random.Between(1, 64)),
                                      .regions_per_head = static_cast<uint32_t>(random.Uniform(130))});
    if (!made.ok()) continue;
    Geometry g = *made;
    while (g.pool_size < GrowthLimit(g)) {
      const uint64_t left = GrowthLimit(g) - g.pool_size;
      const uint64_t size =
          g.pool_size + random.Between(1, random.Chance(0.3) ? left : std::min(left, 2 * g.pool_size));
      const auto larger = GrownGeometry(g, size);
      ASSERT_TRUE(larger.ok()) << larger.status().ToString();
      ASSERT_TRUE(HoldsTogether(*larger));
      ASSERT_EQ(larger->pool_size, size);
      ASSERT_EQ(GrowthLimit(*larger), GrowthLimit(g)) << "one that grew in steps grows as far";
      ASSERT_GE(larger->regions_per_shard, g.regions_per_shard);
      ASSERT_GE(larger->more_layers, g.more_layers);
      // The pool uses all of the space, except for less than a region of each shard.
      const uint64_t used = larger->RegionOffset(larger->regions());
      ASSERT_LT(size - used, larger->region_size * larger->shards);
      // No other field changed.
      Geometry rest = *larger;
      rest.pool_size = g.pool_size;
      rest.regions_per_shard = g.regions_per_shard;
      rest.more_layers = g.more_layers;
      ASSERT_EQ(Hex(BytesOf(rest)), Hex(BytesOf(g)));
      const auto number = static_cast<uint32_t>(random.Uniform(g.regions_per_shard));
      const auto shard = static_cast<uint32_t>(random.Uniform(g.shards));
      ASSERT_EQ(larger->RegionOf(shard, number), g.RegionOf(shard, number));
      g = *larger;
      ++grown_times;
    }
    ASSERT_EQ(GrownGeometry(g, g.pool_size + 1).status().code(), Code::kInvalidArgument);
  }
  EXPECT_GT(grown_times, 1000);
}

TEST(GrownGeometryTest, APoolOnlyGrowsAndNotWithoutEnd) {
  const Geometry g = *ChooseGeometry({.pool_size = kGiB});
  for (const uint64_t size : {uint64_t{0}, kGiB - 1, kGiB}) {
    const auto grown = GrownGeometry(g, size);
    EXPECT_EQ(grown.status().code(), Code::kInvalidArgument);
    EXPECT_NE(grown.status().message().find("a pool only grows"), std::string_view::npos);
  }
  EXPECT_TRUE(GrownGeometry(g, GrowthLimit(g)).ok());
  const auto beyond = GrownGeometry(g, GrowthLimit(g) + 1);
  EXPECT_EQ(beyond.status().code(), Code::kInvalidArgument);
  EXPECT_NE(beyond.status().message().find("can grow to " + std::to_string(GrowthLimit(g))), std::string_view::npos);
}

// docs/operations.md has these numbers.
TEST(GrownGeometryTest, PoolsGrowToTheDocumentedLimits) {
  const struct {
    uint64_t pool, limit, region, step;
    double usable;
  } rows[] = {
      {64 * kMiB, 8 * kGiB, kMiB, 640 * kMiB, 0.98},
      {256 * kMiB, 32 * kGiB, 4 * kMiB, 2560 * kMiB, 0.98},
      {kGiB, 32 * kGiB, 16 * kMiB, 10 * kGiB, 0.98},
      {8 * kGiB, 158 * kGiB, 64 * kMiB, 16 * kGiB, 0.918},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(testing::Message() << row.pool / kMiB << " MiB");
    const Geometry g = *ChooseGeometry({.pool_size = row.pool});
    EXPECT_EQ(g.region_size, row.region);
    EXPECT_NEAR(static_cast<double>(GrowthLimit(g)), static_cast<double>(row.limit),
                0.08 * static_cast<double>(row.limit));
    const Geometry grown = *GrownGeometry(g, row.step);
    EXPECT_NEAR(UsableShare(grown), row.usable, 0.05);
  }
}

TEST(GrownGeometryTest, AWishToGrowIsKeptOrRefused) {
  constexpr uint64_t kSeed = 10;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  Random random(kSeed);
  int kept = 0;
  for (int i = 0; i < 20'000; ++i) {
    GeometryWish wish;
    wish.pool_size = random.Next() >> random.Between(20, 46);
    wish.shards = static_cast<uint32_t>(random.Between(1, random.Chance(0.5) ? 4 : 64));
    wish.grow_to = random.Chance(0.1) ? random.Next() : wish.pool_size * random.Between(1, 300);
    const auto geometry = ChooseGeometry(wish);
    if (!geometry.ok()) {
      ASSERT_EQ(geometry.status().code(), Code::kInvalidArgument);
      continue;
    }
    ++kept;
    ASSERT_TRUE(HoldsTogether(*geometry)) << Describe(wish) << " to " << wish.grow_to;
    ASSERT_GE(GrowthLimit(*geometry), wish.grow_to);
    ASSERT_GE(UsableShare(*geometry), 0.5);
    if (wish.grow_to <= wish.pool_size) continue;
    const auto grown = GrownGeometry(*geometry, wish.grow_to);
    ASSERT_TRUE(grown.ok()) << grown.status().ToString();
    ASSERT_TRUE(HoldsTogether(*grown));
  }
  EXPECT_GT(kept, 3000);
  EXPECT_TRUE(IsRefused({.pool_size = kGiB, .grow_to = 8192 * kGiB}, ""));
  EXPECT_TRUE(IsRefused({.pool_size = kGiB, .region_size = kMiB, .grow_to = 1024 * kGiB}, "can grow to"));
  EXPECT_TRUE(IsRefused({.pool_size = kGiB, .grow_to = 1024 * kGiB}, "less than half of a pool"));
}

// docs/operations.md has these numbers.
TEST(GrownGeometryTest, WishesToGrowGiveTheDocumentedGeometries) {
  const struct {
    uint64_t pool, grow_to, region;
    uint32_t heads;
    double usable, usable_grown;
  } rows[] = {
      {kGiB, 100 * kGiB, 4 * kMiB, 4, 0.952, 0.994},
      {8 * kGiB, 256 * kGiB, 16 * kMiB, 9, 0.953, 0.994},
      {64 * kGiB, 256 * kGiB, 128 * kMiB, 9, 0.953, 0.985},
      {64 * kGiB, 1024 * kGiB, 64 * kMiB, 33, 0.926, 0.992},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(testing::Message() << row.pool / kMiB << " MiB");
    const Geometry g = *ChooseGeometry({.pool_size = row.pool, .grow_to = row.grow_to});
    EXPECT_EQ(g.region_size, row.region);
    EXPECT_EQ(g.heads_per_shard, row.heads);
    EXPECT_NEAR(UsableShare(g), row.usable, 0.0005);
    EXPECT_NEAR(UsableShare(*GrownGeometry(g, row.grow_to)), row.usable_grown, 0.0005);
  }
}

TEST(GeometryTest, EachHeadSlotOfALayerHasASeparateAddress) {
  Geometry g = TestGeometry();
  g.more_layers = 3;
  std::vector<bool> seen(size_t{1} << (31 - 16));  // By address, for regions of 1 MiB.
  for (uint32_t slot = 0; slot < g.slots_per_head(); ++slot) {
    for (const uint64_t offset : {uint64_t{0}, uint64_t{16}, g.region_size - 16}) {
      const LogAddress address = g.AddressOf(slot, offset);
      ASSERT_EQ(g.SlotOf(address), slot);
      ASSERT_EQ(g.OffsetInRegion(address), offset);
    }
    const LogAddress first = g.AddressOf(slot, 0);
    ASSERT_FALSE(seen[first.raw() >> 16]);
    seen[first.raw() >> 16] = true;
    const RegionWord word = RegionWord::Linked(g, 7, g.heads() - 1, slot);
    ASSERT_TRUE(word == RegionWord::Linked(7, word.head(), word.slot())) << "whole, whatever the layer";
    ASSERT_EQ(word.HeadIn(g), g.heads() - 1);
    ASSERT_EQ(word.SlotIn(g), slot);
    if (slot < kSlotsPerHead) {
      ASSERT_EQ(first, LogAddress::At(slot, 0));
    }
  }
  EXPECT_EQ(g.SlotOf(LogAddress::At(5, 4 * g.region_size)), g.slots_per_head()) << "in no layer";
  EXPECT_GE(RegionWord::Linked(7, 4 * g.heads(), 0).SlotIn(g), g.slots_per_head());
  EXPECT_GE(RegionWord::Linked(7, 0, 128).SlotIn(g), g.slots_per_head());
}

TEST(UsableShareTest, UsableShareFollowsTheFormula) {
  const Geometry g = TestGeometry();  // Of the 31 regions of a shard, the cleaner keeps one, and the head keeps two.
  EXPECT_DOUBLE_EQ(UsableShare(g), 255.0 / 256 * (2.0 * 28 * (kMiB - 1088 - 4 * (64 + 1024))) / (64.0 * kMiB));
}

TEST(UsableShareTest, TooFewRegionsLeaveNoUsableShare) {
  Geometry g = TestGeometry();
  g.regions_per_shard = 3;
  EXPECT_EQ(UsableShare(g), 0.0);
  g.regions_per_shard = 4;
  EXPECT_GT(UsableShare(g), 0.0);
}

// The parameter is the number of shards. The geometry is the default.
class UsableShareOfShardsTest : public testing::TestWithParam<uint32_t> {};

TEST_P(UsableShareOfShardsTest, UsableShareIsAtLeastTheDocumentedOne) {
  const uint32_t shards = GetParam();
  const auto expect_enough = [shards](uint64_t size) {
    const auto geometry = ChooseGeometry({.pool_size = size, .shards = shards});
    ASSERT_TRUE(geometry.ok()) << geometry.status().ToString();
    EXPECT_GE(UsableShare(*geometry), 0.85) << size << " bytes";
    EXPECT_GE(geometry->regions_per_shard, 20U) << size << " bytes";
    // Pools that need not grow have a larger share.
    if (size / shards < kGiB) {
      EXPECT_LT(geometry->regions_per_shard, 96U) << size << " bytes";
    }
  };
  const uint64_t least = std::max(64 * kMiB, 18 * kMiB * shards);
  for (uint64_t size = least; size <= 4096 * kGiB; size += size / 200 / 4096 * 4096) expect_enough(size);
  for (uint64_t size = std::bit_ceil(least); size <= 4096 * kGiB; size *= 2) expect_enough(size);
}
INSTANTIATE_TEST_SUITE_P(Shards, UsableShareOfShardsTest, testing::Range(1U, kShardsMax + 1));

TEST(UsableShareTest, ManyShardsInTheSmallestPoolHaveLess) {
  EXPECT_NEAR(UsableShare(*ChooseGeometry({.pool_size = 64 * kMiB, .shards = kShardsMax})), 0.603, 0.0005);
}

// docs/operations.md has these numbers.
TEST(ChooseGeometryTest, WithoutWishesAPoolHasTheDocumentedDefaults) {
  const struct {
    uint64_t pool, region, segment;
    uint32_t regions, heads;
    double usable;
  } rows[] = {
      {64 * kMiB, kMiB, kMiB / 4, 63, 1, 0.929},           {100 * kMiB, 2 * kMiB, kMiB / 2, 49, 1, 0.914},
      {256 * kMiB, 4 * kMiB, kMiB, 63, 1, 0.933},          {kGiB, 16 * kMiB, 4 * kMiB, 63, 1, 0.934},
      {2 * kGiB, 32 * kMiB, 8 * kMiB, 63, 2, 0.903},       {4 * kGiB, 64 * kMiB, 64 * kMiB, 63, 3, 0.872},
      {8 * kGiB, 64 * kMiB, 64 * kMiB, 127, 5, 0.903},     {64 * kGiB, 64 * kMiB, 64 * kMiB, 1019, 33, 0.926},
      {100 * kGiB, 64 * kMiB, 64 * kMiB, 1595, 51, 0.929}, {1024 * kGiB, 256 * kMiB, 64 * kMiB, 4079, 256, 0.867},
  };
  for (const auto& row : rows) {
    const Geometry g = *ChooseGeometry({.pool_size = row.pool});
    SCOPED_TRACE(testing::Message() << row.pool / kMiB << " MiB");
    EXPECT_EQ(g.region_size, row.region);
    EXPECT_EQ(g.segment_size, row.segment);
    EXPECT_EQ(g.regions_per_shard, row.regions);
    EXPECT_EQ(g.heads_per_shard, row.heads);
    EXPECT_NEAR(UsableShare(g), row.usable, 0.0005);
    // The largest value is 1188 bytes and the key smaller than the segment.
    EXPECT_EQ(ValueBytesMax(g, 24), row.segment - 1188 - 24);
  }
}

TEST(ValueBytesMaxTest, TheLargestValueFitsAndNoLarger) {
  for (uint64_t segment = kSegmentBytesMin; segment <= kRegionBytesMax; segment *= 2) {
    Geometry g = TestGeometry();
    g.segment_size = segment;
    for (const uint64_t key : {1U, 2U, 15U, 16U, 17U, 1000U, kKeyBytesMax}) {
      const uint64_t value = ValueBytesMax(g, key);
      const uint64_t room = segment - FirstObjectOffset(0);
      EXPECT_LE(ObjectSpace(key, value), room) << segment << ", " << key;
      EXPECT_GT(ObjectSpace(key, value + 1), room) << segment << ", " << key;
    }
  }
}

}  // namespace
}  // namespace erda::format
