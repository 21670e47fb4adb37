// Decides which region of a shard is cleaned next, and when; and when a put need not wait for room any longer. Gives
// the cleaner its orders, and takes its proposals (docs/cleaning.md). The parts own the details: region_choice.h the
// scores, merge_pace.h the pace, room_wait.h and patience.h the puts that wait. The shard's thread calls it.
//   (C7) Only regions that no client holds are merged. So all that entries name in them is settled. A region that a
//   client
//        may still write into waits, and keeps no other from being cleaned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "base/clock.h"
#include "format/geometry.h"
#include "log/shard_log.h"
#include "server/aside_search.h"
#include "server/clean_queues.h"
#include "server/counters.h"
#include "server/emptied_regions.h"
#include "server/entry_proposals.h"
#include "server/last_resorts.h"
#include "server/mending_walk.h"
#include "server/merge_pace.h"
#include "server/patience.h"
#include "server/region_choice.h"
#include "server/room_wait.h"
#include "server/tried_regions.h"
#include "server/versions.h"

namespace erda::server {

class CleaningPolicy {
 public:
  // control: the shard's control block.
  CleaningPolicy(Versions& versions, const format::Geometry& geometry, std::span<std::byte> control,
                 CleanQueues& queues);
  CleaningPolicy(const CleaningPolicy&) = delete;

  // After the pool was taken up.
  void Begin() { emptied_.TakeUp(); }
  // Applies some proposals, and decides what comes next. Returns how much it did.
  size_t Step();

  // A put finds no room in this head. again: it has waited, and there is no room still. Returns true if there may be
  // some later: the put tries again when rooms() has changed.
  bool Expects(uint32_t head, bool again = false);
  // An interval of TidyTimer has passed, of this length, and a put still waits.
  void LosePatience(Nanoseconds since) { patience_.PassInterval(since); }
  // So much time has passed, and a put still waits.
  void AwaitChunks(Nanoseconds since) { patience_.PassTime(since); }
  // Grows when room was made, or when it is clear that none can be made.
  [[nodiscard]] uint64_t rooms() const { return wait_.rooms(); }

  // A client asks to clean each region that gains something, of those that are linked now.
  void Ask();
  [[nodiscard]] bool asked() const { return asked_.has_value(); }
  // A put has a deadline.
  void WillExpire() { queues_.expiring_puts.Count(); }

  // Called with each key whose value turned out to be damaged.
  EntryProposals::TellDamage on_damage;
  // Called when the cleaner begins to merge a region, and when it has walked it.
  std::function<void(bool begins)> on_merge;

 private:
  enum class State : uint8_t {
    kIdle,
    kMerging,   // the cleaner walks a region
    kSearching  // the shard looks for entries that still name a merged region
  };

  // Applies up to a few proposals. Returns how many.
  size_t Apply();
  void OnMerged(const RegionMerged& merged);
  void OnZeroed(const RegionZeroed& zeroed);
  size_t Search();

  // Few regions are free or will be.
  [[nodiscard]] bool NeedsSpace() const;
  size_t Choose();
  size_t Merge(const log::ShardLog::LinkedRegion& region);
  // Nothing is left that would gain anything.
  size_t GiveUp();

  Versions& versions_;
  log::ShardLog& log_;
  const format::Geometry& geometry_;
  Counters counters_;
  CleanQueues& queues_;

  EntryProposals entries_;
  EmptiedRegions emptied_;
  AsideSearch search_;
  TriedRegions tried_;
  RoomWait wait_;
  Patience patience_;
  LastResorts resorts_;
  MendingWalk mending_;
  MergePace pace_;
  State state_ = State::kIdle;
  std::optional<uint32_t> asked_;  // to clean the regions up to this generation
  uint64_t look_again_at_ = 0;     // the log's changes() from which on it is worth to look for a region
};

}  // namespace erda::server
