// How a shard wakes its cleaner. The shard's thread rings; the cleaner's thread sleeps as long as nothing rang.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

namespace erda::server {

// The cleaner says that it sleeps, and then looks whether the bell rang. The shard rings, and then looks whether the
// cleaner sleeps. These four accesses are sequentially consistent: so the cleaner sees the ring, or the shard wakes it.
class CleanerBell {
 public:
  // Wakes the thread out of its sleep. Set before the thread starts.
  std::function<void()> wake;

  // Any thread: there may be something to do for the cleaner.
  void Ring() {
    rings_.fetch_add(1, std::memory_order_seq_cst);
    if (sleeping_.load(std::memory_order_seq_cst) && wake) wake();
  }

  // The cleaner's thread: how often the bell rang. Read it before the last look for work.
  [[nodiscard]] uint32_t rings() const { return rings_.load(std::memory_order_seq_cst); }
  // The cleaner's thread: calls sleep(), unless the bell rang since `rings` was read. `wake` ends that sleep.
  template <class Sleep>
  void SleepUnlessRung(uint32_t rings, Sleep&& sleep) {
    sleeping_.store(true, std::memory_order_seq_cst);
    if (rings_.load(std::memory_order_seq_cst) == rings) sleep();
    sleeping_.store(false, std::memory_order_seq_cst);
  }

 private:
  std::atomic<uint32_t> rings_{0};
  std::atomic<bool> sleeping_{false};
};

}  // namespace erda::server
