#include "inspect/head_inspection.h"

#include <string>

namespace erda::inspect {

using format::SegmentHeader;
using format::SegmentState;

void HeadInspection::Inspect(uint32_t head_in_shard) {
  const format::Geometry& g = bytes_.geometry();
  head_.head = static_cast<uint32_t>(bytes_.first_head() + head_in_shard);
  for (uint32_t head_slot = 0; head_slot < g.slots_per_head(); ++head_slot) {
    const uint32_t region = regions_.RegionIn(head_in_shard, head_slot);
    if (region == LinkedRegions::kNoRegion) continue;
    ++head_.regions;
    opened_all_ = true;
    versions_from_ = 0;
    for (uint64_t segment = 0; segment < g.segments_per_region(); ++segment) {
      LookAtSegment({head_.head, head_slot, region, segment});
    }
  }
  if (head_.segments.open > (newest_is_open_ ? 1U : 0U)) {
    findings_.Add("head " + std::to_string(head_.head) + " has an open segment that is not its newest");
  }
  findings_.report().object_bytes += head_.object_bytes;
  findings_.report().heads.push_back(head_);
}

void HeadInspection::LookAtSegment(const SegmentPlace& place) {
  const auto header = bytes_.Load<SegmentHeader>(place.OffsetIn(bytes_.geometry()));
  if (bytes_.RegionWordOf(place.region).settled() && !header.settled()) {
    findings_.Add(place.Name() + " is not settled, and its region says that it is");
  }
  if (!CheckOpened(place, header)) return;
  CountState(place, header);
  CheckVersions(place, header);
  head_.object_bytes += SegmentWalk(bytes_, place, &chunks_, &head_, &findings_).Run();
}

// Returns whether the segment is opened, and those before it in its region are.
bool HeadInspection::CheckOpened(const SegmentPlace& place, const SegmentHeader& header) {
  const format::Geometry& g = bytes_.geometry();
  const uint32_t generation = bytes_.RegionWordOf(place.region).generation();
  const auto use = format::UseOfSegment(bytes_.At(place.OffsetIn(g), g.segment_size), generation);
  if (use == format::SegmentUse::kOpened) {
    if (!opened_all_) findings_.Add(place.Name() + " is in use, and one before it is not");
    return opened_all_;
  }
  if (use == format::SegmentUse::kDamaged) {
    const bool no_header = header.NotYet(generation);
    findings_.Add(place.Name() + (no_header ? " has objects and no header" : " has a damaged header"));
  } else if (place.segment == 0 && findings_.needs_recovery()) {
    ++findings_.report().regions_unopened;
  } else if (place.segment == 0) {
    findings_.Add("region " + std::to_string(place.region) + " is linked, and was never opened");
  }
  opened_all_ = false;
  return false;
}

void HeadInspection::CountState(const SegmentPlace& place, const SegmentHeader& header) {
  switch (static_cast<SegmentState>(header.state)) {
    case SegmentState::kOpen:
      ++head_.segments.open;
      return;
    case SegmentState::kSealed:
      ++head_.segments.sealed;
      return;
    case SegmentState::kSettled:
    case SegmentState::kCopied:
      ++head_.segments.settled;
      return;
    case SegmentState::kCopies:
      ++head_.segments.copying;
      return;
  }
  findings_.Add(place.Name() + " has an unknown state");
}

void HeadInspection::CheckVersions(const SegmentPlace& place, const SegmentHeader& header) {
  if (header.copies() && header.first_version != 0) {
    findings_.Add(place.Name() + " holds copies, and has a first version");
  }
  if (header.oldest_version() >= findings_.report().version_limit) {
    findings_.Add(place.Name() + " has versions over the shard's limit");
  }
  if (place.segment > 0 && header.first_version <= versions_from_ && !header.copies()) {
    findings_.Add(place.Name() + " has older versions than the one before it");
  }
  versions_from_ = header.first_version;
  if (header.copies() || (any_ && header.first_version < newest_from_)) return;
  any_ = true;
  newest_from_ = header.first_version;
  newest_is_open_ = header.Is(SegmentState::kOpen);
}

}  // namespace erda::inspect
