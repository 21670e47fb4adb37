#include "server/recovery/region_repair.h"

#include "base/bytes.h"
#include "format/log_layout.h"

namespace erda::server {

using format::RegionWord;
using format::SegmentHeader;

// A region in a head is needed, or cleaning will free it. Any other region becomes zeroes before it is used: a page of
// an earlier use may have come back.
void RegionRepair::Repair(const FoundRegions& regions, const FoundIndex& index, RecoveryReport* report) {
  const uint32_t first_head = shard_ * geometry_.heads_per_shard;
  for (uint32_t number = 0; number < geometry_.regions_per_shard; ++number) {
    const uint32_t region = geometry_.RegionOf(shard_, number);
    if (index.IsRun(region)) continue;
    const FoundRegion& found = regions.At(number);
    if (found.linked) {
      RepairSegments(region, found);
      if (IsOpen(region, 0, found)) {
        bytes_.StoreWord(region, RegionWord::Linked(geometry_, found.generation, first_head + found.head, found.slot));
        continue;
      }
    }
    report->regions_unlinked += bytes_.WordOf(region).linked() ? 1 : 0;
    bytes_.StoreWord(region, RegionWord::Emptied(regions.NextGeneration()));
  }
}

bool RegionRepair::IsOpen(uint32_t region, uint64_t segment, const FoundRegion& found) const {
  return bytes_.HeaderOf(region, segment).identity == SegmentHeader::Identity(found.generation);
}

// All segments up to the last one in use count as full and settled. The segments after that, and the tombstone slot,
// become zeroes: the log may go on there.
void RegionRepair::RepairSegments(uint32_t region, const FoundRegion& found) {
  const uint64_t segments = geometry_.segments_per_region();
  uint64_t used = 0;
  bool copies = true;  // a region has copies only, or puts only
  for (uint64_t segment = 0; segment < segments; ++segment) {
    const bool is_open = IsOpen(region, segment, found);
    if (found.named[segment] || is_open) used = segment + 1;
    if (!is_open) continue;
    copies &= bytes_.HeaderOf(region, segment).copies();
    versions_.See(bytes_.HeaderOf(region, segment).oldest_version());
  }
  uint64_t first_version = 1;
  for (uint64_t segment = 0; segment < used; ++segment) {
    SegmentHeader header = bytes_.HeaderOf(region, segment);
    const bool was_open = IsOpen(region, segment, found);
    const bool known = was_open && !header.copies() && header.first_version < versions_.end();
    if (known) first_version = header.first_version;
    const bool has_end = was_open && header.end >= format::FirstObjectOffset(segment) &&
                         header.end <= geometry_.segment_size && header.end % format::kGranuleBytes == 0;
    header = {SegmentHeader::Identity(found.generation),
              static_cast<uint64_t>(copies ? format::SegmentState::kCopied : format::SegmentState::kSettled),
              copies ? 0 : first_version,
              has_end ? header.end : geometry_.segment_size,
              0,
              {}};
    nvm_.Write(bytes_.SegmentOffset(region, segment), BytesOf(header));
    nvm_.Persist(bytes_.SegmentOffset(region, segment), sizeof(header));
  }
  if (used > 0) {
    nvm_.ZeroOut(bytes_.SegmentOffset(region, 0) + format::kTombstoneSlotOffset, format::kTombstoneSlotBytes);
  }
  nvm_.ZeroOut(bytes_.SegmentOffset(region, used), (segments - used) * geometry_.segment_size);
}

}  // namespace erda::server
