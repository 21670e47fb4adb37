// The places of a shard's regions in its log, and the objects at those places. RegionPlacer finds the places.
//
// Objects verify only at their place: head, head slot and generation of the region. One thread fills it; then any
// thread may read.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "format/log_address.h"
#include "format/object.h"
#include "inspect/salvage_bytes.h"

namespace erda::inspect {

struct PlacedRegion {
  bool placed = false;
  uint32_t head = 0;
  uint32_t head_slot = 0;
  std::vector<uint32_t> generations;  // The server may have written the region's objects with any of them.
  std::optional<uint32_t> run;        // The run of the index that the region holds.
  bool unused = false;                // The region table says that nothing in the region counts.

  void AddGeneration(uint32_t generation);
};

// An object by its offset in the pool.
struct FoundObject {
  format::ObjectView view;
  uint64_t offset = 0;
};

class PlacedRegions {
 public:
  explicit PlacedRegions(const SalvageBytes& bytes);

  [[nodiscard]] PlacedRegion& Of(uint32_t region) { return regions_[geometry_.NumberInShard(region)]; }
  [[nodiscard]] const PlacedRegion& Of(uint32_t region) const { return regions_[geometry_.NumberInShard(region)]; }

  // Places a region of the log. by_objects: its objects tell the place, so it replaces another region there. Otherwise
  // the region table alone tells the place, and a region that is already there keeps it.
  void Place(uint32_t region, uint32_t head, uint32_t head_slot, bool by_objects);

  // Returns the object at an offset in the pool, of bytes_max bytes at most. Its state is kNothing if nothing verifies
  // there. REQUIRES: the offset is in a region of the shard.
  [[nodiscard]] format::ObjectView ObjectAt(uint64_t offset, uint64_t bytes_max) const;
  // Returns the object at an address that an entry or an object names.
  [[nodiscard]] FoundObject Follow(uint32_t head, format::LogAddress address) const;

 private:
  [[nodiscard]] uint64_t HeadSlotIndex(uint32_t head_in_shard, uint32_t head_slot) const {
    return head_in_shard * uint64_t{geometry_.slots_per_head()} + head_slot;
  }

  const SalvageBytes& bytes_;
  const format::Geometry& geometry_;
  std::vector<PlacedRegion> regions_;  // by number in the shard
  std::vector<uint32_t> region_in_;    // by HeadSlotIndex: the region plus 1, or 0
};

}  // namespace erda::inspect
