// Removes keys: by a delete, or because their values have expired.
//
// Owns the order of the steps by which a key's entry goes. Requires: key_hash is the key's and belongs to this shard.
// Delete publishes the waiting puts itself. The shard's thread calls it.
//
//   (I4) A version that a delete superseded never comes back. This holds for every order in which its value, its commit
//   and its client's death arrive.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "format/geometry.h"
#include "index/index.h"
#include "log/shard_log.h"
#include "nvm/writer.h"
#include "server/control/counters.h"
#include "server/control/expiry_clock.h"
#include "server/pool/chain.h"
#include "server/pool/version_numbers.h"
#include "server/versions/new_version.h"
#include "server/versions/outcome.h"
#include "server/versions/present.h"
#include "server/versions/publish_batch.h"
#include "server/versions/reservations.h"
#include "server/versions/settling.h"

namespace erda::server {

class Removing {
 public:
  Removing(nvm::Writer& nvm, const format::Geometry& geometry, index::Index& index, log::ShardLog& log, Chain& chain,
           ExpiryClock& clock, Counters& counters, VersionNumbers& numbers, Reservations& reservations,
           Settling& settling, PublishBatch& batch)
      : nvm_(nvm),
        geometry_(geometry),
        index_(index),
        log_(log),
        chain_(chain),
        clock_(clock),
        counters_(counters),
        numbers_(numbers),
        reservations_(reservations),
        settling_(settling),
        batch_(batch) {}

  // Deletes the key. Returns kNotFound if no get could return a version of the key. Returns a Present, the version
  // for which it has to wait, if the medium does not hold yet what the delete needs. Then nothing has changed.
  std::variant<Outcome, Present> Delete(std::string_view key, uint64_t key_hash);
  // Frees the key's entry if it names the version there as its new one, settled, and that version has expired. Returns
  // true if it has done so.
  bool Expire(AllPublished, uint64_t key_hash, uint32_t head, format::LogAddress address);

  // --- On a pool with a journal

  // A delete of the key has published its tombstone, and the medium does not hold it yet. Returns that tombstone, as
  // the version that decides. Until then no other version of the key may be put: readers would go past both, to the
  // value that was deleted.
  [[nodiscard]] std::optional<Present> AwaitedDelete(std::string_view key, uint64_t key_hash) const;
  // The medium holds the tombstone: ends its delete.
  void EndDelete(const Reservation& tombstone);

 private:
  using Slot = index::Slot;

  // Returns the version for which a delete of the key must wait. It is one of the key, or the tombstone in the place
  // that the delete needs.
  [[nodiscard]] std::optional<Present> Awaited(std::string_view key, uint64_t key_hash) const;
  // Returns the newest version of the key that waits until the medium holds it.
  [[nodiscard]] std::optional<Present> NewestAwaited(std::string_view key, uint64_t key_hash) const;
  // Returns the tombstone that waits in the place where a tombstone of this head would stand.
  [[nodiscard]] std::optional<Present> AwaitedInSlot(uint32_t head) const;

  // Returns true if a get could return a version of the entry. If not, the key is absent, and the delete changes
  // nothing. Requires: every version of the key that could be settled was settled.
  [[nodiscard]] bool HasVisibleVersion(Slot slot) const;
  [[nodiscard]] bool HasExpired(uint32_t head, format::LogAddress address) const;
  // Lets the entry name a tombstone, persistently. Returns kResourceExhausted if the head has no region.
  Outcome Entomb(Slot slot, std::string_view key, uint64_t key_hash, NewVersion* tombstone);

  nvm::Writer& nvm_;
  const format::Geometry& geometry_;
  index::Index& index_;
  log::ShardLog& log_;
  Chain& chain_;
  ExpiryClock& clock_;
  Counters& counters_;
  VersionNumbers& numbers_;
  Reservations& reservations_;
  Settling& settling_;
  PublishBatch& batch_;
  std::vector<InFlight::Id> tombstones_;  // Those that wait until the medium holds them.
};

}  // namespace erda::server
