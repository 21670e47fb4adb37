#include "server/cleaning/copy_segments.h"

namespace erda::server {

CleanOrder GiveCopySegment(log::ShardLog& log, const SegmentWanted& wanted) {
  auto segment = wanted.end == 0 ? log.copies().Open(wanted.head) : std::nullopt;
  const bool begun = segment.has_value();
  if (!segment) segment = log.copies().Next(wanted.head, wanted.end);
  if (!segment) return NoSegmentOrder{};
  return SegmentOrder{.head = wanted.head,
                      .region = segment->region,
                      .generation = segment->generation,
                      .slot = segment->slot,
                      .segment = segment->segment,
                      .begun = begun,
                      .last_copy = begun ? log.copies().Last(wanted.head) : 0};
}

}  // namespace erda::server
