#include "log/shard_log.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/planted.h"

namespace erda::log {

using format::FirstObjectOffset;
using format::LogAddress;

namespace {

// A mark costs a store and two fences. In segments of 8 MiB and more it moves once in 64 KiB, so that a restart walks
// about twice that, and back to what was in flight.
constexpr uint64_t kMarksPerSegment = 128;
constexpr uint64_t kMarkStepMin = 1024;
constexpr uint64_t kMarkStepMax = 64 << 10;

}  // namespace

ShardLog::ShardLog(nvm::Writer& nvm, const format::Geometry& geometry, uint32_t pool_seed, uint32_t shard,
                   std::span<std::byte> control)
    : nvm_(nvm),
      geometry_(geometry),
      shape_(geometry, shard),
      mark_step_(std::clamp(geometry.segment_size / kMarksPerSegment, kMarkStepMin, kMarkStepMax)),
      regions_(nvm, shape_, control),
      objects_(nvm, shape_, regions_, pool_seed),
      use_(nvm, shape_, regions_, objects_),
      heads_(geometry.heads_per_shard),
      segments_(nvm, shape_, regions_),
      found_segments_(geometry.regions_per_shard * geometry.segments_per_region()) {}

// --- Appending

Result<ShardLog::Space> ShardLog::Reserve(uint32_t head_number, uint64_t bytes, uint64_t version) {
  Head& head = HeadAt(head_number);
  if (!Fits(head, bytes) && !OpenNextSegment(head_number, version)) return Status(Code::kResourceExhausted);
  if (IsMarkDue(head)) MoveMark(head);
  return AppendTo(&head, bytes);
}

ShardLog::Space ShardLog::AppendTo(Head* head, uint64_t bytes) {
  const uint64_t in_region = shape_.OffsetInRegion(head->open.segment, head->tail);
  const Space space{geometry_.AddressOf(head->slot, in_region), geometry_.RegionOffset(head->open.region) + in_region};
  head->tail += bytes;
  room_ -= bytes;
  appended_ += bytes;
  return space;
}

bool ShardLog::OpenNextSegment(uint32_t head_number, uint64_t version) {
  Head& head = HeadAt(head_number);
  const bool in_region = !head.open.none() && head.open.segment + 1 < geometry_.segments_per_region();
  const SegmentId full = head.open;
  const uint32_t full_slot = head.slot;
  const uint64_t full_tail = head.tail;
  if (in_region) {
    ++head.open.segment;
  } else {
    const auto slot = regions_.Link(head_number, LinkFor::kWriters);
    if (!slot) return false;
    if (!full.none()) ++filled_regions_;
    head.open = {regions_.RegionIn(head_number, *slot), 0};
    head.slot = *slot;
  }
  if (!full.none()) {
    room_ -= geometry_.segment_size - full_tail;
    segments_.Seal(full, full_tail);
  }
  segments_.Open(head.open, version);
  // After that, so that a restart finds an open region in each head that ever had one: a delete takes no other room.
  if (!full.none() && !in_region) segments_.LeaveRegion(head_number, full_slot);
  head.tail = head.mark = FirstObjectOffset(head.open.segment);
  head.in_flight = 0;
  room_ += geometry_.segment_size - head.tail;
  return true;
}

void ShardLog::EndFlight(uint32_t head_number, LogAddress address) {
  Head& head = HeadAt(head_number);
  const SegmentId id = SegmentAt(head_number, address);
  if (id == head.open && shape_.OffsetInSegment(address) < head.mark) --head.in_flight;
  segments_.EndFlight(id);
}

// Between two operations: of what was given out before, only what is in flight is not settled. So the place that waited
// is reached by the mark once nothing before it is in flight, however much is behind; then the tail is the next one to
// wait for. (If nothing at all is in flight, the mark is there at once.) REQUIRES: nothing before the mark is in
// flight.
void ShardLog::MoveMark(Head& head) {
  head.in_flight = segments_.InFlight(head.open);
  const uint64_t reached = head.in_flight == 0 ? head.tail : head.mark;
  head.mark = head.tail;
  segments_.StoreMark(head.open, reached);
}

// --- Looking up

ShardLog::Space ShardLog::TombstoneSlot(uint32_t head_number) const {
  const Head& head = HeadAt(head_number);
  return {geometry_.AddressOf(head.slot, format::kTombstoneSlotOffset),
          geometry_.RegionOffset(head.open.region) + format::kTombstoneSlotOffset};
}

}  // namespace erda::log
