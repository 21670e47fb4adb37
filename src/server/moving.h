// Makes entries name other places, for the cleaner: copies of their versions, or places where no object is.
//
// Owns: nothing but these stores. Requires: no put waits to be published (AllPublished), so an entry that names a
// version as settled is not about to change. The shard's thread calls it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/hash.h"
#include "format/geometry.h"
#include "format/object.h"
#include "index/index.h"
#include "log/shard_log.h"
#include "server/all_published.h"
#include "server/counters.h"
#include "server/settling.h"
#include "server/taking_back.h"

namespace erda::server {

class Moving {
 public:
  using Address = format::LogAddress;
  using Slot = index::Slot;

  Moving(index::Index& index, log::ShardLog& log, const format::Geometry& geometry, const HashSeed& hash_seed,
         Counters& counters, Settling& settling, TakingBack& taking_back)
      : index_(index),
        log_(log),
        geometry_(geometry),
        hash_seed_(hash_seed),
        counters_(counters),
        settling_(settling),
        taking_back_(taking_back) {}

  // The cleaner has copied the version at `from`, whole and persistent, to `to`. If the key's entry still names `from`
  // as a settled version, it names the copy from now on, persistently after the next fence. Returns true if it does.
  bool Move(AllPublished, uint64_t key_hash, Address from, Address to);

  // If the entry names, as settled, an address in this region of its head where no object of its key can be, it names
  // another such place from now on. If it names one as its new version, not settled, which recovery has not found, that
  // is decided now; returns true if it can be moved then. Persistent after the next fence. Requires: nobody holds the
  // region.
  bool SetAside(AllPublished, Slot slot, uint32_t head, uint32_t region_slot);
  // If the key's entry names the address as a settled version, it names a place where no object is from now on.
  void SetAside(AllPublished, uint64_t key_hash, uint32_t head, Address from);

  // Returns the key of an entry, if it still names this address, settled, and what stands there is damaged; empty if
  // the key cannot be known.
  [[nodiscard]] std::optional<std::string> DamagedKey(Slot slot, uint32_t head, Address address);

 private:
  void StoreAside(Slot slot, uint32_t head, Address from);

  index::Index& index_;
  log::ShardLog& log_;
  const format::Geometry& geometry_;
  const HashSeed hash_seed_;
  Counters& counters_;
  Settling& settling_;
  TakingBack& taking_back_;
};

}  // namespace erda::server
