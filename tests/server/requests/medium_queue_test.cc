#include "server/requests/medium_queue.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <optional>
#include <vector>

#include "server/store.h"

namespace erda::server {
namespace {

// Nothing is in flight in the store: the medium holds each version for which a request waits.
class MediumQueueTest : public testing::Test {
 protected:
  using Slots = std::vector<uint32_t>;

  static AwaitsMedium Awaits(uint64_t key_hash, uint64_t version, bool for_slot = false) {
    AwaitsMedium awaits{{}, key_hash, for_slot};
    awaits.present.version = version;
    return awaits;
  }
  void Park(uint32_t slot, const AwaitsMedium& awaits) { queue_.Park({session_, slot, {}}, awaits); }
  // Returns the slots of the requests that Wake serves. again: what the request with this slot awaits then.
  Slots Wake(const std::function<std::optional<AwaitsMedium>(uint32_t)>& again = [](uint32_t) {
    return std::nullopt;
  }) {
    Slots served;
    (void)queue_.Wake(false, [&](const Asked& asked) {
      served.push_back(asked.slot);
      return again(asked.slot);
    });
    return served;
  }

  Store store_;
  MediumQueue queue_{store_.versions()};
  Session session_;
  Session other_;
};

TEST_F(MediumQueueTest, RequestsGoOnInTheirOrder) {
  for (const uint32_t slot : {5U, 3U, 4U}) Park(slot, Awaits(slot, 1));
  EXPECT_EQ(session_.awaiting_writer, 3);
  EXPECT_TRUE(queue_.Has(session_, 3));
  EXPECT_EQ(Wake(), Slots({5, 3, 4}));
  EXPECT_TRUE(queue_.empty());
  EXPECT_EQ(session_.awaiting_writer, 0);
}

TEST_F(MediumQueueTest, RequestsOfAKeyStayBehindOneThatWaitsAgain) {
  Park(1, Awaits(7, 1));
  Park(2, Awaits(7, 1));
  Park(3, Awaits(8, 1));
  Park(4, Awaits(7, 1));
  const auto second_waits = [](uint32_t slot) { return slot == 2 ? std::optional(Awaits(7, 2)) : std::nullopt; };
  EXPECT_EQ(Wake(second_waits), Slots({1, 2, 3}));
  EXPECT_EQ(queue_.AheadOf(7)->version, 2);
  EXPECT_FALSE(queue_.AheadOf(8));
  EXPECT_EQ(Wake(), Slots({2, 4}));
  EXPECT_FALSE(queue_.AheadOf(7));
}

// The first delete gets the slot, and the second one finds the first one's tombstone there.
TEST_F(MediumQueueTest, OfTheDeletesThatWaitForASlotTwoAreServedAtAHold) {
  for (uint32_t slot = 0; slot < 6; ++slot) Park(slot, Awaits(slot, 100, true));
  for (uint32_t turn = 0; turn < 5; ++turn) {
    const auto others_wait = [&](uint32_t slot) {
      return slot == turn ? std::nullopt : std::optional(Awaits(slot, 101 + turn, true));
    };
    EXPECT_EQ(Wake(others_wait), Slots({turn, turn + 1}));
  }
  EXPECT_EQ(Wake(), Slots({5}));
}

// It waits for a version of its key, so the slot may be free.
TEST_F(MediumQueueTest, DeleteThatWaitsForItsKeyLeavesTheSlotToTheNext) {
  for (uint32_t slot = 0; slot < 3; ++slot) Park(slot, Awaits(slot, 100, true));
  const auto first_waits = [](uint32_t slot) { return slot == 0 ? std::optional(Awaits(0, 50)) : std::nullopt; };
  EXPECT_EQ(Wake(first_waits), Slots({0, 1, 2}));
}

TEST_F(MediumQueueTest, ForgottenSessionKeepsNobodyWaiting) {
  queue_.Park({other_, 1, {}}, Awaits(7, 1));
  Park(2, Awaits(8, 1));
  queue_.Forget(other_);
  EXPECT_FALSE(queue_.AheadOf(7));
  EXPECT_TRUE(queue_.AheadOf(8));
  queue_.Forget(session_);
  EXPECT_TRUE(queue_.empty());
}

// Two puts of a session waited after another client's delete of the key. The first one was served, and waited for room.
// When there is room, the delete still waits.
TEST_F(MediumQueueTest, RequestThatWaitedForRoomGoesBeforeLaterOnesOfItsSessionAndKey) {
  const QueuedRequest first({session_, 1, {}});
  Park(2, Awaits(8, 1));
  queue_.Park({other_, 3, {}}, Awaits(7, 1));
  Park(4, Awaits(7, 2));
  queue_.Park(first.asked(), Awaits(7, 1));
  EXPECT_EQ(queue_.AheadOf(7)->version, 2) << "the last one waits for it";
  EXPECT_EQ(session_.awaiting_writer, 3);
  const auto all_wait = [](uint32_t slot) { return std::optional(Awaits(slot == 2 ? 8 : 7, 3)); };
  EXPECT_EQ(Wake(all_wait), Slots({2, 3}));
  EXPECT_EQ(Wake(), Slots({2, 3, 1, 4}));
  EXPECT_FALSE(queue_.AheadOf(7));
}

TEST_F(MediumQueueTest, DoomedSessionIsNotServed) {
  queue_.Park({other_, 1, {}}, Awaits(7, 1));
  Park(2, Awaits(7, 1));
  other_.doomed = true;
  EXPECT_EQ(Wake(), Slots({2}));
}

}  // namespace
}  // namespace erda::server
