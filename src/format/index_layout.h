// The places of keys in a shard's index, and the places of index slots in the pool.
//
// The index is a line of blocks of equal size, each a separate hopscotch table. It grows by linear hashing. Let n be
// the number of blocks, 2^d <= n < 2^(d+1). A key's block is the low d+1 bits of its hash, or the low d bits if there
// is no such block yet. So one number says which blocks are split: block n takes entries from block n - 2^d.
//
//   block 0 ... first_blocks - 1     run 0                         run 1
//   +--------- ... -----------+      +--------- ... --------+      +--------- ... --------+
//   | at index_offset         |      | a region of the log  |      | another one          |
//   +--------- ... -----------+      +--------- ... --------+      +--------- ... --------+
//
// The numbers of index slots go through all blocks. Sizes are powers of two, so shifts alone find a slot's place.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>

#include "base/hash.h"
#include "format/geometry.h"
#include "format/index_entry.h"
#include "format/reach.h"

namespace erda::format {

class IndexLayout {
 public:
  // runs: the region of each run plus 1, or 0, as in the control block. The runs may change later, but not move in
  // memory.
  IndexLayout(const Geometry& geometry, uint32_t shard, std::span<const uint32_t> runs)
      : geometry_(geometry),
        first_slot_offset_(geometry.FirstSlotOffset(shard, 0)),
        runs_(runs),
        blocks_(geometry.first_blocks()),
        full_(std::bit_floor(blocks_)) {}

  [[nodiscard]] uint64_t blocks() const { return blocks_; }
  void SetBlocks(uint64_t blocks) {
    blocks_ = blocks;
    full_ = std::bit_floor(blocks);
  }
  [[nodiscard]] uint64_t slots() const { return blocks_ << geometry_.block_shift; }

  // Returns the key's block in an index of `blocks`. Uses the hash's low 32 bits alone, which an entry's tag has.
  [[nodiscard]] static uint64_t BlockOf(uint64_t key_hash, uint64_t blocks) {
    return BlockOf(key_hash, blocks, std::bit_floor(blocks));
  }
  [[nodiscard]] uint64_t BlockOf(uint64_t key_hash) const { return BlockOf(key_hash, blocks_, full_); }
  // Returns the key's block, if `depth` bits choose it.
  [[nodiscard]] static uint64_t BlockAt(uint64_t key_hash, uint32_t depth) {
    return static_cast<uint32_t>(key_hash) & ((uint64_t{1} << (depth & 63)) - 1);
  }
  // Returns the number of low bits of the hash that choose this block.
  [[nodiscard]] static uint32_t DepthOf(uint64_t block, uint64_t blocks) {
    const uint64_t full = std::bit_floor(blocks);
    const bool split = block >= full || block + full < blocks;
    return static_cast<uint32_t>(std::countr_zero(full)) + (split ? 1 : 0);
  }
  [[nodiscard]] uint32_t DepthOf(uint64_t block) const { return DepthOf(block, blocks_); }
  [[nodiscard]] uint64_t BlockWith(uint64_t slot) const { return slot >> geometry_.block_shift; }
  [[nodiscard]] uint64_t FirstOf(uint64_t block) const { return block << geometry_.block_shift; }
  // Returns the first slot of the key's neighbourhood in that block. The block has the whole neighbourhood.
  [[nodiscard]] uint64_t HomeIn(uint64_t block, uint64_t key_hash) const {
    return FirstOf(block) + geometry_.HomeInBlock(key_hash);
  }
  [[nodiscard]] uint64_t HomeOf(uint64_t key_hash) const { return HomeIn(BlockOf(key_hash), key_hash); }

  [[nodiscard]] Reaches reaches() const { return reaches_; }
  void SetReaches(Reaches reaches) { reaches_ = reaches; }
  // The index slots of one block in which a key's entry may be (reach.h). The window of a larger exponent includes the
  // window of each smaller one.
  struct Window {
    uint64_t begin;
    uint64_t end;
    [[nodiscard]] bool Has(uint64_t slot) const { return slot >= begin && slot < end; }
    [[nodiscard]] uint64_t slots() const { return end - begin; }
  };
  [[nodiscard]] Window NeighbourhoodOf(uint64_t key_hash) const {
    const uint64_t home = HomeOf(key_hash);
    return {home, home + kNeighbourhood};
  }
  [[nodiscard]] Window WindowIn(uint64_t block, uint64_t key_hash, Reaches reaches) const {
    const uint64_t slots = std::min(uint64_t{kNeighbourhood} << reaches.Exponent(key_hash), geometry_.block_slots());
    const uint64_t begin = FirstOf(block) + std::min(geometry_.HomeInBlock(key_hash), geometry_.block_slots() - slots);
    return {begin, begin + slots};
  }
  [[nodiscard]] Window WindowOf(uint64_t key_hash) const { return WindowIn(BlockOf(key_hash), key_hash, reaches_); }
  // Returns the distance that an entry of the key states in this slot.
  [[nodiscard]] uint32_t DistanceTo(uint64_t slot, uint64_t key_hash) const {
    const Window near = NeighbourhoodOf(key_hash);
    return near.Has(slot) ? static_cast<uint32_t>(slot - near.begin) : EntryMeta::kFar;
  }
  // Returns whether an entry of the key may be in this slot, and state this distance.
  [[nodiscard]] bool IsPlaceOf(uint64_t key_hash, uint64_t slot, uint32_t distance) const {
    return WindowOf(key_hash).Has(slot) && DistanceTo(slot, key_hash) == distance;
  }

  // Return the block from which the next block will take entries, and the block from which the last one took them.
  // REQUIRES: there is such a block.
  [[nodiscard]] uint64_t NextParent() const { return blocks_ - std::bit_floor(blocks_); }
  [[nodiscard]] uint64_t LastParent() const { return blocks_ - 1 - std::bit_floor(blocks_ - 1); }
  [[nodiscard]] bool grown() const { return blocks_ > geometry_.first_blocks(); }

  // Returns the run of a block. REQUIRES: the block is not one of the first blocks.
  [[nodiscard]] uint64_t RunOf(uint64_t block) const {
    return ((block - geometry_.first_blocks()) << geometry_.block_shift) / geometry_.run_slots();
  }
  // Returns whether the block's place is known.
  [[nodiscard]] bool IsKnown(uint64_t block) const {
    if (block < geometry_.first_blocks()) return true;
    const uint64_t run = RunOf(block);
    return run < runs_.size() && runs_[run] != 0 && runs_[run] <= geometry_.regions();
  }
  // Returns the slot's offset in the pool. REQUIRES: the slot's block is known.
  [[nodiscard]] uint64_t SlotOffset(uint64_t slot) const {
    if (slot < geometry_.index_slots) return first_slot_offset_ + slot * sizeof(IndexEntry);
    const uint64_t in_runs = slot - geometry_.index_slots;
    const auto shift = std::countr_zero(geometry_.run_slots());
    return geometry_.RegionOffset(runs_[in_runs >> shift] - 1) +
           (in_runs & (geometry_.run_slots() - 1)) * sizeof(IndexEntry);
  }

 private:
  // full: the largest power of two that is not larger than `blocks`.
  [[nodiscard]] static uint64_t BlockOf(uint64_t key_hash, uint64_t blocks, uint64_t full) {
    const uint64_t low = static_cast<uint32_t>(key_hash);
    const uint64_t block = low & (2 * full - 1);
    return block < blocks ? block : low & (full - 1);
  }

  const Geometry& geometry_;
  const uint64_t first_slot_offset_;
  const std::span<const uint32_t> runs_;
  uint64_t blocks_;
  uint64_t full_;
  Reaches reaches_;
};

}  // namespace erda::format
