// The primary's end of a link: sends the stream of one shard to a mirror, and takes the mirror's answers
// (docs/mirror.md, "The link"; format/mirror_link.h).
//
// It sends what the stream has when Send is called, as one piece if that fits. While the mirror is late, later pieces
// become longer: at most kMirrorPiecesMax are under way. The mirror may be anybody. The feed sends it parts of this
// stream only, in whole entries. stored() is always the end of a piece that was sent.
#pragma once

#include <cstdint>
#include <optional>

#include "base/fifo.h"
#include "erda/status.h"
#include "fabric/fabric.h"
#include "format/mirror_link.h"
#include "journal/place.h"
#include "journal/stream.h"

namespace erda::mirror {

// Belongs to the shard's thread. Owns nothing: stream and channel outlive it. After an error the link has ended.
class Feed {
 public:
  // The longest piece. A mirror answers after each, so a long one keeps its ring full for longer.
  static constexpr uint64_t kPieceBytesMax = 256 << 10;

  // Returns what the primary tells a new mirror, without the fields that are the same for all shards. REQUIRES: the
  // stream keeps its bytes from `begin` on until a Feed says that they are stored, or its channel is destroyed. Before
  // that a device may still read them. It may read bytes again that the mirror has answered, and a mirror drops what
  // comes a second time.
  [[nodiscard]] static format::MirrorHello Hello(const journal::Stream& stream);

  // hello: what the mirror was told.
  Feed(const journal::Stream& stream, fabric::Channel& channel, const format::MirrorHello& hello)
      : stream_(stream), channel_(channel), hello_(hello), sent_(hello.begin), stored_(hello.begin) {}

  // Takes a message of the mirror. Returns kInvalidArgument if it breaks the rules.
  Status Take(uint32_t imm);
  // Sends what the stream has, as far as the mirror's ring has room. Call it after each Take, and when the stream has
  // grown. REQUIRES: the channel is connected, and the stream's memory is registered.
  Status Send();
  // Lets the mirror join at the present end of the stream. The next Sends tell it. REQUIRES: asks_to_join().
  void Join();

  // The mirror has stored the stream up to here. The link needs the bytes after it.
  [[nodiscard]] journal::Place stored() const { return stored_; }
  // Returns true if the mirror has not begun, or has not stored all that was sent.
  [[nodiscard]] bool is_late() const { return ring_bytes_ == 0 || sent_ != stored_; }
  // Returns true if the mirror asks to join, and has not joined.
  [[nodiscard]] bool asks_to_join() const { return wants_to_join_ && !joined_at_; }
  // Returns true if the mirror has said that it is in sync. So it has stored all that came before it joined, in all
  // shards, and its superblock says so.
  [[nodiscard]] bool in_sync() const { return in_sync_; }

 private:
  Status Start(uint64_t bytes);
  // Returns where the next piece ends; sent_ if there is nothing to send yet.
  [[nodiscard]] journal::Place NextEnd() const;
  Status SendPiece(journal::Place end);
  Status TellJoined();
  // The mirror asks to join, or says that it is in sync.
  Status TakeWord();

  const journal::Stream& stream_;
  fabric::Channel& channel_;
  const format::MirrorHello hello_;
  uint64_t ring_bytes_ = 0;  // 0: the mirror has not said where it begins.
  journal::Place sent_;
  journal::Place stored_;
  Fifo<journal::Place> ends_;  // Of the pieces that are sent and not stored.
  bool wants_to_join_ = false;
  std::optional<journal::Place> joined_at_;
  bool told_ = false;  // The mirror, that it has joined.
  bool in_sync_ = false;
};

}  // namespace erda::mirror
