#include "inspect/placed_regions.h"

#include <algorithm>

#include "base/hash.h"

namespace erda::inspect {

using format::LogAddress;
using format::ObjectState;
using format::ObjectView;

void PlacedRegion::AddGeneration(uint32_t generation) {
  if (std::find(generations.begin(), generations.end(), generation) == generations.end()) {
    generations.push_back(generation);
  }
}

PlacedRegions::PlacedRegions(const SalvageBytes& bytes)
    : bytes_(bytes),
      geometry_(bytes.geometry()),
      regions_(geometry_.regions_per_shard),
      region_in_(uint64_t{geometry_.heads_per_shard} * geometry_.slots_per_head()) {}

void PlacedRegions::Place(uint32_t region, uint32_t head, uint32_t head_slot, bool by_objects) {
  PlacedRegion& of = Of(region);
  of.placed = true;
  of.head = head;
  of.head_slot = head_slot;
  uint32_t& in = region_in_[HeadSlotIndex(head - bytes_.first_head(), head_slot)];
  if (in == 0 || by_objects) in = region + 1;
}

ObjectView PlacedRegions::ObjectAt(uint64_t offset, uint64_t bytes_max) const {
  const uint64_t in_regions = offset - geometry_.regions_offset;
  const PlacedRegion& of = Of(static_cast<uint32_t>(in_regions / geometry_.region_size));
  auto span = bytes_.ToSegmentEnd(offset);
  span = span.first(std::min<uint64_t>(span.size(), bytes_max));
  if (!of.placed || span.size() < sizeof(format::ObjectHeader)) return {};
  const LogAddress address = geometry_.AddressOf(of.head_slot, in_regions % geometry_.region_size);
  format::Place place{bytes_.seed(), of.head, address, 0};
  for (const uint32_t generation : of.generations) {
    place.generation = generation;
    const ObjectView view = format::InspectHeader(place, span);
    if (view.state == ObjectState::kNothing) continue;
    // An object counts only if its hash is that of its key: no key is in two shards. Without the hash seed nothing
    // tells.
    const auto& hash_seed = bytes_.hash_seed();
    const bool hash_is_keys =
        view.header.is_chunk() || !hash_seed || HashKey(view.key, *hash_seed) == view.header.key_hash;
    return hash_is_keys ? format::InspectObject(place, span) : ObjectView();
  }
  return {};
}

FoundObject PlacedRegions::Follow(uint32_t head, LogAddress address) const {
  const uint32_t head_in_shard = head - bytes_.first_head();  // huge if it is an earlier shard's
  const uint32_t head_slot = geometry_.SlotOf(address);
  if (head_in_shard >= geometry_.heads_per_shard || head_slot >= geometry_.slots_per_head() || address.none()) {
    return {};
  }
  const uint32_t region = region_in_[HeadSlotIndex(head_in_shard, head_slot)];
  if (region == 0) return {};
  FoundObject found;
  found.offset = geometry_.RegionOffset(region - 1) + geometry_.OffsetInRegion(address);
  found.view = ObjectAt(found.offset, geometry_.segment_size);
  return found;
}

}  // namespace erda::inspect
