#include "server/versions/chunk_table.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/planted.h"
#include "format/messages.h"

namespace erda::server {

using format::kChunkObjectsAt;
using format::kGranuleBytes;

namespace {

// All chunks together are at most this part of a shard's log: one sixteenth.
constexpr uint64_t kShareOfLog = 16;
// With fewer free regions, a chunk takes only what is left of the open segment.
constexpr uint32_t kFreeRegionsLeft = 2;
// Age revokes a chunk after this many calls without a put. The calls come at idle moments (TidyTimer: the first pause
// is 5 ms, each next one twice as long). A shard that is never idle calls Age once in kPollsPerAge Polls (shard.cc). A
// revoked chunk with a window ends after kClosingAgeMax calls more, even if its client does not give it back. With idle
// moments, that is at least a second. The time is long because a stopped client that Writes after the end loses its
// channel.
constexpr uint32_t kAgeMax = 8;
constexpr uint32_t kClosingAgeMax = 200;
// A session may keep a revoked chunk for this long while a put waits for room.
constexpr Nanoseconds kAwaitedMax = std::chrono::seconds(1);

}  // namespace

uint64_t ChunkTable::SizeFor(uint32_t head, uint64_t least, uint64_t wanted, SessionId session) const {
  const uint64_t share = log_.regions().bytes_total() / kShareOfLog;
  uint64_t size = std::min({wanted, format::ChunkBytesMax(geometry_), share - std::min(share, bytes_)});
  const uint64_t room = log_.tails().RoomLeft(head);
  if (log_.regions().free_regions() < kFreeRegionsLeft) size = std::min(size, room);
  const auto closing = static_cast<size_t>(std::ranges::count(closing_, session, &ClosingChunk::session));
  const size_t held = closing + (session < chunks_.size() ? chunks_[session].size() : 0);
  if (held >= format::kChunksPerClient || size < least || least <= kChunkObjectsAt) return 0;
  // Takes the rest of the segment if that is only a little smaller, so that no end of a segment stays unused.
  if (room < size && room >= std::max(least, size / 4)) size = room;
  // The next objects may be as large as the present one.
  return AlignDown(size - (size - kChunkObjectsAt) % (least - kChunkObjectsAt), kGranuleBytes);
}

void ChunkTable::Add(SessionId session, const Chunk& chunk) {
  // (I9) A put that the shard publishes in it is unsettled for a moment: the mark waits as long as such a put may come.
  if (!Planted(Flaw::kMarksChunks)) log_.BeginFlight(chunk.head, chunk.address);
  if (!Planted(Flaw::kChunkNotHeld)) log_.Hold(chunk.head, chunk.address);
  if (session >= chunks_.size()) chunks_.resize(session + 1);
  chunks_[session].reserve(format::kChunksPerClient);
  chunks_[session].push_back(chunk);
  ++open_;
  ++count_;
  bytes_ += chunk.bytes;
}

Chunk* ChunkTable::Find(SessionId session, uint32_t head, Address address) {
  if (session >= chunks_.size()) return nullptr;
  std::vector<Chunk>& chunks = chunks_[session];
  const auto it = std::find_if(chunks.begin(), chunks.end(), [&](const Chunk& chunk) {
    return chunk.head == head && chunk.address.slot() == address.slot() &&
           address.offset_in_slot() - chunk.address.offset_in_slot() < chunk.bytes;
  });
  return it == chunks.end() ? nullptr : &*it;
}

bool ChunkTable::HasOlder(SessionId session, const Chunk& chunk) const {
  const Chunk* first = chunks_[session].data();
  return std::any_of(first, &chunk, [&](const Chunk& older) { return older.head == chunk.head; });
}

Chunk* ChunkTable::EndOlder(AllPublished /*proof*/, SessionId session, const Chunk& chunk) {
  std::vector<Chunk>& chunks = chunks_[session];
  const auto it = chunks.begin() + (&chunk - chunks.data());
  const auto others = std::remove_if(chunks.begin(), it, [&, head = chunk.head](const Chunk& older) {
    if (older.head == head) End(session, older);
    return older.head == head;
  });
  return &*chunks.erase(others, it);
}

void ChunkTable::GiveBack(AllPublished /*proof*/, uint32_t head, Address address, uint64_t version, SessionId session) {
  if (session >= chunks_.size()) return;
  std::erase_if(chunks_[session], [&](const Chunk& chunk) {
    if (chunk.head != head || chunk.address != address || chunk.version != version) return false;
    End(session, chunk);
    return true;
  });
}

void ChunkTable::EndSession(AllPublished /*proof*/, SessionId session) {
  if (session >= chunks_.size()) return;
  for (const Chunk& chunk : chunks_[session]) End(session, chunk);
  chunks_[session].clear();
  std::erase_if(closing_, [&](const ClosingChunk& closing) {
    if (closing.session == session) Release(closing.chunk);
    return closing.session == session;
  });
  to_close_.EraseIf([&](const Closing& closing) { return closing.session == session; });
  revocations_.EraseIf([&](const Revocation& revocation) { return revocation.session == session; });
  overdue_.EraseIf([&](SessionId overdue) { return overdue == session; });
}

// If the chunk has a window, its segment does not count as settled before the window is closed (Release).
void ChunkTable::Revoke(SessionId session, Chunk& chunk) {
  chunk.revoked = true;
  chunk.age = 0;
  --open_;
  if (chunk.windowed) {
    ++lingering_;
  } else if (!Planted(Flaw::kMarksChunks)) {
    log_.EndFlight(chunk.head, chunk.address);
  }
  revocations_.push_back({session, chunk.address});
}

void ChunkTable::End(SessionId session, const Chunk& chunk) {
  if (!chunk.revoked) --open_;
  if (!chunk.windowed) return Release(chunk);
  if (chunk.revoked) --lingering_;
  closing_.push_back({session, chunk});
  closing_.back().chunk.revoked = true;
  to_close_.push_back({session, chunk.version});
}

// (I8) Pairs with CloseWindows: the device has said that nothing goes through the window any more. The windows of a
// session that ends need no such message: its channel has ended before EndSession.
void ChunkTable::OnWindowClosed(SessionId session, uint64_t version) {
  std::erase_if(closing_, [&](const ClosingChunk& closing) {
    if (closing.session != session || closing.chunk.version != version) return false;
    Release(closing.chunk);
    return true;
  });
}

void ChunkTable::Release(const Chunk& chunk) {
  const bool in_flight = chunk.windowed || !chunk.revoked;
  if (in_flight && !Planted(Flaw::kMarksChunks)) log_.EndFlight(chunk.head, chunk.address);
  if (!Planted(Flaw::kChunkNotHeld)) log_.Release(chunk.head, chunk.address);
  --count_;
  bytes_ -= chunk.bytes;
}

void ChunkTable::Age(AllPublished /*proof*/) {
  for (SessionId session = 0; session < chunks_.size(); ++session) {
    std::erase_if(chunks_[session], [&](Chunk& chunk) {
      if (chunk.revoked && !chunk.windowed) return false;
      if (++chunk.age <= (chunk.revoked ? kClosingAgeMax : kAgeMax)) return false;
      const bool ends = chunk.revoked;
      if (ends) {
        End(session, chunk);
      } else {
        Revoke(session, chunk);
      }
      return ends;
    });
  }
}

void ChunkTable::RevokeFull(AllPublished /*proof*/) {
  for (SessionId session = 0; session < chunks_.size(); ++session) {
    for (Chunk& chunk : chunks_[session]) {
      if (!chunk.revoked && !log_.tails().IsAppendedTo(chunk.head, geometry_.SlotOf(chunk.address)))
        Revoke(session, chunk);
    }
  }
}

void ChunkTable::BeginAwaiting() {
  if (count_ == open_) return;
  for (std::vector<Chunk>& chunks : chunks_) {
    for (Chunk& chunk : chunks) {
      if (chunk.awaited < kAwaitedMax) chunk.awaited = Nanoseconds(0);
    }
  }
  for (auto& [session, chunk] : closing_) {
    if (chunk.awaited < kAwaitedMax) chunk.awaited = Nanoseconds(0);
  }
}

void ChunkTable::Await(Nanoseconds since) {
  if (count_ == open_) return;
  for (SessionId session = 0; session < chunks_.size(); ++session) {
    bool overdue = false;
    for (Chunk& chunk : chunks_[session]) {
      if (!chunk.revoked || chunk.awaited >= kAwaitedMax) continue;
      chunk.awaited += since;
      overdue |= chunk.awaited >= kAwaitedMax;
    }
    if (overdue) overdue_.push_back(session);
  }
  // A client can keep a window open: the channel closes it only after the client has taken all earlier messages.
  for (auto& [session, chunk] : closing_) {
    if (chunk.awaited >= kAwaitedMax) continue;
    chunk.awaited += since;
    if (chunk.awaited >= kAwaitedMax) overdue_.push_back(session);
  }
}

bool ChunkTable::IsAwaiting() const {
  if (count_ == open_) return false;
  const auto is_awaited = [](const Chunk& chunk) { return chunk.revoked && chunk.awaited < kAwaitedMax; };
  return std::ranges::any_of(chunks_, [&](const auto& chunks) { return std::ranges::any_of(chunks, is_awaited); }) ||
         std::ranges::any_of(closing_, is_awaited, &ClosingChunk::chunk);
}

}  // namespace erda::server
