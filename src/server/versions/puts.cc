#include "server/versions/puts.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/planted.h"
#include "server/versions/find_key.h"

namespace erda::server {

using format::Counter;
using format::EntryWord;
using format::ObjectKind;
using format::ObjectState;
using format::ObjectView;
using format::Reason;

namespace {

// Without commits, no client tells the shard that a put is done. From kSweepFrom reservations on, the shard looks at
// kSweepPerReserve of them with each new one, even if it is never idle. It looks at more than one: otherwise they would
// grow in number without end, and hold all regions.
constexpr size_t kSweepFrom = 256;
constexpr size_t kSweepPerReserve = 4;
// If a session has as many reservations as it may have, the shard looks at this many of them before it refuses another
// one.
constexpr size_t kSweepAtLimit = 64;

}  // namespace

// Inline, since a small put takes few instructions, and a call takes thirty.
[[gnu::always_inline]] inline Outcome Puts::PrepareHere(std::string_view key, uint64_t key_hash, uint32_t value_size,
                                                        uint8_t flags, NewVersion* version) {
  Found found = FindKey(index_, log_, key, key_hash);
  if (batch_.is_full() || batch_.IsClaimed(key_hash, found)) {
    found = FindKey(batch_.Publish(), index_, log_, key, key_hash);
  }
  version->head = found.head;
  if (!found.entry) [[unlikely]] {
    const Reason none = TakeOtherSlot(key, key_hash, &found, version);
    if (none != Reason::kNone) return {Code::kResourceExhausted, none, {}, kAnyHead, {}};
  }
  if (found.entry) {
    version->slot = *found.entry;
    version->replaces = true;
  }
  const uint64_t number = numbers_.Next();
  if (version->space.address.none()) {
    const uint64_t space_bytes = format::ObjectSpace(format::LabelSize(key.size(), version->deadline != 0), value_size);
    if (const auto space = log_.Append(version->head, space_bytes)) [[likely]] {
      version->space = *space;
    } else {
      const auto reserved = ReserveSpace(batch_.PublishBeforeOpening(), log_, version->head, space_bytes, number);
      if (!reserved.ok()) return {Code::kResourceExhausted, Reason::kLogFull, {}, version->head, {}};
      version->space = *reserved;
    }
  }
  EntryWord replaced;
  if (found.entry) settling_.SettleCurrent(version->slot, key_hash);
  if (version->replaces) {
    replaced = index_.WordAt(version->slot);
    // Usually nothing has changed the entry since FindKey.
    if (replaced.settled() && replaced == found.word) [[likely]] {
      version->left = replaced;
      version->left_at = found.value_at;
      version->left_bytes = found.value_bytes;
    }
  }
  const uint32_t previous = replaced.new_address().raw();
  const uint32_t generation =
      MakeHeader(log_, version, ObjectKind::kValue, key, key_hash, value_size, flags, number, previous);
  return {Code::kOk, Reason::kNone, version->space.address, version->head, version->header, generation};
}

Outcome Puts::Prepare(std::string_view key, uint64_t key_hash, uint32_t value_size, uint8_t flags,
                      NewVersion* version) {
  return PrepareHere(key, key_hash, value_size, flags, version);
}

Reason Puts::TakeOtherSlot(std::string_view key, uint64_t key_hash, Found* found, NewVersion* version) {
  if (found->damaged && index_.mender().rest_is_due()) {
    // The entry may be damaged by a flip that the server undoes now.
    growth_.EndRest(batch_.Publish());
    *found = FindKey(index_, log_, key, key_hash);
    if (found->entry) return Reason::kNone;
  }
  // The put takes the place of a damaged entry that may be this key's: a put repairs the key. Gets see the damage until
  // the put is published, and still see it if the put is refused.
  if (found->damaged) {
    version->slot = *found->damaged;
    version->replaces = CanBeOf(index_, version->slot, key_hash);
    return Reason::kNone;
  }
  if (const auto free = index_.free_slots().FindRoom(key_hash)) {
    version->slot = *free;
    return Reason::kNone;
  }
  return growth_.MakeRoom(batch_.Publish(), key_hash, &version->slot);
}

Outcome Puts::PutInline(std::string_view key, uint64_t key_hash, std::span<const std::byte> value, Ack ack,
                        uint64_t deadline) {
  NewVersion version;
  version.deadline = deadline;
  Outcome outcome = PrepareHere(key, key_hash, static_cast<uint32_t>(value.size()), FlagsOf(ack), &version);
  if (outcome.code != Code::kOk) return outcome;
  // Writes header and key first: if this process dies in the middle, a walk of the log steps over the object.
  WriteHeaderAndKey(nvm_, version, key, nullptr);
  // The client may still be able to write to the memory with the value. So the shard computes the checksum of the copy
  // in the pool.
  const uint64_t value_at = version.space.offset + format::ValueOffset(version.header.label_size());
  nvm_.Write(value_at, value);
  const uint32_t checksum = format::ObjectChecksum(version.header, nvm_.Bytes(value_at, value.size()));
  nvm_.Write(value_at - format::kChecksumBytes, BytesOf(checksum));
  if (!Planted(Flaw::kInlineNotFlushed)) nvm_.Flush(version.space.offset, SpaceOf(version.header));
  batch_.Add(version);
  counters_.Add(Counter::kPutsInline);
  return outcome;
}

Outcome Puts::Reserve(std::string_view key, uint64_t key_hash, uint32_t value_size, Ack ack, SessionId session,
                      format::FlushMethod flush, uint64_t deadline) {
  const uint32_t limit = reservations_per_session_;
  if (reservations_.in_flight().size() >= std::min<size_t>(kSweepFrom, limit / 2)) settling_.AddDue(kSweepPerReserve);
  if (reservations_.CountOf(session) >= limit && !FreeReservation(batch_.Publish(), session)) {
    return {Code::kResourceExhausted, Reason::kTooManyReservations, {}, 0, {}};
  }
  NewVersion version;
  version.deadline = deadline;
  // The header says how the version becomes persistent, and every reader judges it by that, even with another flush
  // method. The client may acknowledge this put before the version is settled.
  const bool flushed_by_read = flush == format::FlushMethod::kReadAfterWrite;
  Outcome outcome = Prepare(key, key_hash, value_size, FlagsOf(ack, flushed_by_read), &version);
  if (outcome.code != Code::kOk) return outcome;
  WriteHeaderAndKey(nvm_, version, key, nullptr);
  if (!Planted(Flaw::kHeaderNotFlushed))
    nvm_.Flush(version.space.offset, format::ChecksumOffset(version.header.label_size()));

  Reservation reservation = ReservationOf(version, session);
  reservation.awaits_commit = ack == Ack::kPersisted && flush == format::FlushMethod::kServerFlush;
  reservations_.Grant(session);
  batch_.Add(version, reservation);
  counters_.Add(Counter::kPutsReserved);
  return outcome;
}

// To publish the waiting puts may have settled some.
bool Puts::FreeReservation(AllPublished /*proof*/, SessionId session) {
  return reservations_.CountOf(session) < reservations_per_session_ ||
         settling_.SweepOf(batch_.Publish(), session, kSweepAtLimit) > 0;
}

Outcome Puts::Increment(std::string_view key, uint64_t key_hash, const Present& present, int64_t delta, Ack ack) {
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

}  // namespace erda::server
