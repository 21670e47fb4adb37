// Decides which region of a shard is cleaned next, and when. Decides when a put that waits for room is refused. Gives
// the cleaner its orders, and takes its proposals (docs/cleaning.md). The parts own the details: region_choice.h the
// scores, merged_regions.h the regions between their two phases, present_phase.h the orders, waiting_puts.h the puts
// that wait. The shard's thread calls it.
//   (C7) A merge passes the places of a region that hold it. Once nothing holds the region, the cleaner replicates it:
//   it copies what settled at these places since. Until then the region waits, and does not keep another region from
//   being cleaned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "format/geometry.h"
#include "log/shard_log.h"
#include "server/cleaner/clean_queues.h"
#include "server/cleaning/aside_search.h"
#include "server/cleaning/emptied_regions.h"
#include "server/cleaning/entry_proposals.h"
#include "server/cleaning/mending_walk.h"
#include "server/cleaning/merged_regions.h"
#include "server/cleaning/present_phase.h"
#include "server/cleaning/region_choice.h"
#include "server/cleaning/tried_regions.h"
#include "server/cleaning/waiting_puts.h"
#include "server/control/counters.h"
#include "server/versions/versions.h"

namespace erda::server {

class CleaningPolicy {
 public:
  // control: the shard's control block.
  CleaningPolicy(Versions& versions, const format::Geometry& geometry, std::span<std::byte> control,
                 CleanQueues& queues);
  CleaningPolicy(const CleaningPolicy&) = delete;

  // Requires: the pool was taken up.
  void Begin() { emptied_.TakeUp(); }
  // Applies some proposals, and decides the next step. Returns how much it did.
  size_t Step() {
    const log::RegionCounts counts = versions_.CountRegions();
    return IsQuiet(counts) ? 0 : Work(counts);
  }

  // Returns the puts that wait for room.
  [[nodiscard]] WaitingPuts& waiting() { return waiting_; }

  // A client asks to clean all regions that are linked now and worth it.
  void Ask();
  [[nodiscard]] bool asked() const { return asked_.has_value(); }
  // Calls on_damage with the damage that was met since the last Step.
  void TellDamage() { mending_.Tell(entries_, on_damage); }
  // Notes that a put has a deadline.
  void WillExpire() { queues_.expiring_puts.Count(); }

  // Called with each key whose value turned out to be damaged.
  EntryProposals::TellDamage on_damage;
  // Called when the cleaner begins to merge a region, and when it has walked it.
  std::function<void(bool begins)> on_merge;

 private:
  // Returns true if there is nothing to apply, to decide or to tell. So it is in most steps of a busy shard.
  [[nodiscard]] bool IsQuiet(const log::RegionCounts& counts) const;
  size_t Work(const log::RegionCounts& counts);
  // Applies up to a few proposals. Returns how many.
  size_t Apply(const log::RegionCounts& counts);
  void OnMerged(const RegionMerged& answer, const log::RegionCounts& counts);
  void Empty(const log::ShardLog::LinkedRegion& region);
  size_t Search(const log::RegionCounts& counts);

  // Returns true if only few regions are free or will be.
  [[nodiscard]] bool NeedsSpace() const;
  // Returns true if cleaning is due.
  [[nodiscard]] bool IsDue() const;
  size_t Choose(const log::RegionCounts& counts);
  // Orders one phase of the region. The held places are those of MergedRegions.
  size_t Begin(const log::ShardLog::LinkedRegion& region, CleanPhase phase, std::span<const HeldPlace> held);
  // Ends the waits for room, since no region is left whose merge would help.
  size_t GiveUp(const log::RegionCounts& counts);

  Versions& versions_;
  log::ShardLog& log_;
  const format::Geometry& geometry_;
  Counters counters_;
  CleanQueues& queues_;

  EntryProposals entries_;
  EmptiedRegions emptied_;
  AsideSearch search_;
  TriedRegions tried_;
  MergedRegions merged_;
  WaitingPuts waiting_;
  MendingWalk mending_;
  PresentPhase phase_;
  bool searches_ = false;          // The shard looks for entries that still name a merged region (AsideSearch).
  std::optional<uint32_t> asked_;  // A client asked to clean the regions up to this generation.
  uint64_t look_again_at_ = 0;  // The value of RegionCounts::changes() from which on a look for a region is worthwhile.
};

}  // namespace erda::server
