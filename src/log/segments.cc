#include "log/segments.h"

#include <cstddef>

#include "base/bytes.h"
#include "base/planted.h"
#include "log/segment_headers.h"

namespace erda::log {

using format::SegmentHeader;
using format::SegmentState;

Segments::Segments(nvm::Writer& nvm, const ShardShape& shape, RegionTable& regions)
    : nvm_(nvm),
      shape_(shape),
      regions_(regions),
      states_(shape.geometry().regions_per_shard * shape.geometry().segments_per_region()) {}

void Segments::Open(SegmentId id, uint64_t version) {
  SegmentHeader header{};
  header.state = static_cast<uint64_t>(version == 0 ? SegmentState::kCopies : SegmentState::kOpen);
  header.first_version = version;
  const uint64_t at = shape_.SegmentOffset(id);
  // The header counts as soon as it has this identity, so the shard stores the identity after the rest is persistent.
  // Until then the identity of an earlier use stays. Pairs with UseOf, which a restart calls first.
  constexpr uint64_t kAfterIdentity = offsetof(SegmentHeader, state);
  nvm_.Write(at + kAfterIdentity, BytesOf(header).subspan(kAfterIdentity));
  nvm_.Persist(at, sizeof(header));
  nvm_.Store64(at + offsetof(SegmentHeader, identity),
               SegmentHeader::Identity(regions_.slots().GenerationOf(id.region)));
  nvm_.Persist(at + offsetof(SegmentHeader, identity), sizeof(uint64_t));
  At(id) = {0, true, false};
  ++opened_;
}

// If a start took the segment up as full, it may have been sealed before a crash. Its header then states its end
// already.
void Segments::Seal(SegmentId id, uint64_t end) {
  const SegmentHeader header = HeaderOf(nvm_, shape_, id);
  if (header.Is(SegmentState::kSealed) || header.settled()) return;
  At(id).sealed = true;
  // StoreState fences before it stores: a restart that finds the segment sealed knows where its objects end.
  nvm_.Store64(shape_.SegmentOffset(id) + offsetof(SegmentHeader, end), end);
  nvm_.Flush(shape_.SegmentOffset(id) + offsetof(SegmentHeader, end), sizeof(uint64_t));
  if (At(id).in_flight == 0) {
    StoreSettled(id);
  } else {
    StoreState(id, SegmentState::kSealed);
  }
}

void Segments::StoreMark(SegmentId id, uint64_t offset) {
  StoreInHeader(id, offsetof(SegmentHeader, mark), SegmentHeader::Mark(offset));
}

void Segments::LeaveRegion(uint32_t head, uint32_t slot) {
  regions_.Leave(head, slot);
  SettleRegion(regions_.slots().RegionIn(head, slot));
}

void Segments::ForgetRegion(uint32_t region) {
  for (const uint64_t segment : shape_.segments()) {
    State& state = At({region, segment});
    opened_ -= state.opened ? 1 : 0;
    state = State{};
  }
}

void Segments::SettleAll() {
  for (uint32_t number = 0; number < shape_.geometry().regions_per_shard; ++number) {
    const uint32_t region = shape_.RegionOf(number);
    if (regions_.slots().GenerationOf(region) == 0 || regions_.IsSettled(region)) continue;
    for (const uint64_t segment : shape_.segments()) {
      if (const SegmentId id{region, segment}; At(id).sealed) StoreSettled(id);
    }
    SettleRegion(region);
  }
}

void Segments::TakeUp(SegmentId id) {
  At(id).opened = true;
  At(id).sealed = true;
  ++opened_;
}

void Segments::Settle(SegmentId id) {
  StoreSettled(id);
  SettleRegion(id.region);
}

// A restart reads nothing in a region whose word says that it is settled (pairs with LogRecovery::TakeUpSettled). So
// all its segments are settled before, each persistently by StoreState. The shard writes no tombstone there any more: a
// tombstone goes to the region of the open segment. The word stays so until the region is emptied.
void Segments::SettleRegion(uint32_t region) {
  if (!regions_.AwaitsSettled(region)) return;
  for (const uint64_t segment : shape_.segments()) {
    const State& state = At({region, segment});
    const bool in_flight = state.in_flight != 0 && !Planted(Flaw::kRegionSettledEarly);
    if (!state.opened || !state.sealed || in_flight) return;
  }
  regions_.StoreSettled(region);
}

void Segments::StoreSettled(SegmentId id) {
  StoreState(id, HeaderOf(nvm_, shape_, id).copies() ? SegmentState::kCopied : SegmentState::kSettled);
}

void Segments::StoreState(SegmentId id, SegmentState state) {
  StoreInHeader(id, offsetof(SegmentHeader, state), static_cast<uint64_t>(state));
}

// State and mark say which versions are settled. So they must become persistent after every entry that settled a
// version here. Index::StoreWordLazily leaves some entries to the next fence, so a fence comes first.
void Segments::StoreInHeader(SegmentId id, uint64_t field, uint64_t value) {
  const uint64_t at = shape_.SegmentOffset(id) + field;
  if (nvm_.Load64(at) == value) return;
  nvm_.Fence();
  nvm_.Store64(at, value);
  nvm_.Persist(at, sizeof(uint64_t));
}

}  // namespace erda::log
