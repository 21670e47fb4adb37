// A first-in, first-out queue that keeps its memory. It grows to the largest number of elements that it ever held, and
// allocates nothing after that. A std::deque frees and allocates blocks as it advances.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace erda {

// Not thread-safe. Can be neither moved nor copied. REQUIRES: T can be default-constructed and copied.
template <class T>
class Fifo {
 public:
  Fifo() = default;
  Fifo(const Fifo&) = delete;
  Fifo& operator=(const Fifo&) = delete;
  ~Fifo() = default;

  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] size_t size() const { return size_; }
  // Returns the i-th element from the front. REQUIRES: i < size().
  [[nodiscard]] T& operator[](size_t i) { return slots_[(first_ + i) & mask_]; }
  [[nodiscard]] const T& operator[](size_t i) const { return slots_[(first_ + i) & mask_]; }
  [[nodiscard]] T& front() { return slots_[first_]; }

  // Makes room for this number of elements, so that they need no allocation.
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

  std::vector<T> slots_;    // Their number is a power of two, or 0.
  size_t mask_ = SIZE_MAX;  // slots_.size() - 1. Asking the vector for its size would cost a division.
  size_t first_ = 0;
  size_t size_ = 0;
};

}  // namespace erda
