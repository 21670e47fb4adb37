// Reads the index of a shard as evidence: an entry counts if it may stand where it does, and its object verifies.
// Used once for a shard, by one thread, after the regions are placed.
#pragma once

#include <cstdint>

#include "format/index_entry.h"
#include "inspect/key_evidence.h"
#include "inspect/lost_entries.h"
#include "inspect/placed_entry.h"
#include "inspect/placed_regions.h"
#include "inspect/salvage_bytes.h"

namespace erda::inspect {

class IndexEvidence {
 public:
  IndexEvidence(const SalvageBytes& bytes, const PlacedRegions& regions, KeyEvidence* keys, LostEntries* lost)
      : bytes_(bytes), geometry_(bytes.geometry()), regions_(regions), keys_(*keys), lost_(*lost) {}

  // Adds the evidence of all entries: in the first blocks, and in the regions of the index.
  void Read();

 private:
  // Reads the entries at an offset in the pool.
  void ReadSlots(uint64_t offset, uint64_t slots, uint64_t first_slot);
  void ReadEntry(const PlacedEntry& entry);
  // Adds the version to which recovery goes back: the newest whole one between newest and old, or the old one.
  void AddOlder(const PlacedEntry& entry, const FoundObject& newest);
  // Returns whether the entry may be that of the object's key.
  [[nodiscard]] bool MayLeadTo(const PlacedEntry& entry, const FoundObject& object) const;

  const SalvageBytes& bytes_;
  const format::Geometry& geometry_;
  const PlacedRegions& regions_;
  KeyEvidence& keys_;
  LostEntries& lost_;
};

}  // namespace erda::inspect
