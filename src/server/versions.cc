#include "server/versions.h"

#include <array>
#include <cstring>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/planted.h"
#include "server/recovery.h"

namespace erda::server {

using format::Counter;
using format::EntryMeta;
using format::EntryWord;
using format::IndexEntry;
using format::ObjectHeader;
using format::ObjectKind;
using format::ObjectState;
using format::ObjectView;
using format::Reason;

namespace {

// A shard writes its version limit once for so many versions.
constexpr uint64_t kVersionStride = 1 << 20;
// No shard gets there: a limit above it is damaged, and versions would begin anew.
constexpr uint64_t kVersionLimitMax = UINT64_MAX / 2;
// Reservations that are looked at when one more is made by a session that has half of what it may have, or all.
constexpr size_t kSweepPerReserve = 4;
constexpr size_t kSweepAtLimit = 64;

uint64_t* DisplacementsIn(std::span<std::byte> control) {
  return reinterpret_cast<uint64_t*>(control.data() + offsetof(format::ControlBlock, displacements));
}

uint8_t FlagsOf(Ack ack, bool flushed_by_read = false) {
  if (ack != Ack::kPersisted) return 0;
  return flushed_by_read ? ObjectHeader::kPersistedFlag | ObjectHeader::kFlushedByReadFlag
                         : ObjectHeader::kPersistedFlag;
}

}  // namespace

Versions::Versions(nvm::Writer& nvm, const format::Geometry& geometry, uint32_t pool_seed, uint32_t shard,
                   std::span<std::byte> control, VersionsOptions options)
    : nvm_(nvm),
      geometry_(geometry),
      shard_(shard),
      options_(options),
      counters_(control),
      log_(nvm, geometry, pool_seed, shard, control),
      index_(nvm, geometry, shard, DisplacementsIn(control), &log_),
      chain_(nvm, index_, log_) {}

Versions::~Versions() = default;

// --- Opening and closing

format::ShardRecord Versions::Record() const {
  return LoadAs<format::ShardRecord>(nvm_.Bytes(RecordOffset(), sizeof(format::ShardRecord)));
}

Status Versions::Open() {
  const format::ShardRecord record = Record();
  if (record.keys > index_.size() || record.version_limit > kVersionLimitMax) {
    return {Code::kCorruption, "the record of a shard is damaged"};
  }
  index_.Open(record.keys);
  if (auto status = log_.Open(record.version_limit); !status.ok()) return status;
  Begin(record.version_limit);
  return {};
}

Status Versions::Look() {
  if (Record().version_limit > kVersionLimitMax) return {Code::kCorruption, "the record of a shard is damaged"};
  recovery_ = std::make_unique<Recovery>(nvm_, geometry_, shard_, index_, log_, chain_);
  return recovery_->Look(Record().version_limit);
}

RecoveryReport Versions::Repair() {
  const RecoveryReport report = recovery_->Repair();
  recovery_.reset();
  Begin(Record().version_limit);
  return report;
}

void Versions::Begin(uint64_t version_limit) {
  version_limit_ = version_limit;
  next_version_ = Planted(Flaw::kVersionsStartAnew) ? 1 : std::max<uint64_t>(version_limit, 1);
  counters_.Set(Counter::kIndexSlots, index_.size());
  counters_.Set(Counter::kLogBytesTotal, log_.bytes_total());
  PublishGauges();
}

void Versions::Close() {
  for (SessionId session = 0; session < session_reservations_.size(); ++session) EndSession(session);
  log_.Close();
  index_.Count(index_.size());
  nvm_.Store64(RecordOffset() + offsetof(format::ShardRecord, keys), index_.used());
  nvm_.Persist(RecordOffset(), sizeof(format::ShardRecord));
  PublishGauges();
}

uint64_t Versions::NextVersion() {
  if (next_version_ >= version_limit_) {
    version_limit_ = next_version_ + kVersionStride;
    const uint64_t at = RecordOffset() + offsetof(format::ShardRecord, version_limit);
    nvm_.Store64(at, version_limit_);
    nvm_.Persist(at, sizeof(uint64_t));
  }
  return next_version_++;
}

// --- Finding

Versions::Found Versions::Find(std::string_view key, uint64_t key_hash) const {
  Found found;
  found.entry = index_.Find(key_hash, [&](Slot slot, const IndexEntry& entry) {
    const uint32_t head = entry.entry_meta().head();
    const Address address = entry.entry_word().new_address();
    const auto bytes = log_.BytesAt(head, address);
    if (bytes.size() >= format::ChecksumOffset(key.size())) {
      const auto header = LoadAs<ObjectHeader>(bytes);
      const bool same = header.key_hash == key_hash && header.key_size == key.size() &&
                        AsString(bytes.subspan(format::KeyOffset(), key.size())) == key;
      if (same) return true;
    }
    // Hardly ever two keys share a tag, so nothing of this is done for most.
    const ObjectView view = format::InspectHeader(log_.PlaceOf(head, address), bytes);
    const bool other_key =
        view.state != ObjectState::kNothing && EntryMeta::TagOf(view.header.key_hash) == EntryMeta::TagOf(key_hash);
    if (!other_key) found.damaged = slot;
    return false;
  });
  return found;
}

bool Versions::CanBeOf(Slot slot, uint64_t key_hash) const {
  const EntryMeta meta = index_.At(slot).entry_meta();
  return meta.head() == geometry_.HeadOf(key_hash) && geometry_.HomeOf(key_hash) + meta.distance() == slot;
}

// --- Settling

void Versions::SettleCurrent(Slot slot, uint64_t key_hash) {
  const IndexEntry entry = index_.At(slot);
  const EntryWord word = entry.entry_word();
  const uint32_t head = entry.entry_meta().head();
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

// --- Publishing

Outcome Versions::Prepare(std::string_view key, uint64_t key_hash, uint32_t value_size, uint8_t flags,
                          NewVersion* version) {
  version->head = geometry_.HeadOf(key_hash);
  const Found found = Find(key, key_hash);
  // What cannot be told to be this key's, since it is damaged, makes way: a put repairs. Until it is published, and so
  // if it is refused, the damage stays to be seen.
  if (const auto taken = found.entry ? found.entry : found.damaged) {
    version->slot = *taken;
    version->replaces = found.entry.has_value() || CanBeOf(*taken, key_hash);
  } else {
    auto slot = index_.MakeRoom(key_hash);
    if (!slot.ok()) return {Code::kResourceExhausted, Reason::kIndexFull, {}, 0, {}};
    version->slot = *slot;
  }
  const uint64_t number = NextVersion();
  auto space = log_.Reserve(version->head, format::ObjectSpace(key.size(), value_size), number);
  if (!space.ok()) return {Code::kResourceExhausted, Reason::kLogFull, {}, 0, {}};
  version->space = *space;
  if (found.entry) SettleCurrent(version->slot, key_hash);

  ObjectHeader& header = version->header;
  header.key_size = static_cast<uint16_t>(key.size());
  header.kind = static_cast<uint8_t>(ObjectKind::kValue);
  header.flags = flags;
  header.value_size = value_size;
  header.previous = version->replaces ? index_.WordAt(version->slot).new_address().raw() : 0;
  header.version = number;
  header.key_hash = key_hash;
  const format::Place place = log_.PlaceOf(version->head, version->space.address);
  header.header_crc = format::HeaderCrc(place, header, key);
  return {Code::kOk, Reason::kNone, version->space.address, version->head, header, place.generation};
}

// (I3) is up to the caller: it makes persistent what this writes, with what it writes itself.
void Versions::WriteHeaderAndKey(const NewVersion& version, std::string_view key, const uint32_t* checksum) {
  std::array<std::byte, format::ValueOffset(format::kKeyBytesMax)> buffer;
  std::memcpy(buffer.data(), &version.header, sizeof(ObjectHeader));
  std::memcpy(buffer.data() + format::KeyOffset(), key.data(), key.size());
  size_t size = format::ChecksumOffset(key.size());
  if (checksum != nullptr) {
    std::memcpy(buffer.data() + size, checksum, sizeof(*checksum));
    size += sizeof(*checksum);
  }
  nvm_.Write(version.space.offset, std::span(buffer).first(size));
}

// The entry names the new version, unsettled, persistently.
void Versions::Publish(const NewVersion& version) {
  const uint64_t bytes = SpaceOf(version.header);
  if (version.replaces) {
    index_.StoreSizeHint(version.slot, bytes);
    EntryWord before = index_.WordAt(version.slot);
    if (Planted(Flaw::kAlwaysFlips)) before = before.Settled();
    if (Planted(Flaw::kEntryNotFlushed)) {
      return index_.StoreWordLazily(version.slot, before.Published(version.space.address));
    }
    index_.StoreWord(version.slot, before.Published(version.space.address));
  } else {
    if (!index_.WordAt(version.slot).empty()) index_.Free(version.slot);
    const EntryWord word = EntryWord().Published(version.space.address);
    index_.Insert(version.slot, version.header.key_hash, version.head, bytes, word);
  }
}

Outcome Versions::PutInline(std::string_view key, uint64_t key_hash, std::span<const std::byte> value, Ack ack) {
  NewVersion version;
  Outcome outcome = Prepare(key, key_hash, static_cast<uint32_t>(value.size()), FlagsOf(ack), &version);
  if (outcome.code != Code::kOk) return outcome;
  // Header and key first: if this process dies in the middle, whoever walks the log steps over the object.
  WriteHeaderAndKey(version, key, nullptr);
  // The value may lie in memory that the client can write to: the checksum is taken of the copy in the pool.
  const uint64_t value_at = version.space.offset + format::ValueOffset(key.size());
  nvm_.Write(value_at, value);
  const uint32_t checksum = format::ObjectChecksum(version.header, nvm_.Bytes(value_at, value.size()));
  nvm_.Write(version.space.offset + format::ChecksumOffset(key.size()), BytesOf(checksum));
  if (!Planted(Flaw::kInlineNotFlushed)) nvm_.Persist(version.space.offset, SpaceOf(version.header));
  Publish(version);
  chain_.StoreSettled(version.slot, index_.WordAt(version.slot));
  counters_.Add(Counter::kPutsInline);
  return outcome;
}

Outcome Versions::Reserve(std::string_view key, uint64_t key_hash, uint32_t value_size, Ack ack, SessionId session,
                          format::FlushMethod flush) {
  if (session >= session_reservations_.size()) session_reservations_.resize(session + 1);
  // In time, and a few at a time, more than a put adds: no request waits for many checksums.
  const uint32_t reserved = session_reservations_[session];
  if (reserved >= options_.reservations_per_session) {
    Sweep(kSweepAtLimit);
  } else if (reserved >= options_.reservations_per_session / 2) {
    Sweep(kSweepPerReserve);
  }
  if (session_reservations_[session] >= options_.reservations_per_session) {
    return {Code::kResourceExhausted, Reason::kTooManyReservations, {}, 0, {}};
  }
  NewVersion version;
  // Every reader, whatever its own method, judges the version by how it is made persistent: this put may be
  // acknowledged before the version is settled.
  const bool flushed_by_read = flush == format::FlushMethod::kReadAfterWrite;
  Outcome outcome = Prepare(key, key_hash, value_size, FlagsOf(ack, flushed_by_read), &version);
  if (outcome.code != Code::kOk) return outcome;
  WriteHeaderAndKey(version, key, nullptr);
  if (!Planted(Flaw::kHeaderNotFlushed)) nvm_.Persist(version.space.offset, format::ChecksumOffset(key.size()));
  Publish(version);

  Reservation reservation;
  reservation.key_hash = key_hash;
  reservation.version = version.header.version;
  reservation.address = version.space.address;
  reservation.head = version.head;
  reservation.bytes = SpaceOf(version.header);
  reservation.session = session;
  reservation.awaits_commit = ack == Ack::kPersisted && flush == format::FlushMethod::kServerFlush;
  in_flight_.Add(reservation);
  ++session_reservations_[session];
  log_.BeginFlight(version.head, version.space.address);
  log_.Hold(version.head, version.space.address);
  counters_.Add(Counter::kPutsReserved);
  return outcome;
}

// --- Commit

std::optional<Outcome> Versions::Commit(uint64_t key_hash, uint32_t head, Address address, uint64_t version,
                                        SessionId session) {
  const InFlight::Id id = in_flight_.Find(key_hash, head, address);
  if (id == InFlight::kNone) return std::nullopt;
  const Reservation& reservation = in_flight_.At(id);
  if (reservation.session != session || reservation.version != version || !reservation.awaits_commit)
    return std::nullopt;
  counters_.Add(Counter::kCommits);
  if (!reservation.settled) {
    const bool unflushed = Planted(Flaw::kCommitNotFlushed) && log_.Inspect(head, address).state == ObjectState::kWhole;
    if (!unflushed && !chain_.MakePersistentIfWhole(head, address))
      return Outcome{Code::kCorruption, Reason::kNotWhole, address, head, {}};
    counters_.Add(Counter::kSettled);
    if (!CommitWhole(reservation)) return Outcome{Code::kCorruption, Reason::kDamaged, address, head, {}};
  }
  Finish(id);
  return Outcome{Code::kOk, Reason::kNone, address, head, {}};
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
  const uint64_t settled = chain_.VersionAt(r.head, word.old_address());
  const bool damaged = settled == 0 && !word.old_address().none() && !Planted(Flaw::kCommitsPastDamage);
  if (r.version > newest) {
    chain_.StoreSettled(*slot, word.Published(r.address));
  } else if (!damaged && r.version > settled) {
    index_.StoreWord(*slot, word.WithOld(r.address));
  }
  return true;
}

bool Versions::Move(uint64_t key_hash, uint32_t head, Address from, Address to) {
  const auto slot = index_.Find(key_hash, [&](Slot /*slot*/, const IndexEntry& entry) {
    if (entry.entry_meta().head() != head) return false;
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

// What stands there is no object, and so entry and reader know nothing more of it than that it is damaged. They know
// the same of any place where an object never is.
void Versions::SetAside(Slot slot, uint32_t head, uint32_t region_slot) {
  const IndexEntry entry = index_.At(slot);
  const EntryWord word = entry.entry_word();
  if (entry.word == 0 || entry.entry_meta().head() != head) return;
  for (const Address address : {word.new_address(), word.needed_old()}) {
    const bool leads_there = !address.none() && address.slot() == region_slot && word.NamesSettled(address);
    if (!leads_there || log_.InspectHeader(head, address).state != ObjectState::kNothing) continue;
    const auto aside = log_.PlaceOfNoObject(head);
    if (aside.none() || aside.slot() == region_slot) continue;
    counters_.Add(Counter::kSetAside);
    index_.StoreWordLazily(slot, index_.WordAt(slot).Moved(address, aside));
  }
}

std::optional<std::string> Versions::DamagedKey(Slot slot, uint32_t head, Address address) const {
  const IndexEntry entry = index_.At(slot);
  if (entry.word == 0 || !entry.entry_word().settled() || entry.entry_word().new_address() != address ||
      entry.entry_meta().head() != head) {
    return std::nullopt;
  }
  const ObjectView view = log_.Inspect(head, address);
  if (view.state == ObjectState::kWhole) return std::nullopt;
  if (view.state == ObjectState::kHeader) return std::string(view.key);
  // The key may be what is left whole: it has the entry's tag then.
  const auto bytes = log_.BytesAt(head, address);
  if (bytes.size() < sizeof(ObjectHeader)) return std::string();
  const auto key_size = LoadAs<ObjectHeader>(bytes).key_size;
  if (key_size > format::kKeyBytesMax || bytes.size() < format::ChecksumOffset(key_size)) return std::string();
  const std::string_view key = AsString(bytes.subspan(format::KeyOffset(), key_size));
  const bool its_key = EntryMeta::TagOf(HashKey(key)) == entry.entry_meta().tag() && CanBeOf(slot, HashKey(key));
  return its_key ? std::string(key) : std::string();
}

size_t Versions::Sweep(size_t limit) {
  size_t settled = 0;
  in_flight_.ForSome(limit, [&](InFlight::Id id, Reservation& reservation) {
    if (reservation.settled || !chain_.MakePersistentIfWhole(reservation.head, reservation.address)) return;
    if (!CommitWhole(reservation)) return;
    ++settled;
    counters_.Add(Counter::kSettled);
    if (reservation.awaits_commit) {
      reservation.settled = true;
      log_.EndFlight(reservation.head, reservation.address);
    } else {
      Finish(id);
    }
  });
  return settled;
}

// --- Taking back

void Versions::EndSession(SessionId session) {
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
    return entry.entry_meta().head() == gone.head && entry.entry_word().new_address() == gone.address;
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
  counters_.Add(Counter::kReports);
  const auto slot = Find(key, key_hash).entry;
  if (!slot) return;
  SettleCurrent(*slot, key_hash);
  const IndexEntry entry = index_.At(*slot);
  if (entry.entry_word().settled()) return;
  Reservation gone;
  gone.key_hash = key_hash;
  gone.head = entry.entry_meta().head();
  gone.address = entry.entry_word().new_address();
  // Its writer may still be at work.
  const bool writing = in_flight_.Find(key_hash, gone.head, gone.address) != InFlight::kNone;
  if (writing && !Planted(Flaw::kReportEndsWriters)) return;
  TakeBackEntry(*slot, gone);
}

// --- Delete

// A version that a get could return: if none, the key is absent and stays as it is. The newest one was settled if that
// could be.
bool Versions::HasVisibleVersion(Slot slot) const {
  const IndexEntry entry = index_.At(slot);
  const uint32_t head = entry.entry_meta().head();
  const EntryWord word = entry.entry_word();
  if (word.settled() || !word.old_address().none()) return true;
  const ObjectView newest = log_.InspectHeader(head, word.new_address());
  const auto not_whole = [](Address /*at*/) { return false; };
  return chain_.NewestBefore(head, newest, format::kNoAddress, not_whole).whole_bytes != 0;
}

// The tombstone is a version like any other: published when it is persistent, so that a power cut either leaves it or
// leaves the value. Once its entry is persistent the entry can go, since nothing older can come back: what is in flight
// is marked (I4), and after a restart nothing is. So the tombstone lives as long as its delete, in the one slot that
// its region keeps for it, and a delete needs no space, in a full pool too.
Outcome Versions::Delete(std::string_view key, uint64_t key_hash) {
  const Found found = Find(key, key_hash);
  const auto slot = found.entry;
  if (!slot && found.damaged) return {Code::kCorruption, Reason::kDamaged, {}, 0, {}};
  if (!slot) return {Code::kNotFound, Reason::kNone, {}, 0, {}};
  SettleCurrent(*slot, key_hash);
  if (!HasVisibleVersion(*slot)) return {Code::kNotFound, Reason::kNone, {}, 0, {}};

  const uint64_t number = NextVersion();
  if (!log_.EnsureOpen(index_.At(*slot).entry_meta().head(), number)) {
    return {Code::kResourceExhausted, Reason::kLogFull, {}, 0, {}};
  }

  NewVersion tombstone;
  tombstone.slot = *slot;
  tombstone.head = index_.At(*slot).entry_meta().head();
  tombstone.space = log_.TombstoneSlot(tombstone.head);
  const EntryWord word = index_.WordAt(*slot);
  ObjectHeader& header = tombstone.header;
  header.key_size = static_cast<uint16_t>(key.size());
  header.kind = static_cast<uint8_t>(ObjectKind::kTombstone);
  header.flags = ObjectHeader::kPersistedFlag;
  header.previous = word.new_address().raw();
  header.version = number;
  header.key_hash = key_hash;
  const format::Place place = log_.PlaceOf(tombstone.head, tombstone.space.address);
  header.header_crc = format::HeaderCrc(place, header, key);
  const uint32_t checksum = format::ObjectChecksum(header, {});
  WriteHeaderAndKey(tombstone, key, &checksum);
  if (!Planted(Flaw::kTombstoneNotFlushed)) nvm_.Persist(tombstone.space.offset, SpaceOf(header));
  if (!Planted(Flaw::kNoTombstone)) index_.StoreWord(*slot, word.Published(tombstone.space.address));

  in_flight_.ForEachOf(key_hash, [&](InFlight::Id /*id*/, Reservation& reservation) {
    if (Planted(Flaw::kCommitAfterDelete)) return;
    if (log_.InspectHeader(reservation.head, reservation.address).key == key) reservation.superseded = true;
  });
  index_.Free(*slot);
  counters_.Add(Counter::kDeletes);
  return {Code::kOk, Reason::kNone, {}, 0, {}};
}

bool Versions::CountKeys(uint64_t slots) {
  if (index_.counted()) return true;
  index_.Count(slots);
  counters_.Set(Counter::kKeys, index_.used());
  return index_.counted();
}

void Versions::PublishGauges() {
  counters_.Set(Counter::kKeys, index_.used());
  counters_.Set(Counter::kLogBytesUsed, log_.bytes_used());
  counters_.Set(Counter::kLogBytesLive, log_.bytes_live());
  counters_.Set(Counter::kFreeRegions, log_.free_regions());
  counters_.Set(Counter::kInFlight, in_flight_.size());
  counters_.Set(Counter::kNvmBytes, nvm_.counters().bytes);
  counters_.Set(Counter::kNvmFlushes, nvm_.counters().flushes);
  counters_.Set(Counter::kNvmFences, nvm_.counters().fences);
}

}  // namespace erda::server
