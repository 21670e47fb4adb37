// Lets entries name other places, for the cleaner: copies of their versions, or places where no object is.
//
// Owns only these stores. Requires: no put waits to be published (AllPublished), so an entry that names a version as
// settled is not about to change. The shard's thread calls it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/hash.h"
#include "format/geometry.h"
#include "format/object.h"
#include "index/index.h"
#include "log/shard_log.h"
#include "nvm/writer.h"
#include "server/control/counters.h"
#include "server/versions/all_published.h"
#include "server/versions/settling.h"
#include "server/versions/taking_back.h"

namespace erda::server {

class Moving {
 public:
  using Address = format::LogAddress;
  using Slot = index::Slot;

  Moving(nvm::Writer& nvm, index::Index& index, log::ShardLog& log, const format::Geometry& geometry,
         const HashSeed& hash_seed, Counters& counters, Settling& settling, TakingBack& taking_back)
      : nvm_(nvm),
        index_(index),
        log_(log),
        geometry_(geometry),
        hash_seed_(hash_seed),
        counters_(counters),
        settling_(settling),
        taking_back_(taking_back) {}

  // Lets the key's entry name the copy at `to`, if it still names `from` as a settled version. Returns true if it has
  // done so. Persistent after the next fence. Requires: the cleaner has copied the version at `from` to `to`, whole and
  // persistently.
  bool Move(AllPublished, uint64_t key_hash, Address from, Address to);

  // Sets an entry aside that names, as settled, an address in this region of its head where no object of its key can
  // be. From then on the entry names another place of this kind. The entry may name an unsettled new version there that
  // recovery did not find. Then SetAside settles that version or takes it back, and returns true: the entry can be
  // moved afterwards. Persistent after the next fence. Requires: nobody holds the region.
  bool SetAside(AllPublished, Slot slot, uint32_t head, uint32_t region_slot);
  // If the key's entry names the address as a settled version, lets it name a place where no object is.
  void SetAside(AllPublished, uint64_t key_hash, uint32_t head, Address from);

  // Returns the key of an entry, if the entry still names this address as settled, and the object there is damaged. The
  // key is empty if nobody can know it.
  [[nodiscard]] std::optional<std::string> DamagedKey(Slot slot, uint32_t head, Address address);

 private:
  void StoreAside(Slot slot, uint32_t head, Address from);
  // On a pool with a journal: takes the cleaner's copy into the shard's stream.
  void TakeCopy(uint32_t head, Address at);

  nvm::Writer& nvm_;
  index::Index& index_;
  log::ShardLog& log_;
  const format::Geometry& geometry_;
  const HashSeed hash_seed_;
  Counters& counters_;
  Settling& settling_;
  TakingBack& taking_back_;
};

}  // namespace erda::server
