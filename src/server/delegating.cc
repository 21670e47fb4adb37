// Puts whose values stand in chunks of the log that clients fill themselves, and the giving of such chunks
// (docs/protocol.md, "Put, delegated"). chunk_table.h has the chunks.
#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/planted.h"
#include "server/versions.h"

namespace erda::server {

using format::Counter;
using format::kChunkObjectsAt;
using format::ObjectKind;
using format::Reason;

namespace {

const Outcome kNone{Code::kResourceExhausted, Reason::kNoChunk, {}, 0, {}};

}  // namespace

Outcome Versions::Delegate(uint32_t head, uint64_t least, uint64_t wanted, SessionId session, bool windowed) {
  PublishPuts();
  const uint64_t bytes = chunks_.SizeFor(head, least, wanted, session);
  if (bytes == 0) return kNone;
  const uint64_t number = NextVersion();
  const auto space = log_.Reserve(head, bytes, number);
  if (!space.ok()) return kNone;
  format::ObjectHeader header{};
  header.kind = static_cast<uint8_t>(ObjectKind::kChunk);
  header.flags = windowed ? format::ObjectHeader::kWindowFlag : 0;
  header.value_size = static_cast<uint32_t>(format::ChunkValueBytes(bytes));
  header.version = number;
  const format::Place place = log_.PlaceOf(head, space->address);
  header.header_crc = format::HeaderCrc(place, header, {});
  // Persistent before anything else is appended: a walk must be able to step over it.
  nvm_.Write(space->offset, BytesOf(header));
  if (!Planted(Flaw::kChunkNotFlushed)) nvm_.Persist(space->offset, sizeof(header));

  chunks_.Add(session, {head, space->address, space->offset, number, bytes, kChunkObjectsAt, 0, windowed});
  return {Code::kOk, Reason::kNone, space->address, head, header, place.generation};
}

std::optional<Outcome> Versions::PutDelegated(std::string_view key, uint64_t key_hash, uint32_t value_size,
                                              uint32_t value_crc, Ack ack, Address address, SessionId session,
                                              uint64_t deadline) {
  const uint32_t head = geometry_.HeadOf(key_hash);
  Chunk* found = chunks_.Find(session, head, address);
  if (found == nullptr) return kNone;
  // (I8) What the client wrote into chunks of the head that it had before has been placed before this request came.
  if (chunks_.HasOlder(session, *found)) found = chunks_.EndOlder(PublishPuts(), session, *found);
  Chunk& chunk = *found;
  if (chunk.taken_back && !Planted(Flaw::kPutsInTakenBack)) return kNone;
  const uint64_t label_size = format::LabelSize(key.size(), deadline != 0);
  const uint64_t space = format::ObjectSpace(label_size, value_size);
  const uint64_t at = address.offset_in_slot() - chunk.address.offset_in_slot();
  if (at != chunk.tail || space > chunk.bytes - at) return std::nullopt;
  NewVersion version;
  version.head = head;
  version.space = {address, chunk.offset + at};
  version.deadline = deadline;
  const uint64_t value_at = version.space.offset + format::ValueOffset(label_size);
  // The value was placed before the request came (it was posted before it, on the same channel).
  if (Crc32c(0, nvm_.Bytes(value_at, value_size)) != value_crc) return std::nullopt;
  chunk.tail += space;
  chunk.age = 0;

  Outcome outcome = Prepare(key, key_hash, value_size, FlagsOf(ack), &version);
  const bool refused = outcome.code != Code::kOk;
  // An object stands there all the same, which nothing will name: the next one is found behind it.
  if (refused) MakeHeader(&version, ObjectKind::kValue, key, key_hash, value_size, FlagsOf(ack), NextVersion(), 0);
  const uint32_t checksum = format::ObjectChecksumOf(version.header, value_crc);
  WriteHeaderAndKey(version, key, &checksum);
  // (I2, I3) The value, which its client wrote, too.
  if (!Planted(Flaw::kDelegatedNotFlushed)) nvm_.Flush(version.space.offset, space);
  if (!refused) {
    AddUnpublished(version, std::nullopt);
    counters_.Add(Counter::kPutsDelegated);
  }
  // There is no region for the index: another way the put may wait for one.
  return outcome.reason == Reason::kLogFull ? kNone : outcome;
}

void Versions::GiveBack(uint32_t head, Address address, uint64_t version, SessionId session) {
  chunks_.GiveBack(PublishPuts(), head, address, version, session);
}

void Versions::AgeChunks() {
  if (chunks_.delegates()) chunks_.Age(PublishPuts());
}

void Versions::TakeBackChunks() {
  if (chunks_.open() > 0) chunks_.TakeBackFull(PublishPuts());
}

}  // namespace erda::server
