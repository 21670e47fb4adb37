#include "server/versions/reservations.h"

#include "server/versions/find_key.h"

namespace erda::server {

using format::Counter;
using format::EntryWord;
using format::ObjectState;
using format::ObjectView;

void Reservations::Grant(SessionId session) {
  if (session >= granted_.size()) granted_.resize(session + 1);
  ++granted_[session];
}

Reservations::Id Reservations::Begin(const Reservation& reservation) {
  const Id id = in_flight_.Add(reservation);
  log_.BeginFlight(reservation.head, reservation.address);
  log_.Hold(reservation.head, reservation.address);
  return id;
}

void Reservations::AwaitHold(Id id) {
  in_flight_.At(id).awaits_hold = true;
  if (!in_flight_.At(id).awaits_commit) Disown(id);
}

void Reservations::Overtake(uint64_t key_hash, uint64_t version) {
  in_flight_.ForEachOf(key_hash, [&](Id id, const Reservation& reservation) {
    if (reservation.version < version) in_flight_.At(id).overtaken = true;
  });
}

void Reservations::Disown(Id id) {
  Reservation& reservation = in_flight_.At(id);
  reservation.awaits_commit = false;
  if (reservation.session == kNoSession) return;
  --granted_[reservation.session];
  reservation.session = kNoSession;
}

void Reservations::Settle(Id id) {
  Reservation& reservation = in_flight_.At(id);
  reservation.settled = true;
  LetClockGo(reservation);
  log_.EndFlight(reservation.head, reservation.address);
  if (!reservation.awaits_hold) counters_.Add(Counter::kSettled);  // otherwise it was counted when it began to wait
  if (!reservation.awaits_commit) End(id);
}

void Reservations::SettleAt(uint64_t key_hash, uint32_t head, Address address) {
  const Id id = in_flight_.Find(key_hash, head, address);
  if (id != InFlight::kNone && !in_flight_.At(id).settled) Settle(id);
}

void Reservations::Supersede(std::string_view key, uint64_t key_hash) {
  in_flight_.ForEachOf(key_hash, [&](Id id, const Reservation& reservation) {
    if (log_.InspectHeader(reservation.head, reservation.address).key != key) return;
    in_flight_.At(id).superseded = true;
    LetClockGo(in_flight_.At(id));
  });
}

Reservation Reservations::Remove(Id id) {
  LetClockGo(in_flight_.At(id));
  const Reservation gone = in_flight_.At(id);
  if (gone.session != kNoSession) --granted_[gone.session];
  in_flight_.Remove(id);
  return gone;
}

// (I11) The place of a reservation is held while it is in flight. It stays held while a newer version of its key is in
// flight, until a version at least as new as this one is settled. The reason: the `previous` of the newer version leads
// here, and on to older ones that may still be in flight.
//
// (I9) EndFlight comes after the last store to the entry. From then on, the mark of the segment may say that recovery
// has nothing to do here.
void Reservations::Release(const Reservation& gone) {
  if (!gone.settled) log_.EndFlight(gone.head, gone.address);
  if (IsPassed(gone)) {
    passed_.push_back(gone);
  } else {
    log_.Release(gone.head, gone.address);
  }
  std::erase_if(passed_, [&](const Reservation& older) {
    if (older.key_hash != gone.key_hash || IsPassed(older)) return false;
    log_.Release(older.head, older.address);
    return true;
  });
}

bool Reservations::IsPassed(const Reservation& older) const {
  if (older.overtaken) return false;
  bool passed = false;
  in_flight_.ForEachOf(older.key_hash,
                       [&](Id /*id*/, const Reservation& newer) { passed |= newer.version > older.version; });
  if (!passed) return false;
  // No reader goes past a settled version, so no reader looks for a version that is not newer.
  const ObjectView view = log_.InspectHeader(older.head, older.address);
  if (view.state == ObjectState::kNothing) return false;
  const auto slot = FindKey(index_, log_, view.key, older.key_hash).entry;
  if (!slot) return false;
  const EntryWord word = index_.WordAt(*slot);
  return !word.settled() && older.version > chain_.VersionAt(older.head, word.old_address());
}

}  // namespace erda::server
