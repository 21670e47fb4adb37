// Gives the cleaner the segments of the log that it copies to. Owns nothing. The shard's thread calls it.
#pragma once

#include "log/shard_log.h"
#include "server/cleaner/clean_queues.h"

namespace erda::server {

// Returns the order that answers the cleaner: the segment that an earlier server's cleaner left open in this head, or
// the next one. Takes the last free region of the shard only if `may_take_last`.
[[nodiscard]] CleanOrder GiveCopySegment(log::ShardLog& log, const SegmentWanted& wanted, bool may_take_last);

}  // namespace erda::server
