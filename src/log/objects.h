// Reads the objects of one shard's log in the pool: from a log address to bytes, a place and a view.
//
// Owns nothing. Requires: the head slots outlive it. The shard's thread alone calls it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "format/log_address.h"
#include "format/object.h"
#include "log/head_slots.h"
#include "log/shard_shape.h"
#include "nvm/writer.h"

namespace erda::log {

class Objects {
 public:
  Objects(const nvm::Writer& nvm, const ShardShape& shape, const HeadSlots& slots, uint32_t pool_seed)
      : nvm_(nvm), shape_(shape), slots_(slots), pool_seed_(pool_seed) {}

  // The bytes from an address to the end of its segment, and their offset in the pool.
  struct Rest {
    uint64_t offset = 0;
    std::span<const std::byte> bytes;
  };
  // Returns no bytes if the address is not in this log.
  [[nodiscard]] [[gnu::always_inline]] Rest RestAt(uint32_t head, format::LogAddress address) const {
    const uint32_t region = slots_.RegionAt(head, address);
    if (region == kNoRegion) return {};
    const uint64_t offset = OffsetIn(region, address);
    return {offset, nvm_.Bytes(offset, shape_.geometry().segment_size - shape_.OffsetInSegment(address))};
  }
  [[nodiscard]] std::span<const std::byte> BytesAt(uint32_t head, format::LogAddress address) const {
    return RestAt(head, address).bytes;
  }
  [[nodiscard]] format::Place PlaceOf(uint32_t head, format::LogAddress address) const {
    const uint32_t region = slots_.RegionAt(head, address);
    return {pool_seed_, head, address, region == kNoRegion ? 0 : slots_.GenerationOf(region)};
  }
  // Requires: BytesAt is not empty.
  [[nodiscard]] SegmentId SegmentOf(uint32_t head, format::LogAddress address) const {
    return shape_.SegmentOf(slots_.RegionIn(head, shape_.geometry().SlotOf(address)), address);
  }
  // Returns the offset of the address in the pool. Requires: BytesAt is not empty.
  [[nodiscard]] uint64_t OffsetOf(uint32_t head, format::LogAddress address) const {
    return OffsetIn(slots_.RegionIn(head, shape_.geometry().SlotOf(address)), address);
  }
  [[nodiscard]] format::ObjectView Inspect(uint32_t head, format::LogAddress address) const {
    return format::InspectObject(PlaceOf(head, address), BytesAt(head, address));
  }
  // Reads the header alone, so the time does not depend on the size of the value.
  [[nodiscard]] format::ObjectView InspectHeader(uint32_t head, format::LogAddress address) const {
    return format::InspectHeader(PlaceOf(head, address), BytesAt(head, address));
  }

 private:
  [[nodiscard]] uint64_t OffsetIn(uint32_t region, format::LogAddress address) const {
    return shape_.geometry().RegionOffset(region) + shape_.geometry().OffsetInRegion(address);
  }

  const nvm::Writer& nvm_;
  const ShardShape shape_;
  const HeadSlots& slots_;
  const uint32_t pool_seed_;
};

}  // namespace erda::log
