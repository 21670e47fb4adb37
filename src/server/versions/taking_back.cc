#include "server/versions/taking_back.h"

#include "base/planted.h"
#include "server/versions/find_key.h"

namespace erda::server {

using format::Counter;
using format::IndexEntry;
using format::LogAddress;
using format::ObjectState;
using format::ObjectView;

void TakingBack::EndSession(AllPublished /*proof*/, SessionId session) {
  if (session >= reservations_.sessions()) return;
  const InFlight& in_flight = reservations_.in_flight();
  // Settles the whole versions first. Otherwise a later version that is not whole would be taken back past them.
  in_flight.ForEach([&](InFlight::Id id, const Reservation& reservation) {
    if (reservation.session != session || reservation.settled) return;
    if (settling_.holds_later()) {
      const bool waits = settling_.AwaitHoldIfWhole(reservation.key_hash, reservation.head, reservation.address);
      if (waits) reservations_.Disown(id);
      return;
    }
    if (!chain_.MakePersistentIfWhole(reservation.head, reservation.address)) return;
    if (settling_.Enter(reservation)) counters_.Add(Counter::kSettled);
    reservations_.End(id);
  });
  in_flight.ForEach([&](InFlight::Id id, const Reservation& reservation) {
    if (reservation.session != session) return;
    // The version is taken back when it is not in flight any more, since it cannot arrive.
    reservations_.Abandon(id, [&](const Reservation& gone) {
      if (!gone.settled) TakeBack(gone);
    });
  });
}

void TakingBack::TakeBack(const Reservation& gone) {
  counters_.Add(Counter::kTakenBack);
  if (gone.superseded) return;  // (I4)
  const auto slot = index_.mender().FindMended(gone.key_hash, [&](Slot /*slot*/, const IndexEntry& entry) {
    return entry.entry_word().new_address() == gone.address;
  });
  if (slot) TakeBackEntry(*slot, gone);
}

// The entry goes to the newest version before it that is whole or may still arrive. If the shard skipped one that may
// arrive, a put would be lost that its writer is about to acknowledge.
void TakingBack::TakeBackEntry(Slot slot, const Reservation& gone) {
  const ObjectView view = log_.InspectHeader(gone.head, gone.address);
  if (view.state == ObjectState::kNothing) {
    // The version is damaged, and may have been acknowledged. With the bit, a get reports the damage (as
    // RecoveryAction::kDamaged).
    return index_.StoreWordLazily(slot, index_.WordAt(slot).Settled());
  }
  const LogAddress old = index_.WordAt(slot).old_address();
  const auto before = chain_.NewestBefore(gone.head, view, old, [&](LogAddress at) {
    if (Planted(Flaw::kTakesBackPastWriters)) return false;
    return reservations_.in_flight().Find(gone.key_hash, gone.head, at) != InFlight::kNone;
  });
  if (before.whole_bytes != 0 && settling_.holds_later()) {
    // Readers must not see it before the medium holds it.
    index_.StoreWord(slot, index_.WordAt(slot).TakenBackTo(before.address, false));
    return (void)settling_.AwaitHoldIfWhole(gone.key_hash, gone.head, before.address);
  }
  chain_.TakeBack(slot, before);
  if (before.whole_bytes != 0) reservations_.SettleAt(gone.key_hash, gone.head, before.address);
}

void TakingBack::Report(AllPublished /*proof*/, std::string_view key, uint64_t key_hash) {
  counters_.Add(Counter::kReports);
  const auto slot = FindKey(index_, log_, key, key_hash).entry;
  if (!slot) return;
  settling_.SettleCurrent(*slot, key_hash);
  if (index_.WordAt(*slot).settled()) return;
  // The writer may still be writing.
  const bool writing = FindWriter(*slot, key_hash) != InFlight::kNone;
  if (!writing || Planted(Flaw::kReportEndsWriters)) TakeBackAbandoned(*slot, key_hash);
}

InFlight::Id TakingBack::FindWriter(Slot slot, uint64_t key_hash) const {
  const IndexEntry entry = index_.At(slot);
  return reservations_.in_flight().Find(key_hash, log_.HeadOf(entry), entry.entry_word().new_address());
}

void TakingBack::TakeBackAbandoned(Slot slot, uint64_t key_hash) {
  const IndexEntry entry = index_.At(slot);
  Reservation gone;
  gone.key_hash = key_hash;
  gone.head = log_.HeadOf(entry);
  gone.address = entry.entry_word().new_address();
  TakeBackEntry(slot, gone);
}

}  // namespace erda::server
