// The receives that the accepted channels of a queue share.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fabric/verbs/handshake.h"
#include "fabric/verbs/own_memory.h"

namespace erda::fabric::verbs {

class Cq;

// Owns the shared receive queue and the memory of its receives. The thread of the queue calls it.
class SharedReceives {
 public:
  static constexpr uint32_t kGroup = 128;   // Receives that are made at once.
  static constexpr uint32_t kMost = 16384;  // Receives in a queue, if the device takes as many.

  SharedReceives() = default;
  ~SharedReceives();
  SharedReceives(const SharedReceives&) = delete;
  SharedReceives& operator=(const SharedReceives&) = delete;

  // Makes room for a channel that needs `count` receives. Posts as many receives as the channels may need together, or
  // as the device allows in a shared queue. In the latter case a peer that finds no receive asks again. Receives that
  // are made stay. The completion queue gets an entry for each.
  Status Reserve(Device& device, Cq& completions, uint32_t count);
  // A channel that reserved `count` receives is gone.
  void Release(uint32_t count) { needed_ -= count; }
  // Returns how many more groups of receives the queue has to make, if it has made `made`.
  [[nodiscard]] static uint32_t GroupsToMake(uint32_t made, uint32_t needed, uint32_t most);

  // Posts a receive again whose data nobody needs any more.
  void Post(uint32_t index);
  // REQUIRES: the receive was made.
  [[nodiscard]] std::byte* Data(uint32_t index) const {
    return groups_[index / kGroup].data() + (index % kGroup) * kReceiveBytes;
  }
  // Returns null until the first Reserve.
  [[nodiscard]] ibv_srq* queue() const { return queue_; }

 private:
  Status MakeQueue(Device& device);
  Status MakeGroup(Device& device, Cq& completions);

  ibv_srq* queue_ = nullptr;
  uint32_t most_ = 0;    // Receives that the queue takes.
  uint32_t needed_ = 0;  // Receives that the accepted channels need.
  std::vector<OwnMemory> groups_;
};

}  // namespace erda::fabric::verbs
