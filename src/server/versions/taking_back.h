// Takes back versions that will never be whole: their entries go back to the versions before them.
//
// Owns only the order of these steps. Requires: the writer of the version cannot write any more, or is gone. No put
// waits to be published. The shard's thread calls it.
#pragma once

#include <cstdint>
#include <string_view>

#include "index/index.h"
#include "log/shard_log.h"
#include "server/control/counters.h"
#include "server/pool/chain.h"
#include "server/versions/all_published.h"
#include "server/versions/reservations.h"
#include "server/versions/settling.h"

namespace erda::server {

class TakingBack {
 public:
  using Slot = index::Slot;

  TakingBack(index::Index& index, log::ShardLog& log, Chain& chain, Counters& counters, Reservations& reservations,
             Settling& settling)
      : index_(index),
        log_(log),
        chain_(chain),
        counters_(counters),
        reservations_(reservations),
        settling_(settling) {}

  // Settles or takes back all versions that the session has in flight. Requires: the session is fenced.
  void EndSession(AllPublished, SessionId session);
  // Serves a report that the key's newest version is not whole. Settles the version, or takes it back if no client
  // writes it any more.
  void Report(AllPublished, std::string_view key, uint64_t key_hash);
  // Returns the reservation of the entry's new version, which is not settled. Returns kNone if no client writes it any
  // more.
  [[nodiscard]] InFlight::Id FindWriter(Slot slot, uint64_t key_hash) const;
  // Takes the entry's new version back. Requires: no client writes it any more.
  void TakeBackAbandoned(Slot slot, uint64_t key_hash);

 private:
  // Takes back the version of a reservation that has ended: it will never be whole.
  void TakeBack(const Reservation& gone);
  // Lets the slot's entry go back from the version of the ended reservation `gone`. Requires: the entry names that
  // version as its new one.
  void TakeBackEntry(Slot slot, const Reservation& gone);

  index::Index& index_;
  log::ShardLog& log_;
  Chain& chain_;
  Counters& counters_;
  Reservations& reservations_;
  Settling& settling_;
};

}  // namespace erda::server
