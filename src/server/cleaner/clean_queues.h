// The messages between a shard and its cleaner. The shard's thread pushes orders and pops proposals. The cleaner's
// thread pops orders and pushes proposals.
//   (C1) A thread that sees an order or a proposal sees all that was stored before it (base/spsc_queue.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <type_traits>
#include <variant>

#include "base/spsc_queue.h"
#include "format/log_address.h"
#include "server/cleaner/cleaner_bell.h"
#include "server/cleaner/expiring_puts.h"
#include "server/cleaner/page_orders.h"

namespace erda::server {

// --- Orders

// Bytes of a region that a client may still write, or that a reader may still need. From and to are offsets in the
// region. No held place reaches out of its segment.
struct HeldPlace {
  uint64_t from = 0;
  uint64_t to = 0;
  bool in_chunk = false;  // Objects of a chunk stand there, or will; otherwise one object.
};
enum class CleanPhase : uint8_t {
  kMerge,     // Look at the whole region, and pass the held places.
  kReplicate  // Look at the held places alone: nothing holds them any more.
};
// Copy all objects that entries need out of these places of a full region. The cleaner answers with RegionMerged. The
// held places are in the order of their offsets. The shard keeps and does not change them until that answer.
struct MergeOrder {
  uint32_t region = 0;
  uint32_t generation = 0;
  uint32_t head = 0;
  uint32_t slot = 0;
  CleanPhase phase = CleanPhase::kMerge;
  std::span<const HeldPlace> held{};
};
// Copy to this segment. Answers SegmentWanted.
struct SegmentOrder {
  uint32_t head = 0;
  uint32_t region = 0;
  uint32_t generation = 0;
  uint32_t slot = 0;
  uint64_t segment = 0;
  bool begun = false;      // The cleaner of an earlier server has copied there.
  uint64_t last_copy = 0;  // The place of the last such copy that an entry names; 0: no entry names one.
};
// The shard has no segment for the cleaner. Answers SegmentWanted.
struct NoSegmentOrder {};
// Fill this region with zeroes. The cleaner answers with RegionZeroed.
struct ZeroOrder {
  uint32_t region = 0;
};
// Look through all entries for expired versions. The cleaner answers with a VersionExpired for each of these, and then
// with SweepEnded.
struct SweepOrder {};

using CleanOrder = std::variant<MergeOrder, SegmentOrder, NoSegmentOrder, ZeroOrder, SweepOrder>;

// --- Proposals

// A copy of the version at `from` stands at `to`. The shard may let the entry name the copy.
struct VersionCopied {
  uint64_t key_hash = 0;
  format::LogAddress from{};
  format::LogAddress to{};
};
// The cleaner waits for a segment to copy to in this head.
struct SegmentWanted {
  uint32_t head = 0;
  uint64_t end = 0;  // where the copies end in the segment that it has filled; 0: it had no segment yet
};
// The cleaner has proposed all copies of one phase out of this region. If not complete: there was no room for more
// copies.
struct RegionMerged {
  uint32_t region = 0;
  bool complete = false;
};
struct RegionZeroed {
  uint32_t region = 0;
};
// The entry in this index slot named the version at `from` as settled, and that version is damaged.
struct DamageFound {
  uint32_t head = 0;
  format::LogAddress from{};
  uint64_t index_slot = 0;
};
// The object at `from`, in a chunk, shares bytes with another one, or reaches out of the chunk.
struct ForgeryFound {
  uint32_t head = 0;
  uint64_t key_hash = 0;
  format::LogAddress from{};
};
// An entry named the version at `from` as its new one, settled, and that version has expired.
struct VersionExpired {
  uint32_t head = 0;
  uint64_t key_hash = 0;
  format::LogAddress from{};
};
struct SweepEnded {
  uint64_t next_deadline = 0;  // the earliest that has not passed; 0: no deadline is left
};

// It is time that the shard mends some entries. The cleaner cannot do that: only the shard knows what it stored in an
// index slot.
struct MendingDue {};

using CleanProposal = std::variant<VersionCopied, SegmentWanted, RegionMerged, RegionZeroed, DamageFound, ForgeryFound,
                                   VersionExpired, SweepEnded, MendingDue>;

static_assert(std::is_trivially_copyable_v<CleanOrder> && std::is_trivially_copyable_v<CleanProposal>);

using ProposalQueue = SpscQueue<CleanProposal, 256>;
// The cleaner proposes up to this many copies with one fence.
inline constexpr size_t kCopiesPerBatch = 32;
// Cleaner thread: returns true if the queue has room for a batch and for the other proposals of one step.
[[nodiscard]] inline bool HasRoomForBatch(const ProposalQueue& proposals) {
  return proposals.room() >= kCopiesPerBatch + 4;
}

// --- Between the two

struct CleanQueues {
  SpscQueue<CleanOrder, 64> orders;
  ProposalQueue proposals;
  CleanerBell bell;
  PageOrders pages;
  ExpiringPuts expiring_puts;
  // The shard sets the pace by `allowance`: how many bytes of the log the cleaner may have walked in all. `walked` is
  // how many it has walked. Relaxed: neither number orders any other memory.
  std::atomic<uint64_t> allowance{0};
  std::atomic<uint64_t> walked{0};
  std::atomic<bool> hurry{false};  // a put waits for the cleaner

  [[nodiscard]] bool MayExpire() const { return expiring_puts.MayExpire(); }
  // Shard thread. The queue always has room: the shard gives one order of each kind at a time, and a limited number of
  // ZeroOrders (emptied_regions.cc).
  void Send(const CleanOrder& order) {
    (void)orders.Push(order);
    bell.Ring();
  }
};

}  // namespace erda::server
