// Whether this process made a thing, or is a child of a fork that has a copy of it.
#pragma once

#include <atomic>
#include <cstdint>

namespace erda {

class Birthplace {
 public:
  static constexpr const char* kUnwatched = "no memory to be told of forks (pthread_atfork)";

  Birthplace() noexcept;
  // True in each child of a fork since it was made. (A child made by clone or _Fork alone is not noticed.)
  // Whether forks are noticed. False: no memory was there for that; a later Birthplace tries again.
  [[nodiscard]] static bool watched() noexcept { return watched_now.load(std::memory_order_relaxed); }
  [[nodiscard]] bool forked() const noexcept { return forks_ != forks_now.load(std::memory_order_relaxed); }

 private:
  // Forks that lead to this process. Written in a child of a fork, before it has a second thread: so relaxed is enough.
  static std::atomic<uint32_t> forks_now;
  static std::atomic<bool> watched_now;
  static void CountFork() noexcept { forks_now.fetch_add(1, std::memory_order_relaxed); }

  uint32_t forks_;
};

}  // namespace erda
