// The receives of one connecting channel. An accepted channel uses the shared receives of its queue.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

#include "fabric/verbs/own_memory.h"

namespace erda::fabric::verbs {

// Owns the memory of the receives. The thread of the channel's queue calls it.
class OwnReceives {
 public:
  // Posts all receives of the channel. REQUIRES: it is called once.
  Status Open(Device& device, ibv_qp* pair, uint32_t channel, uint32_t count);
  // Posts no receive any more: the queue pair is about to go.
  void Close() { pair_ = nullptr; }

  // Posts a receive again whose data nobody needs any more. Does nothing after Close. A queue pair that has failed
  // refuses the receive, and needs none.
  void Post(uint32_t index);
  // Returns the data of a receive. REQUIRES: Open was called.
  [[nodiscard]] const std::byte* Data(uint32_t index) const;

 private:
  OwnMemory memory_;
  ibv_qp* pair_ = nullptr;
  uint32_t channel_ = 0;
};

}  // namespace erda::fabric::verbs
