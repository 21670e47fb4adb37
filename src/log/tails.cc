#include "log/tails.h"

#include <algorithm>

#include "format/log_layout.h"

namespace erda::log {

using format::FirstObjectOffset;

namespace {

// To move the mark costs a store and two fences. In segments of 8 MiB and more, the shard moves it once in 64 KiB. A
// restart then walks about twice that, and back to the oldest space in flight.
constexpr uint64_t kMarksPerSegment = 128;
constexpr uint64_t kMarkStepMin = 1024;
constexpr uint64_t kMarkStepMax = 64 << 10;

}  // namespace

Tails::Tails(nvm::Writer& nvm, const ShardShape& shape, RegionTable& regions, Segments& segments)
    : nvm_(nvm),
      shape_(shape),
      mark_step_(std::clamp(shape.geometry().segment_size / kMarksPerSegment, kMarkStepMin, kMarkStepMax)),
      regions_(regions),
      segments_(segments),
      tails_(shape.geometry().heads_per_shard) {}

Result<Space> Tails::Reserve(uint32_t head, uint64_t bytes, uint64_t version) {
  Tail& of = At(head);
  if (!Fits(of, bytes) && !OpenNext(head, version)) return Status(Code::kResourceExhausted);
  if (IsMarkDue(of)) MoveMark(&of);
  return AppendTo(&of, bytes);
}

Space Tails::AppendTo(Tail* of, uint64_t bytes) {
  const uint64_t in_region = shape_.OffsetInRegion(of->open.segment, of->tail);
  of->tail += bytes;
  room_ -= bytes;
  appended_ += bytes;
  return {shape_.geometry().AddressOf(of->slot, in_region),
          shape_.geometry().RegionOffset(of->open.region) + in_region};
}

std::optional<Space> Tails::TombstoneSlot(uint32_t head, uint64_t version) {
  const Tail& of = At(head);
  if (of.open.none() && !OpenNext(head, version)) return std::nullopt;
  return Space{shape_.geometry().AddressOf(of.slot, format::kTombstoneSlotOffset),
               shape_.geometry().RegionOffset(of.open.region) + format::kTombstoneSlotOffset};
}

bool Tails::OpenNext(uint32_t head, uint64_t version) {
  Tail& of = At(head);
  const Tail full = of;
  const bool in_region = !full.open.none() && full.open.segment + 1 < shape_.geometry().segments_per_region();
  if (in_region) {
    ++of.open.segment;
  } else {
    const auto slot = regions_.Link(head, LinkFor::kWriters);
    if (!slot) return false;
    of.open = {regions_.slots().RegionIn(head, *slot), 0};
    of.slot = *slot;
  }
  if (!full.open.none()) {
    room_ -= shape_.geometry().segment_size - full.tail;
    segments_.Seal(full.open, full.tail);
  }
  segments_.Open(of.open, version);
  // The head leaves the full region after it has opened the next one. So a restart finds an open region in each head
  // that ever had one. A delete takes no other room.
  if (!full.open.none() && !in_region) {
    ++filled_regions_;
    segments_.LeaveRegion(head, full.slot);
  }
  of.tail = of.mark = FirstObjectOffset(of.open.segment);
  of.in_flight = 0;
  room_ += shape_.geometry().segment_size - of.tail;
  return true;
}

// Moves the mark in the pool to `of->mark`, and lets `of->mark` wait at the tail. This happens between two operations,
// so all space given out before is settled or in flight. Hence the pool's mark may move as soon as nothing before
// `of->mark` is in flight, even if much is in flight after it. If nothing at all is in flight, the pool's mark moves to
// the tail at once. Requires: nothing before `of->mark` is in flight.
void Tails::MoveMark(Tail* of) {
  of->in_flight = segments_.InFlight(of->open);
  const uint64_t reached = of->in_flight == 0 ? of->tail : of->mark;
  of->mark = of->tail;
  segments_.StoreMark(of->open, reached);
}

void Tails::SealFull() {
  for (const Tail& of : tails_) {
    if (!of.open.none() && of.tail == shape_.geometry().segment_size) segments_.Seal(of.open, of.tail);
  }
}

// The next server tells the end of the objects from damage by the zeroes after them. Other bytes there belong to an
// object that a crash cut off, and recovery left them.
void Tails::Close() {
  for (Tail& of : tails_) {
    if (of.open.none()) continue;
    nvm_.ZeroOut(shape_.SegmentOffset(of.open) + of.tail, shape_.geometry().segment_size - of.tail);
    nvm_.Fence();
    MoveMark(&of);
  }
}

void Tails::TakeUp(uint32_t head, uint32_t slot, SegmentId id) {
  At(head) = {id, slot, shape_.geometry().segment_size, shape_.geometry().segment_size, 0};
  regions_.Reopen(head, slot);
}

void Tails::GoOnAt(uint32_t head, uint64_t tail) {
  Tail& of = At(head);
  room_ += of.tail - tail;
  of.tail = of.mark = tail;
  if (tail < shape_.geometry().segment_size) segments_.Reopen(of.open);
}

}  // namespace erda::log
