// The index of a shard with all of its blocks, read from a pool's bytes by the formats alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "format/control_block.h"
#include "format/index_layout.h"
#include "format/log_layout.h"
#include "format/superblock.h"

namespace erda::format {

class PoolIndex {
 public:
  // Takes runs, blocks and reaches from the control block.
  PoolIndex(std::span<const std::byte> pool, const Geometry& geometry, uint32_t shard,
            std::span<const std::byte> control)
      : PoolIndex(pool, geometry, shard, Empty()) {
    const uint64_t runs = RunsOffset(geometry);
    for (uint32_t run = 0; run < runs_.size(); ++run) {
      runs_[run] = LoadAs<uint32_t>(control.subspan(runs + run * sizeof(uint32_t), sizeof(uint32_t)));
    }
    layout_.SetBlocks(LoadAs<ControlBlock>(control).blocks);
    layout_.SetReaches(Reaches(LoadAs<ControlBlock>(control).reaches));
  }
  // Takes blocks and reaches from the shard's record, and the runs from the region table.
  PoolIndex(std::span<const std::byte> pool, const Geometry& geometry, uint32_t shard)
      : PoolIndex(pool, geometry, shard, Empty()) {
    for (uint32_t number = 0; number < geometry.regions_per_shard; ++number) {
      const uint32_t region = geometry.RegionOf(shard, number);
      const RegionWord word(Word(kRegionTableOffset + region * sizeof(uint64_t)));
      if (word == RegionWord::OfIndex(word.generation(), word.run())) runs_.at(word.run()) = region + 1;
    }
    const CheckedWord blocks(Word(ShardRecordOffset(shard) + offsetof(ShardRecord, blocks)));
    if (blocks.number() != 0) layout_.SetBlocks(blocks.number());
    layout_.SetReaches(ReachesIn(CheckedWord(Word(ShardRecordOffset(shard) + offsetof(ShardRecord, reaches)))));
  }

  [[nodiscard]] const IndexLayout& layout() const { return layout_; }
  [[nodiscard]] uint64_t slots() const { return layout_.slots(); }
  [[nodiscard]] uint64_t HomeOf(uint64_t hash) const { return layout_.HomeOf(hash); }
  [[nodiscard]] IndexLayout::Window WindowOf(uint64_t hash) const { return layout_.WindowOf(hash); }
  [[nodiscard]] uint64_t OffsetOf(uint64_t slot) const { return layout_.SlotOffset(slot); }
  [[nodiscard]] IndexEntry At(uint64_t slot) const {
    return LoadAs<IndexEntry>(pool_.subspan(OffsetOf(slot), sizeof(IndexEntry)));
  }
  [[nodiscard]] uint32_t HeadOf(const IndexEntry& entry) const { return geometry_.HeadOf(entry.entry_meta().tag()); }
  // Returns whether a split has copied the entry to the last block, and not yet removed this one. The split is under
  // way, or a crash cut it off.
  [[nodiscard]] bool IsLeftOver(uint64_t slot, const IndexEntry& entry) const {
    return layout_.grown() && layout_.BlockWith(slot) == layout_.LastParent() &&
           layout_.BlockOf(entry.entry_meta().tag()) == layout_.blocks() - 1;
  }

 private:
  struct Empty {};
  PoolIndex(std::span<const std::byte> pool, const Geometry& geometry, uint32_t shard, Empty /*runs*/)
      : pool_(pool), geometry_(geometry), runs_(geometry.runs_max()), layout_(geometry, shard, runs_) {}
  [[nodiscard]] uint64_t Word(uint64_t offset) const {
    return LoadAs<uint64_t>(pool_.subspan(offset, sizeof(uint64_t)));
  }

  const std::span<const std::byte> pool_;
  const Geometry& geometry_;
  std::vector<uint32_t> runs_;  // The region of each run plus 1, or 0, as in a control block.
  IndexLayout layout_;
};

}  // namespace erda::format
