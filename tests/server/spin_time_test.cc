#include "server/spin_time.h"

#include <gtest/gtest.h>

namespace erda::server {
namespace {

using std::chrono::microseconds;

TEST(SpinTimeTest, SpinIsLongerWhenWorkComesSoon) {
  SpinTime spin(microseconds(50));
  EXPECT_EQ(spin.now(), microseconds(50));
  spin.CameAfter(microseconds(80));
  EXPECT_EQ(spin.now(), microseconds(160)) << "twice as long as it had to wait";
  spin.CameAfter(microseconds(900));
  EXPECT_EQ(spin.now(), microseconds(1000)) << "as long as it may be";
  spin.CameAfter(microseconds(1000));
  EXPECT_EQ(spin.now(), microseconds(1000));
}

TEST(SpinTimeTest, SpinIsShortAgainWithoutWork) {
  SpinTime spin(microseconds(50));
  spin.CameAfter(microseconds(80));
  spin.CameAfter(microseconds(1001));
  EXPECT_EQ(spin.now(), microseconds(50));
}

// While processors are short, a shard sleeps before its time is over.
TEST(SpinTimeTest, SpinIsNeverShorterThanTheOptionSays) {
  SpinTime spin(microseconds(50));
  spin.CameAfter(microseconds(5));
  EXPECT_EQ(spin.now(), microseconds(50));
}

TEST(SpinTimeTest, SpinOfZeroStaysZero) {
  SpinTime spin(microseconds(0));
  spin.CameAfter(microseconds(1));
  EXPECT_EQ(spin.now(), microseconds(0));
}

}  // namespace
}  // namespace erda::server
