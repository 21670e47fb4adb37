// How often a queue looks at events and at the clock.
#include "fabric/verbs/look_pace.h"

#include <gtest/gtest.h>

namespace erda::fabric::verbs {
namespace {

constexpr Population kQuiet{0, 0};
constexpr Population kConnecting{1, 0};
constexpr Population kFailing{0, 1};
constexpr Nanoseconds kStart = std::chrono::hours(1);
constexpr Nanoseconds kInstant{1};

TEST(LookPace, OnePollOfManyLooks) {
  LookPace pace;
  for (uint32_t round = 0; round < 3; ++round) {
    for (uint32_t i = 1; i < LookPace::kPollsPerLook; ++i) ASSERT_FALSE(pace.CountPoll(kQuiet)) << i;
    ASSERT_TRUE(pace.CountPoll(kQuiet));
  }
}

TEST(LookPace, EachPollLooksWhileAChannelConnects) {
  LookPace pace;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(pace.CountPoll(kConnecting));
  EXPECT_FALSE(pace.CountPoll(kFailing));
}

TEST(LookPace, ConnectedChannelsAreLookedAtEachSecond) {
  LookPace pace;
  EXPECT_EQ(pace.Look(kStart, kQuiet), LookAt::kAll);
  EXPECT_EQ(pace.Look(kStart + LookPace::kLookEvery - kInstant, kQuiet), LookAt::kNone);
  EXPECT_EQ(pace.Look(kStart + LookPace::kLookEvery, kQuiet), LookAt::kAll);
}

TEST(LookPace, OtherChannelsAreLookedAtSooner) {
  for (const Population& population : {kConnecting, kFailing}) {
    LookPace pace;
    ASSERT_EQ(pace.Look(kStart, population), LookAt::kAll);
    EXPECT_EQ(pace.Look(kStart + LookPace::kLookSoon - kInstant, population), LookAt::kNone);
    EXPECT_EQ(pace.Look(kStart + LookPace::kLookSoon, population), LookAt::kNotConnected);
    EXPECT_EQ(pace.Look(kStart + LookPace::kLookEvery, population), LookAt::kAll) << "connected channels are due, too";
  }
}

TEST(LookPace, PeriodIsTheTimeBetweenLooks) {
  EXPECT_EQ(LookPace::Period(kQuiet), Nanoseconds(LookPace::kLookEvery));
  EXPECT_EQ(LookPace::Period(kConnecting), Nanoseconds(LookPace::kLookSoon));
  EXPECT_EQ(LookPace::Period(kFailing), Nanoseconds(LookPace::kLookSoon));
}

}  // namespace
}  // namespace erda::fabric::verbs
