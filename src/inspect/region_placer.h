// Finds the places of a shard's regions. The region table tells them. Where it says nothing, or cannot be right, the
// checksums of the region's objects tell them. Used once for a shard, by one thread.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "format/log_layout.h"
#include "inspect/placed_regions.h"
#include "inspect/salvage_bytes.h"
#include "inspect/salvage_frame.h"
#include "inspect/salvage_losses.h"

namespace erda::inspect {

class RegionPlacer {
 public:
  RegionPlacer(const SalvageBytes& bytes, PlacedRegions* regions, SalvageLosses* losses)
      : bytes_(bytes), geometry_(bytes.geometry()), regions_(*regions), losses_(*losses) {}

  // Places all regions that can be placed. Counts those of the index, and those that nothing places.
  void Run();

 private:
  using Votes = std::map<std::tuple<uint32_t, uint32_t, uint32_t>, size_t>;  // head, head slot, generation

  // Returns whether the region table places the region, and the bytes of the first object do not contradict it.
  [[nodiscard]] bool PlaceByTable(uint32_t region);
  [[nodiscard]] bool FirstObjectFits(uint32_t region) const;
  void AddGenerationsOfSegments(uint32_t region);
  void PlaceByObjectsOrGiveUp(uint32_t region);
  [[nodiscard]] bool PlaceByObjects(uint32_t region);
  // Adds a vote for each place at which the object can have been written `in_region` bytes from its region's beginning.
  void Vote(const LoneObject& object, uint64_t in_region, const PlacedRegion& of, Votes* votes) const;

  const SalvageBytes& bytes_;
  const format::Geometry& geometry_;
  PlacedRegions& regions_;
  SalvageLosses& losses_;
  uint32_t generation_max_ = 0;  // of all generations that table and segments tell
};

}  // namespace erda::inspect
