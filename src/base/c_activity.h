// Turns an Activity (erda/activity.h) into the structures of the C API. Both libraries use it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/c_api.h"
#include "erda/activity.h"
#include "erda/erda.h"

namespace erda::c_api {

// Copies an Activity into one piece of memory. Each kind of structure and number has its own array there, one after the
// other.
class ActivityCopy {
 public:
  explicit ActivityCopy(const Activity& from) {
    const size_t kinds = from.operations.size();
    const size_t fabrics = from.fabrics.size();
    const size_t histograms = kinds + 3;
    size_t text = 0;
    for (const OperationStats& operation : from.operations) text += operation.kind.size() + 1;
    for (const FabricStats& fabric : from.fabrics) text += fabric.scheme.size() + fabric.device.size() + 2;
    piece_.Ask<erda_activity>(1);
    const size_t operation_pointers_at = piece_.Ask<const erda_operation_stats*>(kinds);
    const size_t operations_at = piece_.Ask<erda_operation_stats>(kinds);
    const size_t fabric_pointers_at = piece_.Ask<const erda_fabric_stats*>(fabrics);
    const size_t fabrics_at = piece_.Ask<erda_fabric_stats>(fabrics);
    const size_t histograms_at = piece_.Ask<erda_latency_histogram>(histograms);
    const size_t numbers_at =
        piece_.Ask<uint64_t>((histograms + 1) * LatencyHistogram::kBuckets + kinds * OperationStats::kOutcomes);
    text_at_ = piece_.Ask<char>(text);
    piece_.Make();
    histogram_ = piece_.At<erda_latency_histogram>(histograms_at);
    number_ = piece_.At<uint64_t>(numbers_at);

    upper_bounds_ = number_;
    for (size_t i = 0; i < LatencyHistogram::kBuckets; ++i) {
      const bool last = i == LatencyHistogram::kBuckets - 1;
      *number_++ =
          last ? std::numeric_limits<uint64_t>::max() : static_cast<uint64_t>(LatencyHistogram::UpperBound(i).count());
    }
    auto* activity = piece_.At<erda_activity>(0);
    activity->persist = Copy(from.persist);
    activity->hold = Copy(from.hold);
    activity->clean_region = Copy(from.clean_region);
    activity->operations = CopyAll(from.operations, piece_.At<const erda_operation_stats*>(operation_pointers_at),
                                   piece_.At<erda_operation_stats>(operations_at));
    activity->operation_count = kinds;
    activity->fabrics = CopyAll(from.fabrics, piece_.At<const erda_fabric_stats*>(fabric_pointers_at),
                                piece_.At<erda_fabric_stats>(fabrics_at));
    activity->fabric_count = fabrics;
  }
  erda_activity* Release() { return piece_.Release<erda_activity>(); }

 private:
  template <class From, class To>
  const To* const* CopyAll(const std::vector<From>& from, const To** pointers, To* to) {
    for (size_t i = 0; i < from.size(); ++i) {
      Copy(from[i], &to[i]);
      pointers[i] = &to[i];
    }
    return pointers;
  }
  void Copy(const OperationStats& from, erda_operation_stats* to) {
    to->kind = piece_.CopyText(&text_at_, from.kind);
    to->outcomes = CopyNumbers(from.outcomes);
    to->outcome_count = from.outcomes.size();
    to->count = from.count();
    to->time = Copy(from.time);
  }
  void Copy(const FabricStats& from, erda_fabric_stats* to) {
    to->scheme = piece_.CopyText(&text_at_, from.scheme);
    to->device = piece_.CopyText(&text_at_, from.device);
    to->connections = from.connections;
    to->requests = from.requests;
    to->refused = from.refused;
    to->violations = from.violations;
  }
  const erda_latency_histogram* Copy(const LatencyHistogram& from) {
    histogram_->counts = CopyNumbers(from.counts);
    histogram_->upper_bounds_ns = upper_bounds_;
    histogram_->buckets = from.counts.size();
    histogram_->count = from.count();
    histogram_->sum_ns = from.sum_nanos;
    return histogram_++;
  }
  template <size_t N>
  const uint64_t* CopyNumbers(const std::array<uint64_t, N>& from) {
    const uint64_t* copy = number_;
    number_ = std::copy(from.begin(), from.end(), number_);
    return copy;
  }

  Piece piece_;
  // The next free element of each array.
  erda_latency_histogram* histogram_ = nullptr;
  uint64_t* number_ = nullptr;
  size_t text_at_ = 0;
  const uint64_t* upper_bounds_ = nullptr;
};

inline erda_activity* CopyActivity(const Activity& from) { return ActivityCopy(from).Release(); }

inline uint64_t QuantileNanos(const uint64_t* counts, size_t buckets, double share) noexcept {
  LatencyHistogram histogram;
  if (counts == nullptr || buckets != histogram.counts.size()) return 0;
  std::copy_n(counts, buckets, histogram.counts.begin());
  return static_cast<uint64_t>(histogram.Quantile(share).count());
}

}  // namespace erda::c_api
