// Tells whether this process made an object, or is a child of a fork with a copy of it. Safe from any thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace erda {

class Birthplace {
 public:
  static constexpr const char* kUnwatched = "no memory to be told of forks (pthread_atfork)";

  Birthplace() noexcept;
  // Returns true if forks are noticed. Returns false if there was no memory for that; a later Birthplace tries again.
  [[nodiscard]] static bool watched() noexcept { return watched_now.load(std::memory_order_relaxed); }
  // Returns true in each child of a fork after the construction. A child made by clone or _Fork alone is not noticed.
  [[nodiscard]] bool forked() const noexcept { return forks_ != forks_now.load(std::memory_order_relaxed); }

 private:
  // The number of forks that lead to this process. Only a child of a fork writes it, before it has a second thread, so
  // relaxed is enough.
  static std::atomic<uint32_t> forks_now;
  static std::atomic<bool> watched_now;
  static void CountFork() noexcept { forks_now.fetch_add(1, std::memory_order_relaxed); }

  uint32_t forks_;
};

}  // namespace erda
