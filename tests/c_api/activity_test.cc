// A server's activity in C. It has each field of erda/activity.h, its bounds and quantiles are those of C++, and the
// copy is one piece of memory.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "base/c_activity.h"
#include "erda/activity.h"
#include "erda/erda.h"

namespace erda {
namespace {

struct FreeOfServer {
  void operator()(erda_activity* activity) const { erda_server_free(activity); }
};
using CopiedActivity = std::unique_ptr<erda_activity, FreeOfServer>;

// Each field has another number.
class Numberer {
 public:
  LatencyHistogram Histogram() {
    LatencyHistogram histogram;
    for (uint64_t& count : histogram.counts) count = next_++;
    histogram.sum_nanos = next_++;
    return histogram;
  }
  OperationStats Operation(const char* kind) {
    OperationStats operation;
    operation.kind = kind;
    for (uint64_t& outcome : operation.outcomes) outcome = next_++;
    operation.time = Histogram();
    return operation;
  }
  FabricStats Fabric(const char* scheme, const char* device) {
    const uint64_t from = next_;
    next_ += 4;
    return {.scheme = scheme,
            .device = device,
            .connections = from,
            .requests = from + 1,
            .refused = from + 2,
            .violations = from + 3};
  }

 private:
  uint64_t next_ = 100;
};

// If a structure of C or C++ gets another field, this does not compile any more.
void ExpectSame(const erda_latency_histogram& in_c, const LatencyHistogram& in_cpp) {
  const auto& [cpp_counts, cpp_sum_nanos] = in_cpp;
  const auto& [counts, upper_bounds_ns, buckets, count, sum_ns] = in_c;
  EXPECT_EQ(std::vector(counts, counts + buckets), std::vector(cpp_counts.begin(), cpp_counts.end()));
  EXPECT_EQ(count, in_cpp.count());
  EXPECT_EQ(sum_ns, cpp_sum_nanos);
  for (size_t i = 0; i + 1 < buckets; ++i) {
    EXPECT_EQ(upper_bounds_ns[i], static_cast<uint64_t>(LatencyHistogram::UpperBound(i).count())) << i;
  }
  EXPECT_EQ(upper_bounds_ns[buckets - 1], std::numeric_limits<uint64_t>::max());
}
void ExpectSame(const erda_operation_stats& in_c, const OperationStats& in_cpp) {
  const auto& [cpp_kind, cpp_outcomes, cpp_time] = in_cpp;
  const auto& [kind, outcomes, outcome_count, count, time] = in_c;
  EXPECT_EQ(kind, cpp_kind);
  EXPECT_EQ(std::vector(outcomes, outcomes + outcome_count), std::vector(cpp_outcomes.begin(), cpp_outcomes.end()));
  EXPECT_EQ(count, in_cpp.count());
  ExpectSame(*time, cpp_time);
}
void ExpectSame(const erda_fabric_stats& in_c, const FabricStats& in_cpp) {
  const auto& [cpp_scheme, cpp_device, cpp_connections, cpp_requests, cpp_refused, cpp_violations] = in_cpp;
  const auto& [scheme, device, connections, requests, refused, violations] = in_c;
  EXPECT_EQ(scheme, cpp_scheme);
  EXPECT_EQ(device, cpp_device);
  EXPECT_EQ(connections, cpp_connections);
  EXPECT_EQ(requests, cpp_requests);
  EXPECT_EQ(refused, cpp_refused);
  EXPECT_EQ(violations, cpp_violations);
}
void ExpectSame(const erda_activity& in_c, const Activity& in_cpp) {
  const auto& [cpp_operations, cpp_persist, cpp_hold, cpp_clean_region, cpp_fabrics] = in_cpp;
  const auto& [operations, operation_count, fabrics, fabric_count, persist, clean_region, hold] = in_c;
  ASSERT_EQ(operation_count, cpp_operations.size());
  for (size_t i = 0; i < operation_count; ++i) ExpectSame(*operations[i], cpp_operations[i]);
  ASSERT_EQ(fabric_count, cpp_fabrics.size());
  for (size_t i = 0; i < fabric_count; ++i) ExpectSame(*fabrics[i], cpp_fabrics[i]);
  ExpectSame(*persist, cpp_persist);
  ExpectSame(*hold, cpp_hold);
  ExpectSame(*clean_region, cpp_clean_region);
}

TEST(CActivity, EachFieldOfTheActivityIsCopied) {
  Numberer number;
  Activity activity;
  activity.operations = {number.Operation("put_inline"), number.Operation("delete"), number.Operation("")};
  activity.persist = number.Histogram();
  activity.hold = number.Histogram();
  activity.clean_region = number.Histogram();
  activity.fabrics = {number.Fabric("shm", ""), number.Fabric("verbs", "mlx5_0")};
  ExpectSame(*CopiedActivity(c_api::CopyActivity(activity)), activity);
}

TEST(CActivity, EmptyActivityIsCopiedAsEmpty) {
  ExpectSame(*CopiedActivity(c_api::CopyActivity(Activity())), Activity());
}

TEST(CActivity, OutcomeIsFoundByItsCode) {
  Activity activity;
  activity.operations.resize(1);
  activity.operations[0].outcomes[static_cast<size_t>(Code::kInternal)] = 7;
  activity.operations[0].outcomes[static_cast<size_t>(Code::kConflict)] = 8;
  const CopiedActivity copy(c_api::CopyActivity(activity));
  EXPECT_EQ(copy->operations[0]->outcomes[ERDA_INTERNAL], 7U);
  EXPECT_EQ(copy->operations[0]->outcomes[ERDA_CONFLICT], 8U);
  EXPECT_EQ(copy->operations[0]->outcome_count, size_t{ERDA_INTERNAL} + 1);
}

TEST(CActivity, BucketEndsAtItsUpperBound) {
  const CopiedActivity copy(c_api::CopyActivity(Activity()));
  const erda_latency_histogram& histogram = *copy->persist;
  std::vector<uint64_t> counts(histogram.buckets);
  for (size_t i = 0; i + 1 < histogram.buckets; ++i) {
    counts[i] = 1;
    EXPECT_EQ(erda_client_quantile_ns(counts.data(), counts.size(), 1), histogram.upper_bounds_ns[i]) << i;
  }
  EXPECT_EQ(histogram.upper_bounds_ns[0], 256U);
}

TEST(CActivity, QuantilesAreThoseOfCpp) {
  LatencyHistogram histogram;
  std::array<uint64_t, LatencyHistogram::kBuckets>& counts = histogram.counts;
  const auto expect_same = [&] {
    for (const double share : {-1.0, 0.0, 0.001, 0.5, 0.9, 0.999, 1.0, 2.0}) {
      const auto expected = static_cast<uint64_t>(histogram.Quantile(share).count());
      EXPECT_EQ(erda_client_quantile_ns(counts.data(), counts.size(), share), expected) << share;
      EXPECT_EQ(erda_server_quantile_ns(counts.data(), counts.size(), share), expected) << share;
    }
  };
  expect_same();
  for (size_t i = 0; i < counts.size(); ++i) {
    counts[i] = 1 + i * 7 % 5;
    expect_same();
  }
  EXPECT_GT(erda_client_quantile_ns(counts.data(), counts.size(), 0.5), 0U);
  EXPECT_EQ(erda_client_quantile_ns(counts.data(), counts.size() - 1, 0.5), 0U);
  EXPECT_EQ(erda_client_quantile_ns(counts.data(), counts.size() + 1, 0.5), 0U);
  EXPECT_EQ(erda_server_quantile_ns(nullptr, counts.size(), 0.5), 0U);
}

}  // namespace
}  // namespace erda
