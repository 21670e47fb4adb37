#include "server/sessions/rate.h"

#include <gtest/gtest.h>

namespace erda::server {
namespace {

// Returns the number that the rate takes in this time, if it is asked every `step` microseconds.
uint64_t TakenIn(Rate& rate, uint64_t from, uint64_t micros, uint64_t step) {
  uint64_t taken = 0;
  for (uint64_t now = from; now < from + micros; now += step) {
    while (rate.Take(now)) ++taken;
  }
  return taken;
}

TEST(RateTest, RateIsKeptForAnyNumberOfRequests) {
  for (const uint32_t per_second : {100U, 1000U, 50'000U, 1'000'000U}) {
    for (const uint64_t step : {1000U, 10'000U, 90'000U}) {
      Rate rate(per_second);
      const uint64_t burst = TakenIn(rate, 1'000'000, 1, 1);
      EXPECT_EQ(burst, per_second / 10) << "a tenth of a second";
      const uint64_t taken = TakenIn(rate, 1'000'001, 10'000'000, step);
      EXPECT_LE(taken, uint64_t{per_second} * 10 + 1);
      EXPECT_GE(taken, uint64_t{per_second} * 99 / 10);
    }
  }
}

TEST(RateTest, APauseGivesNoMoreThanOneBurst) {
  Rate rate(1000);
  EXPECT_EQ(TakenIn(rate, 1'000'000, 1, 1), 100U);
  EXPECT_EQ(TakenIn(rate, 100'000'000, 1, 1), 100U);
  EXPECT_FALSE(rate.Take(100'000'000));
}

TEST(RateTest, TellsTheWaitOfTheNextRequest) {
  Rate rate(1000);
  uint64_t now = 5'000'000;
  while (rate.Take(now)) {
  }
  EXPECT_EQ(rate.WaitNanos(now), 1'000'000U);
  now += 999;
  EXPECT_FALSE(rate.Take(now));
  EXPECT_EQ(rate.WaitNanos(now), 1000U);
  ++now;
  EXPECT_EQ(rate.WaitNanos(now), 0U);
  EXPECT_TRUE(rate.Take(now));
  EXPECT_FALSE(rate.Take(now));
}

TEST(RateTest, BurstBelowOneIsOneAtATime) {
  Rate rate(1);
  EXPECT_TRUE(rate.Take(1'000'000));
  EXPECT_FALSE(rate.Take(1'900'000));
  EXPECT_TRUE(rate.Take(2'000'000));
}

}  // namespace
}  // namespace erda::server
