// Repairs the region table and the segments of a shard that nothing vouches for, once all entries are judged. Owns
// nothing. The thread that starts the shard calls it.
#pragma once

#include <cstdint>

#include "erda/server.h"
#include "format/geometry.h"
#include "nvm/writer.h"
#include "server/recovery/found_index.h"
#include "server/recovery/found_regions.h"
#include "server/recovery/found_versions.h"
#include "server/recovery/region_bytes.h"

namespace erda::server {

class RegionRepair {
 public:
  // Shows `versions` the versions in segment headers.
  RegionRepair(nvm::Writer& nvm, RegionBytes& bytes, const format::Geometry& geometry, uint32_t shard,
               FoundVersions& versions)
      : nvm_(nvm), bytes_(bytes), geometry_(geometry), shard_(shard), versions_(versions) {}

  // REQUIRES: `regions` has a mark for each address that an entry names. Persistent on return.
  void Repair(const FoundRegions& regions, const FoundIndex& index, RecoveryReport* report);

 private:
  void RepairSegments(uint32_t region, const FoundRegion& found);
  [[nodiscard]] bool IsOpen(uint32_t region, uint64_t segment, const FoundRegion& found) const;

  nvm::Writer& nvm_;
  RegionBytes& bytes_;
  const format::Geometry& geometry_;
  const uint32_t shard_;
  FoundVersions& versions_;
};

}  // namespace erda::server
