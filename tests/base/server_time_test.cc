#include "base/server_time.h"

#include <gtest/gtest.h>

#include <chrono>

#include "base/hand_clock.h"

namespace erda {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

TEST(ServerTimeTest, TimeFollowsTheClockFromItsBeginning) {
  HandClock clock;
  clock.now = std::chrono::hours(100);
  const ServerTime time(clock, 5'000'000);
  EXPECT_EQ(time.Micros(), 5'000'000U);
  clock.now += microseconds(1234);
  EXPECT_EQ(time.Micros(), 5'001'234U);
}

TEST(ServerTimeTest, ADeadlineHasPassedFromItsMillisecondOn) {
  HandClock clock;
  const ServerTime time(clock, 5'000'000);
  clock.now += microseconds(9'999);
  EXPECT_FALSE(time.Passed(5'010));
  clock.now += microseconds(1);
  EXPECT_TRUE(time.Passed(5'010));
  EXPECT_TRUE(time.Passed(1));
  EXPECT_FALSE(time.Passed(0)) << "none";
  EXPECT_FALSE(time.Passed(UINT64_MAX));
}

TEST(ServerTimeTest, ATimeToLiveIsNeverCutShort) {
  HandClock clock;
  const ServerTime time(clock, 5'000'000);
  EXPECT_EQ(time.DeadlineIn(10), 5'010U);
  clock.now += microseconds(1);
  EXPECT_EQ(time.DeadlineIn(10), 5'011U);
  EXPECT_EQ(time.DeadlineIn(UINT64_MAX), ServerTime::kDeadlineMax);
  clock.now += milliseconds(10);
  EXPECT_FALSE(time.Passed(5'011));
  EXPECT_FALSE(time.Passed(time.DeadlineIn(UINT64_MAX)));
}

TEST(ServerTimeTest, TimeWaitsForTheWallClockAfterTheNoteOfADeadServer) {
  HandClock clock;
  const ServerTime time = ServerTime::From(clock, 5'000'000, 5'700'000, 1'000'000);
  EXPECT_EQ(time.Micros(), 5'700'000U);
  clock.now += std::chrono::milliseconds(700);
  EXPECT_EQ(time.Micros(), 5'700'000U);
  clock.now += std::chrono::milliseconds(1);
  EXPECT_EQ(time.Micros(), 5'701'000U);
}

TEST(ServerTimeTest, TimeContinuesFromTheNoteIfTheWallClockWasSetBack) {
  HandClock clock;
  const ServerTime time = ServerTime::From(clock, 5'000'000, 6'000'001, 1'000'000);
  EXPECT_EQ(time.Micros(), 6'000'001U);
  clock.now += std::chrono::milliseconds(1);
  EXPECT_EQ(time.Micros(), 6'001'001U);
}

TEST(ServerTimeTest, TimeFollowsTheWallClockIfTheNoteIsOlder) {
  HandClock clock;
  const ServerTime time = ServerTime::From(clock, 5'000'000, 4'000'000, 1'000'000);
  EXPECT_EQ(time.Micros(), 5'000'000U);
}

TEST(ServerTimeTest, TimeOfThisMachineIsTheWallClocks) {
  const uint64_t before = ServerTime::WallMicros();
  EXPECT_GT(before, 1'700'000'000'000'000U);
  const ServerTime time(SteadyClock::Instance(), before);
  EXPECT_GE(time.Micros(), before);
}

}  // namespace
}  // namespace erda
