#include "client/control_copy.h"

#include <utility>

#include "format/control_block.h"
#include "format/hello.h"

namespace erda::client {

Status ControlCopy::Reset(fabric::Fabric& fabric, const format::Geometry& geometry) {
  region_.reset();
  bytes_.assign(format::ControlRegionBytes(geometry), std::byte{0});
  activity_at_ = format::ActivityOffset(geometry);
  auto region = fabric.Register(MemoryView{bytes_, -1, -1}, fabric::Access::kLocal);
  if (!region.ok()) return region.status();
  region_ = *std::move(region);
  return {};
}

fabric::WorkRequest ControlCopy::ReadWork(bool with_activity) {
  fabric::WorkRequest work;
  work.kind = fabric::OpKind::kRead;
  work.id = kReadId;
  // The activity comes after the control block.
  work.local = with_activity ? std::span(bytes_) : std::span(bytes_).first(activity_at_);
  work.remote = {format::kControlRegion, 0};
  return work;
}

}  // namespace erda::client
