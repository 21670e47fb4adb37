// Whether a value of a shard may have a deadline. The shard's thread counts the puts that have one. The cleaner's
// thread says up to which count nothing is left of them. Both may ask.
#pragma once

#include <atomic>
#include <cstdint>

namespace erda::server {

// Relaxed: a count that is read too early only makes the cleaner look once more.
class ExpiringPuts {
 public:
  // Shard thread: one more put has a deadline.
  void Count() { counted_.store(counted() + 1, std::memory_order_relaxed); }
  [[nodiscard]] uint64_t counted() const { return counted_.load(std::memory_order_relaxed); }
  // Cleaner thread: nothing is left of the puts up to this count.
  void NoneLeft(uint64_t count) { none_left_of_.store(count, std::memory_order_relaxed); }
  [[nodiscard]] bool MayExpire() const { return none_left_of_.load(std::memory_order_relaxed) != counted(); }

 private:
  std::atomic<uint64_t> counted_{1};  // one from the start: nobody knows what an earlier server's puts left
  std::atomic<uint64_t> none_left_of_{0};
};

}  // namespace erda::server
