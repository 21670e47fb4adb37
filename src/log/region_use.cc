#include "log/region_use.h"

#include "base/bytes.h"
#include "format/log_layout.h"
#include "format/object.h"
#include "log/segment_headers.h"

namespace erda::log {

using format::LogAddress;

RegionUse::RegionUse(const nvm::Writer& nvm, const ShardShape& shape, const HeadSlots& slots, const Objects& objects)
    : nvm_(nvm),
      shape_(shape),
      slots_(slots),
      objects_(objects),
      slots_per_head_(shape.geometry().slots_per_head() + 1),
      uses_(size_t{shape.geometry().heads_per_shard} * slots_per_head_) {}

// The sizes in the header count without a check. If the header is damaged, the sum is wrong until the region is
// emptied. The only effect is that the shard chooses regions in a worse order.
uint64_t RegionUse::BytesOf(uint32_t head, LogAddress address) const {
  const auto bytes = objects_.BytesAt(head, address);
  const bool of_header = shape_.OffsetInSegment(address) < sizeof(format::SegmentHeader);
  if (of_header || bytes.size() < sizeof(format::ObjectHeader)) return 0;
  return std::min<uint64_t>(SpaceOf(LoadAs<format::ObjectHeader>(bytes)), bytes.size());
}

void RegionUse::Release(uint32_t head, LogAddress address) {
  const uint32_t slot = shape_.geometry().SlotOf(address);
  if (--UseAt(head, slot).held > 0 || !slots_.IsFull(head, slot)) return;
  ++changes_;
  ++releases_;
}

void RegionUse::Forget(uint32_t head, uint32_t slot) {
  bytes_live_ -= UseAt(head, slot).live_bytes;
  UseAt(head, slot) = Use{};
}

LinkedRegion RegionUse::Linked(uint32_t head, uint32_t slot) {
  const uint32_t region = slots_.RegionIn(head, slot);
  Use& use = UseAt(head, slot);
  if (use.filled == 0) use.filled = FilledBytes(region);
  return {region, slots_.GenerationOf(region), head, slot, slots_.AgeOf(head, slot), use, slots_.IsCrowded(head)};
}

// Counts space as filled unless it is known to be unused: nobody will append there.
uint64_t RegionUse::FilledBytes(uint32_t region) const {
  const uint64_t segment_size = shape_.geometry().segment_size;
  uint64_t filled = 0;
  for (const uint64_t segment : shape_.segments()) {
    const uint64_t first = format::FirstObjectOffset(segment);
    const uint64_t end = HeaderOf(nvm_, shape_, {region, segment}).end;
    filled += (end >= first && end <= segment_size ? end : segment_size) - first;
  }
  return filled;
}

}  // namespace erda::log
