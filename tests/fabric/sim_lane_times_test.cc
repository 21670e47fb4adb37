// The order that the times of a simulated lane keep.
#include "fabric/sim/lane_times.h"

#include <gtest/gtest.h>

namespace erda::fabric {
namespace {

TEST(SimLaneTimesTest, OperationBeginsAfterEverythingBeforeIt) {
  SimLaneTimes times;
  times.PlaceBy(Nanoseconds(30), false);
  times.PlaceBy(Nanoseconds(20), false);
  EXPECT_EQ(times.BeginsAt(false), Nanoseconds(30));
  times.PlaceBy(Nanoseconds(50), true);
  EXPECT_EQ(times.BeginsAt(false), Nanoseconds(50));
  EXPECT_EQ(times.idle_at(), Nanoseconds(50));
}

TEST(SimLaneTimesTest, OperationThatPassesReadsWaitsForWritesAlone) {
  SimLaneTimes times;
  times.PlaceBy(Nanoseconds(30), false);
  EXPECT_FALSE(times.ends_with_read());
  times.PlaceBy(Nanoseconds(50), true);
  EXPECT_TRUE(times.ends_with_read());
  EXPECT_EQ(times.BeginsAt(true), Nanoseconds(30));
  // A Write begins after that Read, and so later ones wait for both.
  times.PlaceBy(Nanoseconds(60), false);
  EXPECT_FALSE(times.ends_with_read());
  EXPECT_EQ(times.BeginsAt(true), Nanoseconds(60));
}

TEST(SimLaneTimesTest, CompletionsAndMessagesKeepTheirOrder) {
  SimLaneTimes times;
  EXPECT_EQ(times.CompleteBy(Nanoseconds(20)), Nanoseconds(20));
  EXPECT_EQ(times.CompleteBy(Nanoseconds(10)), Nanoseconds(20));
  EXPECT_EQ(times.CompleteBy(Nanoseconds(25)), Nanoseconds(25));
  EXPECT_EQ(times.completed_by(), Nanoseconds(25));
  EXPECT_EQ(times.DeliverBy(Nanoseconds(7)), Nanoseconds(7)) << "messages do not wait for completions";
  EXPECT_EQ(times.DeliverBy(Nanoseconds(5)), Nanoseconds(7));
  EXPECT_EQ(times.delivered_by(), Nanoseconds(7));
}

}  // namespace
}  // namespace erda::fabric
