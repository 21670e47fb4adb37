// Copies the objects that entries need out of a region, and proposes each copy to the shard. Owns the walk through the
// region, the segments that it copies to, and the copies that it has not proposed yet. The cleaner's thread calls it.
//   (C4) A copy is persistent before the cleaner proposes it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/server_time.h"
#include "format/geometry.h"
#include "index/read_only_index.h"
#include "nvm/writer.h"
#include "server/cleaner/clean_queues.h"
#include "server/cleaner/copy_target.h"
#include "server/cleaner/region_walk.h"
#include "server/control/counters.h"

namespace erda::server {

class RegionMerge {
 public:
  // The index is the cleaner's own view of the shard's. counters: of the shard's control block.
  RegionMerge(nvm::Writer& nvm, index::ReadOnlyIndex& index, const format::Geometry& geometry, uint32_t pool_seed,
              uint32_t shard, CleanQueues& queues, Counters counters, const ServerTime& time);

  // The orders of the shard. Begin requires that no merge is active. The others answer SegmentWanted.
  void Begin(const MergeOrder& order);
  void CopyTo(const SegmentOrder& order);
  void EndWithoutRoom() { segment_ = SegmentState::kNone; }

  [[nodiscard]] bool active() const { return walk_.has_value(); }
  // Walks a few KiB of the region. Returns false if there is nothing to do before the next order.
  bool Step();

 private:
  enum class SegmentState : uint8_t {
    kKnown,   // The cleaner waits for no segment.
    kWanted,  // The cleaner has asked the shard for the next segment.
    kNone     // The shard has no segment: the walk ends here.
  };

  // Goes on with the walk. Returns true at the end of the region.
  bool WalkOn();
  // Copies the object, or proposes to free it. Returns false if there is no room for the copy.
  bool Merge(const RegionWalk::Found& found);
  // Returns true if the object's entry names it as its new version, settled, and the object has expired.
  [[nodiscard]] bool HasExpired(const RegionWalk::Found& found) const;
  [[nodiscard]] CopyTarget& TargetOf(uint32_t head) { return targets_[head - first_head_]; }
  void ProposeBatch();

  nvm::Writer& nvm_;
  index::ReadOnlyIndex& index_;
  const format::Geometry& geometry_;
  const uint32_t pool_seed_;
  const uint32_t first_head_;
  CleanQueues& queues_;
  Counters counters_;
  const ServerTime& time_;

  std::vector<CopyTarget> targets_;  // by the head's number in the shard
  std::optional<RegionWalk> walk_;
  SegmentState segment_ = SegmentState::kKnown;
  WalkBudget budget_;
  std::vector<CleanProposal> batch_;
};

}  // namespace erda::server
