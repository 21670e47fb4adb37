// The cleaner of one shard: copies what is still needed out of a region, so that the shard can use it anew
// (docs/cleaning.md). A state machine: a thread of its own steps it in production, a seeded loop in tests.
//
// It reads the pool while the shard goes on, and writes where nobody else does: behind its own copies, and into regions
// that are emptied. It stores no entry, no region word, no segment header: it proposes, and the shard applies. Where
// the two meet (docs/protocol.md, "The cleaner and the shard"):
//   (C1) An order or a proposal is seen with all that was stored before it (base/spsc_queue.h).
//   (C2) It reads regions to which nothing is appended any more, and objects that an entry names as settled.
//   (C3) It may miss that an entry changes. So its proposals are checked by the shard, against the entry as it is then.
//   (C4) A copy is persistent before it is proposed.
//   (C5) It writes zeroes to a region only when told so, and the shard tells it when the region is emptied.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/server_time.h"
#include "base/spsc_queue.h"
#include "format/control_block.h"
#include "format/geometry.h"
#include "format/log_layout.h"
#include "format/object.h"
#include "index/index.h"
#include "nvm/writer.h"
#include "server/counters.h"

namespace erda::server {

// What the shard tells the cleaner.
struct CleanOrder {
  enum class Kind : uint8_t {
    kMerge,      // copy what is needed in this region of the head; answered by kMerged
    kSegment,    // answers kNeedSegment: copy to there
    kNoSegment,  // or there is none
    kZero,       // fill this region with zeroes; answered by kZeroed
    kSweep,      // look at all entries for what has expired; answered by kSwept
  };
  Kind kind = Kind::kMerge;
  bool begun = false;  // kSegment: an earlier server's cleaner has copied there
  uint32_t region = 0;
  uint32_t generation = 0;
  uint32_t head = 0;
  uint32_t slot = 0;
  uint64_t segment = 0;    // kSegment
  uint64_t last_copy = 0;  // of what was copied there, that an entry names; 0: none
};

// What the cleaner tells the shard.
struct CleanProposal {
  enum class Kind : uint8_t {
    kMove,         // the version at `from` stands at `to`, too: let the entry name that
    kNeedSegment,  // the segment that it copies to in this head is full, up to `end`; 0: it has none
    kMerged,       // all moves out of this region are proposed; `end` 0: there was no room for more
    kZeroed,
    kDamaged,  // what the entry in `index_slot` named, settled, is damaged: at `from`
    kForged,   // the version at `from`, in a chunk, stands in another one's bytes or reaches out of the chunk
    kExpire,   // the version at `from`, which an entry named as its new one, settled, has expired
    kSwept,    // `end`: the earliest deadline that has not passed; 0: none
  };
  Kind kind = Kind::kMove;
  uint32_t head = 0;
  uint32_t region = 0;
  uint64_t key_hash = 0;
  format::LogAddress from{};
  format::LogAddress to{};
  uint64_t end = 0;
  uint64_t index_slot = 0;
};

// Between the two.
struct CleanQueues {
  SpscQueue<CleanOrder, 64> orders;
  SpscQueue<CleanProposal, 256> proposals;
  // How many bytes of the log the cleaner may have walked through in all: how the shard sets its pace.
  std::atomic<uint64_t> allowance{0};
  std::atomic<uint64_t> walked{0};  // and how many it has
  std::atomic<bool> hurry{false};   // a put waits for it
  // The shard counts puts that have a deadline; the cleaner says up to which one it knows that none is left of them.
  std::atomic<uint64_t> expiring_puts{1};
  std::atomic<uint64_t> none_left_of{0};
  [[nodiscard]] bool MayExpire() const {
    return none_left_of.load(std::memory_order_relaxed) != expiring_puts.load(std::memory_order_relaxed);
  }
  // Grows when there may be something to do for the cleaner. Its thread sleeps only if it did not grow since before the
  // last look, and says first that it is about to: of these four, in one order, either the thread sees the growth or
  // Signal sees that it sleeps.
  std::atomic<uint32_t> signal{0};
  std::atomic<bool> sleeping{false};
  std::function<void()> wake;

  void Signal() {
    signal.fetch_add(1, std::memory_order_seq_cst);
    if (sleeping.load(std::memory_order_seq_cst) && wake) wake();
  }
};

class Cleaner {
 public:
  Cleaner(nvm::Pool& pool, const format::Geometry& geometry, uint32_t pool_seed, uint32_t shard,
          std::span<std::byte> control, CleanQueues& queues, const ServerTime& time);
  Cleaner(const Cleaner&) = delete;
  Cleaner& operator=(const Cleaner&) = delete;

  // Some of what there is to do. False: nothing, until the shard says more.
  bool Step();
  // It copies nothing, and has proposed nothing that is not applied.
  [[nodiscard]] bool idle() const { return !walk_ && !sweeps_ && queues_.proposals.empty(); }
  // How much it has proposed in all.
  [[nodiscard]] uint64_t proposed() const { return proposed_; }
  // Beside that: verifies what entries name, one after the other, and goes round and round; about so many bytes of it.
  void Scrub(uint64_t bytes);
  // The same for what has expired, by the header alone: some entries, more if there is more to find.
  void Sweep();

 private:
  // Where the copies of a head go.
  struct Target {
    bool open = false;
    uint32_t generation = 0;
    uint32_t slot = 0;
    uint64_t segment = 0;
    uint64_t offset = 0;  // of the segment, in the pool
    uint64_t tail = 0;    // in the segment
  };
  // A region that is walked through, for its live objects.
  struct Walk {
    CleanOrder order;
    uint64_t segment = 0;
    // All in the segment.
    uint64_t at = 0;
    uint64_t chunk_end = 0;  // of the last chunk
    uint64_t covered = 0;    // the end of the last object that was copied out of it
    bool lost = false;       // where the last object ends is not known
    [[nodiscard]] bool in_chunk() const { return at < chunk_end; }
  };

  bool TakeOrders();
  bool WalkSome();
  bool ZeroSome();
  bool SweepSome();
  // The next object of the walk that an entry needs. nullopt: there is none, or the step is over (*ended says which).
  std::optional<format::ObjectView> NextNeeded(bool* ended);
  [[nodiscard]] format::Place PlaceAt(uint64_t at) const;
  [[nodiscard]] uint64_t SegmentOffset() const {
    return geometry_.RegionOffset(walk_->order.region) + walk_->segment * geometry_.segment_size;
  }
  [[nodiscard]] std::span<const std::byte> BytesAt(uint64_t at) const;
  [[nodiscard]] bool IsNeeded(const format::ObjectHeader& header, format::LogAddress address);
  [[nodiscard]] uint32_t HeadOf(const format::IndexEntry& entry) const {
    return geometry_.HeadOf(entry.entry_meta().tag());
  }
  // The object at hand was copied, or need not be.
  void PassObject(const format::ObjectHeader& header);
  // So many bytes of the walk are behind it, which took as much work as so many.
  void Pass(uint64_t bytes, uint64_t cost);
  void Copy(const format::ObjectView& header, Target& target);
  // The entry names what is settled and damaged.
  [[nodiscard]] bool IsDamaged(const format::IndexEntry& entry, uint64_t* bytes) const;
  // What an entry names as its new version: where it stands, and the bytes from there to the end of its segment.
  struct Named {
    format::Place place;
    std::span<const std::byte> bytes;
    uint64_t* slot_word = nullptr;
    format::HeadSlot slot;  // what that was when it was looked up
  };
  [[nodiscard]] std::optional<Named> FindNamed(const format::IndexEntry& entry) const;
  [[nodiscard]] static format::HeadSlot SlotNow(uint64_t* slot_word);
  // Of the walk: it has expired, and its entry names it as the new version.
  [[nodiscard]] bool HasExpired(const format::ObjectView& object, format::LogAddress address) const;
  // Goes on in the index, up to so many entries; how many of them name versions with deadlines, how many
  // of these have passed, and whether some may still go back to one.
  struct Swept {
    uint64_t slots = 0;
    uint64_t expiring = 0;
    uint64_t expired = 0;
    bool unsettled = false;
    uint64_t next_deadline = UINT64_MAX;  // of the others
  };
  Swept SweepSlots(index::Slot* next, uint64_t looks);
  void Resume(const CleanOrder& order, Target& target);
  void Propose(const CleanProposal& proposal);
  // All that was copied is persistent, and proposed.
  void ProposeMoves();

  nvm::Writer nvm_;
  const format::Geometry& geometry_;
  const uint32_t pool_seed_;
  const uint32_t shard_;
  const std::span<std::byte> control_;
  Counters counters_;
  CleanQueues& queues_;
  const ServerTime& time_;
  index::Index index_;  // to look things up

  std::vector<Target> targets_;  // by head
  std::optional<Walk> walk_;
  index::Slot scrubbed_ = 0;  // the next slot to be scrubbed
  bool sweeps_ = false;       // it was told to, from this slot on
  index::Slot sweep_at_ = 0;
  uint64_t next_deadline_ = 0;  // the earliest that it has found, and that has not passed
  index::Slot swept_ = 0;       // the next slot of those that it sweeps by itself
  uint64_t sweep_looks_ = 0;    // at once
  struct Round {
    uint64_t expiring_puts = 0;  // when it began
    bool found = true;           // a version with a deadline, or an entry that may go back to one
  };
  Round round_;
  Round round_before_;
  bool needs_segment_ = false;  // it has said so, and waits
  bool no_segment_ = false;     // there was none: the walk ends here
  std::vector<CleanProposal> moves_;
  std::vector<uint32_t> to_zero_;  // regions; the last one first
  uint64_t zeroed_ = 0;            // of that one
  uint64_t walked_ = 0;            // bytes, in all
  uint64_t left_ = 0;              // of this step of the walk
  uint64_t proposed_ = 0;
};

}  // namespace erda::server
