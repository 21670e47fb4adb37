#include "fabric/verbs/own_receives.h"

#include <utility>

#include "fabric/verbs/receive_work.h"

namespace erda::fabric::verbs {

Status OwnReceives::Open(Device& device, ibv_qp* pair, uint32_t channel, uint32_t count) {
  auto memory = OwnMemory::Create(device, count * kReceiveBytes, IBV_ACCESS_LOCAL_WRITE);
  if (!memory.ok()) return memory.status();
  memory_ = *std::move(memory);
  pair_ = pair;
  channel_ = channel;
  for (uint32_t i = 0; i < count; ++i) Post(i);
  return {};
}

void OwnReceives::Post(uint32_t index) {
  if (pair_ == nullptr) return;
  ReceiveWork receive(WorkId::OfReceive(channel_, index), memory_.data() + index * kReceiveBytes, memory_.mr()->lkey);
  ibv_recv_wr* refused = nullptr;
  (void)ibv_post_recv(pair_, &receive.work, &refused);
}

const std::byte* OwnReceives::Data(uint32_t index) const { return memory_.data() + index * kReceiveBytes; }

}  // namespace erda::fabric::verbs
