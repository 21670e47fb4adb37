// The mirror's side of a copy: brings the whole pool of a primary to the mirror, by one-sided Reads (docs/mirror.md,
// "The copy").
//
//   0             8192                                        the pool's size
//   +-------------+-----------------------+-------------------+---------------+
//   | superblocks | stored and fenced     | the piece that    | not read yet  |
//   | (no copy)   | (bytes_done)          | is being read     |               |
//   +-------------+-----------------------+-------------------+---------------+
//
// THE CALLER'S LOOP. It polls, and gives each message to its follower and each Read's completion to Take. If
// may_store_entries(), each follower stores all pieces that it has, and answers. Then the caller calls Step. In this
// order the followers store at least once between two Reads, so the stream waits for one piece of the copy at most.
//
// WHY BYTES OF MANY MOMENTS ARE RIGHT. A Read shows each aligned word as of a moment between Step and Take. Each
// flushed store to that word is in the stream. There are three cases:
// - It is before the place at which the followers began. The primary told that place before the first Read, so each
//   Read shows the store, or a later one.
// - It is in an entry that had come when Step posted the Read. The primary sends an entry after the store, so the Read
//   shows the store, or a later one.
// - It is in an entry that came after Step. The Read may show older bytes. This entry is stored after the piece:
//   may_store_entries() is false from Step to Take ("stores-stale-piece").
// So at the end each word has its last flushed value, or a later one that was not flushed yet. As a piece begins and
// ends at aligned words, the latter is whole, too.
//
// Two weaker rules would do, and would let entries wait for less. An entry that had come before Step may be stored at
// any time, by the second case. So may one that changes no byte of the piece. Neither is needed while a piece takes
// less than a millisecond.
//
// THE FENCE. Take flushes and fences the piece before it returns. So that comes before any entry is stored over the
// piece, and before the mirror's superblock can say that the mirror is in sync. Take flushes bytes that were equal,
// too. An earlier process may have stored them and died before its flush: then the caches alone have them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/clock.h"
#include "erda/status.h"
#include "fabric/fabric.h"
#include "format/superblock.h"
#include "nvm/writer.h"

namespace erda::mirror {

// Belongs to the thread of all followers of the mirror, and has no other. Owns nothing: buffer, writer and clock
// outlive it, and the channel does until the link has ended.
class Copy {
 public:
  // The longest piece. Followers wait for a Read and a store of this length.
  static constexpr uint64_t kPieceBytesMax = 256 << 10;

  // buffer: registered memory for a piece. bytes_per_second: the most that it reads; 0: no limit. REQUIRES: the buffer
  // has room for a cache line. The mirror's pool has the geometry of the primary's. The followers store with the same
  // writer, and had begun before the first Step.
  Copy(std::span<std::byte> buffer, nvm::Writer& writer, const Clock& clock, uint64_t bytes_per_second);

  // Begins the copy over the channel of any shard, or goes on with it over a new link, after the pieces that are
  // stored. REQUIRES: the channel is connected. The channel before it was destroyed. On a new link each follower goes
  // on where it was, in the same life of the stream. Otherwise the mirror needs a new Copy. Returns kInvalidArgument if
  // the primary offers no pool of the mirror's size.
  Status Begin(fabric::Channel& channel);
  // Begins to read the next piece, if that is due. Does nothing while a piece is being read, after the last piece, and
  // without a link. After an error the link has ended.
  Status Step();
  // Takes the completion of the Read, and stores the piece. After an error the link has ended. REQUIRES: is_reading(),
  // and the completion is that of a Read on the channel.
  Status Take(const fabric::Completion& completion);
  // The link has ended: the piece that is being read does not count. The caller must call this if it destroys the
  // channel.
  void End();

  // Returns true if the followers may store what they have. This holds for the followers of all shards, since a piece
  // has bytes of every shard.
  [[nodiscard]] bool may_store_entries() const { return !is_reading(); }
  [[nodiscard]] bool is_reading() const { return reading_bytes_ > 0; }
  // The time of the clock from which on Step reads the next piece.
  [[nodiscard]] Nanoseconds due_at() const { return due_at_; }

  // The copy has all bytes but those of the superblocks. The mirror may ask to join.
  [[nodiscard]] bool is_done() const { return at_ == size(); }
  // Progress: the bytes that are stored, and those of the whole copy.
  [[nodiscard]] uint64_t bytes_done() const { return at_ - format::kShardRecordsOffset; }
  [[nodiscard]] uint64_t bytes_in_all() const { return size() - format::kShardRecordsOffset; }

 private:
  [[nodiscard]] uint64_t size() const { return writer_.pool().size(); }
  // Stores those cache lines of the piece that differ, and makes all of it persistent.
  void Store(std::span<const std::byte> piece);

  const std::span<std::byte> buffer_;  // A piece, in whole cache lines.
  nvm::Writer& writer_;
  const Clock& clock_;
  const uint64_t bytes_per_second_;
  fabric::Channel* channel_ = nullptr;         // Null: there is no link.
  uint64_t at_ = format::kShardRecordsOffset;  // The offset of the next piece, or of the one that is being read.
  uint64_t reading_bytes_ = 0;                 // Of the piece that is being read. 0: no Read is under way.
  Nanoseconds due_at_{0};
};

}  // namespace erda::mirror
