#include "log/copies.h"

#include <algorithm>

#include "format/log_layout.h"
#include "format/object.h"

namespace erda::log {

Copies::Copies(const ShardShape& shape, RegionTable& regions, Segments& segments)
    : shape_(shape), regions_(regions), segments_(segments), places_(shape.geometry().heads_per_shard) {}

std::optional<CopySegment> Copies::Open(uint32_t head) const {
  const Place& at = At(head);
  if (at.open.none()) return std::nullopt;
  return CopySegment{at.open.region, regions_.slots().GenerationOf(at.open.region), at.slot, at.open.segment};
}

std::optional<CopySegment> Copies::Next(uint32_t head, uint64_t end) {
  const Place full = At(head);
  Place next{{full.open.region, full.open.segment + 1}, full.slot, 0};
  const bool in_region = !full.open.none() && next.open.segment < shape_.geometry().segments_per_region();
  if (!in_region) {
    const auto slot = regions_.Link(head, LinkFor::kCleaner);
    if (!slot) return std::nullopt;
    next = {{regions_.slots().RegionIn(head, *slot), 0}, *slot, 0};
  }
  if (!full.open.none()) segments_.Seal(full.open, end);
  segments_.Open(next.open, 0);
  At(head) = next;
  if (!full.open.none() && !in_region) segments_.LeaveRegion(head, full.slot);
  return Open(head);
}

void Copies::OnNamed(uint32_t head, format::LogAddress address) {
  Place& at = At(head);
  if (at.open.none() || shape_.geometry().SlotOf(address) != at.slot) return;
  if (shape_.SegmentOf(at.open.region, address) != at.open) return;
  // An address outside these bounds comes from a damaged entry, or from one that was set aside. No object is there.
  const uint64_t offset = shape_.OffsetInSegment(address);
  const uint64_t end = shape_.geometry().segment_size - sizeof(format::ObjectHeader);
  if (offset >= sizeof(format::SegmentHeader) && offset <= end) at.last = std::max(at.last, offset);
}

uint64_t Copies::Room(uint32_t head) const {
  const SegmentId open = At(head).open;
  if (open.none()) return 0;
  return (shape_.geometry().segments_per_region() - 1 - open.segment) * shape_.geometry().segment_size;
}

std::optional<uint32_t> Copies::SlotOf(uint32_t head) const {
  return At(head).open.none() ? std::nullopt : std::optional(At(head).slot);
}

void Copies::TakeUp(uint32_t head, uint32_t slot, SegmentId id) {
  At(head) = {id, slot, 0};
  segments_.Reopen(id);
  regions_.Reopen(head, slot);
}

}  // namespace erda::log
