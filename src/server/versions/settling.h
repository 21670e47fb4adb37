// Settles versions: verifies that they are whole, makes them persistent, and stores the settled bit in their entries.
//
// Owns the list of flushed versions that it settles after the next fence. Owns the number of places in flight that the
// next batch of puts looks at. Owns the queue of the versions that it settles when the medium holds them. On a pool
// with a journal all go through it, so SettleCurrent and the Sweeps leave their versions unsettled. Requires: no put of
// a key that it settles waits to be published (AllPublished). The caller's batch calls FlushDue and SettleFlushed. The
// shard's thread calls it.
//
// Invariants. Tests in tests/model and tests/server check them.
//   (I2) The shard settles a version only after it has verified it whole, and its bytes, header and entry are
//   persistent. It stores the settled bit after all that.
//   (I4) A version that a delete superseded never comes back. This holds for every order in which its value, its commit
//   and its client's death arrive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "index/index.h"
#include "log/shard_log.h"
#include "nvm/writer.h"
#include "server/control/counters.h"
#include "server/pool/chain.h"
#include "server/versions/all_published.h"
#include "server/versions/hold_queue.h"
#include "server/versions/outcome.h"
#include "server/versions/reservations.h"

namespace erda::server {

// The commit of a reservation, as its session sent it, and the findings of BeginCommit.
struct Commit {
  uint64_t key_hash = 0;
  uint32_t head = 0;
  format::LogAddress address;
  uint64_t version = 0;
  SessionId session = 0;
  bool whole = false;   // The value is there, and is flushed.
  uint64_t fences = 0;  // The number of fences that the shard had made before: the next one waits for the flush.
};

class Settling {
 public:
  using Slot = index::Slot;

  Settling(nvm::Writer& nvm, index::Index& index, log::ShardLog& log, Chain& chain, Counters& counters,
           Reservations& reservations)
      : nvm_(nvm),
        index_(index),
        log_(log),
        chain_(chain),
        counters_(counters),
        reservations_(reservations),
        holds_(nvm) {}

  // Settles the new version of the key's entry if it is whole.
  void SettleCurrent(Slot slot, uint64_t key_hash) {
    if (!index_.WordAt(slot).settled() || Planted(Flaw::kSettledNotWhole)) SettleUnsettled(slot, key_hash);
  }

  // Verifies the value of a reservation, and flushes it.
  void BeginCommit(Commit* commit);
  // Fences, unless the shard has fenced since BeginCommit, so that commits and puts in between share their fences. Then
  // settles the version. Returns nullopt if the session broke the protocol: it has no such reservation.
  std::optional<Outcome> EndCommit(AllPublished, const Commit& commit);

  // Looks at up to `limit` reservations, and settles those whose value has arrived. Returns how many it settled.
  size_t Sweep(AllPublished, size_t limit);
  // Settles up to `limit` of the session's reservations that arrived without a commit. Returns how many of its
  // reservations ended.
  size_t SweepOf(AllPublished, SessionId session, size_t limit);
  // Settles the key's reservations that have arrived.
  void SweepKey(AllPublished, uint64_t key_hash);

  // The next batch of puts looks at this many more places in flight, and shares its fences with them.
  void AddDue(size_t places) { due_ += places; }
  [[nodiscard]] bool is_due() const { return due_ > 0; }
  // For a batch, before its first fence: looks at the places that are due, and flushes the versions that have arrived.
  struct Flushed {
    uint64_t fences = 0;  // as in Commit
  };
  [[nodiscard]] Flushed FlushDue();
  // For a batch, after its last fence: settles the flushed versions. Fences if the batch did not.
  void SettleFlushed(Flushed flushed) { (void)SettleArrived(flushed.fences); }

  // Lets the version become the new or the old one of its entry, if it is newer than the one there. Returns false if
  // the key has no entry, or if the entry names a damaged version. Requires: the version is whole and persistent.
  [[nodiscard]] bool Enter(const Reservation& reservation);

  // --- On a pool with a journal

  [[nodiscard]] bool holds_later() const { return holds_.holds_later(); }
  // Returns true if versions wait until the medium holds them.
  [[nodiscard]] bool awaits_hold() const { return !holds_.empty(); }
  // The reservation's version is whole and flushed: SettleHeld settles it. Requires: it does not wait already.
  void AwaitHold(InFlight::Id id) {
    reservations_.AwaitHold(id);
    holds_.Push(id);
  }
  // Lets the version wait, if it is whole and does not wait already. Gives it a reservation if it has none. Returns
  // true if it waits now.
  bool AwaitHoldIfWhole(uint64_t key_hash, uint32_t head, format::LogAddress address);
  // Settles the versions that the medium holds now. Calls end(const Reservation&) for each tombstone among them, which
  // is no longer needed after that.
  struct Held {
    size_t taken = 0;    // How many there were.
    bool later = false;  // One of them has become the new version of its entry only now, so it waits again.
  };
  template <class End>
  [[nodiscard]] Held SettleHeld(AllPublished, End&& end) {
    Held held;
    held.taken = holds_.Take([&](InFlight::Id id) {
      const Reservation& reservation = reservations_.in_flight().At(id);
      if (!reservation.is_tombstone) {
        held.later |= !SettleHeld(id);
        return;
      }
      end(reservation);
      reservations_.End(id);
    });
    return held;
  }

 private:
  // Returns false if the version has become the new one of its entry only now: it waits until the medium holds that.
  [[nodiscard]] bool SettleHeld(InFlight::Id id);
  void SettleUnsettled(Slot slot, uint64_t key_hash);
  // Returns the reservation that the commit is for, or kNone if the session has no reservation that waits for it.
  [[nodiscard]] InFlight::Id FindCommitted(const Commit& commit) const;
  void FlushIfArrived(InFlight::Id id, const Reservation& reservation);
  // Settles arrived_. Fences first, unless the shard has made more than this many fences. Returns how many it settled.
  size_t SettleArrived(uint64_t fences);
  // Fences, unless the shard has made more than this many fences. Versions flushed at that number are persistent on
  // return.
  void FenceSince(uint64_t fences);

  nvm::Writer& nvm_;
  index::Index& index_;
  log::ShardLog& log_;
  Chain& chain_;
  Counters& counters_;
  Reservations& reservations_;
  std::vector<InFlight::Id> arrived_;  // whole and flushed; empty between calls, except from FlushDue to SettleFlushed
  size_t due_ = 0;
  InFlight::Id cursor_ = 0;  // where the last sweep stopped
  HoldQueue holds_;
};

}  // namespace erda::server
