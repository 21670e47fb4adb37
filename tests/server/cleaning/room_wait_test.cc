#include "server/cleaning/room_wait.h"

#include <gtest/gtest.h>

namespace erda::server {
namespace {

constexpr uint64_t kChanges = 7;  // changes of the log

TEST(RoomWaitTest, RoomEndsEveryWait) {
  RoomWait wait;
  EXPECT_FALSE(wait.any());
  wait.Begin(Room::kRegion);
  wait.Begin(Room::kHeadSlot);
  EXPECT_TRUE(wait.Waits(Room::kRegion));
  EXPECT_TRUE(wait.Waits(Room::kHeadSlot));
  const uint64_t rooms = wait.rooms();
  wait.EndAll();
  EXPECT_FALSE(wait.any());
  EXPECT_EQ(wait.rooms(), rooms + 1) << "puts that wait look at this number";
}

TEST(RoomWaitTest, GivingUpOnHeadSlotsLeavesPutsThatNeedARegion) {
  RoomWait wait;
  wait.Begin(Room::kRegion);
  wait.Begin(Room::kHeadSlot);
  const uint64_t rooms = wait.rooms();
  wait.GiveUp(Room::kHeadSlot, kChanges);
  EXPECT_TRUE(wait.Waits(Room::kRegion));
  EXPECT_FALSE(wait.Waits(Room::kHeadSlot));
  EXPECT_EQ(wait.rooms(), rooms + 1);
  EXPECT_TRUE(wait.IsHopeless(Room::kHeadSlot, kChanges));
  EXPECT_FALSE(wait.IsHopeless(Room::kRegion, kChanges));
}

TEST(RoomWaitTest, NothingIsHopelessOnceTheLogHasChanged) {
  RoomWait wait;
  wait.Begin(Room::kRegion);
  wait.GiveUp(Room::kRegion, kChanges);
  EXPECT_TRUE(wait.IsHopeless(Room::kRegion, kChanges));
  EXPECT_FALSE(wait.IsHopeless(Room::kRegion, kChanges + 1));
  wait.Begin(Room::kRegion);
  EXPECT_FALSE(wait.IsHopeless(Room::kRegion, kChanges)) << "a new wait tries again";
}

TEST(RoomWaitTest, GivingUpWithoutAWaitChangesNothing) {
  RoomWait wait;
  wait.GiveUp(Room::kRegion, kChanges);
  EXPECT_EQ(wait.rooms(), 0U);
  EXPECT_FALSE(wait.IsHopeless(Room::kRegion, kChanges));
}

TEST(RoomWaitTest, MergesCountFromTheFirstWaitOrTheLastRoom) {
  RoomWait wait;
  wait.CountMerge();
  wait.Begin(Room::kRegion);
  EXPECT_EQ(wait.merges(), 0U);
  wait.CountMerge();
  wait.Begin(Room::kHeadSlot);
  EXPECT_EQ(wait.merges(), 1U) << "puts wait already";
  wait.EndAll();
  EXPECT_EQ(wait.merges(), 0U);
}

}  // namespace
}  // namespace erda::server
