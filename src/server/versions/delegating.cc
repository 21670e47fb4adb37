#include "server/versions/delegating.h"

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/planted.h"
#include "server/versions/new_version.h"

namespace erda::server {

using format::Counter;
using format::kChunkObjectsAt;
using format::ObjectKind;
using format::Reason;

namespace {

const Outcome kNone{Code::kResourceExhausted, Reason::kNoChunk, {}, 0, {}};

}  // namespace

Outcome Delegating::Delegate(uint32_t head, uint64_t least, uint64_t wanted, SessionId session, bool windowed) {
  const uint64_t bytes = chunks_.SizeFor(head, least, wanted, session);
  if (bytes == 0) return kNone;
  const uint64_t number = numbers_.Next();
  const auto space = ReserveSpace(batch_.Publish(), log_, head, bytes, number);
  if (!space.ok()) return kNone;
  format::ObjectHeader header{};
  header.kind = static_cast<uint8_t>(ObjectKind::kChunk);
  header.flags = windowed ? format::ObjectHeader::kWindowFlag : 0;
  header.value_size = static_cast<uint32_t>(format::ChunkValueBytes(bytes));
  header.version = number;
  const format::Place place = log_.PlaceOf(head, space->address);
  header.header_crc = format::HeaderCrc(place, header, {});
  // The chunk's header is persistent before anything else is appended: a walk of the log must be able to step over the
  // chunk.
  nvm_.Write(space->offset, BytesOf(header));
  if (!Planted(Flaw::kChunkNotFlushed)) nvm_.Persist(space->offset, sizeof(header));

  chunks_.Add(session, {head, space->address, space->offset, number, bytes, kChunkObjectsAt, 0, windowed});
  return {Code::kOk, Reason::kNone, space->address, head, header, place.generation};
}

std::optional<Outcome> Delegating::Put(std::string_view key, uint64_t key_hash, uint32_t value_size, uint32_t value_crc,
                                       Ack ack, Address address, SessionId session, uint64_t deadline, bool waits) {
  const uint32_t head = geometry_.HeadOf(key_hash);
  Chunk* found = chunks_.Find(session, head, address);
  if (found == nullptr) return kNone;
  // (I8) The client's writes into its earlier chunks of this head were placed before this request came.
  if (chunks_.HasOlder(session, *found)) found = chunks_.EndOlder(batch_.Publish(), session, *found);
  Chunk& chunk = *found;
  if (chunk.revoked && !Planted(Flaw::kPutsInRevoked)) return kNone;
  const uint64_t label_size = format::LabelSize(key.size(), deadline != 0);
  const uint64_t space = format::ObjectSpace(label_size, value_size);
  const uint64_t at = address.offset_in_slot() - chunk.address.offset_in_slot();
  if (at != chunk.tail || space > chunk.bytes - at) return std::nullopt;
  NewVersion version;
  version.head = head;
  version.space = {address, chunk.offset + at};
  version.deadline = deadline;
  const uint64_t value_at = version.space.offset + format::ValueOffset(label_size);
  // The value was placed before the request came: the client posted it first, on the same channel.
  if (Crc32c(0, nvm_.Bytes(value_at, value_size)) != value_crc) return std::nullopt;
  chunk.tail += space;
  chunk.age = 0;

  // A put that has to wait comes again without a chunk, and waits then.
  Outcome outcome = waits ? kNone : puts_.Prepare(key, key_hash, value_size, FlagsOf(ack), &version);
  const bool refused = outcome.code != Code::kOk;
  // The object gets a header all the same, and no entry will name it: a walk of the log finds the next one after it.
  if (refused)
    MakeHeader(log_, &version, ObjectKind::kValue, key, key_hash, value_size, FlagsOf(ack), numbers_.Next(), 0);
  const uint32_t checksum = format::ObjectChecksumOf(version.header, value_crc);
  WriteHeaderAndKey(nvm_, version, key, &checksum);
  // (I2, I3) Flushes header and key, and also the value that the client wrote.
  if (!Planted(Flaw::kDelegatedNotFlushed)) nvm_.Flush(version.space.offset, space);
  if (!refused) {
    batch_.Add(version);
    counters_.Add(Counter::kPutsDelegated);
  }
  // If the log is full, the client puts in another way, and waits for room there. If the index is full, the reply says
  // so.
  return outcome.reason == Reason::kLogFull ? kNone : outcome;
}

// The client does not give back the earlier chunks of the head: it relies on this request, as in Put.
void Delegating::Refuse(uint64_t key_hash, Address address, SessionId session) {
  Chunk* chunk = chunks_.Find(session, geometry_.HeadOf(key_hash), address);
  if (chunk == nullptr) return;
  if (chunks_.HasOlder(session, *chunk)) chunk = chunks_.EndOlder(batch_.Publish(), session, *chunk);
  chunks_.Revoke(batch_.Publish(), session, *chunk);
}

}  // namespace erda::server
