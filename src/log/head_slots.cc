#include "log/head_slots.h"

#include <atomic>

#include "format/control_block.h"

namespace erda::log {

namespace {

// The number of slots of each head that writers leave unused. The cleaner can then link a region to copy to.
constexpr uint32_t kSlotsKept = 1;

}  // namespace

HeadSlots::HeadSlots(const ShardShape& shape, std::span<std::byte> control)
    : shape_(shape),
      control_(control),
      slots_per_head_(shape.geometry().slots_per_head() + 1),
      slots_(size_t{shape.geometry().heads_per_shard} * slots_per_head_),
      used_(shape.geometry().heads_per_shard),
      generations_(shape.geometry().regions_per_shard) {}

bool HeadSlots::IsCrowded(uint32_t head) const {
  return used_[shape_.HeadInShard(head)] + kSlotsKept >= shape_.geometry().slots_per_head();
}

std::optional<uint32_t> HeadSlots::FindUnused(uint32_t head) const {
  for (const uint32_t slot : shape_.slots()) {
    if (At(head, slot).state == SlotState::kUnused) return slot;
  }
  return std::nullopt;
}

void HeadSlots::Fill(uint32_t head, uint32_t slot, uint32_t region, uint32_t generation, SlotState state) {
  if (state == SlotState::kAppendedTo) ++links_;
  At(head, slot) = {region, state, links_};
  generations_[shape_.NumberOf(region)] = generation;
  CountUsed(head, 1);
  Publish(head, slot);
}

void HeadSlots::Vacate(uint32_t head, uint32_t slot, SlotState state) {
  generations_[shape_.NumberOf(RegionIn(head, slot))] = 0;
  At(head, slot) = {kNoRegion, state, 0};
  if (state == SlotState::kUnused) CountUsed(head, -1);
  Publish(head, slot);
}

void HeadSlots::Free(uint32_t head, uint32_t slot) {
  if (At(head, slot).state != SlotState::kEmptied) return;
  At(head, slot).state = SlotState::kUnused;
  CountUsed(head, -1);
}

void HeadSlots::CountUsed(uint32_t head, int change) {
  const bool before = IsCrowded(head);
  used_[shape_.HeadInShard(head)] += change;
  crowded_heads_ += static_cast<uint32_t>(IsCrowded(head)) - static_cast<uint32_t>(before);
}

// Both stores are release stores, and the generation is the second one. So a client that reads the new generation also
// reads the slot's region. The order serves clients only, which look again when they meet a slot that they do not know.
void HeadSlots::Publish(uint32_t head, uint32_t slot) {
  const uint64_t at = format::HeadSlotOffset(shape_.geometry(), shape_.HeadInShard(head), slot);
  auto* word = reinterpret_cast<uint64_t*>(control_.data() + at);
  const uint32_t region = RegionIn(head, slot);
  const auto published =
      region == kNoRegion ? format::HeadSlot(*word).Emptied() : format::HeadSlot::Of(region, GenerationOf(region));
  std::atomic_ref<uint64_t>(*word).store(published.raw(), std::memory_order_release);
  auto* generation = reinterpret_cast<uint64_t*>(control_.data() + offsetof(format::ControlBlock, head_generation));
  std::atomic_ref<uint64_t>(*generation).fetch_add(1, std::memory_order_release);
}

}  // namespace erda::log
