#include "inspect/log_evidence.h"

#include <algorithm>
#include <string>

#include "format/log_layout.h"

namespace erda::inspect {

using format::kGranuleBytes;
using format::ObjectKind;
using format::ObjectState;
using format::ObjectView;

void LogEvidence::Read() {
  for (uint32_t number = 0; number < geometry_.regions_per_shard; ++number) {
    const uint32_t region = geometry_.RegionOf(bytes_.shard(), number);
    if (!regions_.Of(region).placed) continue;
    ++losses_.report().regions_read;
    ReadTombstone(region);
    for (uint64_t segment = 0; segment < geometry_.segments_per_region(); ++segment) WalkSegment(region, segment);
  }
}

void LogEvidence::ReadTombstone(uint32_t region) {
  const uint64_t offset = geometry_.RegionOffset(region) + format::kTombstoneSlotOffset;
  const ObjectView view = regions_.ObjectAt(offset, format::kTombstoneSlotBytes);
  if (view.state != ObjectState::kWhole || !view.header.is(ObjectKind::kTombstone)) return;
  keys_.AddTombstone(view.header.key_hash, view.header.version);
}

void LogEvidence::WalkSegment(uint32_t region, uint64_t segment) {
  const uint64_t begin = geometry_.RegionOffset(region) + segment * geometry_.segment_size;
  const auto bytes = bytes_.ToSegmentEnd(begin);
  const uint64_t end = bytes.size();
  const auto skip_zeroes = [&bytes](uint64_t at) {
    while (at + sizeof(uint64_t) <= bytes.size() && LoadAs<uint64_t>(bytes.subspan(at)) == 0) at += sizeof(uint64_t);
    return AlignDown(at, kGranuleBytes);
  };
  // True as long as all headers from the beginning of the segment verify.
  bool on_its_way = GenerationIn(bytes).has_value();
  if (!on_its_way && skip_zeroes(0) + kGranuleBytes <= end) {
    ++losses_.report().segments_damaged;
    losses_.Add("segment " + std::to_string(segment) + " of region " + std::to_string(region) + " has no good header",
                std::nullopt, begin);
  }
  uint64_t chunk_end = 0;
  for (uint64_t at = format::FirstObjectOffset(segment); at + sizeof(format::ObjectHeader) <= end;) {
    const bool in_chunk = at < chunk_end;
    const ObjectView view = regions_.ObjectAt(begin + at, (in_chunk ? chunk_end : end) - at);
    if (view.state == ObjectState::kNothing || (in_chunk && view.header.is_chunk())) {
      // After the objects of a chunk stands anything. After those of a segment are zeroes, up to its end.
      if (!in_chunk) on_its_way = false;
      const uint64_t next = std::max(skip_zeroes(at), at + kGranuleBytes);
      const bool skipped = !in_chunk && !IsZero(bytes.subspan(at, std::min(kGranuleBytes, end - at)));
      losses_.report().bytes_skipped += skipped ? kGranuleBytes : 0;
      at = in_chunk ? std::min(next, chunk_end) : next;
      continue;
    }
    if (view.header.is_chunk()) {
      chunk_end = at + format::SpaceOf(view.header);
      at += format::kChunkObjectsAt;
      continue;
    }
    const bool proven = on_its_way && !in_chunk;
    if (view.header.is_value()) keys_.AddValue(view, begin + at, proven);
    // An object that is neither whole nor proven may claim any size.
    at += proven || view.state == ObjectState::kWhole ? format::SpaceOf(view.header) : kGranuleBytes;
  }
}

}  // namespace erda::inspect
