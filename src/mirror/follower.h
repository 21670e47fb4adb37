// The mirror's end of a link: takes the stream of one shard, and stores it in the mirror's pool (docs/mirror.md, "The
// link"; format/mirror_link.h).
//
// The primary places pieces in the ring. Store takes the oldest one out of it, and the answer then says that the mirror
// has it. So the primary overwrites nothing that is still needed. The primary may be anybody. It can change the ring
// at any time, so each piece is checked as it is stored. It can store anything in the pool, but for the superblocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/fifo.h"
#include "erda/status.h"
#include "fabric/fabric.h"
#include "format/mirror_link.h"
#include "journal/place.h"
#include "nvm/writer.h"

namespace erda::mirror {

// Belongs to one thread. Owns nothing: the ring and the writer outlive it, and the channel does unless it is told
// otherwise. After an error the link has ended.
class Follower {
 public:
  // REQUIRES: the ring's size is one by format::IsMirrorRingSize, and it was offered on the channel, for writing. Each
  // earlier channel with this ring was fenced and destroyed. Nobody else writes into the shard's part of the pool.
  Follower(std::span<const std::byte> ring, nvm::Writer& writer);

  // Says where the stream goes on: at `from`. Returns kInvalidArgument if the primary cannot have said this hello, or
  // does not have the stream there. REQUIRES: the channel is connected.
  Status Start(fabric::Channel& channel, const format::MirrorHello& hello, journal::Place from);
  // Takes a message of the primary. Returns kInvalidArgument if it breaks the rules.
  Status Take(uint32_t imm);
  // Stores the oldest piece that has come, and makes it persistent. Returns kCorruption if its entries are malformed;
  // a part of them may be stored then. The mirror has to make a copy after that. REQUIRES: has_piece().
  Status Store();
  // Tells the primary what was stored since the last answer.
  Status Answer(fabric::Channel& channel);
  // Asks to join. REQUIRES: the link has started, and Join was not called before.
  Status Join(fabric::Channel& channel);
  // Says that the mirror is in sync. REQUIRES: this follower has answered all that it has stored. Each follower of the
  // mirror has_joined() on its present link. The mirror's superblock says that it is in sync, and keeps that over a
  // power cut ("says-before-its-superblock" and "in-sync-with-one-shard" of tests/model/joining_model.py).
  Status SayInSync(fabric::Channel& channel);

  [[nodiscard]] bool has_piece() const { return !pieces_.empty(); }
  [[nodiscard]] journal::Place received() const { return received_; }
  [[nodiscard]] journal::Place stored() const { return stored_; }
  // The mirror has joined, and has stored all that came before. The shard will answer only what the mirror has stored.
  [[nodiscard]] bool has_joined() const { return joined_at_ && stored_ >= *joined_at_; }

 private:
  Status Say(fabric::Channel& channel, uint64_t bytes);
  // Returns the bytes of the stream from one place to another that lie in one piece in the ring.
  [[nodiscard]] std::span<const std::byte> InRing(journal::Place from, journal::Place to) const;
  // Returns whole entries at the beginning of that part of the stream, or all of it if they are malformed. Copies an
  // entry that is torn in the ring.
  [[nodiscard]] std::span<const std::byte> EntriesAt(journal::Place at, journal::Place end);

  const std::span<const std::byte> ring_;
  nvm::Writer& writer_;
  Fifo<journal::Place> pieces_;  // The ends of those that have come and are not stored.
  journal::Place received_ = 0;
  journal::Place stored_ = 0;
  journal::Place answered_ = 0;
  bool asked_to_join_ = false;
  std::optional<journal::Place> joined_at_;
  std::unique_ptr<std::byte[]> torn_;  // Room for an entry that stands at the ring's end and at its beginning.
};

}  // namespace erda::mirror
