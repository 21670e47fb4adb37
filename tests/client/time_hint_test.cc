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
TimeBounds BoundsOfOneAnswer() {
  TimeBounds bounds;
  bounds.Learn(kAsked, kAnswered, 1'000'000'000);
  return bounds;
}

TEST(TimeBoundsTest, NothingIsSureBetweenTheQuestionAndTheAnswer) {
  const TimeBounds bounds = BoundsOfOneAnswer();
  // At the answer it is 1,000,000 to 1,000,002 ms there, and a little more or less.
  EXPECT_TRUE(bounds.HasPassed(1'000'000, kAnswered));
  EXPECT_FALSE(bounds.HasPassed(1'000'001, kAnswered));
  EXPECT_FALSE(bounds.HasNotPassed(1'000'002, kAnswered));
  EXPECT_TRUE(bounds.HasNotPassed(1'000'003, kAnswered));
}

TEST(TimeBoundsTest, TimeGoesOnAndGetsLessSure) {
  const TimeBounds bounds = BoundsOfOneAnswer();
  const Nanoseconds now = kAnswered + seconds(800);  // either clock may have gone wrong by a second
  EXPECT_TRUE(bounds.HasPassed(1'799'000, now));
  EXPECT_FALSE(bounds.HasPassed(1'799'001, now));
  EXPECT_FALSE(bounds.HasNotPassed(1'801'002, now));
  EXPECT_TRUE(bounds.HasNotPassed(1'801'004, now));
}

TEST(TimeBoundsTest, WhatWasSeenBeforeTheAnswerSaysNothing) {
  EXPECT_FALSE(BoundsOfOneAnswer().HasPassed(1, kAnswered - Nanoseconds(1)));
  EXPECT_FALSE(TimeBounds().HasPassed(1, Nanoseconds(1)));
}

// By a server's clock that is up to a thousandth slower or faster, and was read anywhere between.
TEST(TimeBoundsTest, WhatIsSureIsSo) {
  constexpr Nanoseconds kBegin = seconds(1'000'000);  // of the server's clock, at the question
  for (const int64_t per_million : {-1000, -500, 0, 500, 1000}) {
    const auto server_at = [&](Nanoseconds now) {
      const Nanoseconds since = now - kAsked;
      return kBegin + since + Nanoseconds(since.count() / 1'000'000 * per_million);
    };
    for (const Nanoseconds read :
         {kAsked + Nanoseconds(microseconds(1)), kAsked + Nanoseconds(microseconds(1'333)), kAnswered}) {
      TimeBounds bounds;
      bounds.Learn(kAsked, kAnswered, static_cast<uint64_t>(floor<microseconds>(server_at(read)).count()));
      for (Nanoseconds now = kAnswered; now < kAnswered + seconds(100); now += microseconds(77'777)) {
        const auto millis = static_cast<uint64_t>(floor<milliseconds>(server_at(now)).count());
        for (uint64_t deadline = millis - 300; deadline < millis + 300; ++deadline) {
          const bool passed = millis >= deadline;
          ASSERT_TRUE(passed || !bounds.HasPassed(deadline, now)) << deadline << " " << now.count();
          ASSERT_TRUE(!passed || !bounds.HasNotPassed(deadline, now)) << deadline << " " << now.count();
        }
      }
    }
  }
}

TEST(TimeBoundsTest, TheNextAnswerReplacesTheOneBefore) {
  TimeBounds bounds = BoundsOfOneAnswer();
  const Nanoseconds later = kAnswered + seconds(800);
  bounds.Learn(later, later + milliseconds(1), 1'801'000'000);
  EXPECT_TRUE(bounds.HasPassed(1'801'000, later + milliseconds(1)));
  EXPECT_TRUE(bounds.HasNotPassed(1'801'002, later + milliseconds(1)));
  EXPECT_FALSE(bounds.HasPassed(1, later)) << "read before the answer";
}

TEST(TimeBoundsTest, NeverBothWays) {
  const TimeBounds bounds = BoundsOfOneAnswer();
  for (uint64_t deadline = 999'990; deadline < 1'001'000; ++deadline) {
    for (const Nanoseconds since : {Nanoseconds(0), Nanoseconds(milliseconds(7)), Nanoseconds(seconds(1))}) {
      const Nanoseconds now = kAnswered + since;
      EXPECT_FALSE(bounds.HasPassed(deadline, now) && bounds.HasNotPassed(deadline, now)) << deadline;
    }
  }
  EXPECT_FALSE(bounds.HasPassed(UINT64_MAX, kAnswered));
  EXPECT_TRUE(bounds.HasNotPassed(UINT64_MAX, kAnswered));
}

// The server said its microsecond rounded down.
TEST(TimeBoundsTest, TheMicrosecondThatTheServerSaidMayBeAlmostOver) {
  TimeBounds bounds;
  bounds.Learn(Nanoseconds(1000), Nanoseconds(2000), 999'999);
  EXPECT_FALSE(bounds.HasNotPassed(1000, Nanoseconds(1001)));
}

TEST(TimeBoundsTest, AnyTimeCanBeSaid) {
  for (const uint64_t micros : {UINT64_MAX, uint64_t{1} << 62, uint64_t{0}}) {
    TimeBounds bounds;
    bounds.Learn(kAsked, kAnswered, micros);
    EXPECT_EQ(bounds.HasPassed(2'000'000'000'000, kAnswered), micros != 0);
    EXPECT_EQ(bounds.HasNotPassed(2'000'000'000'000, kAnswered), micros == 0);
  }
}

}  // namespace
}  // namespace erda::client
