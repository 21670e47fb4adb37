#include "fabric/verbs/region.h"

#include <utility>

#include "fabric/verbs/device.h"

namespace erda::fabric::verbs {

VerbsRegion::VerbsRegion(std::shared_ptr<Device> device, ibv_mr* mr, std::span<std::byte> bytes, Access access)
    : device_(std::move(device)), mr_(mr), bytes_(bytes), access_(access) {
  device_->keys().Add(Key());
}

VerbsRegion::~VerbsRegion() {
  device_->keys().Remove(Key());
  ibv_dereg_mr(mr_);
}

OfferedRegion VerbsRegion::Offered() const {
  const Access told = access_ == Access::kRemoteReadWindows ? Access::kRemoteRead : access_;
  return {reinterpret_cast<uint64_t>(bytes_.data()), bytes_.size(), mr_->rkey, static_cast<uint32_t>(told)};
}

LocalKey VerbsRegion::Key() const {
  return {bytes_.data(), bytes_.data() + bytes_.size(), mr_->lkey, access_ != Access::kRemoteRead};
}

}  // namespace erda::fabric::verbs
