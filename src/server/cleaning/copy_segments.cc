#include "server/cleaning/copy_segments.h"

namespace erda::server {

bool MayOpenForEarlyCopies(const log::ShardLog& log, uint32_t head) {
  constexpr uint32_t kForOthers = 2;
  return log.regions().free_regions() > kForOthers && !log.regions().slots().IsCrowded(head);
}

CleanOrder GiveCopySegment(log::ShardLog& log, const SegmentWanted& wanted, bool may_take_last) {
  auto segment = wanted.end == 0 ? log.copies().Open(wanted.head) : std::nullopt;
  const bool begun = segment.has_value();
  const bool has_room = may_take_last || MayOpenForEarlyCopies(log, wanted.head) || log.copies().Room(wanted.head) > 0;
  if (!segment && has_room) segment = log.copies().Next(wanted.head, wanted.end);
  if (!segment) return NoSegmentOrder{};
  if (begun) log.TakeCopies(wanted.head);
  return SegmentOrder{.head = wanted.head,
                      .region = segment->region,
                      .generation = segment->generation,
                      .slot = segment->slot,
                      .segment = segment->segment,
                      .begun = begun,
                      .last_copy = begun ? log.copies().Last(wanted.head) : 0};
}

}  // namespace erda::server
