// What sessions have reserved and not finished.
//
// Owns: each reservation from the moment that an entry names its version until it ends; its flight and its hold in the
// log; and the number of reservations of each session. A reservation ends when its version is settled and no commit is
// to come, or when it is abandoned. Requires: the caller stores into the entry first what the end means for it. The
// shard's thread calls it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "index/index.h"
#include "log/shard_log.h"
#include "server/chain.h"
#include "server/counters.h"
#include "server/in_flight.h"

namespace erda::server {

class Reservations {
 public:
  using Id = InFlight::Id;
  using Address = format::LogAddress;

  Reservations(index::Index& index, log::ShardLog& log, const Chain& chain, Counters& counters)
      : index_(index), log_(log), chain_(chain), counters_(counters) {}

  // The session gets one more, which is not published yet. Begin follows when it is.
  void Grant(SessionId session);
  // Counts those that the session was granted and that have not ended.
  [[nodiscard]] uint32_t CountOf(SessionId session) const { return session < granted_.size() ? granted_[session] : 0; }
  // Sessions from this number on were granted none.
  [[nodiscard]] size_t sessions() const { return granted_.size(); }

  // It is in flight from here on. Requires: its entry names it, persistently, and it was granted.
  void Begin(const Reservation& reservation);
  [[nodiscard]] const InFlight& in_flight() const { return in_flight_; }

  // Its entry names it as settled, or as a version that no longer counts. It ends, unless its writer's commit is to
  // come.
  void Settle(Id id);
  // Settles the reservation at this place if there is one and it is not settled.
  void SettleAt(uint64_t key_hash, uint32_t head, Address address);
  // Ends it.
  void End(Id id) { Release(Remove(id)); }
  // Ends it and calls undo(const Reservation&) between: it is not in flight then, and its space is still held.
  template <class Undo>
  void Abandon(Id id, Undo&& undo) {
    const Reservation gone = Remove(id);
    undo(gone);
    Release(gone);
  }
  // (I4) No version of the key that is in flight counts from here on, whether it arrives or not.
  void Supersede(std::string_view key, uint64_t key_hash);

 private:
  Reservation Remove(Id id);
  void Release(const Reservation& gone);
  [[nodiscard]] bool IsPassed(const Reservation& older) const;

  index::Index& index_;
  log::ShardLog& log_;
  const Chain& chain_;
  Counters& counters_;
  InFlight in_flight_;
  // Removed, and still held: a reader that follows `previous` from a newer version in flight comes to these.
  std::vector<Reservation> passed_;
  std::vector<uint32_t> granted_;  // by session
};

}  // namespace erda::server
