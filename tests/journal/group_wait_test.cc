#include "journal/group_wait.h"

#include <gtest/gtest.h>

namespace erda::journal {
namespace {

using std::chrono::microseconds;

TEST(GroupWaitTest, OneWaiterWaitsForNobody) {
  GroupWait group;
  EXPECT_EQ(group.expected(), 0U);
  group.Wrote(1, microseconds(100));
  EXPECT_LE(group.expected(), 1U);
}

TEST(GroupWaitTest, MostOfThoseWhoWaitedAreExpected) {
  GroupWait group;
  group.Wrote(16, microseconds(100));
  EXPECT_EQ(group.expected(), 14U);
  group.Wrote(2, microseconds(100));
  EXPECT_EQ(group.expected(), 2U);
}

TEST(GroupWaitTest, PatienceShrinksInVainAndGrowsAgain) {
  GroupWait group;
  group.Wrote(16, microseconds(640));
  EXPECT_EQ(group.Patience(), microseconds(160));
  group.Ended(false);
  EXPECT_EQ(group.Patience(), microseconds(80));
  for (int i = 0; i < 10; ++i) group.Ended(false);
  EXPECT_EQ(group.Patience(), microseconds(10));
  for (int i = 0; i < 10; ++i) group.Ended(true);
  EXPECT_EQ(group.Patience(), microseconds(320)) << "never more than half of a write";
}

TEST(GroupWaitTest, WaitInVainIsTriedAgain) {
  GroupWait group;
  group.Wrote(16, microseconds(640));
  int tries = 0;
  for (int i = 0; i < 320; ++i) {
    tries += group.Patience() == microseconds(320) ? 1 : 0;
    group.Ended(false);
  }
  EXPECT_EQ(tries, 10);
}

TEST(GroupWaitTest, TypicalTimeFollowsTheDisk) {
  GroupWait group;
  group.Wrote(16, microseconds(100));
  for (int i = 0; i < 50; ++i) group.Wrote(16, microseconds(1000));
  EXPECT_GT(group.Patience(), microseconds(240));
}

}  // namespace
}  // namespace erda::journal
