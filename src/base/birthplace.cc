#include "base/birthplace.h"

#include <pthread.h>

namespace erda {

std::atomic<uint32_t> Birthplace::forks_now{0};
std::atomic<bool> Birthplace::watched_now{false};

Birthplace::Birthplace() noexcept {
  // Each library that contains a copy of this function registers once. glibc removes the registration when it unloads
  // the library.
  // Relaxed: the flag publishes nothing but itself. Two threads that both find it false register twice, so each fork
  // counts twice. That makes no difference.
  if (!watched()) watched_now.store(pthread_atfork(nullptr, nullptr, &CountFork) == 0, std::memory_order_relaxed);
  forks_ = forks_now.load(std::memory_order_relaxed);
}

}  // namespace erda
