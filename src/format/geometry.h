// How a pool is divided. Chosen when it is created, kept in the superblock, told to clients when they connect.
//
//   0          4096       8192            24576               index_offset      regions_offset
//   +----------+----------+---------------+-------------------+-----------------+------------------- ... -+
//   | super-   | super-   | shard records | region table      | index of each   | regions: those of       |
//   | block A  | block B  | 64 B a shard  | 8 B a region      | shard, in turn  | shard 0, of shard 1 ... |
//   +----------+----------+---------------+-------------------+-----------------+------------------- ... -+
//
// Which shard and head a key belongs to follows from its hash alone. Where in the index it is, also from how far that
// has grown (index_layout.h): what it has more than at first is in regions of the log.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "base/hash.h"
#include "erda/status.h"
#include "format/check.h"
#include "format/index_entry.h"

namespace erda::format {

inline constexpr uint32_t kShardsMax = 64;
inline constexpr uint32_t kHeadsMax = 256;
inline constexpr uint32_t kRegionsMax = kHeadsMax * kSlotsPerHead;
inline constexpr uint64_t kSegmentBytesMin = 4096;
inline constexpr uint64_t kSegmentBytesDefault = 8ULL << 20;
inline constexpr uint64_t kShardRecordsOffset = 8192;
inline constexpr uint64_t kRegionTableOffset = 24576;
inline constexpr uint64_t kBlockSlotsMin = 2 * kNeighbourhood;
inline constexpr uint64_t kBlockSlotsMax = 2048;
inline constexpr uint64_t kIndexSlotsMin = kBlockSlotsMin;
// That each shard's index has at first, if nobody says how many.
[[nodiscard]] constexpr uint64_t UsualIndexSlots(uint64_t pool_size, uint32_t shards) {
  constexpr uint64_t kPoolBytesPerSlot = 256;
  return std::max(std::bit_floor(pool_size / shards / kPoolBytesPerSlot), kIndexSlotsMin);
}

struct Geometry {
  uint64_t pool_size;
  uint64_t region_size;   // power of two
  uint64_t segment_size;  // power of two
  uint64_t index_slots;   // of each shard, at first: power of two, whole blocks
  uint64_t index_offset;
  uint64_t regions_offset;
  uint32_t regions_per_shard;
  uint32_t shards;
  uint32_t heads_per_shard;
  uint32_t block_shift;  // a block of the index has 1 << block_shift slots, and is no larger than a region

  [[nodiscard]] constexpr uint32_t heads() const { return shards * heads_per_shard; }
  [[nodiscard]] constexpr uint32_t regions() const { return shards * regions_per_shard; }
  [[nodiscard]] constexpr uint64_t segments_per_region() const { return region_size / segment_size; }
  [[nodiscard]] constexpr uint64_t block_slots() const { return uint64_t{1} << block_shift; }
  [[nodiscard]] constexpr uint64_t first_blocks() const { return index_slots >> block_shift; }
  // Of the blocks that a region of the log holds.
  [[nodiscard]] constexpr uint64_t run_slots() const { return region_size / sizeof(IndexEntry); }
  // Of these regions: an entry leads to an object at least, which is no smaller than its share of the index.
  [[nodiscard]] constexpr uint32_t runs_max() const { return regions_per_shard / 2; }
  [[nodiscard]] constexpr uint64_t blocks_max() const {
    return first_blocks() + runs_max() * (run_slots() >> block_shift);
  }

  [[nodiscard]] constexpr uint32_t ShardOf(uint64_t key_hash) const {
    return Spread32(static_cast<uint32_t>(key_hash), shards);
  }
  // Numbered through all shards.
  [[nodiscard]] constexpr uint32_t HeadOf(uint64_t key_hash) const {
    const auto low = static_cast<uint32_t>(key_hash);
    const uint32_t within_shard = low * shards;  // what is left of the low bits once they chose the shard
    return ShardOf(key_hash) * heads_per_shard + Spread32(within_shard, heads_per_shard);
  }
  // The first slot of the key's neighbourhood, counted from the first of its block (index_layout.h).
  [[nodiscard]] constexpr uint64_t HomeInBlock(uint64_t key_hash) const {
    return Spread64(key_hash, block_slots() - kNeighbourhood + 1);
  }

  // Pool offsets.
  // REQUIRES: slot < index_slots. Of the others: IndexLayout::SlotOffset.
  [[nodiscard]] constexpr uint64_t FirstSlotOffset(uint32_t shard, uint64_t slot) const {
    return index_offset + (shard * index_slots + slot) * sizeof(IndexEntry);
  }
  [[nodiscard]] constexpr uint64_t RegionOffset(uint32_t region) const { return regions_offset + region * region_size; }
};
ERDA_FORMAT_SIZE(Geometry, 64);
ERDA_FORMAT_FIELD(Geometry, pool_size, 0);
ERDA_FORMAT_FIELD(Geometry, region_size, 8);
ERDA_FORMAT_FIELD(Geometry, segment_size, 16);
ERDA_FORMAT_FIELD(Geometry, index_slots, 24);
ERDA_FORMAT_FIELD(Geometry, index_offset, 32);
ERDA_FORMAT_FIELD(Geometry, regions_offset, 40);
ERDA_FORMAT_FIELD(Geometry, regions_per_shard, 48);
ERDA_FORMAT_FIELD(Geometry, shards, 52);
ERDA_FORMAT_FIELD(Geometry, heads_per_shard, 56);
ERDA_FORMAT_FIELD(Geometry, block_shift, 60);

// What the owner of a new pool may wish; 0 chooses by the pool's size.
struct GeometryWish {
  uint64_t pool_size = 0;
  uint32_t shards = 1;
  uint64_t region_size = 0;
  uint64_t segment_size = 0;
  uint64_t index_entries = 0;     // over all shards
  uint32_t regions_per_head = 0;  // fewer than a head has slots for, if there are to be several heads
};
// kInvalidArgument, naming the limit, if no pool can look like that.
Result<Geometry> ChooseGeometry(const GeometryWish& wish);

// Ok if a geometry read from a pool holds together: everything in bounds, nothing overlaps.
Status CheckGeometry(const Geometry& geometry);

// The share of the pool that live objects of at most 1 KiB can take: the least of it, whatever else is in the log.
//
//   255/256 * (regions - shards - 2 heads) * (region size - tombstone slot - segments * (header + 1 KiB)) / pool size
//
// Each shard keeps a region free for the cleaner. Each head has one that is written to, and one that the cleaner copies
// to, which may hold nothing that is live. 1 KiB is the end of a segment, where the next object did not fit. Of the
// other regions 1/256 may be dead, and not worth cleaning.
[[nodiscard]] double UsableShare(const Geometry& geometry);

// The largest value that a segment holds beside its header and the key.
[[nodiscard]] uint64_t ValueBytesMax(const Geometry& geometry, uint64_t key_bytes, bool expires = false);

}  // namespace erda::format
