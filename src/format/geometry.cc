#include "format/geometry.h"

#include <algorithm>
#include <bit>
#include <string>

#include "base/bytes.h"
#include "format/log_layout.h"

namespace erda::format {

namespace {

constexpr uint64_t kPageBytes = 4096;
constexpr uint64_t kHugePageBytes = 2ULL << 20;
constexpr uint64_t kRegionsPerShardWanted = 48;  // For a shard with one head.
// Each head keeps some head slots for the cleaner, and for regions that it empties (kSlotsKept in log/head_slots.cc).
constexpr uint32_t kSlotsSpared = 8;
constexpr uint32_t kRegionsPerHead = kSlotsPerHead - kSlotsSpared;
// The regions of a pool that has grown as far as was wished. The region words allow more, but heads are never full.
constexpr uint64_t kRegionsGrown = kHeadsMax * kRegionsPerHead;
constexpr uint64_t kHeadBytesMax = kRegionBytesMax * kRegionsPerHead;
// The least usable share of a pool that its owner makes to grow.
constexpr double kUsableLeast = 0.5;
// If the owner names no size to grow to, the pool can grow 16 times. It can grow fewer times if its usable share were
// less than this otherwise.
constexpr uint64_t kGrowsUsually = 16;
constexpr double UsableUsually(const GeometryWish& wish) { return wish.roomy_index ? 0.8 : 0.85; }
// The log writes to one, the cleaner copies to one, one is free, and the cleaner cleans one.
constexpr uint32_t kRegionsPerShardMin = 4;

// Returns the most layers that addresses reach, and that a region word can tell (log_layout.h).
uint32_t LayersMax(const Geometry& g) {
  return static_cast<uint32_t>(std::min<uint64_t>(kRegionBytesMax / g.region_size, kHeadsMax / g.heads()));
}

// Returns the end of the region table, which has room for all regions that the pool could hold.
uint64_t IndexOffset(uint64_t pool_size, uint64_t region_size) {
  constexpr uint64_t kRegionsLeast = 8192;
  const uint64_t regions = std::clamp<uint64_t>(pool_size / region_size, kRegionsLeast, kRegionsMax);
  return AlignUp(kRegionTableOffset + regions * sizeof(uint64_t), kPageBytes);
}

Status Invalid(std::string what) { return {Code::kInvalidArgument, std::move(what)}; }

// Computes the fields that follow from the sizes.
Geometry Lay(const GeometryWish& wish, uint64_t region_size, uint64_t segment_size, uint64_t index_slots) {
  Geometry g{};
  g.pool_size = wish.pool_size;
  g.shards = wish.shards;
  g.region_size = region_size;
  g.segment_size = segment_size;
  g.index_slots = index_slots;
  const uint64_t block_slots = std::min({kBlockSlotsMax, index_slots, region_size / sizeof(IndexEntry)});
  g.block_shift = static_cast<uint16_t>(std::countr_zero(block_slots));
  g.index_offset = IndexOffset(std::max(g.pool_size, wish.grow_to), region_size);
  // Regions of 8 MiB and more begin at huge pages. For small regions this would waste more than it brings.
  const uint64_t alignment = std::clamp(region_size / (wish.roomy_index ? 16 : 4), kPageBytes, kHugePageBytes);
  g.regions_offset = AlignUp(g.FirstSlotOffset(g.shards, 0), alignment);
  if (g.regions_offset >= g.pool_size) return g;
  const uint64_t regions = (g.pool_size - g.regions_offset) / region_size / g.shards;
  const uint32_t per_head =
      wish.regions_per_head == 0 ? kRegionsPerHead : std::min(wish.regions_per_head, kRegionsPerHead);
  g.regions_per_shard = static_cast<uint32_t>(std::min<uint64_t>(regions, kHeadsMax / g.shards * per_head));
  g.heads_per_shard = std::max<uint32_t>(1, (g.regions_per_shard + per_head - 1) / per_head);
  while (GrowthLimit(g) < wish.grow_to && g.heads() + g.shards <= kHeadsMax) ++g.heads_per_shard;
  return g;
}

// Returns the regions that a shard gets at least. It gets fewer than twice that number. The regions that it keeps free
// are then a small part.
uint64_t RegionsPerShardWanted(const GeometryWish& wish) {
  const uint64_t heads = wish.grow_to / wish.shards / kHeadBytesMax + 1;
  return (1 + 2 * heads) * kRegionsPerShardWanted / 3;
}

// Returns whether a shard's part of the pool is large enough for large segments.
bool TakesLargeValues(const GeometryWish& wish) { return wish.pool_size / wish.shards >= kShardBytesOfLargeSegments; }

// Takes grow_to as it is: with 0 the pool need not grow.
Result<Geometry> Choose(const GeometryWish& wish) {
  if (wish.shards == 0 || wish.shards > kShardsMax) {
    return Invalid("a pool has 1 to " + std::to_string(kShardsMax) + " shards, not " + std::to_string(wish.shards));
  }
  const uint64_t index_slots_max = wish.pool_size / wish.shards / sizeof(IndexEntry);
  const uint64_t wished = wish.index_entries == 0 ? 0 : (wish.index_entries - 1) / wish.shards + 1;
  if (wished > index_slots_max)
    return Invalid("the index would not fit into the pool; give fewer --index-entries, or a larger pool");
  const uint64_t unwished =
      wish.roomy_index ? SparseIndexSlots(wish.pool_size, wish.shards) : FirstIndexSlots(wish.pool_size, wish.shards);
  uint64_t index_slots = wished != 0 ? std::bit_ceil(wished) : unwished;
  index_slots = std::max(index_slots, kIndexSlotsMin);
  if (index_slots > index_slots_max)
    return Invalid("the index would not fit into the pool; give fewer --index-entries, or a larger pool");

  const auto power_of_two = [](uint64_t n) { return std::has_single_bit(n); };
  uint64_t region_size = wish.region_size;
  if (region_size == 0) {
    const uint64_t index_bytes = wish.shards * index_slots * sizeof(IndexEntry);
    const uint64_t before_log = IndexOffset(wish.pool_size, kRegionBytesMax) + index_bytes;
    const uint64_t log_bytes = wish.pool_size - std::min(wish.pool_size, before_log);
    const uint64_t share = log_bytes / wish.shards / RegionsPerShardWanted(wish);
    // The number of regions has a limit, so a pool that has grown needs regions of this size.
    const uint64_t in_reach = std::bit_ceil(std::min(wish.grow_to, kRegionsMax * kRegionBytesMax) / kRegionsGrown);
    const uint64_t large =
        wish.segment_size == 0 && wish.grow_to == 0 && TakesLargeValues(wish) ? kSegmentBytesLarge : 0;
    const uint64_t least = std::max({wish.segment_size, 4 * kSegmentBytesMin, in_reach, large});
    region_size = std::clamp(std::bit_floor(share), std::min(least, kRegionBytesMax), kRegionBytesMax);
  }
  uint64_t segment_size = wish.segment_size;
  if (segment_size == 0) {
    const bool large = TakesLargeValues(wish) && region_size >= kSegmentBytesLarge;
    segment_size = std::clamp(region_size / 4, std::min(kSegmentBytesMin, region_size), kSegmentBytesDefault);
    if (large) segment_size = kSegmentBytesLarge;
  }
  if (!power_of_two(region_size) || region_size < kSegmentBytesMin || region_size > kRegionBytesMax) {
    return Invalid("the region size must be a power of two from " + std::to_string(kSegmentBytesMin) +
                   " bytes up to 256 MiB, not " + std::to_string(region_size));
  }
  if (!power_of_two(segment_size) || segment_size < kSegmentBytesMin || segment_size > region_size) {
    return Invalid("the segment size must be a power of two from " + std::to_string(kSegmentBytesMin) +
                   " up to the region size, not " + std::to_string(segment_size));
  }

  const Geometry geometry = Lay(wish, region_size, segment_size, index_slots);
  if (geometry.regions_per_shard < kRegionsPerShardMin) {
    return Invalid("a pool of " + std::to_string(wish.pool_size) + " bytes is too small for " +
                   std::to_string(wish.shards) + " shards with regions of " + std::to_string(region_size) +
                   " bytes: each shard needs four regions; make the pool larger, or the regions smaller");
  }
  if (auto status = CheckGeometry(geometry); !status.ok()) return status;
  if (wish.grow_to == 0) return geometry;
  if (const uint64_t limit = GrowthLimit(geometry); limit < wish.grow_to) {
    return Invalid("a pool of " + std::to_string(wish.pool_size) + " bytes with regions of " +
                   std::to_string(region_size) + " bytes can grow to " + std::to_string(limit) +
                   " at most, and not to " + std::to_string(wish.grow_to));
  }
  if (UsableShare(geometry) < kUsableLeast) {
    return Invalid("less than half of a pool of " + std::to_string(wish.pool_size) + " bytes that can grow to " +
                   std::to_string(wish.grow_to) + " would be usable; make it larger");
  }
  return geometry;
}

}  // namespace

Result<Geometry> ChooseGeometry(const GeometryWish& wish) {
  auto plain = Choose(wish);
  if (!plain.ok() || wish.grow_to != 0 || wish.regions_per_head != 0) return plain;
  // More heads reach farther, but each head keeps two regions free. So the loop tries other region sizes, too, if the
  // owner names none.
  for (uint64_t times = kGrowsUsually; times > 1; times /= 2) {
    GeometryWish roomy = wish;
    roomy.grow_to = std::min(wish.pool_size, kRegionsGrown * kRegionBytesMax / times) * times;
    if (roomy.grow_to <= GrowthLimit(*plain)) return plain;
    const bool large = plain->segment_size == kSegmentBytesLarge;
    const uint64_t smaller = large ? kSegmentBytesLarge : 0;  // 0: Choose takes the size by the number of heads.
    for (const uint64_t region_size : {plain->region_size, smaller, 2 * (large ? smaller : plain->region_size)}) {
      roomy.region_size = wish.region_size != 0 ? wish.region_size : region_size;
      auto geometry = Choose(roomy);
      if (geometry.ok() && UsableShare(*geometry) >= UsableUsually(wish)) return geometry;
    }
  }
  return plain;
}

namespace {

// Returns the most regions that each shard can have, whatever the pool's size.
uint32_t RegionsPerShardMax(const Geometry& g) {
  const uint64_t in_table = (g.index_offset - kRegionTableOffset) / sizeof(uint64_t);
  const uint64_t in_heads = uint64_t{g.heads_per_shard} * (LayersMax(g) * kSlotsPerHead - kSlotsSpared);
  return static_cast<uint32_t>(std::min(std::min<uint64_t>(in_table, kRegionsMax) / g.shards, in_heads));
}

}  // namespace

uint64_t GrowthLimit(const Geometry& g) {
  const uint64_t regions = std::max(RegionsPerShardMax(g), g.regions_per_shard) * uint64_t{g.shards};
  return std::max(g.pool_size, g.RegionOffset(0) + regions * g.region_size);
}

Result<Geometry> GrownGeometry(const Geometry& geometry, uint64_t pool_size) {
  if (pool_size <= geometry.pool_size) {
    return Invalid("it has " + std::to_string(geometry.pool_size) + " bytes, and a pool only grows: give more than " +
                   std::to_string(pool_size));
  }
  if (pool_size > GrowthLimit(geometry)) {
    return Invalid("it can grow to " + std::to_string(GrowthLimit(geometry)) + " bytes, with regions of " +
                   std::to_string(geometry.region_size) + ", and not to " + std::to_string(pool_size));
  }
  Geometry g = geometry;
  g.pool_size = pool_size;
  const uint64_t regions = (pool_size - g.regions_offset) / g.region_size / g.shards;
  g.regions_per_shard =
      std::max(g.regions_per_shard, static_cast<uint32_t>(std::min<uint64_t>(regions, RegionsPerShardMax(g))));
  while (g.more_layers + 1U < LayersMax(g) &&
         g.regions_per_shard > g.heads_per_shard * (g.slots_per_head() - kSlotsSpared)) {
    ++g.more_layers;
  }
  if (auto status = CheckGeometry(g); !status.ok()) return status;
  return g;
}

Status CheckGeometry(const Geometry& g) {
  const bool sizes_hold = std::has_single_bit(g.region_size) && g.region_size <= kRegionBytesMax &&
                          std::has_single_bit(g.segment_size) && g.segment_size >= kSegmentBytesMin &&
                          g.segment_size <= g.region_size;
  const bool counts_hold = sizes_hold && g.shards >= 1 && g.shards <= kShardsMax && g.heads_per_shard >= 1 &&
                           g.heads_per_shard <= kHeadsMax / g.shards && g.regions_per_shard >= 2 &&
                           g.layers() <= LayersMax(g) && g.regions() <= kRegionsMax &&
                           g.regions_per_shard <= g.heads_per_shard * g.slots_per_head() && g.block_shift < 64 &&
                           g.block_slots() >= kBlockSlotsMin && g.block_slots() <= kBlockSlotsMax &&
                           g.block_slots() * sizeof(IndexEntry) <= g.region_size;
  if (!counts_hold) return Invalid("a number of the geometry is out of its limits");
  // The checks divide, so that nothing can overflow.
  const bool index_holds = std::has_single_bit(g.index_slots) && g.index_slots >= g.block_slots() &&
                           g.index_offset >= kRegionTableOffset + g.regions() * sizeof(uint64_t) &&
                           g.index_offset <= g.regions_offset && g.index_offset % kPageBytes == 0 &&
                           (g.regions_offset - g.index_offset) / sizeof(IndexEntry) / g.shards >= g.index_slots;
  const bool regions_hold = g.regions_offset < g.pool_size && g.regions_offset % kPageBytes == 0 &&
                            (g.pool_size - g.regions_offset) / g.region_size >= g.regions();
  // A hash's low 32 bits choose the block.
  if (g.blocks_max() > uint64_t{1} << 32) return Invalid("the index has more blocks than 2^32");
  if (!index_holds || !regions_hold) return Invalid("the geometry does not fit into the pool");
  return {};
}

double UsableShare(const Geometry& g) {
  constexpr uint64_t kTailBytes = 1024;
  const uint64_t kept = g.shards + 2 * g.heads();
  if (g.regions() <= kept) return 0;
  const uint64_t lost = kTombstoneSlotBytes + g.segments_per_region() * (sizeof(SegmentHeader) + kTailBytes);
  const uint64_t usable = (g.regions() - kept) * (g.region_size - lost);
  constexpr double kWorthCleaning = 255.0 / 256;  // The cleaner leaves a region whose dead space is less than 1/256.
  return kWorthCleaning * static_cast<double>(usable) / static_cast<double>(g.pool_size);
}

static_assert(kValueBytesOfEveryPool <= kSegmentBytesMin - FirstObjectOffset(0) - ValueOffset(kLabelBytesMax));

uint64_t ValueBytesMax(const Geometry& geometry, uint64_t key_bytes, bool expires) {
  const uint64_t space = geometry.segment_size - FirstObjectOffset(0);
  return key_bytes > kKeyBytesMax ? 0
                                  : std::min<uint64_t>(space - ValueOffset(LabelSize(key_bytes, expires)), UINT32_MAX);
}

}  // namespace erda::format
