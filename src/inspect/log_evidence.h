// Reads the log of a shard as evidence. It walks each segment from header to header, and granule by granule where none
// verifies. Used once for a shard, by one thread, after the index is read.
#pragma once

#include <cstdint>

#include "inspect/key_evidence.h"
#include "inspect/placed_regions.h"
#include "inspect/salvage_bytes.h"
#include "inspect/salvage_losses.h"

namespace erda::inspect {

class LogEvidence {
 public:
  LogEvidence(const SalvageBytes& bytes, const PlacedRegions& regions, KeyEvidence* keys, SalvageLosses* losses)
      : bytes_(bytes), geometry_(bytes.geometry()), regions_(regions), keys_(*keys), losses_(*losses) {}

  // Adds the evidence of all regions that are placed. Counts them, and the bytes and segments that are damaged.
  void Read();

 private:
  void ReadTombstone(uint32_t region);
  void WalkSegment(uint32_t region, uint64_t segment);

  const SalvageBytes& bytes_;
  const format::Geometry& geometry_;
  const PlacedRegions& regions_;
  KeyEvidence& keys_;
  SalvageLosses& losses_;
};

}  // namespace erda::inspect
