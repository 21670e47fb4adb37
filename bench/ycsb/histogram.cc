#include "bench/ycsb/histogram.h"

#include <algorithm>
#include <cmath>

namespace erda::bench {

uint64_t Histogram::LargestIn(size_t bucket) {
  if (bucket < 2 * kHalf) return bucket;
  const uint64_t shift = bucket / kHalf - 1;
  return ((bucket - shift * kHalf + 1) << shift) - 1;
}

Histogram::Histogram() : counts_(BucketOf(kLargest) + 1) {}

void Histogram::Merge(const Histogram& other) {
  for (size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
  count_ += other.count_;
  sum_ += other.sum_;
  max_ = std::max(max_, other.max_);
}

double Histogram::mean() const { return count_ == 0 ? 0.0 : static_cast<double>(sum_) / static_cast<double>(count_); }

uint64_t Histogram::Percentile(double percent) const {
  if (count_ == 0) return 0;
  // Ranks begin at 1. The tiny term keeps 99.9 % of 1000 at rank 999, whatever the product rounds to.
  const double exact = percent / 100.0 * static_cast<double>(count_);
  const auto rank = std::clamp<uint64_t>(static_cast<uint64_t>(std::ceil(exact * (1 - 1e-12))), 1, count_);
  uint64_t below = 0;
  for (size_t bucket = 0; bucket < counts_.size(); ++bucket) {
    below += counts_[bucket];
    if (below >= rank) return std::min(LargestIn(bucket), max_);
  }
  return max_;
}

}  // namespace erda::bench
