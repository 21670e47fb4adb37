#include "server/cleaner/copy_target.h"

#include "format/log_layout.h"

namespace erda::server {

CopySpace CopyTarget::SpaceAt(uint64_t in_segment) const {
  const uint64_t in_region = segment_->segment * geometry_.segment_size + in_segment;
  return {{pool_seed_, segment_->head, geometry_.AddressOf(segment_->slot, in_region), segment_->generation},
          geometry_.RegionOffset(segment_->region) + in_region};
}

// After the last copy that an entry names, there may be copies that the earlier cleaner did not propose. These may be
// torn, or in the CPU's caches only. If the last named copy is damaged, nobody knows where it ends. Then the segment
// counts as full.
void CopyTarget::Open(nvm::Writer& nvm, const SegmentOrder& order) {
  segment_ = order;
  tail_ = format::FirstObjectOffset(order.segment);
  if (!order.begun) return;
  if (order.last_copy != 0) {
    const CopySpace last = SpaceAt(order.last_copy);
    const auto view =
        format::InspectHeader(last.place, nvm.Bytes(last.offset, geometry_.segment_size - order.last_copy));
    tail_ =
        view.state == format::ObjectState::kNothing ? geometry_.segment_size : order.last_copy + SpaceOf(view.header);
  }
  nvm.ZeroOut(SpaceAt(0).offset + tail_, geometry_.segment_size - tail_);
  nvm.Fence();  // before the first copy is written: recovery ends a segment where zeroes begin
}

std::optional<CopySpace> CopyTarget::Take(uint64_t bytes) {
  if (!segment_ || tail_ + bytes > geometry_.segment_size) return std::nullopt;
  const CopySpace space = SpaceAt(tail_);
  tail_ += bytes;
  return space;
}

}  // namespace erda::server
