// The regions of one shard: which ones are linked in a head slot, free, emptied, or runs of the index.
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

// The purpose of a link. Writers leave the last free region, and one slot of each head, to the cleaner: it needs a
// region to copy to.
enum class LinkFor : uint8_t { kWriters, kCleaner };

// A region that this server or an earlier one has emptied, and that is not free yet.
struct EmptiedRegion {
  uint32_t region = 0;
  uint32_t generation = 0;     // from the time when it was linked
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

  // --- Changes of a region's state. Each function stores the region's word, and returns when the word is persistent,
  // unless its comment says otherwise.

  // Links a free region in an unused slot of the head, and returns the slot. The state of the slot is then kAppendedTo.
  // Returns nullopt if there is no region or no slot for this purpose.
  std::optional<uint32_t> Link(uint32_t head, LinkFor purpose);
  // Links one more run of the index, for good. Returns nullopt if at most one region is free: the last one stays for
  // the cleaner.
  std::optional<uint32_t> LinkRun();
  // Notes that nobody appends to the region any more. Stores nothing in the pool.
  void Leave(uint32_t head, uint32_t slot) { slots_.SetState(head, slot, SlotState::kFull); }
  // After TakeUp: notes that the log appends to the region again. Stores nothing in the pool.
  void Reopen(uint32_t head, uint32_t slot) { slots_.SetState(head, slot, SlotState::kAppendedTo); }
  // Frees a region that was linked and never opened.
  void Unlink(uint32_t head, uint32_t slot);
  // Takes a region out of its head. From then on nobody finds anything there. Requires: the region is full, and no
  // entry names anything in it.
  void Empty(uint32_t head, uint32_t slot);
  // Frees an emptied region. Persistent after the next fence. Requires: all of the region is zeroes, persistently.
  void FreeEmptied(uint32_t region);
  // Returns true if the region is full, and its word does not say yet that it is settled. Returns false if the word is
  // not as it was when the region was linked.
  [[nodiscard]] bool AwaitsSettled(uint32_t region) const;
  // Requires: AwaitsSettled, and all segments of the region are settled, persistently.
  void StoreSettled(uint32_t region);
  [[nodiscard]] bool IsSettled(uint32_t region) const;

  // --- The current state

  [[nodiscard]] const HeadSlots& slots() const { return slots_; }
  [[nodiscard]] uint32_t newest_generation() const { return newest_generation_; }
  [[nodiscard]] uint32_t free_regions() const { return free_.count(); }
  // Returns the free region that Link takes next, if nothing changes until then and its word is not damaged. Returns
  // kNoRegion if none is free.
  [[nodiscard]] uint32_t next_free() const { return free_.Next(); }
  [[nodiscard]] const std::vector<EmptiedRegion>& emptied() const { return emptied_; }
  // Returns the bytes of all regions that are not runs of the index.
  [[nodiscard]] uint64_t bytes_total() const {
    return (shape_.geometry().regions_per_shard - runs_.size()) * shape_.geometry().region_size;
  }
  // Returns the regions that are runs of the index, in the order of the runs.
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
