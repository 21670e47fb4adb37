#include "client/time_bounds.h"

#include <gtest/gtest.h>

#include <chrono>

namespace erda::client {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Nanoseconds kAsked = seconds(100);
constexpr Nanoseconds kAnswered = kAsked + milliseconds(2);

// The server said 1,000,000 ms at some moment between the two.
TimeBounds Told() {
  TimeBounds bounds;
  bounds.Learn(kAsked, kAnswered, 1'000'000'000);
  return bounds;
}

TEST(TimeBoundsTest, NothingIsSureBetweenTheQuestionAndTheAnswer) {
  const TimeBounds bounds = Told();
  // At the answer it is 1,000,000 to 1,000,002 ms there, and a little more or less.
  EXPECT_TRUE(bounds.HasPassed(1'000'000, kAnswered));
  EXPECT_FALSE(bounds.HasPassed(1'000'001, kAnswered));
  EXPECT_FALSE(bounds.HasNotPassed(1'000'002, kAnswered));
  EXPECT_TRUE(bounds.HasNotPassed(1'000'003, kAnswered));
}

TEST(TimeBoundsTest, TimeGoesOnAndGetsLessSure) {
  const TimeBounds bounds = Told();
  const Nanoseconds now = kAnswered + seconds(800);  // either clock may have gone wrong by a second
  EXPECT_TRUE(bounds.HasPassed(1'799'000, now));
  EXPECT_FALSE(bounds.HasPassed(1'799'001, now));
  EXPECT_FALSE(bounds.HasNotPassed(1'801'002, now));
  EXPECT_TRUE(bounds.HasNotPassed(1'801'004, now));
}

TEST(TimeBoundsTest, WhatWasSeenBeforeTheAnswerSaysNothing) {
  EXPECT_FALSE(Told().HasPassed(1, kAnswered - Nanoseconds(1)));
  EXPECT_FALSE(TimeBounds().HasPassed(1, Nanoseconds(1)));
}

TEST(TimeBoundsTest, NeverBothWays) {
  const TimeBounds bounds = Told();
  for (uint64_t deadline = 999'990; deadline < 1'001'000; ++deadline) {
    for (const Nanoseconds since : {Nanoseconds(0), Nanoseconds(milliseconds(7)), Nanoseconds(seconds(1))}) {
      const Nanoseconds now = kAnswered + since;
      EXPECT_FALSE(bounds.HasPassed(deadline, now) && bounds.HasNotPassed(deadline, now)) << deadline;
    }
  }
  EXPECT_FALSE(bounds.HasPassed(UINT64_MAX, kAnswered));
  EXPECT_TRUE(bounds.HasNotPassed(UINT64_MAX, kAnswered));
}

}  // namespace
}  // namespace erda::client
