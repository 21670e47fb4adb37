#include "format/log_layout.h"

#include <algorithm>

#include "base/bytes.h"

namespace erda::format {

SegmentUse UseOfSegment(std::span<const std::byte> segment, uint32_t generation) {
  const auto header = LoadAs<SegmentHeader>(segment);
  if (header.identity == SegmentHeader::Identity(generation)) return SegmentUse::kOpened;
  if (!header.NotYet(generation)) return SegmentUse::kDamaged;
  // A mended bad block looks like a header that was never written. The objects after the header show that it was.
  const auto begin = segment.first(std::min<size_t>(kMendedBytesMax, segment.size()));
  const bool wiped = header.identity == 0 && !IsZero(begin.subspan(sizeof(SegmentHeader)));
  return wiped ? SegmentUse::kDamaged : SegmentUse::kNotYet;
}

}  // namespace erda::format
