// What becomes of a version that is published: settled, taken back, moved.
#include <algorithm>
#include <string>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/planted.h"
#include "server/versions.h"

namespace erda::server {

using format::Counter;
using format::EntryMeta;
using format::EntryWord;
using format::IndexEntry;
using format::ObjectHeader;
using format::ObjectState;
using format::ObjectView;
using format::Reason;

void Versions::SettleCurrent(Slot slot, uint64_t key_hash) {
  const IndexEntry entry = index_.At(slot);
  const EntryWord word = entry.entry_word();
  const uint32_t head = HeadOf(entry);
  if (Planted(Flaw::kSettledNotWhole)) return chain_.StoreSettled(slot, word);
  if (word.settled() || !chain_.MakePersistentIfWhole(head, word.new_address())) return;
  chain_.StoreSettled(slot, word);
  MarkSettled(key_hash, head, word.new_address());
}

void Versions::MarkSettled(uint64_t key_hash, uint32_t head, Address address) {
  const InFlight::Id id = in_flight_.Find(key_hash, head, address);
  if (id == InFlight::kNone || in_flight_.At(id).settled) return;
  in_flight_.At(id).settled = true;
  log_.EndFlight(head, address);
  counters_.Add(Counter::kSettled);
  if (!in_flight_.At(id).awaits_commit) Finish(id);
}

void Versions::Finish(InFlight::Id id) {
  const Reservation gone = in_flight_.At(id);
  if (!gone.settled) log_.EndFlight(gone.head, gone.address);
  --session_reservations_[gone.session];
  in_flight_.Remove(id);
  LetGo(gone);
}

// (I11) Its place is held as long as it is in flight, and on while a newer version of its key is, if nothing as new as
// itself is settled: that one's `previous` leads here, and on to older ones that may still be in flight themselves.
void Versions::LetGo(const Reservation& gone) {
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

bool Versions::IsPassed(const Reservation& older) {
  bool passed = false;
  in_flight_.ForEachOf(older.key_hash,
                       [&](InFlight::Id /*id*/, const Reservation& newer) { passed |= newer.version > older.version; });
  if (!passed) return false;
  // Nobody goes past a settled version, so what is not newer is not looked for.
  const ObjectView view = log_.InspectHeader(older.head, older.address);
  if (view.state == ObjectState::kNothing) return false;
  const auto slot = Find(view.key, older.key_hash).entry;
  if (!slot) return false;
  const EntryWord word = index_.WordAt(*slot);
  return !word.settled() && older.version > chain_.VersionAt(older.head, word.old_address());
}

InFlight::Id Versions::FindCommitted(const Commit& commit) {
  const InFlight::Id id = in_flight_.Find(commit.key_hash, commit.head, commit.address);
  if (id == InFlight::kNone) return id;
  const Reservation& reservation = in_flight_.At(id);
  const bool is_that = reservation.session == commit.session && reservation.version == commit.version;
  return is_that && reservation.awaits_commit ? id : InFlight::kNone;
}

void Versions::BeginCommit(Commit* commit) {
  if (FindCommitted(*commit) == InFlight::kNone) return;  // what it says is looked at no further
  const ObjectView view = log_.Inspect(commit->head, commit->address);
  commit->whole = view.state == ObjectState::kWhole;
  if (!commit->whole) return;
  if (!Planted(Flaw::kCommitNotFlushed)) nvm_.Flush(log_.OffsetOf(commit->head, commit->address), SpaceOf(view.header));
  commit->fences = nvm_.counters().fences;
}

std::optional<Outcome> Versions::EndCommit(const Commit& commit) {
  const auto same_key = [&](const Unpublished& put) { return put.version.header.key_hash == commit.key_hash; };
  if (std::any_of(unpublished_.begin(), unpublished_.end(), same_key)) PublishPuts();
  const InFlight::Id id = FindCommitted(commit);
  if (id == InFlight::kNone) return std::nullopt;
  const Reservation& reservation = in_flight_.At(id);
  counters_.Add(Counter::kCommits);
  if (!reservation.settled) {
    if (!commit.whole) return Outcome{Code::kCorruption, Reason::kNotWhole, commit.address, commit.head, {}};
    // (I2) Persistent before it is settled, and before its writer hears of it.
    if (!Planted(Flaw::kCommitUnfenced)) FenceSince(commit.fences);
    counters_.Add(Counter::kSettled);
    if (!CommitWhole(reservation)) return Outcome{Code::kCorruption, Reason::kDamaged, commit.address, commit.head, {}};
  }
  Finish(id);
  return Outcome{Code::kOk, Reason::kNone, commit.address, commit.head, {}};
}

void Versions::FenceSince(uint64_t fences) {
  if (nvm_.counters().fences == fences) nvm_.Fence();
}

// The version is whole and persistent: it becomes the new one, or the old one, if it is newer than what stands there.
// The key has an entry, since an entry goes only with its last reservation or by a delete; false if it cannot be found,
// which means damage.
bool Versions::CommitWhole(const Reservation& r) {
  if (r.superseded) return true;  // (I4)
  const auto slot = Find(log_.InspectHeader(r.head, r.address).key, r.key_hash).entry;
  if (!slot) return false;
  const EntryWord word = index_.WordAt(*slot);
  if (word.new_address() == r.address) {
    chain_.StoreSettled(*slot, word);
    return true;
  }
  if (Planted(Flaw::kLateCommitLost)) return true;
  // A header that does not verify is damage. What stood there may have been newer: an older value would be wrong.
  const uint64_t newest = chain_.VersionAt(r.head, word.new_address());
  if (newest == 0 && !Planted(Flaw::kCommitsPastDamage)) return false;
  if (r.version > newest) {
    chain_.StoreSettled(*slot, word.Published(r.address));
    return true;
  }
  const uint64_t settled = chain_.VersionAt(r.head, word.old_address());
  // Not to be acknowledged then: gets would go past it, to the damage.
  const bool damaged = settled == 0 && !word.needed_old().none();
  if (damaged && !Planted(Flaw::kCommitsPastDamage)) return false;
  if (r.version > settled) index_.StoreWord(*slot, word.WithOld(r.address));
  return true;
}

size_t Versions::Sweep(size_t limit) {
  PublishPuts();
  FlushArrived(limit, true);
  if (arrived_.empty()) return 0;
  nvm_.Fence();
  return SettleArrived();
}

size_t Versions::SweepOf(SessionId session, size_t limit) {
  const size_t before = session_reservations_[session];
  in_flight_.ForEach([&](InFlight::Id id, const Reservation& reservation) {
    const bool counts = reservation.session == session && !reservation.awaits_commit;
    if (counts && arrived_.size() < limit) FlushArrived(id, reservation);
  });
  if (arrived_.empty()) return 0;
  nvm_.Fence();
  (void)SettleArrived();
  return before - session_reservations_[session];
}

void Versions::SettleArrivedOf(uint64_t key_hash) {
  in_flight_.ForEachOf(key_hash,
                       [&](InFlight::Id id, const Reservation& reservation) { FlushArrived(id, reservation); });
  if (arrived_.empty()) return;
  nvm_.Fence();
  (void)SettleArrived();
}

void Versions::FlushArrived(size_t limit, bool awaited_too) {
  in_flight_.ForSome(limit, [&](InFlight::Id id, const Reservation& reservation) {
    if (awaited_too || !reservation.awaits_commit) FlushArrived(id, reservation);
  });
}

void Versions::FlushArrived(InFlight::Id id, const Reservation& reservation) {
  if (!reservation.settled && chain_.FlushIfWhole(reservation.head, reservation.address)) arrived_.push_back(id);
}

size_t Versions::SettleArrived() {
  size_t settled = 0;
  for (const InFlight::Id id : arrived_) {
    Reservation& reservation = in_flight_.At(id);
    if (!CommitWhole(reservation)) continue;
    counters_.Add(Counter::kSettled);
    ++settled;
    if (reservation.awaits_commit) {
      reservation.settled = true;
      log_.EndFlight(reservation.head, reservation.address);
    } else {
      Finish(id);
    }
  }
  arrived_.clear();
  return settled;
}

// --- Taking back

void Versions::EndSession(SessionId session) {
  chunks_.EndSession(PublishPuts(), session);
  if (session >= session_reservations_.size()) return;
  // First what is whole: a later version that is not would otherwise be taken back past it.
  in_flight_.ForEach([&](InFlight::Id id, Reservation& reservation) {
    if (reservation.session != session || reservation.settled) return;
    if (!chain_.MakePersistentIfWhole(reservation.head, reservation.address)) return;
    if (CommitWhole(reservation)) counters_.Add(Counter::kSettled);
    Finish(id);
  });
  in_flight_.ForEach([&](InFlight::Id id, Reservation& reservation) {
    if (reservation.session != session) return;
    const Reservation gone = reservation;
    // Not in flight any more before it is taken back: it may not arrive.
    --session_reservations_[session];
    in_flight_.Remove(id);
    if (!gone.settled) {
      TakeBack(gone);
      log_.EndFlight(gone.head, gone.address);  // last: the mark of its segment says that nothing is left to do
    }
    LetGo(gone);
  });
}

// The version will never be whole.
void Versions::TakeBack(const Reservation& gone) {
  counters_.Add(Counter::kTakenBack);
  if (gone.superseded) return;
  const bool damaged = log_.InspectHeader(gone.head, gone.address).state == ObjectState::kNothing;
  const auto slot = index_.Find(gone.key_hash, [&](Slot /*slot*/, const IndexEntry& entry) {
    return entry.entry_word().new_address() == gone.address;
  });
  if (!slot) return;
  if (!damaged) return TakeBackEntry(*slot, gone);
  // It may have been acknowledged. With the bit, a get says that it is damaged (as RecoveryAction::kDamaged).
  index_.StoreWordLazily(*slot, index_.WordAt(*slot).Settled());
}

// To the newest version before it that is whole, or that may still arrive: to skip that one would lose a put that its
// writer is about to acknowledge.
void Versions::TakeBackEntry(Slot slot, const Reservation& gone) {
  const Address old = index_.WordAt(slot).old_address();
  const ObjectView view = log_.InspectHeader(gone.head, gone.address);
  const auto before = chain_.NewestBefore(gone.head, view, old, [&](Address at) {
    if (Planted(Flaw::kTakesBackPastWriters)) return false;
    return in_flight_.Find(gone.key_hash, gone.head, at) != InFlight::kNone;
  });
  chain_.TakeBack(slot, before);
  if (before.whole_bytes != 0) MarkSettled(gone.key_hash, gone.head, before.address);
}

void Versions::Report(std::string_view key, uint64_t key_hash) {
  PublishPuts();
  counters_.Add(Counter::kReports);
  const auto slot = Find(key, key_hash).entry;
  if (!slot) return;
  SettleCurrent(*slot, key_hash);
  if (index_.WordAt(*slot).settled()) return;
  // Its writer may still be at work.
  const bool writing = FindWriter(*slot, key_hash) != InFlight::kNone;
  if (!writing || Planted(Flaw::kReportEndsWriters)) TakeBackAbandoned(*slot, key_hash);
}

InFlight::Id Versions::FindWriter(Slot slot, uint64_t key_hash) const {
  const IndexEntry entry = index_.At(slot);
  return in_flight_.Find(key_hash, HeadOf(entry), entry.entry_word().new_address());
}

void Versions::TakeBackAbandoned(Slot slot, uint64_t key_hash) {
  const IndexEntry entry = index_.At(slot);
  Reservation gone;
  gone.key_hash = key_hash;
  gone.head = HeadOf(entry);
  gone.address = entry.entry_word().new_address();
  const bool damaged = log_.InspectHeader(gone.head, gone.address).state == ObjectState::kNothing;
  if (!damaged) return TakeBackEntry(slot, gone);
  index_.StoreWordLazily(slot, entry.entry_word().Settled());  // as TakeBack
}

// --- Conditions

// (I13) What is newest is settled, or it is waited for. One that its client is still writing may become whole at any
// time, and be acknowledged without the shard: then it came before what would be published now, and after what is
// settled.
Present Versions::Judge(std::string_view key, uint64_t key_hash) {
  Found found = Find(key, key_hash);
  if (IsClaimed(key_hash, found) && !Planted(Flaw::kJudgesUnpublished)) {
    PublishPuts();
    found = Find(key, key_hash);
  }
  for (;; found = Find(key, key_hash)) {
    if (!found.entry) return {found.damaged ? Present::State::kDamaged : Present::State::kAbsent, 0, {}};
    const Slot slot = *found.entry;
    SettleCurrent(slot, key_hash);
    const EntryWord word = index_.WordAt(slot);
    const uint32_t head = HeadOf(index_.At(slot));
    const bool not_awaited = Planted(Flaw::kConditionNotAwaited) && !word.old_address().none();
    if (word.settled() || not_awaited) {
      const Address address = word.settled() ? word.new_address() : word.old_address();
      const ObjectView view = log_.InspectHeader(head, address);
      if (view.state == ObjectState::kNothing) return {Present::State::kDamaged, 0, {}};
      if (HasPassed(view.deadline) && !Planted(Flaw::kExpiryIgnored)) return {};
      return {Present::State::kThere, view.header.version, address};
    }
    const InFlight::Id id = FindWriter(slot, key_hash);
    if (id != InFlight::kNone) {
      const Reservation& writing = in_flight_.At(id);
      return {Present::State::kUndecided, writing.version, writing.address, key_hash, writing.session};
    }
    TakeBackAbandoned(slot, key_hash);
  }
}

bool Versions::IsUndecided(const Present& present) const {
  const uint32_t head = geometry_.HeadOf(present.key_hash);
  const InFlight::Id id = in_flight_.Find(present.key_hash, head, present.address);
  if (id == InFlight::kNone || in_flight_.At(id).version != present.version || in_flight_.At(id).settled) return false;
  return index_
      .Find(present.key_hash,
            [&](Slot /*slot*/, const IndexEntry& entry) { return entry.entry_word().new_address() == present.address; })
      .has_value();
}

// --- Moving

bool Versions::Move(AllPublished /*proof*/, uint64_t key_hash, Address from, Address to) {
  const auto slot = index_.Find(key_hash, [&](Slot /*slot*/, const IndexEntry& entry) {
    if (Planted(Flaw::kMovesUnchecked)) return true;
    if (Planted(Flaw::kMovesUnsettled) && entry.entry_word().new_address() == from) return true;
    return entry.entry_word().NamesSettled(from);
  });
  if (!slot) return false;
  const EntryWord word = index_.WordAt(*slot);
  const EntryWord moved = Planted(Flaw::kMovesUnchecked) ? word.TakenBackTo(to, true) : word.Moved(from, to);
  index_.StoreWordLazily(*slot, moved);
  return true;
}

// What stands there is no object of the key, and so entry and reader know nothing more of it than that it is damaged.
// They know the same of any place where an object never is.
bool Versions::SetAside(AllPublished /*proof*/, Slot slot, uint32_t head, uint32_t region_slot) {
  const IndexEntry entry = index_.At(slot);
  if (entry.word == 0 || HeadOf(entry) != head) return false;
  const auto leads_there = [&](Address address) { return !address.none() && geometry_.SlotOf(address) == region_slot; };
  const Address newest = entry.entry_word().new_address();
  if (!entry.entry_word().settled() && leads_there(newest)) {
    const ObjectView view = log_.InspectHeader(head, newest);
    if (IsVersionOf(slot, view)) {
      SettleCurrent(slot, view.header.key_hash);
      if (!index_.WordAt(slot).settled()) TakeBackAbandoned(slot, view.header.key_hash);
      return true;
    }
    index_.StoreWordLazily(slot, entry.entry_word().Settled());
  }
  const EntryWord word = index_.WordAt(slot);
  for (const Address address : {word.new_address(), word.needed_old()}) {
    if (!leads_there(address) || !word.NamesSettled(address)) continue;
    if (!IsVersionOf(slot, log_.InspectHeader(head, address))) StoreAside(slot, head, address);
  }
  return false;
}

void Versions::SetAside(AllPublished /*proof*/, uint64_t key_hash, uint32_t head, Address from) {
  const auto slot = index_.Find(
      key_hash, [&](Slot /*slot*/, const IndexEntry& entry) { return entry.entry_word().NamesSettled(from); });
  if (slot) StoreAside(*slot, head, from);
}

void Versions::StoreAside(Slot slot, uint32_t head, Address from) {
  const Address aside = log_.PlaceOfNoObject(head);
  if (aside.none() || geometry_.SlotOf(aside) == geometry_.SlotOf(from)) return;
  counters_.Add(Counter::kSetAside);
  index_.StoreWordLazily(slot, index_.WordAt(slot).Moved(from, aside));
}

std::optional<std::string> Versions::DamagedKey(Slot slot, uint32_t head, Address address) const {
  const IndexEntry entry = index_.At(slot);
  if (entry.word == 0 || !entry.entry_word().settled() || entry.entry_word().new_address() != address ||
      HeadOf(entry) != head) {
    return std::nullopt;
  }
  const ObjectView view = log_.Inspect(head, address);
  if (view.state != ObjectState::kNothing) {
    const bool same_tag = EntryMeta::TagOf(view.header.key_hash) == entry.entry_meta().tag();
    if (same_tag) return view.state == ObjectState::kWhole ? std::nullopt : std::optional(std::string(view.key));
    // Either the tag is damaged, and no get finds the key; or the address is, and leads to a key that has its own
    // entry.
    return Find(view.key, view.header.key_hash).entry ? std::string() : std::string(view.key);
  }
  // The key may be what is left whole: it has the entry's tag then.
  const auto bytes = log_.BytesAt(head, address);
  if (bytes.size() < sizeof(ObjectHeader)) return std::string();
  const auto header = LoadAs<ObjectHeader>(bytes);
  const bool fits =
      header.key_size <= format::kKeyBytesMax && bytes.size() >= format::ChecksumOffset(header.label_size());
  if (!fits) return std::string();
  const std::string_view key = AsString(bytes.subspan(header.key_offset(), header.key_size));
  return CanBeOf(slot, HashKey(key, options_.hash_seed)) ? std::string(key) : std::string();
}

}  // namespace erda::server
