// The stages of a channel, the counts of its queue, and looks at the clock.
#include "fabric/verbs/channel_life.h"

#include <gtest/gtest.h>

#include <memory>

namespace erda::fabric::verbs {
namespace {

constexpr Nanoseconds kBegin{1'000'000};
constexpr Nanoseconds kTick{1};

class ChannelLifeTest : public testing::Test {
 protected:
  void Fail(Nanoseconds now = kBegin, Blame blame = Blame::kNobody) {
    life_->Fail({Code::kUnavailable, "reason"}, blame, now);
  }
  void Expect(uint32_t connecting, uint32_t failing) const {
    EXPECT_EQ(population_.connecting, connecting);
    EXPECT_EQ(population_.failing, failing);
  }

  Population population_;
  std::unique_ptr<ChannelLife> life_ = std::make_unique<ChannelLife>(true, kBegin);
};

TEST_F(ChannelLifeTest, EndsBeginWithTheirFirstStep) {
  EXPECT_EQ(life_->stage(), Stage::kResolving);
  EXPECT_EQ(ChannelLife(false, kBegin).stage(), Stage::kGreeting);
  EXPECT_FALSE(life_->connected());
  EXPECT_FALSE(life_->failed());
  EXPECT_TRUE(life_->error().ok());
}

TEST_F(ChannelLifeTest, PopulationFollowsTheStages) {
  Expect(0, 0);
  life_->Join(&population_);
  Expect(1, 0);
  life_->Advance(Stage::kAsking);
  life_->Advance(Stage::kGreeting);
  Expect(1, 0);
  life_->Advance(Stage::kConnected);
  Expect(0, 0);
  Fail();
  Expect(0, 1);
  life_->Close();
  Expect(0, 0);
  life_.reset();
  Expect(0, 0);
}

TEST_F(ChannelLifeTest, ChannelLeavesThePopulationFromEachStage) {
  const auto reach = [&](Stage stage) {
    life_ = std::make_unique<ChannelLife>(true, kBegin);
    life_->Join(&population_);
    if (stage >= Stage::kFailed) Fail();
    if (stage == Stage::kClosed) life_->Close();
    if (stage > Stage::kResolving && stage < Stage::kFailed) life_->Advance(stage);
    ASSERT_EQ(life_->stage(), stage);
  };
  for (const Stage stage :
       {Stage::kResolving, Stage::kAsking, Stage::kGreeting, Stage::kConnected, Stage::kFailed, Stage::kClosed}) {
    reach(stage);
    life_.reset();
    Expect(0, 0);
  }
}

TEST_F(ChannelLifeTest, FailureWhileConnectingCountsAsFailing) {
  life_->Join(&population_);
  Fail();
  Expect(0, 1);
}

TEST_F(ChannelLifeTest, ChannelThatDidNotJoinIsNotCounted) {
  Fail();
  life_->Close();
  life_.reset();
  Expect(0, 0);
}

TEST_F(ChannelLifeTest, FailureKeepsItsReason) {
  Fail();
  EXPECT_TRUE(life_->failed());
  EXPECT_EQ(life_->error().message(), "reason");
  EXPECT_FALSE(life_->peer_broke_rules());
  life_->Close();
  EXPECT_TRUE(life_->failed());
  EXPECT_EQ(life_->error().message(), "reason");
}

TEST_F(ChannelLifeTest, PeerThatBreaksRulesIsBlamed) {
  Fail(kBegin, Blame::kPeer);
  EXPECT_TRUE(life_->peer_broke_rules());
}

TEST_F(ChannelLifeTest, ConnectingEndsAfterItsTime) {
  for (const Stage stage : {Stage::kResolving, Stage::kAsking, Stage::kGreeting}) {
    if (stage != Stage::kResolving) life_->Advance(stage);
    EXPECT_EQ(life_->Look(kBegin + ChannelLife::kConnectIn), Due::kNothing);
    EXPECT_EQ(life_->Look(kBegin + ChannelLife::kConnectIn + kTick), Due::kTimeout);
  }
}

TEST_F(ChannelLifeTest, SilentPeerIsProbedOnce) {
  life_->Advance(Stage::kConnected);
  EXPECT_EQ(life_->Look(kBegin), Due::kProbe);
  EXPECT_EQ(life_->Look(kBegin), Due::kNothing) << "the probe is under way";
  life_->OnProbed();
  EXPECT_EQ(life_->Look(kBegin), Due::kProbe);
}

TEST_F(ChannelLifeTest, PeerThatWasHeardIsNotProbed) {
  life_->Advance(Stage::kConnected);
  life_->Hear();
  EXPECT_EQ(life_->Look(kBegin), Due::kNothing);
  EXPECT_EQ(life_->Look(kBegin), Due::kProbe) << "it was silent since the last look";
}

TEST_F(ChannelLifeTest, DeviceHasTimeToGiveRequestsBack) {
  const Nanoseconds failed = kBegin + std::chrono::hours(1);
  Fail(failed);
  EXPECT_EQ(life_->Look(failed), Due::kNothing);
  EXPECT_EQ(life_->Look(failed + ChannelLife::kFlushIn), Due::kNothing);
  EXPECT_EQ(life_->Look(failed + ChannelLife::kFlushIn + kTick), Due::kDeviceDead);
  life_->Close();
  EXPECT_EQ(life_->Look(failed + std::chrono::hours(1)), Due::kNothing);
}

}  // namespace
}  // namespace erda::fabric::verbs
