// The chunks of one shard's log, which clients fill themselves (docs/protocol.md, "Put, delegated").
//
// Owns each chunk from the moment that a session has it until nobody can write there any more. Owns the hold and the
// flight of its space in the log. Owns the news that the shard has to tell or to act on: revoked chunks, windows to
// close, and overdue sessions. Requires: the shard has published its puts before it ends a chunk (AllPublished), since
// an unpublished put may stand in it (I9). The caller writes the header of a chunk, and the objects in it. The shard's
// thread calls it.
#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "base/fifo.h"
#include "format/superblock.h"
#include "log/shard_log.h"
#include "server/versions/all_published.h"
#include "server/versions/chunk.h"
#include "server/versions/in_flight.h"

namespace erda::server {

class ChunkTable {
 public:
  using Address = format::LogAddress;

  ChunkTable(log::ShardLog& log, const format::Geometry& geometry) : log_(log), geometry_(geometry) {}

  // Returns the size of the chunk that the session may have: `wanted` bytes, or fewer, and at least `least`. Returns 0
  // if the session may have no chunk now.
  [[nodiscard]] uint64_t SizeFor(uint32_t head, uint64_t least, uint64_t wanted, SessionId session) const;
  // Gives the chunk to the session. Requires: its space is reserved in the log, and its header is persistent.
  void Add(SessionId session, const Chunk& chunk);
  // Returns the chunk of the session that the address lies in, or nullptr. The next call of another function ends the
  // pointer's life.
  [[nodiscard]] Chunk* Find(SessionId session, uint32_t head, Address address);
  // Returns true if the session got another chunk of the same head before this one.
  [[nodiscard]] bool HasOlder(SessionId session, const Chunk& chunk) const;
  // Ends the session's older chunks of the same head. Returns the new place of `chunk`.
  Chunk* EndOlder(AllPublished, SessionId session, const Chunk& chunk);
  // Revokes the session's chunk, unless it is revoked already.
  void Revoke(AllPublished /*proof*/, SessionId session, Chunk& chunk) {
    if (!chunk.revoked) Revoke(session, chunk);
  }
  // The session gives back the chunk at the address whose header has this version: it writes no more there.
  void GiveBack(AllPublished, uint32_t head, Address address, uint64_t version, SessionId session);
  // Forgets the session's chunks, windows and news. Requires: the session is fenced.
  void EndSession(AllPublished, SessionId session);

  // Counts one idle moment, and revokes the chunks that were unused for several of them.
  void Age(AllPublished);
  // Revokes the chunks in segments that the log no longer appends to.
  void RevokeFull(AllPublished);

  // Calls tell(SessionId, Address) for each chunk that was revoked since the last call. The caller asks the client to
  // give the chunk back.
  template <class Tell>
  void TellRevoked(Tell&& tell) {
    for (; !revocations_.empty(); revocations_.pop_front())
      tell(revocations_.front().session, revocations_.front().address);
  }
  // Calls close(SessionId, version) for each windowed chunk that ended since the last call: the shard publishes no more
  // puts there. The table holds its space until OnWindowClosed says that nobody can write there.
  template <class Close>
  void CloseWindows(Close&& close) {
    for (; !to_close_.empty(); to_close_.pop_front()) close(to_close_.front().session, to_close_.front().version);
  }
  void OnWindowClosed(SessionId session, uint64_t version);

  // BeginAwaiting: a put begins to wait for room. Await adds the time for which it has waited. A session becomes
  // overdue if it keeps a revoked chunk for too much of that time.
  void BeginAwaiting();
  void Await(Nanoseconds since);
  // Returns true if a session that is not overdue has a chunk to give back.
  [[nodiscard]] bool IsAwaiting() const;
  // Calls end(SessionId) for each session that became overdue since the last call.
  template <class End>
  void EndOverdue(End&& end) {
    for (; !overdue_.empty(); overdue_.pop_front()) end(overdue_.front());
  }

  // Calls visit(const Chunk&) for each chunk whose space is held.
  template <class Visit>
  void ForEachHeld(Visit&& visit) const {
    for (const std::vector<Chunk>& chunks : chunks_) {
      for (const Chunk& chunk : chunks) visit(chunk);
    }
    for (const ClosingChunk& closing : closing_) visit(closing.chunk);
  }

  // Returns true if Age has work: some chunks may be filled by clients, or end after several idle moments.
  [[nodiscard]] bool delegates() const { return open_ > 0 || lingering_ > 0; }
  [[nodiscard]] uint32_t open() const { return open_; }
  [[nodiscard]] uint32_t count() const { return count_; }
  [[nodiscard]] uint64_t bytes() const { return bytes_; }
  // Returns a number such that sessions from it on have no chunks.
  [[nodiscard]] size_t sessions() const { return chunks_.size(); }

 private:
  struct Revocation {
    SessionId session = 0;
    Address address;
  };
  struct Closing {
    SessionId session = 0;
    uint64_t version = 0;  // of the chunk
  };
  struct ClosingChunk {
    SessionId session = 0;
    Chunk chunk;
  };

  // Revokes the chunk: the shard publishes no more puts there. The client may still write there.
  void Revoke(SessionId session, Chunk& chunk);
  // Takes the chunk from the session. If it has a window, the client may still write there until the window is closed.
  void End(SessionId session, const Chunk& chunk);
  // Ends the hold and the flight of the chunk's space, so that the log may use it again. Requires: the client cannot
  // write there any more.
  void Release(const Chunk& chunk);

  log::ShardLog& log_;
  const format::Geometry& geometry_;
  std::vector<std::vector<Chunk>> chunks_;  // By session, in the order in which the session got them.
  std::vector<ClosingChunk> closing_;       // Ended; their space is held until OnWindowClosed.
  Fifo<Revocation> revocations_;            // not told yet
  Fifo<Closing> to_close_;                  // not told yet
  Fifo<SessionId> overdue_;                 // not ended yet
  uint32_t open_ = 0;                       // Chunks that are not revoked.
  uint32_t lingering_ = 0;                  // Revoked chunks with a window that have not ended.
  uint32_t count_ = 0;                      // All chunks whose space is held.
  uint64_t bytes_ = 0;                      // The bytes of these chunks.
};

}  // namespace erda::server
