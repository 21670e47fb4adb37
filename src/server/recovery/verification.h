// Full verification of one shard (docs/protocol.md, "After a power cut, on an ordinary file"). Each page of the pool's
// file may be of another time since the last sync. So verification trusts no settled bit, mark or state of a segment.
// It does not trust the version limit, the region table or the number of blocks either. Each of these may be older than
// the data that it describes. Objects can be trusted: a checksum covers each one together with its place. So the
// objects judge the index, and the index judges the log. Owns its findings. The thread that starts the shard calls it.
#pragma once

#include <cstdint>

#include "erda/server.h"
#include "format/geometry.h"
#include "nvm/writer.h"
#include "server/recovery/found_index.h"
#include "server/recovery/found_regions.h"
#include "server/recovery/found_versions.h"
#include "server/recovery/index_repair.h"
#include "server/recovery/region_bytes.h"

namespace erda::server {

class Verification {
 public:
  using TellDamaged = IndexRepair::TellDamaged;

  Verification(nvm::Writer& nvm, const format::Geometry& geometry, uint32_t pool_seed, uint32_t shard);

  // Reads the structure alone, and changes nothing. Returns kCorruption if the index cannot be found again; the message
  // says what to do.
  Status Look();
  // Reads every entry, and every value that an entry names. Leaves the shard as a clean close does, so that it can be
  // opened. The server may die at any step: the superblock still says that nothing vouches for the pool, so the next
  // server verifies again. Returns an error if the disk does not take the version limit; then the shard must not serve.
  // REQUIRES: Look was ok.
  Status Repair(const TellDamaged& tell, RecoveryReport* report);

 private:
  void StoreRecord();

  nvm::Writer& nvm_;
  const format::Geometry& geometry_;
  const uint32_t shard_;
  RegionBytes bytes_;
  FoundRegions regions_;
  FoundIndex index_;
  FoundVersions versions_;
};

}  // namespace erda::server
