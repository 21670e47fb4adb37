#include "inspect/segment_walk.h"

#include <algorithm>

namespace erda::inspect {

using format::ObjectState;
using format::ObjectView;
using format::SegmentHeader;
using format::SegmentState;

SegmentWalk::SegmentWalk(const ShardBytes& bytes, const SegmentPlace& place, ClientChunks* chunks, HeadReport* head,
                         ShardFindings* findings)
    : bytes_(bytes),
      geometry_(bytes.geometry()),
      place_(place),
      offset_(place.OffsetIn(geometry_)),
      generation_(bytes.RegionWordOf(place.region).generation()),
      header_(bytes.Load<SegmentHeader>(offset_)),
      mark_(header_.Marked(geometry_.segment_size)),
      chunks_(*chunks),
      head_(*head),
      findings_(*findings) {}

uint64_t SegmentWalk::Run() {
  const bool open = header_.Is(SegmentState::kOpen);
  const bool copying = header_.Is(SegmentState::kCopies);
  const uint64_t first = format::FirstObjectOffset(place_.segment);
  if (!mark_ && header_.mark != 0) findings_.Add(place_.Name() + " has a damaged mark");
  uint64_t end = WalkFrom(first);
  if (mark_ && *mark_ >= first && *mark_ < end && !mark_met_) {
    findings_.Add(place_.Name() + " has a mark where no object begins");
  }
  if (open && mark_ && *mark_ > end) {  // Objects were before the mark.
    AddDamageBetween(end);
    end = WalkFrom(*mark_);
  }
  const bool states_end = !open && !copying && header_.end >= first && header_.end <= geometry_.segment_size;
  return (states_end ? CheckStatedEnd(end) : CheckRest(end)) - first;
}

ObjectView SegmentWalk::ObjectAt(uint64_t at, uint64_t end) const {
  const auto address = geometry_.AddressOf(place_.head_slot, place_.segment * geometry_.segment_size + at);
  return format::InspectHeader({bytes_.seed(), place_.head, address, generation_}, bytes_.At(offset_ + at, end - at));
}

// A header in a chunk does not lead out of the chunk, whatever its client has written there.
bool SegmentWalk::EndsWalk(const ObjectView& object, bool in_chunk) const {
  return object.state == ObjectState::kNothing || object.header.version < header_.oldest_version() ||
         (in_chunk && !object.header.is_value());
}

uint64_t SegmentWalk::WalkFrom(uint64_t at) {
  uint64_t chunk_end = 0;  // of the last chunk
  while (at < geometry_.segment_size) {
    mark_met_ |= at == mark_;
    const bool in_chunk = at < chunk_end;
    const ObjectView object = ObjectAt(at, in_chunk ? chunk_end : geometry_.segment_size);
    if (EndsWalk(object, in_chunk)) {
      if (!in_chunk) break;
      // The client wrote the rest of the chunk, or a crash cut it off. No entry may lead there.
      at = chunk_end;
      continue;
    }
    if (object.header.is_chunk()) {
      ++head_.chunks;
      chunk_end = at + SpaceOf(object.header);
      at += format::kChunkObjectsAt;
      chunks_.Add(offset_ + at, offset_ + chunk_end);
      continue;
    }
    ++head_.objects;
    at += SpaceOf(object.header);
  }
  return at;
}

// The header of a segment may state a later end than the objects have, with zeroes between. Then a crash came between
// the seal of the segment and the opening of the next one.
uint64_t SegmentWalk::CheckStatedEnd(uint64_t end) {
  if (header_.end >= end && IsZero(bytes_.At(offset_ + end, header_.end - end))) return end;
  AddDamageBetween(end);
  return std::max(end, header_.end);
}

uint64_t SegmentWalk::CheckRest(uint64_t end) {
  const auto rest = bytes_.At(offset_ + end, geometry_.segment_size - end);
  if (IsZero(rest)) return end;
  // A crash cut off the last objects of an open segment. Copies that were cut off stay until the cleaner goes on there.
  // In any other segment something is damaged, and good objects follow.
  const bool open = header_.Is(SegmentState::kOpen);
  const bool copying = header_.Is(SegmentState::kCopies);
  if ((open && findings_.needs_recovery()) || copying) {
    ++findings_.report().cut_off;
  } else {
    findings_.Add(place_.Name() + " has damaged bytes after its objects, at byte " + std::to_string(end));
  }
  const auto last = std::find_if(rest.rbegin(), rest.rend(), [](std::byte b) { return b != std::byte{0}; });
  return end + AlignUp(static_cast<uint64_t>(rest.rend() - last), format::kGranuleBytes);
}

void SegmentWalk::AddDamageBetween(uint64_t end) {
  findings_.Add(place_.Name() + " has damaged bytes between its objects, at byte " + std::to_string(end));
}

}  // namespace erda::inspect
