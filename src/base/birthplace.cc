#include "base/birthplace.h"

#include <pthread.h>

namespace erda {

std::atomic<uint32_t> Birthplace::forks_now{0};
std::atomic<bool> Birthplace::watched_now{false};

Birthplace::Birthplace() noexcept {
  // Once for each library that has a copy of this. glibc takes it back when the library is unloaded.
  // Relaxed: the flag tells of nothing but itself. Two threads that both find it false count each fork twice, which
  // makes no difference.
  if (!watched()) watched_now.store(pthread_atfork(nullptr, nullptr, &CountFork) == 0, std::memory_order_relaxed);
  forks_ = forks_now.load(std::memory_order_relaxed);
}

}  // namespace erda
