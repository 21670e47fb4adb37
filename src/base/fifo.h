// First in, first out, in memory that is kept: it grows to the most that were ever in it, and then allocates no more (a
// std::deque gives blocks back and fetches new ones as it moves along).
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace erda {

// Not thread-safe; neither moved nor copied. T can be default-constructed and copied.
template <class T>
class Fifo {
 public:
  Fifo() = default;
  Fifo(const Fifo&) = delete;
  Fifo& operator=(const Fifo&) = delete;
  ~Fifo() = default;

  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] size_t size() const { return size_; }
  // The i-th from the front. REQUIRES: i < size().
  [[nodiscard]] T& operator[](size_t i) { return slots_[(first_ + i) & mask_]; }
  [[nodiscard]] const T& operator[](size_t i) const { return slots_[(first_ + i) & mask_]; }
  [[nodiscard]] T& front() { return slots_[first_]; }

  // So many fit without an allocation.
  void Reserve(size_t count) {
    while (slots_.size() < count) Grow();
  }
  void push_back(T value) {
    if (size_ == mask_ + 1) Grow();
    slots_[(first_ + size_) & mask_] = std::move(value);
    ++size_;
  }
  void pop_front() { pop_front(1); }
  // REQUIRES: n <= size().
  void pop_front(size_t n) {
    if (n == 0) return;
    first_ = (first_ + n) & mask_;
    size_ -= n;
  }
  void clear() { first_ = size_ = 0; }
  template <class Predicate>
  void EraseIf(Predicate&& predicate) {
    size_t kept = 0;
    for (size_t i = 0; i < size_; ++i) {
      if (!predicate((*this)[i])) std::swap((*this)[kept++], (*this)[i]);
    }
    size_ = kept;
  }

 private:
  void Grow() {
    std::vector<T> slots(slots_.empty() ? 8 : 2 * slots_.size());
    for (size_t i = 0; i < size_; ++i) slots[i] = std::move((*this)[i]);
    slots_.swap(slots);
    mask_ = slots_.size() - 1;
    first_ = 0;
  }

  std::vector<T> slots_;    // a power of two of them, or none
  size_t mask_ = SIZE_MAX;  // one less (a division, if it were asked of the vector)
  size_t first_ = 0;
  size_t size_ = 0;
};

}  // namespace erda
