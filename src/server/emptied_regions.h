// Empties regions, and gives them back to the log once the cleaner has filled them with zeroes. Owns the list of
// emptied regions that are not free yet. The shard's thread calls it.
//   (C6) A region is emptied when nothing is appended to it any more, no entry names an address in it, and nothing
//   holds
//        it: no reservation in it is in flight, and none leads a reader there. Entries are persistent before that.
#pragma once

#include <cstdint>
#include <vector>

#include "format/geometry.h"
#include "log/shard_log.h"
#include "server/clean_queues.h"
#include "server/counters.h"

namespace erda::server {

class EmptiedRegions {
 public:
  EmptiedRegions(log::ShardLog& log, const format::Geometry& geometry, CleanQueues& queues, Counters counters)
      : log_(log), geometry_(geometry), queues_(queues), counters_(counters) {}

  // After the log was taken up: goes on with the regions that an earlier server had emptied.
  void TakeUp();
  // REQUIRES: the region is full, and nothing names or holds it.
  void Empty(const log::ShardLog::LinkedRegion& region);
  // The cleaner has filled this region with zeroes, persistently: it is free.
  void Free(uint32_t region);

  // The cleaner was told to zero a region, and has not said that it did.
  [[nodiscard]] bool being_zeroed() const { return ordered_ > 0; }
  // Regions that will be free.
  [[nodiscard]] uint64_t size() const { return ordered_ + waiting_.size(); }

 private:
  void OrderZeroes();

  log::ShardLog& log_;
  const format::Geometry& geometry_;
  CleanQueues& queues_;
  Counters counters_;
  std::vector<uint32_t> waiting_;  // regions that the cleaner was not told of yet
  uint64_t ordered_ = 0;           // regions that it was told of
};

}  // namespace erda::server
