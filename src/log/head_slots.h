// The slots of one shard's heads: which region is in which slot, and whether anybody appends to it.
//
// Owns the slots, and the head slots in the control block, by which clients find regions. RegionTable alone changes
// them, each change beside the region's word. The shard's thread alone calls it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "format/log_address.h"
#include "log/shard_shape.h"

namespace erda::log {

enum class SlotState : uint8_t { kUnused, kAppendedTo, kFull, kEmptied };

class HeadSlots {
 public:
  // control: the shard's control block.
  HeadSlots(const ShardShape& shape, std::span<std::byte> control);

  // --- Looking up. Heads are the shard's if not said otherwise. A slot may be slots_per_head: it has no region.

  // Returns the region in the slot, or kNoRegion.
  [[nodiscard]] uint32_t RegionIn(uint32_t head, uint32_t slot) const { return At(head, slot).region; }
  // Returns the region that the address is in, or kNoRegion. The head may be any.
  [[nodiscard]] uint32_t RegionAt(uint32_t head, format::LogAddress address) const {
    if (address.none() || !shape_.HasHead(head)) return kNoRegion;
    return RegionIn(head, shape_.geometry().SlotOf(address));
  }
  // Returns whether a region is in the slot to which nobody appends any more.
  [[nodiscard]] bool IsFull(uint32_t head, uint32_t slot) const { return At(head, slot).state == SlotState::kFull; }
  // Returns the generation that the region had when it was linked; 0 if it is not. Its word on the medium may decay.
  [[nodiscard]] uint32_t GenerationOf(uint32_t region) const { return generations_[shape_.NumberOf(region)]; }
  // Returns how many regions the shard has linked since it linked the one in the slot.
  [[nodiscard]] uint64_t AgeOf(uint32_t head, uint32_t slot) const { return links_ - At(head, slot).link; }
  // Returns whether the head has no more unused slots than the cleaner may need.
  [[nodiscard]] bool IsCrowded(uint32_t head) const;
  [[nodiscard]] uint32_t crowded_heads() const { return crowded_heads_; }
  // Returns the head's first unused slot.
  [[nodiscard]] std::optional<uint32_t> FindUnused(uint32_t head) const;

  // --- Changes, for RegionTable alone

  // Puts a region into an unused slot. A region that the shard links now counts in the others' age.
  void Fill(uint32_t head, uint32_t slot, uint32_t region, uint32_t generation, SlotState state);
  // Takes the region out. The slot is unused then, or emptied: it stays used until Free.
  void Vacate(uint32_t head, uint32_t slot, SlotState state);
  // The region that was emptied is free.
  void Free(uint32_t head, uint32_t slot);
  void SetState(uint32_t head, uint32_t slot, SlotState state) { At(head, slot).state = state; }

 private:
  struct Slot {
    uint32_t region = kNoRegion;  // as long as it is appended to or full
    SlotState state = SlotState::kUnused;
    uint64_t link = 0;  // how many regions the shard had linked, with this one
  };

  // Each head has one slot more than regions: for addresses that are in no slot, where damage leads.
  [[nodiscard]] size_t IndexOf(uint32_t head, uint32_t slot) const {
    return size_t{shape_.HeadInShard(head)} * slots_per_head_ + slot;
  }
  [[nodiscard]] Slot& At(uint32_t head, uint32_t slot) { return slots_[IndexOf(head, slot)]; }
  [[nodiscard]] const Slot& At(uint32_t head, uint32_t slot) const { return slots_[IndexOf(head, slot)]; }
  // Adds to the head's used slots.
  void CountUsed(uint32_t head, int change);
  void Publish(uint32_t head, uint32_t slot);

  const ShardShape shape_;
  const std::span<std::byte> control_;
  const uint32_t slots_per_head_;      // with the one more
  std::vector<Slot> slots_;            // of all heads
  std::vector<uint32_t> used_;         // of each head: slots that are appended to, full or emptied
  std::vector<uint32_t> generations_;  // by the region's number in the shard; 0 where it is not linked
  uint64_t links_ = 0;                 // regions linked since the start
  uint32_t crowded_heads_ = 0;
};

}  // namespace erda::log
