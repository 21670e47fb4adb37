// The head slots of one shard: which region is in which head slot, and whether the shard or the cleaner appends to it.
//
// Owns the head slots, and their copies in the control block, by which clients find regions. RegionTable alone changes
// them, and with each change it also stores the region's word. The shard's thread alone calls it.
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

  // --- Looking up. Requires: a head is one of the shard, unless a comment says otherwise. A head slot may be
  // slots_per_head, which never has a region.

  // Returns the region in the head slot, or kNoRegion.
  [[nodiscard]] uint32_t RegionIn(uint32_t head, uint32_t slot) const { return At(head, slot).region; }
  // Returns the region that the address is in, or kNoRegion. The head may be one of another shard.
  [[nodiscard]] uint32_t RegionAt(uint32_t head, format::LogAddress address) const {
    if (address.none() || !shape_.HasHead(head)) return kNoRegion;
    return RegionIn(head, shape_.geometry().SlotOf(address));
  }
  // Returns true if the head slot has a region to which nobody appends any more.
  [[nodiscard]] bool IsFull(uint32_t head, uint32_t slot) const { return At(head, slot).state == SlotState::kFull; }
  // Returns the generation that the region had when it was linked, or 0 if it is not linked. The region's word in the
  // pool may be damaged meanwhile.
  [[nodiscard]] uint32_t GenerationOf(uint32_t region) const { return generations_[shape_.NumberOf(region)]; }
  // Returns how many regions the shard has linked since it linked the one in the head slot.
  [[nodiscard]] uint64_t AgeOf(uint32_t head, uint32_t slot) const { return links_ - At(head, slot).link; }
  // Returns true if the head has no more unused slots than the cleaner may need.
  [[nodiscard]] bool IsCrowded(uint32_t head) const;
  [[nodiscard]] uint32_t crowded_heads() const { return crowded_heads_; }
  // Returns the head's first unused slot, or nullopt.
  [[nodiscard]] std::optional<uint32_t> FindUnused(uint32_t head) const;

  // --- Changes, for RegionTable alone

  // Puts a region into an unused slot. If the shard links the region now, this adds 1 to the age of the others.
  void Fill(uint32_t head, uint32_t slot, uint32_t region, uint32_t generation, SlotState state);
  // Takes the region out. Afterwards the slot is unused, or emptied. An emptied slot stays used until Free.
  void Vacate(uint32_t head, uint32_t slot, SlotState state);
  // Makes the slot unused: the region that was emptied is free now.
  void Free(uint32_t head, uint32_t slot);
  void SetState(uint32_t head, uint32_t slot, SlotState state) { At(head, slot).state = state; }

 private:
  struct Slot {
    uint32_t region = kNoRegion;  // while the state is kAppendedTo or kFull
    SlotState state = SlotState::kUnused;
    uint64_t link = 0;  // how many regions the shard had linked, this one included
  };

  // Each head has one element more than it has slots. It stands for addresses that are in no slot: a damaged entry may
  // have one.
  [[nodiscard]] size_t IndexOf(uint32_t head, uint32_t slot) const {
    return size_t{shape_.HeadInShard(head)} * slots_per_head_ + slot;
  }
  [[nodiscard]] Slot& At(uint32_t head, uint32_t slot) { return slots_[IndexOf(head, slot)]; }
  [[nodiscard]] const Slot& At(uint32_t head, uint32_t slot) const { return slots_[IndexOf(head, slot)]; }
  // Adds `change` to the number of the head's used slots.
  void CountUsed(uint32_t head, int change);
  void Publish(uint32_t head, uint32_t slot);

  const ShardShape shape_;
  const std::span<std::byte> control_;
  const uint32_t slots_per_head_;      // With the extra element of IndexOf.
  std::vector<Slot> slots_;            // Of all heads.
  std::vector<uint32_t> used_;         // By head: slots that are appended to, full or emptied.
  std::vector<uint32_t> generations_;  // By the region's number in the shard; 0 where it is not linked.
  uint64_t links_ = 0;                 // Regions linked since the start.
  uint32_t crowded_heads_ = 0;
};

}  // namespace erda::log
