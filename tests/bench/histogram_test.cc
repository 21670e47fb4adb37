#include "bench/ycsb/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"

namespace erda::bench {
namespace {

constexpr double kPercents[] = {0, 0.1, 1, 10, 25, 50, 75, 90, 95, 99, 99.9, 99.99, 99.999, 100};

// Computes by sorting: the least value that `percent` of all values do not exceed.
uint64_t ExactPercentile(const std::vector<uint64_t>& sorted, double percent) {
  const double rank = std::ceil(percent / 100 * static_cast<double>(sorted.size()) - 1e-6);
  return sorted[static_cast<size_t>(std::max(rank, 1.0)) - 1];
}

Histogram Of(const std::vector<uint64_t>& values) {
  Histogram histogram;
  for (const uint64_t value : values) histogram.Record(value);
  return histogram;
}

struct Shape {
  std::string name;
  std::function<uint64_t(Random&)> draw;
};

class HistogramTest : public testing::TestWithParam<Shape> {};

TEST_P(HistogramTest, PercentilesAgreeWithSorting) {
  Random random(7);
  for (const size_t count : std::initializer_list<size_t>{1, 2, 10, 1000, 100'000}) {
    std::vector<uint64_t> values(count);
    double sum = 0;
    for (uint64_t& value : values) sum += static_cast<double>(value = GetParam().draw(random));
    const Histogram histogram = Of(values);
    std::sort(values.begin(), values.end());
    EXPECT_EQ(histogram.count(), count);
    EXPECT_EQ(histogram.max(), values.back());
    EXPECT_NEAR(histogram.mean(), sum / static_cast<double>(count), sum / static_cast<double>(count) * 1e-9);
    for (const double percent : kPercents) {
      const uint64_t exact = ExactPercentile(values, percent);
      EXPECT_GE(histogram.Percentile(percent), exact) << percent << " % of " << count;
      EXPECT_LE(histogram.Percentile(percent), exact + exact / 1024) << percent << " % of " << count;
    }
    EXPECT_EQ(histogram.Percentile(100), values.back());
  }
}

double Unit(Random& random) { return static_cast<double>(random.Next() >> 11) * 0x1p-53; }

INSTANTIATE_TEST_SUITE_P(
    Shapes, HistogramTest,
    testing::Values(
        Shape{"Constant", [](Random&) { return uint64_t{123'457}; }},
        Shape{"Small", [](Random& random) { return random.Uniform(2048); }},
        Shape{"Uniform", [](Random& random) { return random.Uniform(10'000'000); }},
        Shape{"LogUniform", [](Random& random) { return static_cast<uint64_t>(std::exp2(Unit(random) * 39)); }},
        Shape{"Exponential", [](Random& random) { return static_cast<uint64_t>(-2000 * std::log(1 - Unit(random))); }},
        Shape{"TwoPeaks",
              [](Random& random) {
                return random.Chance(0.99) ? 900 + random.Uniform(100) : 5'000'000 + random.Uniform(1'000'000);
              }}),
    [](const auto& test) { return test.param.name; });

TEST(HistogramBuckets, BucketsFollowEachOtherWithoutGaps) {
  const size_t last = Histogram::BucketOf(Histogram::kLargest);
  EXPECT_EQ(Histogram::BucketOf(0), 0U);
  EXPECT_EQ(Histogram::LargestIn(last), Histogram::kLargest);
  for (size_t bucket = 0; bucket < last; ++bucket) {
    const uint64_t largest = Histogram::LargestIn(bucket);
    ASSERT_EQ(Histogram::BucketOf(largest), bucket);
    ASSERT_EQ(Histogram::BucketOf(largest + 1), bucket + 1);
  }
}

TEST(HistogramBuckets, BucketsAreNarrowerThanOnePartIn1024) {
  for (size_t bucket = 1; bucket <= Histogram::BucketOf(Histogram::kLargest); ++bucket) {
    const uint64_t smallest = Histogram::LargestIn(bucket - 1) + 1;
    ASSERT_LE((Histogram::LargestIn(bucket) - smallest) * 1024, smallest) << bucket;
  }
}

TEST(Histogram, EmptyHistogramIsAllZero) {
  const Histogram histogram;
  EXPECT_EQ(histogram.count(), 0U);
  EXPECT_EQ(histogram.max(), 0U);
  EXPECT_EQ(histogram.mean(), 0.0);
  EXPECT_EQ(histogram.Percentile(50), 0U);
}

TEST(Histogram, MergeIsTheSameAsRecordingAll) {
  Random random(3);
  std::vector<uint64_t> all;
  Histogram merged;
  for (const uint64_t limit : std::initializer_list<uint64_t>{100, 10'000, 100'000'000}) {
    Histogram part;
    for (int i = 0; i < 10'000; ++i) {
      all.push_back(random.Uniform(limit));
      part.Record(all.back());
    }
    merged.Merge(part);
  }
  merged.Merge(Histogram());
  const Histogram expected = Of(all);
  EXPECT_EQ(merged.count(), expected.count());
  EXPECT_EQ(merged.max(), expected.max());
  EXPECT_DOUBLE_EQ(merged.mean(), expected.mean());
  for (const double percent : kPercents) EXPECT_EQ(merged.Percentile(percent), expected.Percentile(percent));
}

TEST(Histogram, ValuesAboveTheLargestCountAsTheLargest) {
  const Histogram histogram = Of({1, Histogram::kLargest + 1, Histogram::kLargest * 8});
  EXPECT_EQ(histogram.count(), 3U);
  EXPECT_EQ(histogram.Percentile(1), 1U);
  EXPECT_EQ(histogram.Percentile(100), Histogram::kLargest);
  EXPECT_EQ(histogram.max(), Histogram::kLargest * 8);
}

}  // namespace
}  // namespace erda::bench
