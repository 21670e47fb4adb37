// Full verification of one shard (docs/protocol.md, "After a power cut, on an ordinary file"). Each page of the pool's
// file may be of another time since it was last synced. So nothing vouches for anything: settled bits, marks, states of
// segments, the version limit, the region table and the number of blocks may each be older than what they speak of. An
// object can be believed: a checksum covers it together with its place. So the objects judge the index, and the index
// judges the log. Owns what it has found. The thread that starts the shard calls it.
#pragma once

#include <cstdint>

#include "erda/server.h"
#include "format/geometry.h"
#include "nvm/writer.h"
#include "server/found_index.h"
#include "server/found_regions.h"
#include "server/found_versions.h"
#include "server/index_repair.h"
#include "server/region_bytes.h"

namespace erda::server {

class Verification {
 public:
  using TellDamaged = IndexRepair::TellDamaged;

  Verification(nvm::Writer& nvm, const format::Geometry& geometry, uint32_t pool_seed, uint32_t shard);

  // Reads the structure alone, and changes nothing. kCorruption: the index cannot be found again; the message says what
  // to do.
  Status Look();
  // Reads every entry, and every value that one names. Leaves what a clean close leaves: then the shard is opened like
  // one. Every step may be the last one: the superblock still says that nothing vouches for the pool, so the next
  // server begins here. An error: the disk does not take the version limit, so nothing may be served. REQUIRES: Look
  // was ok.
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
