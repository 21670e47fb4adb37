#include "server/versions.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/bytes.h"
#include "base/planted.h"
#include "format/version_limit.h"
#include "server/recovery.h"
#include "server/verification.h"

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

// Without commits, nobody says that a put is done. A shard that is never idle looks at so many with each reservation,
// once there are so many: more than are added, so that they do not become more and more, and hold more and more
// regions.
constexpr size_t kSweepFrom = 256;
constexpr size_t kSweepPerReserve = 4;
// How many are settled of a session that has as many as it may have, before it is refused another one.
constexpr size_t kSweepAtLimit = 64;
// Puts that share fences: more save little, and each one looks whether it may go with those before it.
constexpr size_t kUnpublishedMax = 32;

Status DamagedLimit(uint32_t shard) {
  return {Code::kCorruption, "the record of shard " + std::to_string(shard) +
                                 " is damaged: its limit of versions does not verify, and versions could repeat"};
}

}  // namespace

Versions::Versions(nvm::Writer& nvm, const format::Geometry& geometry, uint32_t pool_seed, uint32_t shard,
                   std::span<std::byte> control, VersionsOptions options)
    : nvm_(nvm),
      geometry_(geometry),
      pool_seed_(pool_seed),
      shard_(shard),
      options_(options),
      counters_(control),
      clock_(nvm, shard, control, *options_.time, options_.note_ahead),
      log_(nvm, geometry, pool_seed, shard, control),
      index_(nvm, geometry, shard, index::Published::In(control, geometry), &log_),
      chunks_(log_, geometry),
      chain_(nvm, index_, log_) {
  unpublished_.reserve(kUnpublishedMax);
  claims_.reserve(kUnpublishedMax);
}

Versions::~Versions() = default;

// --- Opening and closing

format::ShardRecord Versions::Record() const {
  return LoadAs<format::ShardRecord>(nvm_.Bytes(RecordOffset(), sizeof(format::ShardRecord)));
}

Status Versions::Open() {
  const format::ShardRecord record = Record();
  const auto limit = format::VersionLimitIn(record.version_limit);
  if (!limit) return DamagedLimit(shard_);
  if (auto status = log_.Recover().Open(*limit); !status.ok()) return status;
  if (auto status = index_.TakeUp(log_.regions().runs()); !status.ok()) return status;
  // If the number of keys is damaged they are counted, as after a crash.
  const format::CheckedWord keys(record.keys);
  const bool known = !keys.damaged() && keys.number() <= index_.size();
  index_.Open(known ? std::optional(keys.number()) : std::nullopt);
  Begin(*limit);
  return {};
}

Status Versions::Look() {
  const auto limit = format::VersionLimitIn(Record().version_limit);
  if (!limit) return DamagedLimit(shard_);
  recovery_ = std::make_unique<Recovery>(nvm_, geometry_, shard_, index_, log_, chain_);
  return recovery_->Look(*limit);
}

RecoveryReport Versions::Repair() {
  const RecoveryReport report = recovery_->Repair();
  recovery_.reset();
  Begin(format::VersionLimitIn(Record().version_limit).value());
  return report;
}

Status Versions::LookUnvouched() {
  verification_ = std::make_unique<Verification>(nvm_, geometry_, pool_seed_, shard_);
  return verification_->Look();
}

Status Versions::Verify(const std::function<void(std::string_view key)>& on_damage, RecoveryReport* report) {
  const Status status = verification_->Repair(on_damage, report);
  verification_.reset();
  return status.ok() ? Open() : status;
}

void Versions::Begin(uint64_t version_limit) {
  version_limit_ = version_limit;
  index_.MendReaches();
  grown_at_ = next_version_ = Planted(Flaw::kVersionsStartAnew) ? 1 : std::max<uint64_t>(version_limit, 1);
  clock_.Begin();
  counters_.Set(Counter::kIndexSlots, index_.size());
  counters_.Set(Counter::kLogBytesTotal, log_.regions().bytes_total());
  PublishGauges();
}

void Versions::Close() {
  PublishPuts();
  const size_t sessions = std::max(session_reservations_.size(), chunks_.sessions());
  for (SessionId session = 0; session < sessions; ++session) EndSession(session);
  log_.Close();
  index_.Count(index_.size());
  nvm_.Store64(RecordOffset() + offsetof(format::ShardRecord, keys), format::CheckedWord::Of(index_.used()).raw());
  clock_.Close();
  nvm_.Persist(RecordOffset(), sizeof(format::ShardRecord));
  PublishGauges();
}

uint64_t Versions::NextVersion() {
  if (next_version_ >= version_limit_) {
    version_limit_ = (next_version_ / format::kVersionStride + 1) * format::kVersionStride;
    const uint64_t at = RecordOffset() + offsetof(format::ShardRecord, version_limit);
    nvm_.Store64(at, format::VersionLimitWord(version_limit_));
    nvm_.Persist(at, sizeof(uint64_t));
  }
  return next_version_++;
}

// --- Finding

Versions::Found Versions::Find(std::string_view key, uint64_t key_hash) const {
  Found found;
  found.entry = index_.Find(key_hash, [&](Slot slot, const IndexEntry& entry) {
    const uint32_t head = HeadOf(entry);
    const Address address = entry.entry_word().new_address();
    const auto bytes = log_.BytesAt(head, address);
    if (bytes.size() >= format::ChecksumOffset(key.size())) {
      const auto header = LoadAs<ObjectHeader>(bytes);
      const bool same = header.key_hash == key_hash && header.key_size == key.size() &&
                        bytes.size() >= format::ChecksumOffset(header.label_size()) &&
                        AsString(bytes.subspan(header.key_offset(), key.size())) == key;
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
  return meta.tag() == EntryMeta::TagOf(key_hash) && index_.layout().IsPlaceOf(key_hash, slot, meta.distance());
}

// --- Publishing

uint8_t Versions::FlagsOf(Ack ack, bool flushed_by_read) {
  if (ack != Ack::kPersisted) return 0;
  return flushed_by_read ? ObjectHeader::kPersistedFlag | ObjectHeader::kFlushedByReadFlag
                         : ObjectHeader::kPersistedFlag;
}

Outcome Versions::Prepare(std::string_view key, uint64_t key_hash, uint32_t value_size, uint8_t flags,
                          NewVersion* version) {
  version->head = geometry_.HeadOf(key_hash);
  Found found = Find(key, key_hash);
  if (unpublished_.size() == kUnpublishedMax || IsClaimed(key_hash, found)) {
    PublishPuts();
    found = Find(key, key_hash);
  }
  // What cannot be told to be this key's, since it is damaged, makes way: a put repairs. Until it is published, and so
  // if it is refused, the damage stays to be seen.
  if (const auto taken = found.entry ? found.entry : found.damaged) {
    version->slot = *taken;
    version->replaces = found.entry.has_value() || CanBeOf(*taken, key_hash);
  } else if (const auto free = index_.FindRoom(key_hash)) {
    version->slot = *free;
  } else {
    const Reason none = MakeRoom(PublishPuts(), key_hash, &version->slot);
    if (none != Reason::kNone) return {Code::kResourceExhausted, none, {}, kAnyHead, {}};
  }
  const uint64_t number = NextVersion();
  if (version->space.address.none()) {
    const uint64_t space_bytes = format::ObjectSpace(format::LabelSize(key.size(), version->deadline != 0), value_size);
    if (const auto space = log_.Append(version->head, space_bytes)) {
      version->space = *space;
    } else {
      if (!Planted(Flaw::kMarksUnpublished)) PublishPuts();  // (I9)
      auto reserved = log_.Reserve(version->head, space_bytes, number);
      if (!reserved.ok()) return {Code::kResourceExhausted, Reason::kLogFull, {}, version->head, {}};
      version->space = *reserved;
    }
  }
  if (found.entry) SettleCurrent(version->slot, key_hash);
  const uint32_t previous = version->replaces ? index_.WordAt(version->slot).new_address().raw() : 0;
  const uint32_t generation =
      MakeHeader(version, ObjectKind::kValue, key, key_hash, value_size, flags, number, previous);
  return {Code::kOk, Reason::kNone, version->space.address, version->head, version->header, generation};
}

uint32_t Versions::MakeHeader(NewVersion* version, ObjectKind kind, std::string_view key, uint64_t key_hash,
                              uint32_t value_size, uint8_t flags, uint64_t number, uint32_t previous) const {
  ObjectHeader& header = version->header;
  header.key_size = static_cast<uint16_t>(key.size());
  header.kind = static_cast<uint8_t>(kind);
  header.flags = static_cast<uint8_t>(flags | (version->deadline != 0 ? ObjectHeader::kExpiresFlag : 0));
  header.value_size = value_size;
  header.previous = previous;
  header.version = number;
  header.key_hash = key_hash;
  const format::Place place = log_.PlaceOf(version->head, version->space.address);
  header.header_crc = format::HeaderCrc(place, header, key, version->deadline);
  return place.generation;
}

// (I3) is up to the caller: it makes persistent what this writes, with what it writes itself.
void Versions::WriteHeaderAndKey(const NewVersion& version, std::string_view key, const uint32_t* checksum) {
  std::array<std::byte, format::ValueOffset(format::kLabelBytesMax)> buffer;
  std::memcpy(buffer.data(), &version.header, sizeof(ObjectHeader));
  if (version.deadline != 0) std::memcpy(buffer.data() + format::kLabelOffset, &version.deadline, sizeof(uint64_t));
  std::memcpy(buffer.data() + version.header.key_offset(), key.data(), key.size());
  size_t size = format::ChecksumOffset(version.header.label_size());
  if (checksum != nullptr) {
    std::memcpy(buffer.data() + size, checksum, sizeof(*checksum));
    size += sizeof(*checksum);
  }
  nvm_.Write(version.space.offset, std::span(buffer).first(size));
}

bool Versions::IsClaimed(uint64_t key_hash, const Found& found) const {
  if (claims_.empty() || Planted(Flaw::kSlotTakenTwice)) return false;
  const auto slot = found.entry ? found.entry : found.damaged;
  const Slot home = index_.layout().HomeOf(key_hash);
  return std::any_of(claims_.begin(), claims_.end(), [&](const Claim& other) {
    if (slot == other.slot) return true;
    if (found.entry || !other.home) return false;
    const bool near = std::max(home, *other.home) - std::min(home, *other.home) < format::kNeighbourhood;
    return near || index_.layout().NeighbourhoodOf(key_hash).Has(other.slot);  // which may be far from its own home
  });
}

void Versions::AddUnpublished(const NewVersion& version, const std::optional<Reservation>& reservation) {
  unpublished_.push_back({version, reservation});
  Claim claim{version.slot, std::nullopt};
  if (!version.replaces) claim.home = index_.layout().HomeOf(version.header.key_hash);
  claims_.push_back(claim);
}

// The entry names the new version, unsettled.
void Versions::Publish(Unpublished* put) {
  const NewVersion& version = put->version;
  const EntryWord before = version.replaces ? index_.WordAt(version.slot) : EntryWord();
  const EntryWord word = (Planted(Flaw::kAlwaysFlips) ? before.Settled() : before).Published(version.space.address);
  if (version.replaces) index_.StoreSizeHint(version.slot, SpaceOf(version.header));
  if (!put->reservation) {
    put->change = {version.head, before, word};
    index_.Publish(version.slot, put->change);
  } else if (version.replaces) {
    index_.StoreWordLazily(version.slot, word);
  } else {
    index_.Enter(version.slot, word);
  }
}

void Versions::PublishAndSweep() {
  FlushArrived(std::exchange(sweeps_due_, 0), false);
  const uint64_t fences = nvm_.counters().fences;
  if (!unpublished_.empty()) PublishAll();
  if (arrived_.empty()) return;
  FenceSince(fences);
  (void)SettleArrived();
}

void Versions::PublishAll() {
  for (const auto& [version, reservation, change] : unpublished_) {
    if (version.replaces) continue;
    if (!index_.WordAt(version.slot).empty()) index_.Free(version.slot);
    index_.Describe(version.slot, version.header.key_hash, SpaceOf(version.header));
  }
  // (I3) What an entry will lead to is persistent, and what a new entry says of itself.
  if (!Planted(Flaw::kPublishedUnfenced)) nvm_.Fence();
  for (Unpublished& put : unpublished_) Publish(&put);
  // Unsettled, the entries are persistent before a reader can see them settled, or anybody is answered.
  if (!Planted(Flaw::kEntryNotFlushed)) nvm_.Fence();
  for (const auto& [version, reservation, change] : unpublished_) {
    if (!reservation) {
      index_.SettlePublished(version.slot, change);  // (I2)
      continue;
    }
    in_flight_.Add(*reservation);
    log_.BeginFlight(version.head, version.space.address);
    log_.Hold(version.head, version.space.address);
  }
  unpublished_.clear();
  claims_.clear();
}

Outcome Versions::PutInline(std::string_view key, uint64_t key_hash, std::span<const std::byte> value, Ack ack,
                            uint64_t deadline) {
  NewVersion version;
  version.deadline = deadline;
  Outcome outcome = Prepare(key, key_hash, static_cast<uint32_t>(value.size()), FlagsOf(ack), &version);
  if (outcome.code != Code::kOk) return outcome;
  // Header and key first: if this process dies in the middle, whoever walks the log steps over the object.
  WriteHeaderAndKey(version, key, nullptr);
  // The value may lie in memory that the client can write to: the checksum is taken of the copy in the pool.
  const uint64_t value_at = version.space.offset + format::ValueOffset(version.header.label_size());
  nvm_.Write(value_at, value);
  const uint32_t checksum = format::ObjectChecksum(version.header, nvm_.Bytes(value_at, value.size()));
  nvm_.Write(value_at - format::kChecksumBytes, BytesOf(checksum));
  if (!Planted(Flaw::kInlineNotFlushed)) nvm_.Flush(version.space.offset, SpaceOf(version.header));
  AddUnpublished(version, std::nullopt);
  counters_.Add(Counter::kPutsInline);
  return outcome;
}

Outcome Versions::Reserve(std::string_view key, uint64_t key_hash, uint32_t value_size, Ack ack, SessionId session,
                          format::FlushMethod flush, uint64_t deadline) {
  if (session >= session_reservations_.size()) session_reservations_.resize(session + 1);
  if (in_flight_.size() >= std::min<size_t>(kSweepFrom, options_.reservations_per_session / 2)) {
    sweeps_due_ += kSweepPerReserve;
  }
  if (session_reservations_[session] >= options_.reservations_per_session) PublishPuts();  // which may settle some
  if (session_reservations_[session] >= options_.reservations_per_session && SweepOf(session, kSweepAtLimit) == 0) {
    return {Code::kResourceExhausted, Reason::kTooManyReservations, {}, 0, {}};
  }
  NewVersion version;
  version.deadline = deadline;
  // Every reader, whatever its own method, judges the version by how it is made persistent: this put may be
  // acknowledged before the version is settled.
  const bool flushed_by_read = flush == format::FlushMethod::kReadAfterWrite;
  Outcome outcome = Prepare(key, key_hash, value_size, FlagsOf(ack, flushed_by_read), &version);
  if (outcome.code != Code::kOk) return outcome;
  WriteHeaderAndKey(version, key, nullptr);
  if (!Planted(Flaw::kHeaderNotFlushed))
    nvm_.Flush(version.space.offset, format::ChecksumOffset(version.header.label_size()));

  Reservation reservation;
  reservation.key_hash = key_hash;
  reservation.version = version.header.version;
  reservation.address = version.space.address;
  reservation.head = version.head;
  reservation.bytes = SpaceOf(version.header);
  reservation.session = session;
  reservation.awaits_commit = ack == Ack::kPersisted && flush == format::FlushMethod::kServerFlush;
  ++session_reservations_[session];
  AddUnpublished(version, reservation);
  counters_.Add(Counter::kPutsReserved);
  return outcome;
}

// --- Delete

// A version that a get could return: if none, the key is absent and stays as it is. What could be settled was.
bool Versions::HasVisibleVersion(Slot slot) {
  const IndexEntry entry = index_.At(slot);
  const uint32_t head = HeadOf(entry);
  const EntryWord word = entry.entry_word();
  if (word.settled()) return !HasExpired(head, word.new_address());
  if (!word.old_address().none()) return !HasExpired(head, word.old_address());
  const ObjectView newest = log_.InspectHeader(head, word.new_address());
  const auto not_whole = [](Address /*at*/) { return false; };
  return chain_.NewestBefore(head, newest, format::kNoAddress, not_whole).whole_bytes != 0;
}

// The tombstone is a version like any other: published when it is persistent, so that a power cut either leaves it or
// leaves the value. Once its entry is persistent the entry can go, since nothing older can come back: what is in flight
// is marked (I4), and after a restart nothing is. So the tombstone lives as long as its delete, in the one slot that
// its region keeps for it, and a delete needs no space, in a full pool too.
Outcome Versions::Delete(std::string_view key, uint64_t key_hash) {
  PublishPuts();
  const Found found = Find(key, key_hash);
  const auto slot = found.entry;
  if (!slot && found.damaged) return {Code::kCorruption, Reason::kDamaged, {}, 0, {}};
  if (!slot) return {Code::kNotFound, Reason::kNone, {}, 0, {}};
  SettleCurrent(*slot, key_hash);
  // What is whole, and not the newest, says what a get finds: a value, or one that has expired.
  if (!index_.WordAt(*slot).settled()) SettleArrivedOf(key_hash);
  if (!HasVisibleVersion(*slot)) return {Code::kNotFound, Reason::kNone, {}, 0, {}};

  const uint64_t number = NextVersion();
  const uint32_t head = geometry_.HeadOf(key_hash);
  const auto space = log_.TombstoneSlot(head, number);
  if (!space) return {Code::kResourceExhausted, Reason::kLogFull, {}, head, {}};

  NewVersion tombstone;
  tombstone.slot = *slot;
  tombstone.head = head;
  tombstone.space = *space;
  const EntryWord word = index_.WordAt(*slot);
  MakeHeader(&tombstone, ObjectKind::kTombstone, key, key_hash, 0, ObjectHeader::kPersistedFlag, number,
             word.new_address().raw());
  const uint32_t checksum = format::ObjectChecksum(tombstone.header, {});
  WriteHeaderAndKey(tombstone, key, &checksum);
  if (!Planted(Flaw::kTombstoneNotFlushed)) nvm_.Persist(tombstone.space.offset, SpaceOf(tombstone.header));
  if (!Planted(Flaw::kNoTombstone)) index_.StoreWord(*slot, word.Published(tombstone.space.address));

  if (!Planted(Flaw::kCommitAfterDelete)) Supersede(key, key_hash);
  index_.Free(*slot);
  counters_.Add(Counter::kDeletes);
  return {Code::kOk, Reason::kNone, {}, 0, {}};
}

void Versions::Supersede(std::string_view key, uint64_t key_hash) {
  in_flight_.ForEachOf(key_hash, [&](InFlight::Id /*id*/, Reservation& reservation) {
    if (log_.InspectHeader(reservation.head, reservation.address).key == key) reservation.superseded = true;
  });
}

// --- Expiry

bool Versions::HasExpired(uint32_t head, Address address) {
  if (Planted(Flaw::kExpiryIgnored)) return false;
  return HasPassed(log_.InspectHeader(head, address).deadline);
}

// No tombstone: whatever a power cut undoes of it, the key is absent.
bool Versions::Expire(AllPublished /*proof*/, uint64_t key_hash, uint32_t head, Address address) {
  const auto slot = index_.Find(key_hash, [&](Slot /*slot*/, const IndexEntry& entry) {
    const EntryWord word = entry.entry_word();
    return Planted(Flaw::kExpiresNewer) || (word.settled() && word.new_address() == address);
  });
  if (!slot) return false;
  const ObjectView view = log_.InspectHeader(head, address);
  if (!HasPassed(view.deadline)) return false;
  // What is in flight is older, or the entry would name it.
  if (!Planted(Flaw::kExpiresInFlight)) Supersede(view.key, key_hash);
  index_.Free(*slot);
  counters_.Add(Counter::kExpired);
  return true;
}

// --- Increment

Outcome Versions::Increment(std::string_view key, uint64_t key_hash, const Present& present, int64_t delta, Ack ack) {
  int64_t sum = delta;
  uint64_t deadline = 0;
  if (present.state == Present::State::kThere) {
    const uint32_t head = geometry_.HeadOf(key_hash);
    const ObjectView view = log_.Inspect(head, present.address);
    if (view.state != ObjectState::kWhole) return {Code::kCorruption, Reason::kDamaged, {}, head, {}};
    if (view.value.size() != sizeof(sum)) return {Code::kInvalidArgument, Reason::kNotANumber, {}, head, {}};
    if (__builtin_add_overflow(LoadAs<int64_t>(view.value), delta, &sum)) {
      return {Code::kInvalidArgument, Reason::kOverflow, {}, head, {}};
    }
    deadline = view.deadline;
  }
  Outcome outcome = PutInline(key, key_hash, BytesOf(sum), ack, deadline);
  outcome.number = static_cast<uint64_t>(sum);
  return outcome;
}

// --- Counters

void Versions::PublishGauges() {
  counters_.Set(Counter::kKeys, index_.used());
  counters_.Set(Counter::kLogBytesUsed, log_.bytes_used());
  counters_.Set(Counter::kLogBytesLive, log_.bytes_live());  // but for what is counted behind the answers
  counters_.Set(Counter::kFreeRegions, log_.regions().free_regions());
  counters_.Set(Counter::kInFlight, in_flight_.size());
  counters_.Set(Counter::kChunks, chunks_.count());
  counters_.Set(Counter::kChunkBytes, chunks_.bytes());
  counters_.Set(Counter::kNvmBytes, nvm_.counters().bytes);
  counters_.Set(Counter::kNvmFlushes, nvm_.counters().flushes);
  counters_.Set(Counter::kNvmFences, nvm_.counters().fences);
}

}  // namespace erda::server
