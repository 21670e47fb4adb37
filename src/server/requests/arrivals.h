// Takes the completions that have arrived on the ports of a shard. The shard's thread calls it.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "fabric/fabric.h"
#include "server/sessions/port.h"

namespace erda::server {

// Polls the completion queues of all ports. Each round begins with another port. A round takes at most the same number
// from each port, so a busy port does not keep the others waiting.
class Arrivals {
 public:
  // Requires: the queues outlive this.
  explicit Arrivals(std::span<const Port> ports) {
    for (const Port& port : ports) queues_.push_back(&port.queue);
  }

  // Calls take(std::span<const Completion>) with the completions of each queue that has some. The span is valid during
  // the call only.
  template <class Take>
  void Poll(Take&& take) {
    if (++first_ >= queues_.size()) first_ = 0;
    for (size_t port = first_, i = 0; i < queues_.size(); ++i) {
      if (const size_t n = queues_[port]->Poll(completions_); n > 0) take(std::span(completions_).first(n));
      if (++port == queues_.size()) port = 0;
    }
  }

 private:
  std::vector<fabric::CompletionQueue*> queues_;  // by port
  size_t first_ = 0;                              // the port that was first in the last round
  std::array<fabric::Completion, 64> completions_;
};

}  // namespace erda::server
