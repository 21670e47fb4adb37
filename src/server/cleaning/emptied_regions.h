// Empties regions, and gives them back to the log once the cleaner has filled them with zeroes. Owns the list of
// emptied regions that are not free yet. The shard's thread calls it.
//   (C6) The shard empties a region when nobody appends to it any more, no entry names an address in it, and nothing
//   holds it. Nothing holds it if no reservation in it is in flight, and none leads a reader there. The entries are
//   persistent before the region is emptied.
#pragma once

#include <cstdint>
#include <vector>

#include "format/geometry.h"
#include "log/shard_log.h"
#include "server/cleaner/clean_queues.h"
#include "server/control/counters.h"

namespace erda::server {

class EmptiedRegions {
 public:
  EmptiedRegions(log::ShardLog& log, const format::Geometry& geometry, CleanQueues& queues, Counters counters)
      : log_(log), geometry_(geometry), queues_(queues), counters_(counters) {}

  // Goes on with the regions that an earlier server had emptied. Requires: the log was taken up.
  void TakeUp();
  // Empties the region. REQUIRES: the region is full, and nothing names or holds it.
  void Empty(const log::ShardLog::LinkedRegion& region);
  // Frees the region, which the cleaner has filled with zeroes, persistently.
  void Free(uint32_t region);

  // Returns true if the cleaner was told to zero a region, and has not answered.
  [[nodiscard]] bool being_zeroed() const { return ordered_ > 0; }
  // Returns how many emptied regions will become free.
  [[nodiscard]] uint64_t size() const { return ordered_ + waiting_.size(); }

 private:
  void OrderZeroes();

  log::ShardLog& log_;
  const format::Geometry& geometry_;
  CleanQueues& queues_;
  Counters counters_;
  std::vector<uint32_t> waiting_;  // regions for which the shard has given no order yet
  uint64_t ordered_ = 0;           // regions for which it has
};

}  // namespace erda::server
