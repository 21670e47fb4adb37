#include "server/cleaner/cleaner_bell.h"

#include <gtest/gtest.h>

namespace erda::server {
namespace {

TEST(CleanerBellTest, RingBeforeSleepKeepsTheCleanerAwake) {
  CleanerBell bell;
  const uint32_t rings = bell.rings();
  bell.Ring();
  bool slept = false;
  bell.SleepUnlessRung(rings, [&] { slept = true; });
  EXPECT_FALSE(slept);
  bell.SleepUnlessRung(bell.rings(), [&] { slept = true; });
  EXPECT_TRUE(slept);
}

TEST(CleanerBellTest, RingWakesOnlyASleeper) {
  CleanerBell bell;
  int wakes = 0;
  bell.wake = [&] { ++wakes; };
  bell.Ring();
  EXPECT_EQ(wakes, 0) << "the cleaner is awake";
  bell.SleepUnlessRung(bell.rings(), [&] { bell.Ring(); });
  EXPECT_EQ(wakes, 1);
  bell.Ring();
  EXPECT_EQ(wakes, 1) << "it is awake again";
}

}  // namespace
}  // namespace erda::server
