// Chunks of the log that clients fill themselves, and the puts whose values are there (docs/protocol.md, "Put,
// delegated").
#include <algorithm>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/planted.h"
#include "server/versions.h"

namespace erda::server {

using format::Counter;
using format::kChunkObjectsAt;
using format::kGranuleBytes;
using format::ObjectKind;
using format::Reason;

namespace {

// All chunks together are one part in so many of a shard's log.
constexpr uint64_t kShareOfLog = 16;
// With fewer free regions, there are only chunks of what is left of the open segment.
constexpr uint32_t kFreeRegionsLeft = 2;
// A chunk that was not used for so many whiles is taken back. They are of idle moments (TidyTimer: from 5 ms on, each
// twice as long) or, of a shard that is never idle, Shard's kPollsOfAWhile. If there is a window to it, it is closed
// later, whatever its client says: a Write of a client that was stopped meanwhile would cost it its channel, so that is
// so many whiles later, a second at the least where there are idle moments.
constexpr uint32_t kAgeMax = 8;
constexpr uint32_t kClosingAgeMax = 200;
// A put waits for room, and a chunk that was taken back is not given back.
constexpr Nanoseconds kAwaitedMax = std::chrono::seconds(1);

const Outcome kNone{Code::kResourceExhausted, Reason::kNoChunk, {}, 0, {}};

}  // namespace

Outcome Versions::Delegate(uint32_t head, uint64_t least, uint64_t wanted, SessionId session, bool windowed) {
  PublishPuts();
  if (session >= chunks_.size()) chunks_.resize(session + 1);
  std::vector<Chunk>& chunks = chunks_[session];
  chunks.reserve(format::kChunksPerClient);
  const uint64_t share = log_.bytes_total() / kShareOfLog;
  uint64_t bytes = std::min({wanted, format::ChunkBytesMax(geometry_), share - std::min(share, chunk_bytes_)});
  const uint64_t room = log_.RoomLeft(head);
  if (log_.free_regions() < kFreeRegionsLeft) bytes = std::min(bytes, room);
  const auto closing = std::ranges::count(closing_, session, &ClosingChunk::session);
  const bool too_many = chunks.size() + static_cast<size_t>(closing) >= format::kChunksPerClient;
  if (too_many || bytes < least || least <= kChunkObjectsAt) return kNone;
  // Rather a little less than to leave the end of a segment unused.
  if (room < bytes && room >= std::max(least, bytes / 4)) bytes = room;
  // The objects to come may be as large as the one that is at hand.
  bytes = AlignDown(bytes - (bytes - kChunkObjectsAt) % (least - kChunkObjectsAt), kGranuleBytes);

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

  // (I9) What will be published in it is not settled for a moment: as long as that may come, the mark waits.
  if (!Planted(Flaw::kMarksChunks)) log_.BeginFlight(head, space->address);
  if (!Planted(Flaw::kChunkNotHeld)) log_.Hold(head, space->address);
  chunks.push_back({head, space->address, space->offset, number, bytes, kChunkObjectsAt, 0, windowed});
  ++open_chunks_;
  ++chunk_count_;
  chunk_bytes_ += bytes;
  return {Code::kOk, Reason::kNone, space->address, head, header, place.generation};
}

std::optional<Outcome> Versions::PutDelegated(std::string_view key, uint64_t key_hash, uint32_t value_size,
                                              uint32_t value_crc, Ack ack, Address address, SessionId session,
                                              uint64_t deadline) {
  if (session >= chunks_.size()) return kNone;
  std::vector<Chunk>& chunks = chunks_[session];
  const uint32_t head = geometry_.HeadOf(key_hash);
  const auto it = std::find_if(chunks.begin(), chunks.end(), [&](const Chunk& chunk) {
    return chunk.head == head && chunk.address.slot() == address.slot() &&
           address.offset_in_slot() - chunk.address.offset_in_slot() < chunk.bytes;
  });
  if (it == chunks.end()) return kNone;
  // (I8) What the client wrote into chunks of the head that it had before has been placed before this request came.
  if (std::any_of(chunks.begin(), it, [&](const Chunk& older) { return older.head == head; })) PublishPuts();
  const auto others = std::remove_if(chunks.begin(), it, [&](const Chunk& older) {
    if (older.head == head) EndChunk(session, older);
    return older.head == head;
  });
  Chunk& chunk = *chunks.erase(others, it);
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
  if (session >= chunks_.size()) return;
  PublishPuts();
  std::erase_if(chunks_[session], [&](const Chunk& chunk) {
    if (chunk.head != head || chunk.address != address || chunk.version != version) return false;
    EndChunk(session, chunk);
    return true;
  });
}

// With a window its segment does not count as settled either before that is closed (ReleaseChunk).
void Versions::TakeBackChunk(SessionId session, Chunk& chunk) {
  chunk.taken_back = true;
  chunk.age = 0;
  --open_chunks_;
  if (chunk.windowed) {
    ++lingering_;
  } else if (!Planted(Flaw::kMarksChunks)) {
    log_.EndFlight(chunk.head, chunk.address);
  }
  taken_back_.push_back({session, chunk.address});
}

void Versions::EndChunk(SessionId session, const Chunk& chunk) {
  if (!chunk.taken_back) --open_chunks_;
  if (!chunk.windowed) return ReleaseChunk(chunk);
  if (chunk.taken_back) --lingering_;
  closing_.push_back({session, chunk});
  closing_.back().chunk.taken_back = true;
  to_close_.push_back({session, chunk.version});
}

// (I8) Pairs with CloseWindows: the device has said that nothing goes through the window any more. A session that ends
// takes its windows with it: EndSession comes behind the end of its channel.
void Versions::OnWindowClosed(SessionId session, uint64_t version) {
  std::erase_if(closing_, [&](const ClosingChunk& closing) {
    if (closing.session != session || closing.chunk.version != version) return false;
    ReleaseChunk(closing.chunk);
    return true;
  });
}

void Versions::ReleaseChunk(const Chunk& chunk) {
  const bool in_flight = chunk.windowed || !chunk.taken_back;
  if (in_flight && !Planted(Flaw::kMarksChunks)) log_.EndFlight(chunk.head, chunk.address);
  if (!Planted(Flaw::kChunkNotHeld)) log_.Release(chunk.head, chunk.address);
  --chunk_count_;
  chunk_bytes_ -= chunk.bytes;
}

void Versions::AgeChunks() {
  if (!delegates()) return;
  PublishPuts();
  for (SessionId session = 0; session < chunks_.size(); ++session) {
    std::erase_if(chunks_[session], [&](Chunk& chunk) {
      if (chunk.taken_back && !chunk.windowed) return false;
      if (++chunk.age <= (chunk.taken_back ? kClosingAgeMax : kAgeMax)) return false;
      const bool ends = chunk.taken_back;
      if (ends) {
        EndChunk(session, chunk);
      } else {
        TakeBackChunk(session, chunk);
      }
      return ends;
    });
  }
}

void Versions::TakeBackChunks() {
  if (open_chunks_ == 0) return;
  PublishPuts();
  for (SessionId session = 0; session < chunks_.size(); ++session) {
    for (Chunk& chunk : chunks_[session]) {
      if (!chunk.taken_back && !log_.IsAppendedTo(chunk.head, geometry_.SlotOf(chunk.address)))
        TakeBackChunk(session, chunk);
    }
  }
}

void Versions::BeginAwaitingChunks() {
  if (chunk_count_ == open_chunks_) return;
  for (std::vector<Chunk>& chunks : chunks_) {
    for (Chunk& chunk : chunks) {
      if (chunk.awaited < kAwaitedMax) chunk.awaited = Nanoseconds(0);
    }
  }
  for (auto& [session, chunk] : closing_) {
    if (chunk.awaited < kAwaitedMax) chunk.awaited = Nanoseconds(0);
  }
}

void Versions::AwaitChunks(Nanoseconds since) {
  if (chunk_count_ == open_chunks_) return;
  for (SessionId session = 0; session < chunks_.size(); ++session) {
    bool overdue = false;
    for (Chunk& chunk : chunks_[session]) {
      if (!chunk.taken_back || chunk.awaited >= kAwaitedMax) continue;
      chunk.awaited += since;
      overdue |= chunk.awaited >= kAwaitedMax;
    }
    if (overdue) overdue_.push_back(session);
  }
  // A client can keep its channel from closing a window: what is posted waits until it takes what was posted before.
  for (auto& [session, chunk] : closing_) {
    if (chunk.awaited >= kAwaitedMax) continue;
    chunk.awaited += since;
    if (chunk.awaited >= kAwaitedMax) overdue_.push_back(session);
  }
}

bool Versions::awaits_chunks() const {
  if (chunk_count_ == open_chunks_) return false;
  const auto is_awaited = [](const Chunk& chunk) { return chunk.taken_back && chunk.awaited < kAwaitedMax; };
  return std::ranges::any_of(chunks_, [&](const auto& chunks) { return std::ranges::any_of(chunks, is_awaited); }) ||
         std::ranges::any_of(closing_, is_awaited, &ClosingChunk::chunk);
}

}  // namespace erda::server
