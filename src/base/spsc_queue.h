// A queue between two threads: one pushes, the other pops. Neither waits for the other.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>

namespace erda {

// All stores before a Push are visible after the Pop that returns its element. The release of each index pairs with the
// acquire at the other end. N is a power of two.
template <class T, size_t N>
class SpscQueue {
  static_assert(std::has_single_bit(N));

 public:
  // Called by the pushing thread. Returns false if the queue is full.
  bool Push(const T& element) {
    const uint64_t end = end_.load(std::memory_order_relaxed);
    if (end - begin_.load(std::memory_order_acquire) == N) return false;
    elements_[end % N] = element;
    end_.store(end + 1, std::memory_order_release);
    return true;
  }
  [[nodiscard]] size_t room() const {
    return N - (end_.load(std::memory_order_relaxed) - begin_.load(std::memory_order_acquire));
  }
  // How many elements it took in all.
  [[nodiscard]] uint64_t pushed() const { return end_.load(std::memory_order_relaxed); }

  // Called by the popping thread. Returns nothing if the queue is empty.
  std::optional<T> Pop() {
    const uint64_t begin = begin_.load(std::memory_order_relaxed);
    if (begin == end_.load(std::memory_order_acquire)) return std::nullopt;
    const T element = elements_[begin % N];
    begin_.store(begin + 1, std::memory_order_release);
    return element;
  }

  // Called by either thread.
  [[nodiscard]] bool empty() const {
    return begin_.load(std::memory_order_acquire) == end_.load(std::memory_order_acquire);
  }

 private:
  static constexpr size_t kApart = 64;  // Keeps the two ends in different cache lines.
  alignas(kApart) std::atomic<uint64_t> begin_{0};
  alignas(kApart) std::atomic<uint64_t> end_{0};
  alignas(kApart) std::array<T, N> elements_{};
};

}  // namespace erda
