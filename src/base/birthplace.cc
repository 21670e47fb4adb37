#include "base/birthplace.h"

#include <pthread.h>

namespace erda {

std::atomic<uint32_t> Birthplace::forks_now{0};

Birthplace::Birthplace() noexcept {
  // Once for each library that has a copy of this. glibc takes it back when the library is unloaded.
  [[maybe_unused]] static const int registered = pthread_atfork(nullptr, nullptr, &CountFork);
  forks_ = forks_now.load(std::memory_order_relaxed);
}

}  // namespace erda
