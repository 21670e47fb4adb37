// Knows whether any value of a shard may have a deadline. The shard's thread counts the puts that have one. The
// cleaner's thread stores up to which count no such value is left. Both threads may call MayExpire.
#pragma once

#include <atomic>
#include <cstdint>

namespace erda::server {

// Relaxed: if the cleaner reads a count too early, it only looks once more.
class ExpiringPuts {
 public:
  // Shard thread: one more put has a deadline.
  void Count() { counted_.store(counted() + 1, std::memory_order_relaxed); }
  [[nodiscard]] uint64_t counted() const { return counted_.load(std::memory_order_relaxed); }
  // Cleaner thread: no value of the puts up to this count is left.
  void NoneLeft(uint64_t count) { none_left_of_.store(count, std::memory_order_relaxed); }
  [[nodiscard]] bool MayExpire() const { return none_left_of_.load(std::memory_order_relaxed) != counted(); }

 private:
  std::atomic<uint64_t> counted_{1};  // 1 at the start: an earlier server may have left such values
  std::atomic<uint64_t> none_left_of_{0};
};

}  // namespace erda::server
