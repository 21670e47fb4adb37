#include "fabric/verbs/cq.h"

#include <algorithm>
#include <string>

#include "base/bytes.h"
#include "fabric/verbs/device.h"
#include "fabric/verbs/event_channel.h"

namespace erda::fabric::verbs {

Status Cq::Create(const Device& device) {
  constexpr const char* kFailed = "cannot create a completion queue";
  channel_ = ibv_create_comp_channel(device.context());
  if (channel_ == nullptr) return ErrnoStatus(kFailed);
  MakeNonBlocking(channel_->fd);
  most_ = device.limits().cq_entries;
  entries_ = std::min(kEntriesAtFirst, most_);
  cq_ = ibv_create_cq(device.context(), static_cast<int>(entries_), nullptr, channel_, 0);
  return cq_ != nullptr ? Status() : ErrnoStatus(kFailed);
}

Cq::~Cq() {
  if (cq_ != nullptr) ibv_destroy_cq(cq_);
  if (channel_ != nullptr) ibv_destroy_comp_channel(channel_);
}

Status Cq::Reserve(uint32_t entries) {
  const uint32_t needed = needed_ + entries;
  if (needed > most_) {
    return {Code::kResourceExhausted, "a completion queue of this device has " + std::to_string(most_) +
                                          " entries, and another connection would need more"};
  }
  if (needed > entries_) {
    const uint32_t wanted = GrownTo(entries_, needed, most_);
    if (const int error = ibv_resize_cq(cq_, static_cast<int>(wanted)); error != 0) {
      return ErrnoStatus("cannot enlarge a completion queue to " + std::to_string(wanted) + " entries", error);
    }
    entries_ = wanted;
  }
  needed_ = needed;
  return {};
}

uint32_t Cq::GrownTo(uint32_t now, uint32_t needed, uint32_t most) {
  const uint64_t wanted = std::max(uint64_t{needed}, 2 * uint64_t{now});
  return static_cast<uint32_t>(std::min(wanted, uint64_t{most}));
}

void Cq::Acknowledge() {
  ibv_cq* cq = nullptr;
  void* context = nullptr;
  while (ibv_get_cq_event(channel_, &cq, &context) == 0) ibv_ack_cq_events(cq, 1);
}

}  // namespace erda::fabric::verbs
