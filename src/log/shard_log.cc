#include "log/shard_log.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/planted.h"

namespace erda::log {

using format::FirstObjectOffset;
using format::LogAddress;
using format::SegmentHeader;
using format::SegmentState;

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
      segments_(geometry.regions_per_shard * geometry.segments_per_region()) {}

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
  bytes_used_ += bytes;
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
    bytes_used_ += geometry_.segment_size - full_tail;
    SealIfOpen(full, full_tail);
  }
  OpenSegment(head.open, version);
  // After that, so that a restart finds an open region in each head that ever had one: a delete takes no other room.
  if (!full.none() && !in_region) {
    regions_.Leave(head_number, full_slot);
    MarkSettled(full.region);
  }
  head.tail = head.mark = FirstObjectOffset(head.open.segment);
  head.in_flight = 0;
  bytes_used_ += head.tail;
  return true;
}

void ShardLog::OpenSegment(SegmentId id, uint64_t version) {
  SegmentHeader header{};
  header.state = static_cast<uint64_t>(version == 0 ? SegmentState::kCopies : SegmentState::kOpen);
  header.first_version = version;
  const uint64_t at = shape_.SegmentOffset(id);
  // The identity makes the header count, so it comes after the rest. Until then an earlier use's stays.
  constexpr uint64_t kBehindIdentity = offsetof(SegmentHeader, state);
  nvm_.Write(at + kBehindIdentity, BytesOf(header).subspan(kBehindIdentity));
  nvm_.Persist(at, sizeof(header));
  nvm_.Store64(at + offsetof(SegmentHeader, identity), SegmentHeader::Identity(regions_.GenerationOf(id.region)));
  nvm_.Persist(at + offsetof(SegmentHeader, identity), sizeof(uint64_t));
  SegmentOf(id) = Segment{};
  SegmentOf(id).opened = true;
}

// (What was taken up as full may have been sealed before a crash, and states its end.)
void ShardLog::SealIfOpen(SegmentId id, uint64_t end) {
  const uint64_t state = HeaderOf(id).state;
  if (state == static_cast<uint64_t>(SegmentState::kSealed) || state == static_cast<uint64_t>(SegmentState::kSettled)) {
    return;
  }
  Segment& segment = SegmentOf(id);
  segment.sealed = true;
  // Persistent by the fence in StoreState: who finds the segment sealed knows where its objects end.
  nvm_.Store64(shape_.SegmentOffset(id) + offsetof(SegmentHeader, end), end);
  nvm_.Flush(shape_.SegmentOffset(id) + offsetof(SegmentHeader, end), sizeof(uint64_t));
  StoreState(id, segment.in_flight == 0 ? SegmentState::kSettled : SegmentState::kSealed);
}

void ShardLog::EndFlight(uint32_t head_number, LogAddress address) {
  Head& head = HeadAt(head_number);
  const SegmentId id = shape_.SegmentOf(regions_.RegionIn(head_number, geometry_.SlotOf(address)), address);
  Segment& segment = SegmentOf(id);
  --segment.in_flight;
  if (id == head.open && shape_.OffsetInSegment(address) < head.mark) --head.in_flight;
  if (segment.in_flight != 0 || !segment.sealed) return;
  StoreState(id, SegmentState::kSettled);
  MarkSettled(id.region);
}

// A restart reads nothing of a region that is marked. So all its segments are settled before, each persistently
// (StoreState), and no tombstone is written there any more: that takes the region of the open segment. It is for good:
// the word changes again when the region is emptied.
void ShardLog::MarkSettled(uint32_t region) {
  if (!regions_.AwaitsSettled(region)) return;
  for (const uint64_t segment : shape_.segments()) {
    const Segment& of_region = SegmentOf({region, segment});
    const bool in_flight = of_region.in_flight != 0 && !Planted(Flaw::kRegionSettledEarly);
    if (!of_region.opened || !of_region.sealed || in_flight) return;
  }
  regions_.StoreSettled(region);
}

// Between two operations: of what was given out before, only what is in flight is not settled. So the place that waited
// is reached by the mark once nothing before it is in flight, however much is behind; then the tail is the next one to
// wait for. (If nothing at all is in flight, the mark is there at once.) REQUIRES: nothing before the mark is in
// flight.
void ShardLog::MoveMark(Head& head) {
  head.in_flight = SegmentOf(head.open).in_flight;
  const uint64_t reached = head.in_flight == 0 ? head.tail : head.mark;
  head.mark = head.tail;
  StoreInHeader(head.open, offsetof(SegmentHeader, mark), SegmentHeader::Mark(reached));
}

void ShardLog::StoreState(SegmentId id, SegmentState state) {
  StoreInHeader(id, offsetof(SegmentHeader, state), static_cast<uint64_t>(state));
}

// State and mark say what is settled. They may only be persistent after every entry that settled something here is:
// StoreWordLazily leaves some to the next fence, so one comes first.
void ShardLog::StoreInHeader(SegmentId id, uint64_t field, uint64_t value) {
  const uint64_t at = shape_.SegmentOffset(id) + field;
  if (nvm_.Load64(at) == value) return;
  nvm_.Fence();
  nvm_.Store64(at, value);
  nvm_.Persist(at, sizeof(uint64_t));
}

// --- Looking up

ShardLog::Space ShardLog::TombstoneSlot(uint32_t head_number) const {
  const Head& head = HeadAt(head_number);
  return {geometry_.AddressOf(head.slot, format::kTombstoneSlotOffset),
          geometry_.RegionOffset(head.open.region) + format::kTombstoneSlotOffset};
}

}  // namespace erda::log
