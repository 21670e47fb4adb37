// The chunks of one shard's log that its sessions fill themselves (docs/protocol.md, "Put, delegated").
//
// Owns: each chunk from the moment that a session has it until nobody can write there any more, and the hold and the
// flight of its space in the log. Owns the news about chunks that the shard has to tell or act on: chunks that are
// taken back, windows to close, sessions that are overdue. Requires: the shard has published its puts before it ends a
// chunk (AllPublished), since an unpublished put may stand in it (I9). The caller writes the header of a chunk, and the
// objects in it. The shard's thread calls it.
#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "base/fifo.h"
#include "format/superblock.h"
#include "log/shard_log.h"
#include "server/all_published.h"
#include "server/chunk.h"
#include "server/in_flight.h"

namespace erda::server {

class ChunkTable {
 public:
  using Address = format::LogAddress;

  ChunkTable(log::ShardLog& log, const format::Geometry& geometry) : log_(log), geometry_(geometry) {}

  // Returns the size of the chunk that the session may have: `wanted` bytes, or fewer, and at least `least`. Returns 0
  // if it may have none now.
  [[nodiscard]] uint64_t SizeFor(uint32_t head, uint64_t least, uint64_t wanted, SessionId session) const;
  // Gives the chunk to the session. Requires: its space is reserved in the log, and its header is persistent.
  void Add(SessionId session, const Chunk& chunk);
  // Returns the chunk of the session that the address lies in, or nullptr. The next call of another function ends the
  // pointer's life.
  [[nodiscard]] Chunk* Find(SessionId session, uint32_t head, Address address);
  // Returns true if the session got another chunk of the same head before this one.
  [[nodiscard]] bool HasOlder(SessionId session, const Chunk& chunk) const;
  // Ends those, and returns the new place of the chunk.
  Chunk* EndOlder(AllPublished, SessionId session, const Chunk& chunk);
  // The session writes no more into the chunk there whose header has this version.
  void GiveBack(AllPublished, uint32_t head, Address address, uint64_t version, SessionId session);
  // The session is fenced: it has no chunk and no window any more, and no news is about it.
  void EndSession(AllPublished, SessionId session);

  // Counts one idle moment, and takes back the chunks that were unused for several of them.
  void Age(AllPublished);
  // Takes back the chunks in segments that the log no longer appends to.
  void TakeBackFull(AllPublished);

  // Calls tell(SessionId, Address) for each chunk that was taken back since the last call. Its client is to give it
  // back.
  template <class Tell>
  void TellTakenBack(Tell&& tell) {
    for (; !taken_back_.empty(); taken_back_.pop_front())
      tell(taken_back_.front().session, taken_back_.front().address);
  }
  // Calls close(SessionId, version) for each windowed chunk that ended since the last call: nothing is put there any
  // more. Its space is held until OnWindowClosed says that nobody can write there.
  template <class Close>
  void CloseWindows(Close&& close) {
    for (; !to_close_.empty(); to_close_.pop_front()) close(to_close_.front().session, to_close_.front().version);
  }
  void OnWindowClosed(SessionId session, uint64_t version);

  // A put begins to wait for room. Await counts the time for which it waits. A session becomes overdue if it keeps a
  // chunk that was taken back for too long of that time.
  void BeginAwaiting();
  void Await(Nanoseconds since);
  // Returns true if a session that is not overdue has a chunk to give back.
  [[nodiscard]] bool IsAwaiting() const;
  // Calls end(SessionId) for each session that became overdue since the last call.
  template <class End>
  void EndOverdue(End&& end) {
    for (; !overdue_.empty(); overdue_.pop_front()) end(overdue_.front());
  }

  // Returns true if Age has work: there are chunks that clients may fill, or that end after several idle moments.
  [[nodiscard]] bool delegates() const { return open_ > 0 || lingering_ > 0; }
  [[nodiscard]] uint32_t open() const { return open_; }
  [[nodiscard]] uint32_t count() const { return count_; }
  [[nodiscard]] uint64_t bytes() const { return bytes_; }
  // Sessions from this number on have no chunks.
  [[nodiscard]] size_t sessions() const { return chunks_.size(); }

 private:
  struct TakenBack {
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

  // The shard puts nothing there any more. The client may still write there.
  void TakeBack(SessionId session, Chunk& chunk);
  // The session no longer has the chunk. With a window, its client may still write there until that is closed.
  void End(SessionId session, const Chunk& chunk);
  // The client cannot write there any more: the log may use the space again.
  void Release(const Chunk& chunk);

  log::ShardLog& log_;
  const format::Geometry& geometry_;
  std::vector<std::vector<Chunk>> chunks_;  // by session, in the order in which they were given
  std::vector<ClosingChunk> closing_;       // ended, and held until OnWindowClosed
  Fifo<TakenBack> taken_back_;              // not told yet
  Fifo<Closing> to_close_;                  // not told yet
  Fifo<SessionId> overdue_;                 // not ended yet
  uint32_t open_ = 0;                       // chunks that are not taken back
  uint32_t lingering_ = 0;                  // chunks that are taken back, have a window, and have not ended
  uint32_t count_ = 0;                      // all chunks whose space is held
  uint64_t bytes_ = 0;                      // of those
};

}  // namespace erda::server
