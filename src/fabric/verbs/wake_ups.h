// The descriptors that end a queue's sleep, as one descriptor.
#pragma once

#include <chrono>
#include <vector>

#include "base/event_fd.h"
#include "base/unique_fd.h"
#include "erda/status.h"

namespace erda::fabric::verbs {

// One thread calls it, except for Ring, which any thread may call.
class WakeUps {
 public:
  // The other functions require Create.
  Status Create();
  // Adds a descriptor that ends the sleep when it is readable. REQUIRES: it outlives this object.
  Status Watch(int fd);

  // Returns a descriptor that is readable if a watched one is, or if Ring was called.
  [[nodiscard]] int descriptor() const { return epoll_.get(); }
  // Ends the current or the next sleep.
  void Ring() { rung_.Ring(); }
  // Returns when the descriptor is readable, or after `timeout` at the latest.
  void Sleep(std::chrono::nanoseconds timeout) const;
  // Returns the watched descriptors that are readable, and ends the effect of Ring. Stops watching a descriptor that is
  // in error: it would stay readable forever. The next call invalidates the result.
  const std::vector<int>& TakeReadable();

 private:
  EventFd rung_;
  UniqueFd epoll_;
  std::vector<int> readable_;
};

}  // namespace erda::fabric::verbs
