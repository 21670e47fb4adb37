// The regions of one shard: which are linked to a slot of a head, free, emptied, or runs of the index.
//
// Owns the shard's words in the region table of the pool, and the head slots in the control block, which clients read.
// The shard's thread alone calls it. Requires: TakeUp was called, and was ok.
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
#include "format/geometry.h"
#include "format/log_address.h"
#include "log/free_regions.h"
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
  void Leave(uint32_t head, uint32_t slot) { SlotAt(head, slot).state = SlotState::kFull; }
  // The region is appended to again, after TakeUp. Stores nothing.
  void Reopen(uint32_t head, uint32_t slot) { SlotAt(head, slot).state = SlotState::kAppendedTo; }
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

  // --- Looking up. Heads are the shard's if not said otherwise. A slot may be slots_per_head: it has no region.

  // Returns the region in the slot, or kNoRegion.
  [[nodiscard]] uint32_t RegionIn(uint32_t head, uint32_t slot) const { return SlotAt(head, slot).region; }
  // Returns the region that the address is in, or kNoRegion. The head may be any.
  [[nodiscard]] uint32_t RegionAt(uint32_t head, format::LogAddress address) const {
    if (address.none() || !shape_.HasHead(head)) return kNoRegion;
    return RegionIn(head, shape_.geometry().SlotOf(address));
  }
  [[nodiscard]] bool IsFull(uint32_t head, uint32_t slot) const { return SlotAt(head, slot).state == SlotState::kFull; }
  // Returns the generation that the region had when it was linked; 0 if it is not. Its word on the medium may decay.
  [[nodiscard]] uint32_t GenerationOf(uint32_t region) const { return generations_[shape_.NumberOf(region)]; }
  // Returns how many regions the shard has linked since it linked the one in the slot.
  [[nodiscard]] uint64_t AgeOf(uint32_t head, uint32_t slot) const { return links_ - SlotAt(head, slot).linked; }
  [[nodiscard]] uint32_t newest_generation() const { return newest_generation_; }

  [[nodiscard]] uint32_t free_regions() const { return free_.count(); }
  [[nodiscard]] const std::vector<EmptiedRegion>& emptied() const { return emptied_; }
  // The index's runs, in their order.
  [[nodiscard]] std::span<const uint32_t> runs() const { return runs_; }
  // Returns whether the head has no more free slots than the cleaner may need.
  [[nodiscard]] bool IsCrowded(uint32_t head) const;
  [[nodiscard]] uint32_t crowded_heads() const { return crowded_heads_; }

 private:
  enum class SlotState : uint8_t { kUnused, kAppendedTo, kFull, kEmptied };
  struct Slot {
    uint32_t region = kNoRegion;  // as long as it is appended to or full
    SlotState state = SlotState::kUnused;
    uint64_t linked = 0;  // how many regions the shard had linked, with this one
  };

  // Each head has one slot more than regions: for addresses that are in no slot, where damage leads.
  [[nodiscard]] size_t IndexOf(uint32_t head, uint32_t slot) const {
    return size_t{shape_.HeadInShard(head)} * slots_per_head_ + slot;
  }
  [[nodiscard]] Slot& SlotAt(uint32_t head, uint32_t slot) { return slots_[IndexOf(head, slot)]; }
  [[nodiscard]] const Slot& SlotAt(uint32_t head, uint32_t slot) const { return slots_[IndexOf(head, slot)]; }
  Status TakeUpRun(uint32_t region, uint32_t run);
  void Fill(uint32_t head, uint32_t slot, uint32_t region, uint32_t generation, SlotState state);
  void Vacate(uint32_t head, uint32_t slot, SlotState state);
  // Adds to the head's used slots.
  void CountSlots(uint32_t head, int change);
  void Publish(uint32_t head, uint32_t slot);

  nvm::Writer& nvm_;
  const ShardShape shape_;
  const std::span<std::byte> control_;
  const uint32_t slots_per_head_;  // with the one more
  FreeRegions free_;
  std::vector<Slot> slots_;            // of all heads
  std::vector<uint32_t> used_slots_;   // of each head: slots that are appended to, full or emptied
  std::vector<uint32_t> generations_;  // by the region's number in the shard; 0 where it is not linked
  uint64_t links_ = 0;                 // regions linked since TakeUp
  uint32_t newest_generation_ = 0;
  uint32_t crowded_heads_ = 0;
  std::vector<EmptiedRegion> emptied_;
  std::vector<uint32_t> runs_;
};

}  // namespace erda::log
