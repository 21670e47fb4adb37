#include "server/requests/parked_requests.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <vector>

#include "base/hand_clock.h"
#include "format/control_block.h"

namespace erda::server {
namespace {

class ParkedRequestsTest : public testing::Test {
 protected:
  ParkedRequestsTest() {
    for (uint32_t id = 0; id < 2; ++id) sessions_.at(id).id = id;
  }
  Asked Ask(size_t session, uint32_t slot) { return {sessions_.at(session), slot, Nanoseconds(slot)}; }

  alignas(8) std::array<std::byte, sizeof(format::ControlBlock)> control_{};
  std::array<Session, 2> sessions_;
  HandClock clock_;
  ServerTime time_{clock_, 1'000'000};
  RoomQueue rooms_{Counters(control_)};
  RateQueue rates_{time_, 0};
  std::vector<uint32_t> served_;
};

TEST_F(ParkedRequestsTest, RoomWakesRequestsInTheirOrderOnce) {
  for (const uint32_t slot : {5U, 3U, 4U}) rooms_.Park(Ask(slot % 2, slot), 7);
  const auto serve = [&](const Asked& asked) { served_.push_back(asked.slot); };
  EXPECT_EQ(rooms_.Wake(7, serve), 0U) << "there is no other room than when they were parked";
  EXPECT_EQ(rooms_.Wake(8, serve), 3U);
  EXPECT_EQ(served_, (std::vector<uint32_t>{5, 3, 4}));
  EXPECT_TRUE(rooms_.empty());
  EXPECT_EQ(rooms_.Wake(9, serve), 0U);
}

TEST_F(ParkedRequestsTest, ARequestThatIsParkedAgainWaitsForTheNextRoom) {
  rooms_.Park(Ask(0, 1), 7);
  const auto again = [&](const Asked& asked) {
    EXPECT_FALSE(rooms_.Has(asked.session, asked.slot)) << "it does not wait while it is served";
    rooms_.Park(asked, 8);
  };
  EXPECT_EQ(rooms_.Wake(8, again), 1U);
  EXPECT_TRUE(rooms_.Has(sessions_[0], 1));
  EXPECT_EQ(sessions_[0].awaiting_room, 1U);
  EXPECT_EQ(rooms_.Wake(8, again), 0U);
}

// It came first, and waited for the medium when the others came.
TEST_F(ParkedRequestsTest, RequestThatWaitedForTheMediumGoesBeforeLaterOnesOfItsSession) {
  const QueuedRequest first(Ask(0, 1));
  rooms_.Park(Ask(1, 2), 7);
  rooms_.Park(Ask(0, 3), 7);
  rooms_.Park(Ask(1, 4), 7);
  rooms_.Park(Ask(0, 5), 7);
  rooms_.Park(first.asked(), 7);
  EXPECT_EQ(sessions_[0].awaiting_room, 3U);
  const auto again = [&](const Asked& asked) {
    served_.push_back(asked.slot);
    rooms_.Park(asked, 8);
  };
  EXPECT_EQ(rooms_.Wake(8, again), 5U);
  EXPECT_EQ(served_, (std::vector<uint32_t>{2, 1, 3, 4, 5}));
  served_.clear();
  EXPECT_EQ(rooms_.Wake(9, again), 5U);
  EXPECT_EQ(served_, (std::vector<uint32_t>{2, 1, 3, 4, 5})) << "they keep their order";
}

TEST_F(ParkedRequestsTest, ADoomedSessionIsNotServedAndAForgottenOneIsGone) {
  rooms_.Park(Ask(0, 1), 7);
  rooms_.Park(Ask(1, 2), 7);
  rooms_.Forget(sessions_[1]);
  EXPECT_FALSE(rooms_.Has(sessions_[1], 2));
  sessions_[0].doomed = true;
  EXPECT_EQ(rooms_.Wake(8, [&](const Asked& asked) { served_.push_back(asked.slot); }), 1U);
  EXPECT_TRUE(served_.empty());
}

TEST_F(ParkedRequestsTest, MessageKeepsItsOrderAfterOneBeyondTheRate) {
  for (Session& session : sessions_) session.slots = 8;
  rates_.SetLimit(10);  // a tenth of a second for each, and one at once
  const auto hear = [&](Session& session, uint32_t imm, Nanoseconds /*seen*/) {
    served_.push_back(10 * session.id + imm);
  };
  EXPECT_EQ(rates_.Wake(hear), 0U);
  EXPECT_FALSE(rates_.ParkIfTooFast(sessions_[0], 0, {}));
  EXPECT_TRUE(rates_.ParkIfTooFast(sessions_[0], 1, {}));
  EXPECT_FALSE(rates_.ParkIfTooFast(sessions_[1], 0, {})) << "the rate of one client does not limit another";
  rates_.SetLimit(0);
  EXPECT_TRUE(rates_.ParkIfTooFast(sessions_[0], 2, {})) << "it comes after one that waits";
  EXPECT_EQ(rates_.Wake(hear), 2U);
  EXPECT_EQ(served_, (std::vector<uint32_t>{1, 2}));
  EXPECT_TRUE(rates_.empty());
}

TEST_F(ParkedRequestsTest, TheTimeOfTheNextPollLetsTheNextMessageIn) {
  rates_.SetLimit(10);
  const auto hear = [&](Session& /*session*/, uint32_t imm, Nanoseconds /*seen*/) { served_.push_back(imm); };
  EXPECT_FALSE(rates_.ParkIfTooFast(sessions_[0], 0, {}));
  EXPECT_TRUE(rates_.ParkIfTooFast(sessions_[0], 1, {}));
  EXPECT_TRUE(rates_.ParkIfTooFast(sessions_[0], 2, {}));
  EXPECT_EQ(rates_.wait(), std::chrono::milliseconds(100));
  clock_.now += std::chrono::milliseconds(99);
  EXPECT_EQ(rates_.Wake(hear), 0U);
  clock_.now += std::chrono::milliseconds(1);
  EXPECT_EQ(rates_.Wake(hear), 1U);
  EXPECT_EQ(served_, std::vector<uint32_t>{1});
  rates_.Forget(sessions_[0]);
  EXPECT_TRUE(rates_.empty());
}

}  // namespace
}  // namespace erda::server
