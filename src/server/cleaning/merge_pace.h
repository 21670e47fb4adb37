// Sets the pace at which the cleaner merges a region: a little faster than puts use up space. Owns the positions of the
// cleaner and of the puts when the merge began. The shard's thread calls it.
#pragma once

#include <cstdint>

#include "log/shard_log.h"
#include "server/cleaner/clean_queues.h"

namespace erda::server {

class MergePace {
 public:
  MergePace(const log::ShardLog& log, CleanQueues& queues) : log_(log), queues_(queues) {}

  // Notes that the cleaner begins to merge a region with this size and this many dead bytes.
  void Begin(uint64_t region_size, uint64_t dead_bytes);
  // Tells the cleaner how far it may walk now. hurry: it may walk as far as it can.
  void Update(bool hurry);

 private:
  const log::ShardLog& log_;
  CleanQueues& queues_;
  double bytes_per_byte_ = 0;  // To walk for each byte that puts append.
  uint64_t appended_ = 0;      // By puts, when the merge began.
  uint64_t walked_ = 0;        // By the cleaner, when the merge began.
};

}  // namespace erda::server
