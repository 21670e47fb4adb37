#include "inspect/lost_entries.h"

#include <bit>

#include "format/index_entry.h"

namespace erda::inspect {

bool MayStandIn(const format::Geometry& geometry, uint64_t index_slot, uint32_t distance, uint64_t key_hash) {
  const uint64_t block = index_slot >> geometry.block_shift;
  const uint64_t in_block = index_slot & (geometry.block_slots() - 1);
  const uint64_t bits = (uint64_t{1} << std::bit_width(block)) - 1;
  if ((static_cast<uint32_t>(key_hash) & bits) != block) return false;
  // A far entry is in some window of the block. The record with the windows may be damaged, so any slot will do.
  if (distance == format::EntryMeta::kFar) return true;
  return distance < format::kNeighbourhood && geometry.HomeInBlock(key_hash) + distance == in_block;
}

bool LostEntries::Recognise(uint64_t key_hash) {
  const auto [from, to] = entries_.equal_range(format::EntryMeta::TagOf(key_hash));
  for (auto it = from; it != to; ++it) {
    Entry& entry = it->second;
    if (!MayStandIn(geometry_, entry.index_slot, entry.distance, key_hash)) continue;
    entry.recognised = true;
    return true;
  }
  return false;
}

}  // namespace erda::inspect
