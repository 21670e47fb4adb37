#include "server/versions/removing.h"

#include <algorithm>

#include "base/planted.h"
#include "server/versions/find_key.h"

namespace erda::server {

using format::Counter;
using format::EntryWord;
using format::IndexEntry;
using format::LogAddress;
using format::ObjectHeader;
using format::ObjectKind;
using format::ObjectView;
using format::Reason;

// --- By a delete

// The tombstone is a version like any other. It is persistent before the entry names it, so a power cut leaves the
// tombstone or the value. Once that entry is persistent, the shard can free it, since no older version can come back.
// Versions in flight are marked as superseded (I4), and after a restart nothing is in flight. So the tombstone is
// needed only during its delete, and its region keeps one slot for it. A delete needs no space, not even in a full
// pool.
//
// On a pool with a journal the tombstone waits until the medium holds it (EndDelete). Meanwhile it is in flight.
std::variant<Outcome, Present> Removing::Delete(std::string_view key, uint64_t key_hash) {
  const Found found = FindKey(batch_.Publish(), index_, log_, key, key_hash);
  const auto slot = found.entry;
  if (!slot && found.damaged) return Outcome{Code::kCorruption, Reason::kDamaged, {}, 0, {}};
  if (!slot) return Outcome{Code::kNotFound, Reason::kNone, {}, 0, {}};
  settling_.SettleCurrent(*slot, key_hash);
  // A get finds the newest whole version, which may be an older one. It is a value, or a value that has expired.
  if (!index_.WordAt(*slot).settled()) settling_.SweepKey(batch_.Publish(), key_hash);
  if (settling_.holds_later()) {
    if (const auto awaited = Awaited(key, key_hash)) return *awaited;
  }
  if (!HasVisibleVersion(*slot)) return Outcome{Code::kNotFound, Reason::kNone, {}, 0, {}};

  NewVersion tombstone;
  const Outcome outcome = Entomb(*slot, key, key_hash, &tombstone);
  if (outcome.code != Code::kOk) return outcome;
  if (!Planted(Flaw::kCommitAfterDelete)) reservations_.Supersede(key, key_hash);
  counters_.Add(Counter::kDeletes);
  if (!settling_.holds_later() || Planted(Flaw::kFreedBeforeHeld)) {
    index_.Free(*slot);
    return outcome;
  }
  Reservation reservation = ReservationOf(tombstone, kNoSession);
  reservation.is_tombstone = true;
  tombstones_.push_back(reservations_.Begin(reservation));
  settling_.AwaitHold(tombstones_.back());
  return outcome;
}

Outcome Removing::Entomb(Slot slot, std::string_view key, uint64_t key_hash, NewVersion* tombstone) {
  const uint64_t number = numbers_.Next();
  tombstone->slot = slot;
  tombstone->head = log_.HeadOf(index_.At(slot));
  const auto space = log_.TombstoneSlot(tombstone->head, number);
  if (!space) return {Code::kResourceExhausted, Reason::kLogFull, {}, tombstone->head, {}};
  tombstone->space = *space;
  const EntryWord word = index_.WordAt(slot);
  MakeHeader(log_, tombstone, ObjectKind::kTombstone, key, key_hash, 0, ObjectHeader::kPersistedFlag, number,
             word.new_address().raw());
  const uint32_t checksum = format::ObjectChecksum(tombstone->header, {});
  WriteHeaderAndKey(nvm_, *tombstone, key, &checksum);
  // (I3) The tombstone is persistent before the entry names it.
  if (!Planted(Flaw::kTombstoneNotFlushed)) nvm_.Persist(tombstone->space.offset, SpaceOf(tombstone->header));
  if (!Planted(Flaw::kNoTombstone)) index_.StoreWord(slot, word.Published(tombstone->space.address));
  return {Code::kOk, Reason::kNone, {}, 0, {}};
}

bool Removing::HasVisibleVersion(Slot slot) const {
  const IndexEntry entry = index_.At(slot);
  const uint32_t head = log_.HeadOf(entry);
  const EntryWord word = entry.entry_word();
  if (word.settled()) return !HasExpired(head, word.new_address());
  if (!word.old_address().none()) return !HasExpired(head, word.old_address());
  const ObjectView newest = log_.InspectHeader(head, word.new_address());
  const auto not_whole = [](LogAddress /*at*/) { return false; };
  return chain_.NewestBefore(head, newest, format::kNoAddress, not_whole).whole_bytes != 0;
}

// --- By expiry

bool Removing::HasExpired(uint32_t head, LogAddress address) const {
  if (Planted(Flaw::kExpiryIgnored)) return false;
  return clock_.HasPassed(log_.InspectHeader(head, address).deadline);
}

// An expiry needs no tombstone: even if a power cut undoes it, the key is absent.
// By a flipped newtag an entry may name an old version, which has expired. So nothing expires before flips at rest are
// undone. The cleaner proposes it again.
bool Removing::Expire(AllPublished /*proof*/, uint64_t key_hash, uint32_t head, LogAddress address) {
  if (index_.mender().rest_is_due()) return false;
  const auto slot = index_.mender().FindMended(key_hash, [&](Slot /*slot*/, const IndexEntry& entry) {
    const EntryWord word = entry.entry_word();
    return Planted(Flaw::kExpiresNewer) || (word.settled() && word.new_address() == address);
  });
  if (!slot) return false;
  const ObjectView view = log_.InspectHeader(head, address);
  if (!clock_.HasPassed(view.deadline)) return false;
  // A version in flight is older than this one: otherwise the entry would name it.
  if (!Planted(Flaw::kExpiresInFlight)) reservations_.Supersede(view.key, key_hash);
  index_.Free(*slot);
  counters_.Add(Counter::kExpired);
  return true;
}

// --- On a pool with a journal

std::optional<Present> Removing::NewestAwaited(std::string_view key, uint64_t key_hash) const {
  const Reservation* newest = nullptr;
  reservations_.in_flight().ForEachOf(key_hash, [&](InFlight::Id /*id*/, const Reservation& other) {
    if (!other.awaits_hold || other.settled || (newest != nullptr && newest->version > other.version)) return;
    if (log_.InspectHeader(other.head, other.address).key == key) newest = &other;
  });
  return newest == nullptr ? std::nullopt : std::optional(UndecidedBy(*newest));
}

std::optional<Present> Removing::AwaitedDelete(std::string_view key, uint64_t key_hash) const {
  if (tombstones_.empty() || Planted(Flaw::kPassesADelete)) return std::nullopt;
  for (const InFlight::Id id : tombstones_) {
    const Reservation& tombstone = reservations_.in_flight().At(id);
    const bool same =
        tombstone.key_hash == key_hash && log_.InspectHeader(tombstone.head, tombstone.address).key == key;
    if (same) return UndecidedBy(tombstone);
  }
  return std::nullopt;
}

std::optional<Present> Removing::AwaitedInSlot(uint32_t head) const {
  if (Planted(Flaw::kSlotBeforeHeld)) return std::nullopt;
  for (const InFlight::Id id : tombstones_) {
    const Reservation& tombstone = reservations_.in_flight().At(id);
    if (tombstone.head == head && log_.tails().IsAppendedTo(head, geometry_.SlotOf(tombstone.address))) {
      return UndecidedBy(tombstone);
    }
  }
  return std::nullopt;
}

std::optional<Present> Removing::Awaited(std::string_view key, uint64_t key_hash) const {
  if (auto newest = NewestAwaited(key, key_hash)) return newest;
  return AwaitedInSlot(log_.HeadOf(key_hash));
}

void Removing::EndDelete(const Reservation& tombstone) {
  std::erase_if(tombstones_, [&](InFlight::Id id) { return &reservations_.in_flight().At(id) == &tombstone; });
  const auto slot = index_.mender().FindMended(tombstone.key_hash, [&](Slot /*slot*/, const IndexEntry& entry) {
    return entry.entry_word().new_address() == tombstone.address;
  });
  if (slot) index_.Free(*slot);
}

}  // namespace erda::server
