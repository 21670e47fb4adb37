#include "log/log_recovery.h"

#include <algorithm>
#include <string>

#include "base/planted.h"
#include "log/region_words.h"
#include "log/segment_headers.h"

namespace erda::log {

using format::LogAddress;
using format::SegmentHeader;
using format::SegmentState;
using format::SegmentUse;

namespace {

Status DamagedSegment(SegmentId id) {
  return {Code::kCorruption, "region " + std::to_string(id.region) + " is linked, and its segment " +
                                 std::to_string(id.segment) + " is damaged"};
}

}  // namespace

LogRecovery::LogRecovery(nvm::Writer& nvm, const ShardShape& shape, const Objects& objects, RegionTable& regions,
                         Segments& segments, Tails& tails, Copies& copies)
    : nvm_(nvm),
      shape_(shape),
      objects_(objects),
      regions_(regions),
      segments_(segments),
      tails_(tails),
      copies_(copies),
      found_(shape.geometry().heads_per_shard),
      found_segments_(shape.geometry().regions_per_shard * shape.geometry().segments_per_region()) {}

// --- Taking up

Status LogRecovery::TakeUp(uint64_t version_limit, const Visit* visit) {
  if (auto status = regions_.TakeUp(); !status.ok()) return status;
  for (const uint32_t head : shape_.heads()) {
    if (auto status = TakeUpHead(head, version_limit, visit); !status.ok()) return status;
  }
  return {};
}

// Each used segment counts as full, except the open one with the newest versions. The log appends at the end of that
// segment. The shard seals a segment before it opens the next one. So a power cut between the two leaves no segment
// open, and never leaves two.
Status LogRecovery::TakeUpHead(uint32_t head, uint64_t version_limit, const Visit* visit) {
  Newest newest;
  for (const uint32_t slot : shape_.slots()) {
    const uint32_t region = regions_.slots().RegionIn(head, slot);
    if (region == kNoRegion) continue;
    if (regions_.IsSettled(region)) {
      TakeUpSettled(region);
    } else if (auto status = TakeUpRegion(head, slot, version_limit, visit, &newest); !status.ok()) {
      return status;
    }
  }
  if (const auto& copies = newest.copies) copies_.TakeUp(head, copies->slot, {copies->region, copies->segment});
  // A head has at most one open segment, and that one is its newest.
  plain_ = plain_ && newest.open_segments == (newest.open ? 1U : 0U);
  if (newest.id.none()) return {};
  tails_.TakeUp(head, newest.slot, newest.id);
  if (!newest.open) return {};
  found_[shape_.HeadInShard(head)] = {newest.walk.begin, newest.walk.last, newest.walk.end};
  // Bytes that are not an object may be a damaged object with good ones after it. The log must not write over those, so
  // the segment then counts as full. After a crash, Repair decides.
  if (newest.walk.untouched && visit == nullptr) tails_.GoOnAt(head, newest.walk.end);
  return {};
}

// The region's word says that all its segments are settled, so the start reads nothing in the region. Pairs with
// Segments::SettleRegion.
void LogRecovery::TakeUpSettled(uint32_t region) {
  for (const uint64_t segment : shape_.segments()) segments_.TakeUp({region, segment});
}

// The shard opens the segments of a region in order, and the first one when it links the region.
Status LogRecovery::TakeUpRegion(uint32_t head, uint32_t slot, uint64_t version_limit, const Visit* visit,
                                 Newest* newest) {
  const uint32_t region = regions_.slots().RegionIn(head, slot);
  bool opened_all = true;  // so far
  uint64_t age = 0;        // grows from segment to segment, even if a header is damaged: a later segment is newer
  for (const uint64_t segment : shape_.segments()) {
    const SegmentId id{region, segment};
    const SegmentUse use = UseOf(nvm_, shape_, id, regions_.slots().GenerationOf(region));
    if (use == SegmentUse::kNotYet && (segment > 0 || visit != nullptr)) {
      opened_all = false;
      continue;
    }
    if (use != SegmentUse::kOpened || !opened_all) {
      // After a crash this is an error only if an entry leads there: CheckNamed decides.
      if (visit == nullptr) return DamagedSegment(id);
      plain_ = opened_all = false;
      At(id).damaged = true;
      continue;
    }
    if (HeaderOf(nvm_, shape_, id).oldest_version() >= version_limit) {
      return {Code::kCorruption, "a segment of region " + std::to_string(region) + " has versions over the limit"};
    }
    segments_.TakeUp(id);
    TakeUpSegment(head, slot, id, visit, &age, newest);
  }
  return {};
}

void LogRecovery::TakeUpSegment(uint32_t head, uint32_t slot, SegmentId id, const Visit* visit, uint64_t* age,
                                Newest* newest) {
  const SegmentHeader header = HeaderOf(nvm_, shape_, id);
  if (header.copies()) {
    const bool open = header.Is(SegmentState::kCopies);
    if (open && !newest->copies) newest->copies = CopySegment{.region = id.region, .slot = slot, .segment = id.segment};
    return;
  }
  if (id.segment == 0 && visit != nullptr) {
    const Tombstone last = TombstoneIn(shape_, objects_, head, slot);
    plain_ = plain_ && !last.cut_off;
    const bool is_one = last.view.state != format::ObjectState::kNothing;
    if (is_one && last.view.header.version >= header.first_version) (*visit)(last.view);
  }
  const bool open = header.Is(SegmentState::kOpen);
  const bool settled = header.Is(SegmentState::kSettled);
  Walk walk;
  if (open || (visit != nullptr && !settled)) walk = WalkObjects(nvm_, shape_, objects_, head, slot, id, visit);
  const bool whole = header.Is(SegmentState::kSealed) && walk.end == header.end;
  plain_ = plain_ && walk.plain && (settled || whole || (open && walk.untouched));
  newest->open_segments += open ? 1 : 0;
  // The newest segment counts, open or not: the head opens its next segment in the region of this one, if there is
  // room.
  *age = std::max(*age, header.first_version);
  if (*age < newest->age) return;
  newest->age = *age;
  newest->id = id;
  newest->slot = slot;
  newest->open = open;
  newest->walk = walk;
}

// --- After a crash

void LogRecovery::MarkNamed(uint32_t head, LogAddress address) {
  const uint32_t region = regions_.slots().RegionAt(head, address);
  if (region == kNoRegion) return;
  const SegmentId id = shape_.SegmentOf(region, address);
  // If no object is there, the entry is damaged, and the segment is not.
  const bool opened = segments_.IsOpened(id);
  if (!opened && objects_.InspectHeader(head, address).state == format::ObjectState::kNothing) return;
  At(id).named = std::max(At(id).named, shape_.OffsetInSegment(address));
}

SegmentId LogRecovery::IdOf(uint64_t number) const {
  const uint64_t per_region = shape_.geometry().segments_per_region();
  return {shape_.RegionOf(static_cast<uint32_t>(number / per_region)), number % per_region};
}

Status LogRecovery::CheckNamed() const {
  for (size_t number = 0; number < found_segments_.size(); ++number) {
    const SegmentId id = IdOf(number);
    if (found_segments_[number].named != 0 && !segments_.IsOpened(id)) return DamagedSegment(id);
  }
  return {};
}

void LogRecovery::FlushFound() {
  // Only this shard's words: those of the others may change meanwhile, and a journal would get them in a wrong order.
  for (uint32_t number = 0; number < shape_.geometry().regions_per_shard; ++number) {
    nvm_.Flush(RegionWordOffset(shape_.RegionOf(number)), sizeof(uint64_t));
  }
  for (size_t number = 0; number < found_segments_.size(); ++number) {
    const SegmentId id = IdOf(number);
    // The headers of a settled region were persistent before its word said that it is settled.
    if (segments_.IsOpened(id) && !regions_.IsSettled(id.region)) {
      nvm_.Flush(shape_.SegmentOffset(id), sizeof(SegmentHeader));
    }
  }
  // A header that no entry names may be in the caches only: the server died before the fence that several puts share.
  // If that header got lost now, the next walk could not find the objects after it.
  for (const uint32_t head : shape_.heads()) {
    const Found& found = found_[shape_.HeadInShard(head)];
    if (found.last == 0) continue;
    nvm_.Flush(shape_.SegmentOffset(tails_.OpenSegment(head)) + found.begin, found.end - found.begin);
  }
}

uint32_t LogRecovery::Repair() {
  uint32_t unlinked = 0;
  for (const uint32_t head : shape_.heads()) {
    RepairRegions(head, &unlinked);
    RepairTail(head);
  }
  nvm_.Fence();
  return unlinked;
}

void LogRecovery::RepairRegions(uint32_t head, uint32_t* unlinked) {
  for (const uint32_t slot : shape_.slots()) {
    const uint32_t region = regions_.slots().RegionIn(head, slot);
    if (region == kNoRegion) continue;
    // No entry leads into a damaged segment here: CheckNamed has verified that. If its header stayed, the next start
    // would find damage in a pool that was closed cleanly.
    for (const uint64_t segment : shape_.segments()) {
      if (const SegmentId id{region, segment}; At(id).damaged) ForgetSegment(nvm_, shape_, id);
    }
    if (!segments_.IsOpened({region, 0})) {
      regions_.Unlink(head, slot);
      ++*unlinked;
      continue;
    }
    // If a tombstone that was cut off stayed, every later recovery would look through the index.
    if (regions_.IsSettled(region) || !TombstoneIn(shape_, objects_, head, slot).cut_off) continue;
    nvm_.ZeroOut(shape_.geometry().RegionOffset(region) + format::kTombstoneSlotOffset, format::kTombstoneSlotBytes);
  }
}

// If no entry leads to the bytes after the last object, a client or the shard was writing them when the server died. If
// an entry leads there, they are damage, and the segment is full. The versions that an entry which is not settled
// reaches along `previous` count as named, too.
void LogRecovery::RepairTail(uint32_t head) {
  const SegmentId open = tails_.OpenSegment(head);
  const Found& found = found_[shape_.HeadInShard(head)];
  if (open.none() || At(open).named >= found.end) return;
  tails_.GoOnAt(head, Planted(Flaw::kTailTooEarly) && found.last != 0 ? found.last : found.end);
}

}  // namespace erda::log
