// The phase of cleaning that the cleaner works on: a merge or a replicate of one region. Gives the order for it, and
// sets its pace. Owns nothing else. The shard's thread calls it.
#pragma once

#include <optional>
#include <span>

#include "format/geometry.h"
#include "log/shard_log.h"
#include "server/cleaner/clean_queues.h"
#include "server/cleaning/merge_pace.h"

namespace erda::server {

class PresentPhase {
 public:
  PresentPhase(const log::ShardLog& log, const format::Geometry& geometry, CleanQueues& queues)
      : geometry_(geometry), queues_(queues), pace_(log, queues) {}

  // Orders a phase of the region. held: what MergeOrder needs. REQUIRES: no phase goes on.
  void Begin(const log::ShardLog::LinkedRegion& region, CleanPhase phase, std::span<const HeldPlace> held);
  // Notes that the cleaner has answered. Returns the phase that has ended.
  CleanPhase End();
  // Returns true if the cleaner has not answered yet.
  [[nodiscard]] bool goes_on() const { return phase_.has_value(); }
  // Tells the cleaner how far it may walk now. hurry: a merge goes as fast as it can; a replicate always does.
  void Update(bool hurry);
  // Returns true if the copies may take the shard's last free region. Copies out of a region that is held may not: they
  // may gain nothing for long, and another region may need that one.
  [[nodiscard]] bool may_take_last() const { return may_take_last_; }

 private:
  const format::Geometry& geometry_;
  CleanQueues& queues_;
  MergePace pace_;
  std::optional<CleanPhase> phase_;
  bool may_take_last_ = true;
};

}  // namespace erda::server
