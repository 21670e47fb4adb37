// The reservations that sessions have not finished.
//
// Owns each reservation from the moment that an entry names its version until the reservation ends. Owns its flight and
// its hold in the log, and the number of reservations of each session. Owns the deadlines before which the clock stands
// for these reservations. A reservation ends when its version is settled
// and no commit is to come, or when the shard abandons it. Requires: the caller first stores the entry that is right
// after the end. The shard's thread calls it.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "index/index.h"
#include "log/shard_log.h"
#include "server/control/counters.h"
#include "server/control/expiry_clock.h"
#include "server/pool/chain.h"
#include "server/versions/in_flight.h"

namespace erda::server {

class Reservations {
 public:
  using Id = InFlight::Id;
  using Address = format::LogAddress;

  Reservations(index::Index& index, log::ShardLog& log, const Chain& chain, ExpiryClock& clock, Counters& counters)
      : index_(index), log_(log), chain_(chain), clock_(clock), counters_(counters) {}

  // Counts one more reservation of the session, which is not published yet. The caller calls Begin when it is.
  void Grant(SessionId session);
  // Returns how many reservations the session was granted that have not ended.
  [[nodiscard]] uint32_t CountOf(SessionId session) const { return session < granted_.size() ? granted_[session] : 0; }
  // Returns a number such that sessions from it on were granted no reservation.
  [[nodiscard]] size_t sessions() const { return granted_.size(); }

  // Lets the reservation be in flight from now on. Requires: it was granted, unless it is of no session. Its entry
  // names its version, persistently.
  Id Begin(const Reservation& reservation);
  // The version is whole and flushed, and waits until the medium holds it. A session from which nothing is to come has
  // one reservation less from now on.
  void AwaitHold(Id id);
  // A version of the key is settled: older ones in flight are overtaken.
  void Overtake(uint64_t key_hash, uint64_t version);
  // The session has sent its commit, or is gone. The reservation stays in flight, and belongs to no session any more.
  void Disown(Id id);
  [[nodiscard]] const InFlight& in_flight() const { return in_flight_; }
  // Calls visit(const Reservation&) for each reservation that holds its place in the log. Some are not in flight any
  // more.
  template <class Visit>
  void ForEachHeld(Visit&& visit) const {
    in_flight_.ForEach([&](Id /*id*/, const Reservation& reservation) { visit(reservation); });
    for (const Reservation& passed : passed_) visit(passed);
  }

  // Ends the reservation, unless its writer's commit is to come. Requires: its entry names its version as settled, or
  // the version no longer counts.
  void Settle(Id id);
  // Settles the reservation at this place, if there is one that is not settled.
  void SettleAt(uint64_t key_hash, uint32_t head, Address address);
  // Ends the reservation.
  void End(Id id) { Release(Remove(id)); }
  // Ends the reservation. Calls undo(const Reservation&) when the reservation is not in flight any more, and its space
  // is still held.
  template <class Undo>
  void Abandon(Id id, Undo&& undo) {
    const Reservation gone = Remove(id);
    undo(gone);
    Release(gone);
  }
  // (I4) Supersedes all versions of the key in flight: they no longer count, even if they arrive.
  void Supersede(std::string_view key, uint64_t key_hash);

 private:
  Reservation Remove(Id id);
  void Release(const Reservation& gone);
  // The put has taken effect, or never will: the clock need not stand for it any more.
  void LetClockGo(Reservation& reservation) {
    if (reservation.judged_deadline != 0) [[unlikely]]
      clock_.LetGo(std::exchange(reservation.judged_deadline, 0));
  }
  [[nodiscard]] bool IsPassed(const Reservation& older) const;

  index::Index& index_;
  log::ShardLog& log_;
  const Chain& chain_;
  ExpiryClock& clock_;
  Counters& counters_;
  InFlight in_flight_;
  // Removed reservations that are still held: a reader that follows `previous` from a newer version in flight comes to
  // these.
  std::vector<Reservation> passed_;
  std::vector<uint32_t> granted_;  // by session
};

}  // namespace erda::server
