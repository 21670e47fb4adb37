// The division of a pool. Its owner chooses it when a program creates the pool. The superblock holds it, and the server
// tells it to each client that connects.
//
//   0          4096       8192            24576               index_offset      regions_offset
//   +----------+----------+---------------+-------------------+-----------------+------------------- ... -+
//   | super-   | super-   | shard records | region table      | index of each   | regions: one of shard 0,|
//   | block A  | block B  | 64 B a shard  | 8 B a region      | shard, in turn  | one of shard 1, ...     |
//   +----------+----------+---------------+-------------------+-----------------+------------------- ... -+
//
// The regions go round the shards. So a larger pool has the regions of the smaller one, and some more. A pool grows in
// place, by a larger pool_size, regions_per_shard and more_layers (GrownGeometry). No other field ever changes.
//
// A key's shard and head follow from its hash alone. Its place in the index depends on the number of blocks, too
// (index_layout.h). Blocks beyond the first ones are in regions of the log.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "base/hash.h"
#include "erda/status.h"
#include "format/check.h"
#include "format/index_entry.h"
#include "format/log_address.h"

namespace erda::format {

inline constexpr uint32_t kShardsMax = 64;
inline constexpr uint32_t kHeadsMax = 256;
inline constexpr uint32_t kRegionsMax = kHeadsMax * kSlotsPerHead;
inline constexpr uint64_t kSegmentBytesMin = 4096;
// If the owner names no segment size, a segment is a quarter of a region, and at most kSegmentBytesDefault. If a shard
// has kShardBytesOfLargeSegments of the pool or more, a segment has kSegmentBytesLarge, for large values. It must fit
// into a region.
inline constexpr uint64_t kSegmentBytesDefault = 8ULL << 20;
inline constexpr uint64_t kSegmentBytesLarge = 64ULL << 20;
inline constexpr uint64_t kShardBytesOfLargeSegments = 4ULL << 30;
inline constexpr uint64_t kShardRecordsOffset = 8192;
inline constexpr uint64_t kRegionTableOffset = 24576;
inline constexpr uint64_t kBlockSlotsMin = 2 * kNeighbourhood;
inline constexpr uint64_t kBlockSlotsMax = 2048;
inline constexpr uint64_t kIndexSlotsMin = kBlockSlotsMin;
// The slots up to which each shard's index grows for keys that stand close together, while most slots are free.
[[nodiscard]] constexpr uint64_t SparseIndexSlots(uint64_t pool_size, uint32_t shards) {
  constexpr uint64_t kPoolBytesPerSlot = 256;
  return std::max(std::bit_floor(pool_size / shards / kPoolBytesPerSlot), kIndexSlotsMin);
}
// The slots that each shard's index has at first, if the owner names no number: a whole block at least, except in the
// smallest pools. It grows where values are small. In an index of mostly free slots nearly each key would have a page
// for itself. That is a fault for a new key, and in an ordinary file a page that each sync writes.
[[nodiscard]] constexpr uint64_t FirstIndexSlots(uint64_t pool_size, uint32_t shards) {
  constexpr uint64_t kPoolBytesPerSlot = 4096;
  return std::max(std::bit_floor(pool_size / shards / kPoolBytesPerSlot),
                  std::min(kBlockSlotsMax, SparseIndexSlots(pool_size, shards)));
}

struct Geometry {
  uint64_t pool_size;
  uint64_t region_size;   // A power of two.
  uint64_t segment_size;  // A power of two.
  uint64_t index_slots;   // Of each shard, at first: a power of two, and whole blocks.
  uint64_t index_offset;
  uint64_t regions_offset;
  uint32_t regions_per_shard;
  uint32_t shards;
  uint32_t heads_per_shard;
  uint16_t block_shift;  // A block has 1 << block_shift index slots. It fits into a region.
  uint16_t more_layers;  // The layers of head slots beyond the first one: 0 until the pool grows beyond that layer.

  [[nodiscard]] constexpr uint32_t heads() const { return shards * heads_per_shard; }
  [[nodiscard]] constexpr uint32_t regions() const { return shards * regions_per_shard; }
  [[nodiscard]] constexpr uint32_t layers() const { return uint32_t{more_layers} + 1; }
  [[nodiscard]] constexpr uint32_t slots_per_head() const { return layers() * kSlotsPerHead; }
  [[nodiscard]] constexpr uint64_t segments_per_region() const { return region_size / segment_size; }
  [[nodiscard]] constexpr uint64_t block_slots() const { return uint64_t{1} << block_shift; }
  [[nodiscard]] constexpr uint64_t first_blocks() const { return index_slots >> block_shift; }
  // The slots of the blocks that one region of the log holds.
  [[nodiscard]] constexpr uint64_t run_slots() const { return region_size / sizeof(IndexEntry); }
  // The most regions that the index may take. An entry leads to at least one object, which is no smaller than the
  // entry's share of the index.
  [[nodiscard]] constexpr uint32_t runs_max() const { return regions_per_shard / 2; }
  [[nodiscard]] constexpr uint64_t blocks_max() const {
    return first_blocks() + runs_max() * (run_slots() >> block_shift);
  }

  [[nodiscard]] constexpr uint32_t ShardOf(uint64_t key_hash) const {
    return Spread32(static_cast<uint32_t>(key_hash), shards);
  }
  // The head's number counts through all shards.
  [[nodiscard]] constexpr uint32_t HeadOf(uint64_t key_hash) const {
    const auto low = static_cast<uint32_t>(key_hash);
    const uint32_t within_shard = low * shards;  // The rest of the low bits, after they chose the shard.
    return ShardOf(key_hash) * heads_per_shard + Spread32(within_shard, heads_per_shard);
  }
  // The first slot of the key's neighbourhood, counted from the first of its block (index_layout.h).
  [[nodiscard]] constexpr uint64_t HomeInBlock(uint64_t key_hash) const {
    return Spread64(key_hash, block_slots() - kNeighbourhood + 1);
  }

  // Pool offsets.
  // REQUIRES: slot < index_slots. IndexLayout::SlotOffset is for the other slots.
  [[nodiscard]] constexpr uint64_t FirstSlotOffset(uint32_t shard, uint64_t slot) const {
    return index_offset + (shard * index_slots + slot) * sizeof(IndexEntry);
  }
  [[nodiscard]] constexpr uint64_t RegionOffset(uint32_t region) const { return regions_offset + region * region_size; }

  // The regions of a shard, in their order.
  [[nodiscard]] constexpr uint32_t RegionOf(uint32_t shard, uint32_t number) const { return number * shards + shard; }
  [[nodiscard]] constexpr uint32_t NumberInShard(uint32_t region) const { return region / shards; }

  // Returns the head slot of an address, from 0 to slots_per_head - 1. An address has room for 128 slots of 256 MiB. If
  // regions are smaller, a slot of an address holds several: that of layer 0 first, then that of layer 1, and so on. So
  // a head slot is the address's slot plus 128 times the layer. Returns slots_per_head for an address in no layer.
  [[nodiscard]] constexpr uint32_t SlotOf(LogAddress address) const {
    const uint64_t layer = LayerOf(address);
    return layer > more_layers ? slots_per_head() : static_cast<uint32_t>(layer) * kSlotsPerHead + address.slot();
  }
  [[nodiscard]] constexpr uint64_t LayerOf(LogAddress address) const {
    const uint64_t offset = address.offset_in_slot();
    return offset < region_size ? 0 : offset >> std::countr_zero(region_size);  // Most pools have layer 0 alone.
  }
  [[nodiscard]] constexpr uint64_t OffsetInRegion(LogAddress address) const {
    return address.offset_in_slot() & (region_size - 1);
  }
  // REQUIRES: slot < slots_per_head, offset_in_region < region_size.
  [[nodiscard]] constexpr LogAddress AddressOf(uint32_t slot, uint64_t offset_in_region) const {
    return LogAddress::At(slot % kSlotsPerHead, slot / kSlotsPerHead * region_size + offset_in_region);
  }
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
ERDA_FORMAT_FIELD(Geometry, more_layers, 62);

// The wishes of a new pool's owner; 0 chooses by the pool's size.
struct GeometryWish {
  uint64_t pool_size = 0;
  uint32_t shards = 1;
  uint64_t region_size = 0;
  uint64_t segment_size = 0;
  uint64_t index_entries = 0;     // Of all shards.
  uint32_t regions_per_head = 0;  // Fewer than kSlotsPerHead make several heads.
  // The least size to which the pool can grow later. With 0 the pool can become 16 times as large, if at least 0.85 of
  // it are usable then. If not, it can become 8, 4 or 2 times as large, or no larger than its geometry allows anyway.
  uint64_t grow_to = 0;
  // The rules until 2026-11-26: a slot for 256 bytes. They find what is left of an older pool, and make no new one.
  bool roomy_index = false;
};
// Returns kInvalidArgument, and names the limit, if no pool can meet the wishes.
Result<Geometry> ChooseGeometry(const GeometryWish& wish);

// Returns the geometry of the same pool with pool_size bytes: nothing moves, and each shard has more regions. Returns
// kInvalidArgument, and names the limit, if the size is not larger, or if the pool cannot grow to it.
Result<Geometry> GrownGeometry(const Geometry& geometry, uint64_t pool_size);
// Returns the largest size that the pool can have. The region table's room and the reach of addresses limit it.
[[nodiscard]] uint64_t GrowthLimit(const Geometry& geometry);

// Returns Ok if a geometry that was read from a pool is consistent: all parts are in bounds, and no two overlap.
Status CheckGeometry(const Geometry& geometry);

// Returns the share of the pool that live objects of at most 1 KiB can always take.
//
//   255/256 * (regions - shards - 2 heads) * (region size - tombstone slot - segments * (header + 1 KiB)) / pool size
//
// Each shard keeps a region free for the cleaner. Each head has a region to which the log writes, and one to which the
// cleaner copies. Both may have no live object. 1 KiB is the end of a segment, where the next object did not fit. Of
// the other regions 1/256 may be dead space that is not worth cleaning.
[[nodiscard]] double UsableShare(const Geometry& geometry);

// Returns the size of the largest value that a segment holds beside its header and the key.
[[nodiscard]] uint64_t ValueBytesMax(const Geometry& geometry, uint64_t key_bytes, bool expires = false);
// Every pool holds a value of this size, whatever its key.
inline constexpr uint64_t kValueBytesOfEveryPool = 1024;

}  // namespace erda::format
