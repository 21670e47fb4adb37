// The regions of one shard: which are linked to a slot of a head, free, emptied, or runs of the index.
//
// Owns the shard's words in the region table of the pool, the set of free regions, and the heads' slots. The shard's
// thread alone calls it. Requires: TakeUp was called, and was ok.
//
//   free --Link--> appended to --Leave--> full --Empty--> emptied --FreeEmptied--> free
//   free --LinkRun--> a run of the index, for good
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "erda/status.h"
#include "log/free_regions.h"
#include "log/head_slots.h"
#include "log/shard_shape.h"
#include "nvm/writer.h"

namespace erda::log {

// Writers leave the last free region, and one slot of each head, to the cleaner: it needs a region to copy to.
enum class LinkFor : uint8_t { kWriters, kCleaner };

// A region that is emptied, also by an earlier server, and not free yet.
struct EmptiedRegion {
  uint32_t region = 0;
  uint32_t generation = 0;     // when it was linked
  uint32_t head = UINT32_MAX;  // UINT32_MAX: an earlier server emptied it
  uint32_t slot = 0;
};

class RegionTable {
 public:
  // control: the shard's control block.
  RegionTable(nvm::Writer& nvm, const ShardShape& shape, std::span<std::byte> control);

  // Reads the region words. Each linked region counts as full until Reopen. Returns kCorruption if the words contradict
  // each other.
  Status TakeUp();

  // --- A region's way. Each function stores the region's word, and returns when it is persistent if not said
  // otherwise.

  // Links a free region to a free slot of the head, and returns the slot. It is appended to. Returns nullopt if there
  // is no region or no slot for this purpose.
  std::optional<uint32_t> Link(uint32_t head, LinkFor purpose);
  // Links one more run of the index, for good. The last free region stays the cleaner's: returns nullopt if there is no
  // other.
  std::optional<uint32_t> LinkRun();
  // Nobody appends to the region any more. Stores nothing.
  void Leave(uint32_t head, uint32_t slot) { slots_.SetState(head, slot, SlotState::kFull); }
  // The region is appended to again, after TakeUp. Stores nothing.
  void Reopen(uint32_t head, uint32_t slot) { slots_.SetState(head, slot, SlotState::kAppendedTo); }
  // Frees a region that was linked and never opened.
  void Unlink(uint32_t head, uint32_t slot);
  // Takes a region out of its head. Nobody finds anything there any more. Requires: it is full, and no entry names
  // anything in it.
  void Empty(uint32_t head, uint32_t slot);
  // Frees an emptied region. Persistent after the next fence. Requires: all of the region is zeroes, persistently.
  void FreeEmptied(uint32_t region);
  // Returns whether the word is still as it was when the region was linked, the region is full, and its word does not
  // say yet that it is settled.
  [[nodiscard]] bool AwaitsSettled(uint32_t region) const;
  // Requires: AwaitsSettled, and all segments of the region are settled, persistently.
  void StoreSettled(uint32_t region);
  [[nodiscard]] bool IsSettled(uint32_t region) const;

  // --- What is there

  [[nodiscard]] const HeadSlots& slots() const { return slots_; }
  [[nodiscard]] uint32_t newest_generation() const { return newest_generation_; }
  [[nodiscard]] uint32_t free_regions() const { return free_.count(); }
  [[nodiscard]] const std::vector<EmptiedRegion>& emptied() const { return emptied_; }
  // Bytes of the regions that are not the index's.
  [[nodiscard]] uint64_t bytes_total() const {
    return (shape_.geometry().regions_per_shard - runs_.size()) * shape_.geometry().region_size;
  }
  // The index's runs, in their order.
  [[nodiscard]] std::span<const uint32_t> runs() const { return runs_; }

 private:
  Status TakeUpRun(uint32_t region, uint32_t run);

  nvm::Writer& nvm_;
  const ShardShape shape_;
  HeadSlots slots_;
  FreeRegions free_;
  uint32_t newest_generation_ = 0;
  std::vector<EmptiedRegion> emptied_;
  std::vector<uint32_t> runs_;
};

}  // namespace erda::log
