// Removes keys: by a delete, or because their values have expired.
//
// Owns the order of the steps by which a key's entry goes. Requires: key_hash is the key's and belongs to this shard.
// Delete publishes the waiting puts itself. The shard's thread calls it.
//
//   (I4) A version that a delete superseded never comes back. This holds for every order in which its value, its commit
//   and its client's death arrive.
#pragma once

#include <cstdint>
#include <string_view>

#include "index/index.h"
#include "log/shard_log.h"
#include "nvm/writer.h"
#include "server/control/counters.h"
#include "server/control/expiry_clock.h"
#include "server/pool/chain.h"
#include "server/pool/version_numbers.h"
#include "server/versions/outcome.h"
#include "server/versions/publish_batch.h"
#include "server/versions/reservations.h"
#include "server/versions/settling.h"

namespace erda::server {

class Removing {
 public:
  Removing(nvm::Writer& nvm, index::Index& index, log::ShardLog& log, Chain& chain, ExpiryClock& clock,
           Counters& counters, VersionNumbers& numbers, Reservations& reservations, Settling& settling,
           PublishBatch& batch)
      : nvm_(nvm),
        index_(index),
        log_(log),
        chain_(chain),
        clock_(clock),
        counters_(counters),
        numbers_(numbers),
        reservations_(reservations),
        settling_(settling),
        batch_(batch) {}

  // Deletes the key. Returns kNotFound if no get could return a version of the key.
  Outcome Delete(std::string_view key, uint64_t key_hash);
  // Frees the key's entry if it names the version there as its new one, settled, and that version has expired. Returns
  // true if it has done so.
  bool Expire(AllPublished, uint64_t key_hash, uint32_t head, format::LogAddress address);

 private:
  using Slot = index::Slot;

  // Returns true if a get could return a version of the entry. If not, the key is absent, and the delete changes
  // nothing. Requires: every version of the key that could be settled was settled.
  [[nodiscard]] bool HasVisibleVersion(Slot slot) const;
  [[nodiscard]] bool HasExpired(uint32_t head, format::LogAddress address) const;
  // Lets the entry name a tombstone, persistently. Returns kResourceExhausted if the head has no region.
  Outcome Entomb(Slot slot, std::string_view key, uint64_t key_hash);

  nvm::Writer& nvm_;
  index::Index& index_;
  log::ShardLog& log_;
  Chain& chain_;
  ExpiryClock& clock_;
  Counters& counters_;
  VersionNumbers& numbers_;
  Reservations& reservations_;
  Settling& settling_;
  PublishBatch& batch_;
};

}  // namespace erda::server
