#include "server/versions/settling.h"

#include "base/planted.h"
#include "server/versions/find_key.h"

namespace erda::server {

using format::Counter;
using format::EntryWord;
using format::IndexEntry;
using format::ObjectState;
using format::ObjectView;
using format::Reason;

void Settling::SettleUnsettled(Slot slot, uint64_t key_hash) {
  const IndexEntry entry = index_.At(slot);
  const EntryWord word = entry.entry_word();
  const uint32_t head = log_.HeadOf(entry);
  if (Planted(Flaw::kSettledNotWhole)) return chain_.StoreSettled(slot, word);
  if (holds_later()) return (void)AwaitHoldIfWhole(key_hash, head, word.new_address());
  if (!chain_.MakePersistentIfWhole(head, word.new_address())) return;
  chain_.StoreSettled(slot, word);
  reservations_.SettleAt(key_hash, head, word.new_address());
}

// --- Commits

InFlight::Id Settling::FindCommitted(const Commit& commit) const {
  const InFlight& in_flight = reservations_.in_flight();
  const InFlight::Id id = in_flight.Find(commit.key_hash, commit.head, commit.address);
  if (id == InFlight::kNone) return id;
  const Reservation& reservation = in_flight.At(id);
  const bool is_that = reservation.session == commit.session && reservation.version == commit.version;
  return is_that && reservation.awaits_commit ? id : InFlight::kNone;
}

void Settling::BeginCommit(Commit* commit) {
  // Reads only at an address that the session has got from the shard.
  if (FindCommitted(*commit) == InFlight::kNone) return;
  const ObjectView view = log_.Inspect(commit->head, commit->address);
  commit->whole = view.state == ObjectState::kWhole;
  if (!commit->whole) return;
  if (!Planted(Flaw::kCommitNotFlushed)) nvm_.Flush(log_.OffsetOf(commit->head, commit->address), SpaceOf(view.header));
  commit->fences = nvm_.counters().fences;
}

std::optional<Outcome> Settling::EndCommit(AllPublished /*proof*/, const Commit& commit) {
  const InFlight::Id id = FindCommitted(commit);
  if (id == InFlight::kNone) return std::nullopt;
  const Reservation& reservation = reservations_.in_flight().At(id);
  counters_.Add(Counter::kCommits);
  if (!reservation.settled) {
    if (!commit.whole) return Outcome{Code::kCorruption, Reason::kNotWhole, commit.address, commit.head, {}};
    // (I2) Pairs with the flush of BeginCommit: persistent before it is settled, and before its writer hears of it.
    if (!Planted(Flaw::kCommitUnfenced)) FenceSince(commit.fences);
    if (!reservation.awaits_hold) counters_.Add(Counter::kSettled);
    const bool entered = holds_later() || Enter(reservation);
    if (!entered) return Outcome{Code::kCorruption, Reason::kDamaged, commit.address, commit.head, {}};
  }
  if (!reservation.settled && holds_later()) {
    reservations_.Disown(id);
    if (!reservation.awaits_hold) AwaitHold(id);
  } else {
    reservations_.End(id);
  }
  return Outcome{Code::kOk, Reason::kNone, commit.address, commit.head, {}};
}

void Settling::FenceSince(uint64_t fences) {
  if (nvm_.counters().fences == fences) nvm_.Fence();
}

// The key has an entry, since an entry goes only with its last reservation or by a delete. If the shard does not find
// the entry, it is damaged.
bool Settling::Enter(const Reservation& r) {
  if (r.superseded) return true;  // (I4)
  const auto slot = FindKey(index_, log_, log_.InspectHeader(r.head, r.address).key, r.key_hash).entry;
  if (!slot) return false;
  const EntryWord word = index_.WordAt(*slot);
  if (word.new_address() == r.address) {
    chain_.StoreSettled(*slot, word);
    return true;
  }
  if (Planted(Flaw::kLateCommitLost)) return true;
  // A header that does not verify is damage. The version there may have been newer, so an older value would be wrong.
  const uint64_t newest = chain_.VersionAt(r.head, word.new_address());
  if (newest == 0 && !Planted(Flaw::kCommitsPastDamage)) return false;
  if (r.version > newest) {
    chain_.StoreSettled(*slot, word.Published(r.address));
    return true;
  }
  const uint64_t settled = chain_.VersionAt(r.head, word.old_address());
  // The server does not acknowledge the version then: gets would go past it, to the damaged one.
  const bool damaged = settled == 0 && !word.needed_old().none();
  if (damaged && !Planted(Flaw::kCommitsPastDamage)) return false;
  if (r.version > settled) index_.StoreWord(*slot, word.WithOld(r.address));
  return true;
}

// --- On a pool with a journal

bool Settling::AwaitHoldIfWhole(uint64_t key_hash, uint32_t head, format::LogAddress address) {
  InFlight::Id id = reservations_.in_flight().Find(key_hash, head, address);
  if (id != InFlight::kNone) {
    const Reservation& reservation = reservations_.in_flight().At(id);
    if (reservation.awaits_hold || reservation.settled) return reservation.awaits_hold;
  }
  if (!chain_.FlushIfWhole(head, address)) return false;
  if (id == InFlight::kNone) {
    const ObjectView view = log_.InspectHeader(head, address);
    Reservation reservation;
    reservation.key_hash = key_hash;
    reservation.version = view.header.version;
    reservation.address = address;
    reservation.head = head;
    reservation.bytes = SpaceOf(view.header);
    reservation.session = kNoSession;
    id = reservations_.Begin(reservation);
  } else {
    counters_.Add(Counter::kSettled);
  }
  AwaitHold(id);
  return true;
}

// Looks at no object, since one may be damaged that was whole when its put was answered. The new version of the entry
// is in flight, or it has overtaken this one. If this version becomes the new one only now, readers must not see that
// before the medium holds it. Only damage of the entry leads there: an entry goes back only if its new version is taken
// back. A version that waits for the medium never is.
bool Settling::SettleHeld(InFlight::Id id) {
  const InFlight& in_flight = reservations_.in_flight();
  const Reservation& held = in_flight.At(id);
  const bool counts = !held.superseded && !held.overtaken;  // (I4)
  InFlight::Id newest = id;
  auto slot = index_.mender().FindMended(held.key_hash, [&](Slot /*slot*/, const IndexEntry& entry) {
    return entry.entry_word().new_address() == held.address;
  });
  if (!slot) {
    slot = index_.mender().FindMended(held.key_hash, [&](Slot /*slot*/, const IndexEntry& entry) {
      newest = in_flight.Find(held.key_hash, held.head, entry.entry_word().new_address());
      return newest != InFlight::kNone;
    });
  }
  if (counts && slot) {
    const EntryWord word = index_.WordAt(*slot);
    if (newest == id) {
      chain_.StoreSettled(*slot, word);
    } else if (held.version > in_flight.At(newest).version) {
      index_.StoreWordLazily(*slot, word.Published(held.address));
      holds_.Push(id);
      return false;
    } else if (!Planted(Flaw::kLateCommitLost)) {
      index_.StoreWord(*slot, word.WithOld(held.address));
    }
    reservations_.Overtake(held.key_hash, held.version);
  }
  reservations_.Settle(id);
  return true;
}

// --- Versions that arrived without a commit

size_t Settling::Sweep(AllPublished /*proof*/, size_t limit) {
  reservations_.in_flight().ForSome(
      limit, &cursor_, [&](InFlight::Id id, const Reservation& reservation) { FlushIfArrived(id, reservation); });
  return SettleArrived(nvm_.counters().fences);
}

size_t Settling::SweepOf(AllPublished /*proof*/, SessionId session, size_t limit) {
  const size_t before = reservations_.CountOf(session);
  reservations_.in_flight().ForEach([&](InFlight::Id id, const Reservation& reservation) {
    const bool counts = reservation.session == session && !reservation.awaits_commit;
    if (counts && arrived_.size() < limit) FlushIfArrived(id, reservation);
  });
  (void)SettleArrived(nvm_.counters().fences);
  return before - reservations_.CountOf(session);
}

void Settling::SweepKey(AllPublished /*proof*/, uint64_t key_hash) {
  reservations_.in_flight().ForEachOf(
      key_hash, [&](InFlight::Id id, const Reservation& reservation) { FlushIfArrived(id, reservation); });
  (void)SettleArrived(nvm_.counters().fences);
}

// A reservation that awaits a commit stays: its writer commits it when the value has arrived.
Settling::Flushed Settling::FlushDue() {
  reservations_.in_flight().ForSome(std::exchange(due_, 0), &cursor_,
                                    [&](InFlight::Id id, const Reservation& reservation) {
                                      if (!reservation.awaits_commit) FlushIfArrived(id, reservation);
                                    });
  return {nvm_.counters().fences};
}

void Settling::FlushIfArrived(InFlight::Id id, const Reservation& reservation) {
  if (reservation.settled || reservation.awaits_hold) return;
  if (chain_.FlushIfWhole(reservation.head, reservation.address)) arrived_.push_back(id);
}

size_t Settling::SettleArrived(uint64_t fences) {
  if (arrived_.empty()) return 0;
  FenceSince(fences);  // (I2) Pairs with the flushes of FlushIfArrived.
  size_t settled = 0;
  for (const InFlight::Id id : arrived_) {
    if (holds_later()) {
      counters_.Add(Counter::kSettled);
      AwaitHold(id);
      ++settled;
      continue;
    }
    if (!Enter(reservations_.in_flight().At(id))) continue;
    reservations_.Settle(id);
    ++settled;
  }
  arrived_.clear();
  return settled;
}

}  // namespace erda::server
