// The bell by which a shard wakes its cleaner. The shard's thread rings, and the cleaner's thread sleeps until the bell
// rings.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

namespace erda::server {

// The cleaner stores that it sleeps, and then reads whether the bell rang. The shard rings, and then reads whether the
// cleaner sleeps. These four accesses are sequentially consistent. So the cleaner sees the ring, or the shard sees that
// it sleeps and wakes it.
class CleanerBell {
 public:
  // Wakes the cleaner's thread. Requires: set before that thread starts.
  std::function<void()> wake;

  // Any thread: tells the cleaner that there may be work.
  void Ring() {
    rings_.fetch_add(1, std::memory_order_seq_cst);
    if (sleeping_.load(std::memory_order_seq_cst) && wake) wake();
  }

  // The cleaner's thread: returns how often the bell rang. Requires: the caller reads it before its last look for work.
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
