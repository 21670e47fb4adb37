// The request slots of a connection: each has one owner at a time.
#include "client/request_slots.h"

#include <gtest/gtest.h>

#include <set>

namespace erda::client {
namespace {

TEST(RequestSlotsTest, TakeGivesEachSlotOnceUntilNoneIsFree) {
  RequestSlots slots;
  slots.Reset(3, 4096);
  std::set<uint32_t> taken;
  for (OpIndex owner = 10; owner < 13; ++owner) {
    ASSERT_TRUE(slots.has_free());
    const uint32_t slot = slots.Take(owner);
    EXPECT_LT(slot, 3U);
    EXPECT_TRUE(taken.insert(slot).second) << slot;
    EXPECT_EQ(slots.OwnerOf(slot), owner);
  }
  EXPECT_FALSE(slots.has_free());
  EXPECT_EQ(slots.Take(13), RequestSlots::kNoSlot);
}

TEST(RequestSlotsTest, FreedSlotHasNoOwnerAndIsTakenAgain) {
  RequestSlots slots;
  slots.Reset(2, 4096);
  const uint32_t first = slots.Take(1);
  const uint32_t second = slots.Take(2);
  slots.Free(first);
  EXPECT_EQ(slots.OwnerOf(first), RequestSlots::kFree);
  EXPECT_EQ(slots.OwnerOf(second), 2U);
  EXPECT_EQ(slots.Take(3), first);
  EXPECT_EQ(slots.OwnerOf(first), 3U);
}

TEST(RequestSlotsTest, NumberWithoutSlotHasNoOwner) {
  RequestSlots slots;
  EXPECT_EQ(slots.OwnerOf(0), RequestSlots::kFree);
  EXPECT_EQ(slots.Take(1), RequestSlots::kNoSlot) << "before the first connection";
  slots.Reset(2, 4096);
  EXPECT_EQ(slots.OwnerOf(2), RequestSlots::kFree);
  EXPECT_EQ(slots.OwnerOf(UINT32_MAX), RequestSlots::kFree);
}

TEST(RequestSlotsTest, NewConnectionBeginsWithAllSlotsFree) {
  RequestSlots slots;
  slots.Reset(2, 4096);
  (void)slots.Take(1);
  (void)slots.Take(2);
  slots.Reset(1, 512);
  EXPECT_EQ(slots.OwnerOf(0), RequestSlots::kFree);
  EXPECT_EQ(slots.Take(3), 0U);
  EXPECT_EQ(slots.Take(4), RequestSlots::kNoSlot) << "the new connection has one slot";
}

TEST(RequestSlotsTest, OffsetDoesNotOverflow) {
  RequestSlots slots;
  slots.Reset(2, 1U << 31);
  EXPECT_EQ(slots.OffsetOf(0), 0U);
  EXPECT_EQ(slots.OffsetOf(5), 5ULL << 31);
}

}  // namespace
}  // namespace erda::client
