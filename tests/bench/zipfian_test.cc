#include "bench/ycsb/zipfian.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "base/random.h"

namespace erda::bench {
namespace {

// Returns the probability of each rank.
std::vector<double> Theory(size_t n, double theta) {
  std::vector<double> probability(n);
  double sum = 0;
  for (size_t rank = 0; rank < n; ++rank) {
    sum += probability[rank] = std::pow(static_cast<double>(rank + 1), -theta);
  }
  for (double& p : probability) p /= sum;
  return probability;
}

std::vector<uint64_t> Draw(Zipfian& zipfian, size_t times) {
  std::vector<uint64_t> counts(zipfian.size());
  Random random(42);
  for (size_t i = 0; i < times; ++i) ++counts.at(zipfian.Next(random));
  return counts;
}

// Five standard deviations of a binomial. A wrong generator fails; a right one with this seed does not.
void ExpectNear(uint64_t count, double probability, size_t times, const std::string& what) {
  const auto n = static_cast<double>(times);
  EXPECT_NEAR(static_cast<double>(count), n * probability, 5 * std::sqrt(n * probability * (1 - probability)) + 1)
      << what;
}

TEST(Zipfian, FrequenciesAreTheTheoreticalOnes) {
  constexpr size_t kTimes = 1'000'000;
  for (const double theta : {0.5, Zipfian::kTheta, 1.2}) {
    for (const size_t n : std::initializer_list<size_t>{1, 2, 3, 10, 1000, 100'000}) {
      Zipfian zipfian(n, theta);
      const auto counts = Draw(zipfian, kTimes);
      const auto theory = Theory(n, theta);
      // The top ranks one by one, the others in groups that double.
      for (size_t from = 0, width = 1; from < n; from += width, width = from < 16 ? 1 : width * 2) {
        uint64_t count = 0;
        double probability = 0;
        for (size_t rank = from; rank < std::min(n, from + width); ++rank) {
          count += counts[rank];
          probability += theory[rank];
        }
        ExpectNear(count, std::min(probability, 1.0), kTimes,
                   "theta " + std::to_string(theta) + ", n " + std::to_string(n) + ", rank " + std::to_string(from));
      }
    }
  }
}

TEST(Zipfian, SameSeedGivesTheSameRanks) {
  Zipfian zipfian(1000);
  EXPECT_EQ(Draw(zipfian, 1000), Draw(zipfian, 1000));
}

TEST(Zipfian, ResizedIsTheSameAsMadeWithThatSize) {
  Zipfian resized(10);
  resized.Resize(5000);
  Zipfian made(5000);
  EXPECT_EQ(Draw(resized, 10'000), Draw(made, 10'000));
}

TEST(Zipfian, StaysInBoundsOfHugeSizes) {
  Zipfian zipfian(10'000'000'000);
  Random random(1);
  uint64_t largest = 0;
  for (int i = 0; i < 100'000; ++i) largest = std::max(largest, zipfian.Next(random));
  EXPECT_LT(largest, zipfian.size());
  EXPECT_GT(largest, zipfian.size() / 2);
}

TEST(Scatter, ScatterIsAPermutation) {
  for (size_t n = 1; n < 300; ++n) {
    const Scatter scatter(n);
    std::vector<bool> seen(n);
    for (size_t i = 0; i < n; ++i) {
      const uint64_t to = scatter(i);
      ASSERT_LT(to, n);
      ASSERT_FALSE(seen[to]) << n;
      seen[to] = true;
    }
  }
}

TEST(Scatter, ScatterSeparatesNeighbours) {
  constexpr uint64_t kCount = 100'000;
  const Scatter scatter(kCount);
  // The hundred most popular ranks fall all over the records: some into each tenth, and never more than 25.
  std::vector<int> tenths(10);
  for (uint64_t rank = 0; rank < 100; ++rank) ++tenths[scatter(rank) * 10 / kCount];
  for (const int count : tenths) {
    EXPECT_GE(count, 1);
    EXPECT_LE(count, 25);
  }
}

}  // namespace
}  // namespace erda::bench
