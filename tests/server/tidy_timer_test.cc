#include "server/tidy_timer.h"

#include <gtest/gtest.h>

namespace erda::server {
namespace {

using std::chrono::milliseconds;

TEST(TidyTimerTest, ABusyShardIsNeverDue) {
  TidyTimer timer;
  Nanoseconds now(0);
  int looks = 0;
  for (int request = 0; request < 10'000; ++request) {
    timer.Restart(now);
    for (int idle = 0; idle < 4; ++idle) {  // moments between two requests
      now += milliseconds(1);
      looks += timer.Due(now) ? 1 : 0;
    }
  }
  EXPECT_EQ(looks, 0);
}

TEST(TidyTimerTest, LooksWithoutArrivalsGetRarer) {
  TidyTimer timer;
  Nanoseconds now(0);
  timer.Restart(now);
  int looks = 0;
  for (; now < std::chrono::seconds(100); now += milliseconds(1)) {
    if (!timer.Due(now)) continue;
    timer.Looked(now, false);
    ++looks;
  }
  EXPECT_GT(looks, 99);
  EXPECT_LT(looks, 110);
}

TEST(TidyTimerTest, LooksWithArrivalsGetMoreFrequent) {
  TidyTimer timer;
  timer.Restart(Nanoseconds(0));
  Nanoseconds now(0);
  for (int i = 0; i < 8; ++i) {
    now += timer.Left(now);
    EXPECT_TRUE(timer.Due(now));
    timer.Looked(now, i == 7);
  }
  EXPECT_FALSE(timer.Due(now + TidyTimer::kFirst - Nanoseconds(1)));
  EXPECT_EQ(timer.Left(now), TidyTimer::kFirst);
  timer.Looked(now, false);
  EXPECT_EQ(timer.Left(now), 2 * TidyTimer::kFirst);
  timer.Restart(now);
  EXPECT_EQ(timer.Left(now), TidyTimer::kFirst);
}

}  // namespace
}  // namespace erda::server
