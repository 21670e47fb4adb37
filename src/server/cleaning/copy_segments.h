// Gives the cleaner the segments of the log that it copies to. Owns nothing. The shard's thread calls it.
#pragma once

#include "log/shard_log.h"
#include "server/cleaner/clean_queues.h"

namespace erda::server {

// Returns true if copies out of a held region may take one more free region in this head. They may gain nothing for
// long. So two free regions stay, one for writers and one for other copies, and so does the last slot of the head.
[[nodiscard]] bool MayOpenForEarlyCopies(const log::ShardLog& log, uint32_t head);

// Returns the order that answers the cleaner. An earlier server's cleaner may have left a segment open in this head.
// Then the order names that one. Otherwise it names the next segment. may_take_last: the copies may take what
// MayOpenForEarlyCopies keeps.
[[nodiscard]] CleanOrder GiveCopySegment(log::ShardLog& log, const SegmentWanted& wanted, bool may_take_last);

}  // namespace erda::server
