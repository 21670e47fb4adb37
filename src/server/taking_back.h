// Takes versions back that will never be whole: their entries go to what was before them.
//
// Owns: nothing but the order of these steps. Requires: the writer of the version cannot write any more, or is gone,
// and no put waits to be published. The shard's thread calls it.
#pragma once

#include <cstdint>
#include <string_view>

#include "index/index.h"
#include "log/shard_log.h"
#include "server/all_published.h"
#include "server/chain.h"
#include "server/counters.h"
#include "server/reservations.h"
#include "server/settling.h"

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

  // Settles or takes back all that the session has in flight. Requires: the session is fenced, so nothing of it can
  // arrive any more.
  void EndSession(AllPublished, SessionId session);
  // A reader found the key's newest version not whole: settles it, or takes it back if no client writes it any more.
  void Report(AllPublished, std::string_view key, uint64_t key_hash);
  // Returns the reservation of the entry's new version, which is not settled; kNone: no client writes it any more.
  [[nodiscard]] InFlight::Id FindWriter(Slot slot, uint64_t key_hash) const;
  // No client writes the entry's new version any more: the entry goes to what was before it.
  void TakeBackAbandoned(Slot slot, uint64_t key_hash);

 private:
  // The version that the reservation is of, which has ended, will never be whole.
  void TakeBack(const Reservation& gone);
  // The slot's entry names that version as its new one.
  void TakeBackEntry(Slot slot, const Reservation& gone);

  index::Index& index_;
  log::ShardLog& log_;
  Chain& chain_;
  Counters& counters_;
  Reservations& reservations_;
  Settling& settling_;
};

}  // namespace erda::server
