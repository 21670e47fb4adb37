// A descriptor that wakes a sleeping thread. Wake() of queues and listeners uses it.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>

#include "base/unique_fd.h"

namespace erda {

class EventFd {
 public:
  // Returns false if the system gives no descriptor.
  [[nodiscard]] bool Create() {
    fd_ = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    return static_cast<bool>(fd_);
  }
  [[nodiscard]] int get() const { return fd_.get(); }
  // Makes the descriptor readable until it is drained.
  void Ring() {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t n = ::write(fd_.get(), &one, sizeof(one));
  }
  void Drain() {
    uint64_t rings = 0;
    [[maybe_unused]] const ssize_t n = ::read(fd_.get(), &rings, sizeof(rings));
  }

 private:
  UniqueFd fd_;
};

// Returns a time to wait in the form that poll and epoll_wait take, rounded up.
inline int PollMilliseconds(std::chrono::nanoseconds time) {
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(time).count();
  return static_cast<int>(std::clamp<int64_t>(ms, 0, std::numeric_limits<int>::max()));
}

}  // namespace erda
