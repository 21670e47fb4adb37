// A histogram of latencies: fixed memory, any number of values, percentiles to three significant digits.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace erda::bench {

// Log-linear: each power of two is cut into 1024 equal buckets. So a value and its bucket's bounds differ by less than
// one part in 1024. Values below 2048 are exact. Values above kLargest count as kLargest in percentiles, and as
// themselves in max() and mean().
class Histogram {
 public:
  static constexpr uint64_t kLargest = (uint64_t{1} << 40) - 1;  // 18 minutes in nanoseconds.

  Histogram();

  void Record(uint64_t value) {
    ++counts_[BucketOf(value < kLargest ? value : kLargest)];
    ++count_;
    sum_ += value;
    if (value > max_) max_ = value;
  }
  void Merge(const Histogram& other);

  [[nodiscard]] uint64_t count() const { return count_; }
  [[nodiscard]] uint64_t max() const { return max_; }  // 0 without values.
  [[nodiscard]] double mean() const;                   // 0 without values.
  // Returns the least value that `percent` of all values do not exceed, or up to one part in 1024 more. Returns 0
  // without values. REQUIRES: percent from 0 to 100.
  [[nodiscard]] uint64_t Percentile(double percent) const;

  // BucketOf returns the bucket of a value up to kLargest. LargestIn returns the largest value of a bucket.
  [[nodiscard]] static size_t BucketOf(uint64_t value) {
    const unsigned shift = ShiftOf(value);
    return shift * kHalf + (value >> shift);
  }
  [[nodiscard]] static uint64_t LargestIn(size_t bucket);

 private:
  // Within [2^m, 2^(m+1)) a value is shifted right until kBits + 1 bits are left. These bits, from 1024 to 2047, give
  // the bucket within one m; the shift gives the m.
  static constexpr unsigned kBits = 10;
  static constexpr uint64_t kHalf = uint64_t{1} << kBits;
  static constexpr unsigned ShiftOf(uint64_t value) {
    const auto width = static_cast<unsigned>(std::bit_width(value));
    return width > kBits + 1 ? width - (kBits + 1) : 0;
  }

  std::vector<uint64_t> counts_;
  uint64_t count_ = 0;
  uint64_t sum_ = 0;
  uint64_t max_ = 0;
};

}  // namespace erda::bench
