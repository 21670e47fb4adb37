#include "server/cleaner/named_objects.h"

#include <atomic>

namespace erda::server {

namespace {

// Acquire: pairs with the release store by which the log publishes a region. So this thread sees the region's bytes as
// they were then, or later.
format::HeadSlot LoadHeadSlot(uint64_t* word) {
  return format::HeadSlot(std::atomic_ref(*word).load(std::memory_order_acquire));
}

}  // namespace

bool NamedObject::IsStillLinked() const { return LoadHeadSlot(slot_word) == slot; }

std::optional<NamedObject> NamedObjects::Find(const format::IndexEntry& entry) const {
  const uint32_t head = HeadOf(entry);
  const uint32_t head_in_shard = head - shard_ * geometry_.heads_per_shard;  // too large if the shard lacks it
  const format::LogAddress address = entry.entry_word().new_address();
  const uint64_t offset = geometry_.OffsetInRegion(address);
  const uint32_t slot_number = geometry_.SlotOf(address);
  if (head_in_shard >= geometry_.heads_per_shard || slot_number >= geometry_.slots_per_head()) return std::nullopt;
  auto* const word =
      reinterpret_cast<uint64_t*>(control_.data() + format::HeadSlotOffset(geometry_, head_in_shard, slot_number));
  const format::HeadSlot slot = LoadHeadSlot(word);
  if (slot.none()) return std::nullopt;
  const uint64_t in_segment = offset % geometry_.segment_size;
  const auto bytes = nvm_.Bytes(geometry_.RegionOffset(slot.region()) + offset, geometry_.segment_size - in_segment);
  return NamedObject{{pool_seed_, head, address, slot.generation()}, bytes, word, slot};
}

}  // namespace erda::server
