#include "fabric/verbs/shared_receives.h"

#include <algorithm>
#include <utility>

#include "base/bytes.h"
#include "fabric/verbs/cq.h"
#include "fabric/verbs/device.h"
#include "fabric/verbs/receive_work.h"

namespace erda::fabric::verbs {

SharedReceives::~SharedReceives() {
  if (queue_ != nullptr) ibv_destroy_srq(queue_);
}

Status SharedReceives::Reserve(Device& device, Cq& completions, uint32_t count) {
  if (queue_ == nullptr) {
    if (auto status = MakeQueue(device); !status.ok()) return status;
  }
  const auto made = static_cast<uint32_t>(groups_.size());
  for (uint32_t left = GroupsToMake(made, needed_ + count, most_); left > 0; --left) {
    if (auto status = MakeGroup(device, completions); !status.ok()) return status;
  }
  needed_ += count;
  return {};
}

uint32_t SharedReceives::GroupsToMake(uint32_t made, uint32_t needed, uint32_t most) {
  const uint32_t wanted = std::min((needed + kGroup - 1) / kGroup, most / kGroup);
  return wanted > made ? wanted - made : 0;
}

Status SharedReceives::MakeQueue(Device& device) {
  most_ = std::min(kMost, device.limits().srq_requests);
  ibv_srq_init_attr attributes{};
  attributes.attr.max_wr = most_;
  attributes.attr.max_sge = 1;
  queue_ = ibv_create_srq(device.domain(), &attributes);
  return queue_ != nullptr ? Status() : ErrnoStatus("cannot create a shared receive queue");
}

Status SharedReceives::MakeGroup(Device& device, Cq& completions) {
  if (auto status = completions.Reserve(kGroup); !status.ok()) return status;
  auto memory = OwnMemory::Create(device, kGroup * kReceiveBytes, IBV_ACCESS_LOCAL_WRITE);
  if (!memory.ok()) {
    completions.Release(kGroup);
    return memory.status();
  }
  const auto first = static_cast<uint32_t>(groups_.size()) * kGroup;
  groups_.push_back(*std::move(memory));
  for (uint32_t i = 0; i < kGroup; ++i) Post(first + i);
  return {};
}

void SharedReceives::Post(uint32_t index) {
  ReceiveWork receive(WorkId::OfReceive(kSharedReceives, index), Data(index), groups_[index / kGroup].mr()->lkey);
  ibv_recv_wr* refused = nullptr;
  (void)ibv_post_srq_recv(queue_, &receive.work, &refused);
}

}  // namespace erda::fabric::verbs
