#include "server/requests/waiting_replies.h"

#include <gtest/gtest.h>

#include <vector>

namespace erda::server {
namespace {

class WaitingRepliesTest : public testing::Test {
 protected:
  static constexpr uint8_t kKind = 3;
  using Slots = std::vector<uint32_t>;

  WaitingRepliesTest() { one_.slots = other_.slots = 2; }

  void Add(Session& session, uint32_t slot) { waiting_.Add({session, slot, Nanoseconds(1)}, kKind); }
  // Returns the slots of the replies that are released.
  Slots Release(uint64_t held) {
    Slots slots;
    const size_t released = waiting_.Release(held, [&](const Asked& asked, uint8_t kind) {
      slots.push_back(asked.slot);
      EXPECT_EQ(kind, kKind);
    });
    EXPECT_EQ(released, slots.size());
    return slots;
  }

  WaitingReplies waiting_;
  Session one_;
  Session other_;
};

TEST_F(WaitingRepliesTest, ReplyWaitsForItsPlace) {
  Add(one_, 1);
  Add(other_, 2);
  EXPECT_TRUE(waiting_.has_without_place());
  EXPECT_EQ(Release(UINT64_MAX), Slots()) << "the place is not known yet";
  waiting_.Place(100);
  Add(one_, 3);
  waiting_.Place(200);
  EXPECT_FALSE(waiting_.has_without_place());
  EXPECT_EQ(one_.awaiting_hold, 2);
  EXPECT_EQ(waiting_.unsent(), 3U);
  EXPECT_EQ(Release(99), Slots());
  EXPECT_EQ(Release(100), Slots({1, 2}));
  EXPECT_EQ(one_.awaiting_hold, 1);
  EXPECT_EQ(waiting_.unsent(), 1U);
  EXPECT_EQ(Release(1000), Slots({3}));
  EXPECT_EQ(one_.awaiting_hold, 0);
  EXPECT_TRUE(waiting_.empty());
}

TEST_F(WaitingRepliesTest, ForgottenSessionGetsNone) {
  Add(one_, 1);
  Add(other_, 2);
  waiting_.Place(100);
  Add(one_, 3);
  Add(other_, 4);
  Add(one_, 5);
  waiting_.Forget(one_);
  EXPECT_EQ(waiting_.unsent(), 2U);
  waiting_.Place(200);
  EXPECT_EQ(Release(100), Slots({2}));
  EXPECT_EQ(Release(200), Slots({4}));
  EXPECT_TRUE(waiting_.empty());
}

TEST_F(WaitingRepliesTest, SessionHasAsManyPlacedRepliesAsSlots) {
  EXPECT_TRUE(waiting_.AddPlaced({one_, 1, {}}));
  waiting_.Place(100);
  EXPECT_TRUE(waiting_.AddPlaced({one_, 1, {}}));
  EXPECT_FALSE(waiting_.AddPlaced({one_, 1, {}}));
  EXPECT_TRUE(waiting_.AddPlaced({other_, 1, {}})) << "each session counts alone";
  Add(one_, 1);
  waiting_.Place(200);
  EXPECT_EQ(one_.awaiting_hold, 1);
  EXPECT_EQ(waiting_.unsent(), 1U) << "the others are sent already";
  EXPECT_EQ(Release(99), Slots());
  EXPECT_FALSE(waiting_.AddPlaced({one_, 2, {}}));
  size_t released = waiting_.Release(100, [](const Asked&, uint8_t) { ADD_FAILURE() << "it was sent before"; });
  EXPECT_EQ(released, 1);
  EXPECT_TRUE(waiting_.AddPlaced({one_, 2, {}}));
  waiting_.Place(300);
  released = waiting_.Release(200, [](const Asked& asked, uint8_t) { EXPECT_EQ(asked.slot, 1); });
  EXPECT_EQ(released, 3);
  waiting_.Forget(one_);
  EXPECT_TRUE(waiting_.empty()) << "a session without waiting replies may have placed ones";
}

TEST_F(WaitingRepliesTest, PostponedRepliesKeepTheirOrder) {
  Add(one_, 1);
  waiting_.Place(100);
  Add(one_, 2);
  waiting_.Place(200);
  Add(other_, 3);
  waiting_.Place(300);
  waiting_.Postpone(200, 400);
  EXPECT_EQ(Release(399), Slots());
  EXPECT_EQ(Release(400), Slots({1, 2, 3}));
}

}  // namespace
}  // namespace erda::server
