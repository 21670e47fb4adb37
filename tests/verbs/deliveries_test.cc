// The completions that Poll returns, and the receives whose data the owner of the queue reads.
#include "fabric/verbs/deliveries.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace erda::fabric::verbs {
namespace {

class DeliveriesTest : public testing::Test {
 protected:
  // Returns a channel that nobody looks into.
  Channel* At(size_t i) { return reinterpret_cast<Channel*>(&places_[i]); }
  void AddWrite(size_t channel, uint64_t id) {
    Completion completion;
    completion.channel = At(channel);
    completion.kind = OpKind::kWrite;
    completion.id = id;
    deliveries_.Add(completion);
  }
  void AddMessage(size_t channel, WorkId receive) {
    Completion completion;
    completion.channel = At(channel);
    completion.kind = OpKind::kReceive;
    deliveries_.AddMessage(completion, receive);
  }
  Completion Take() {
    Completion completion;
    deliveries_.Take(&completion);
    return completion;
  }
  std::vector<WorkId> Forget(size_t channel) {
    std::vector<WorkId> freed;
    deliveries_.Forget(At(channel), [&](WorkId receive) { freed.push_back(receive); });
    return freed;
  }

  std::array<std::max_align_t, 2> places_{};
  Deliveries deliveries_;
};

TEST_F(DeliveriesTest, CompletionsComeInTheirOrder) {
  EXPECT_TRUE(deliveries_.empty());
  for (uint64_t id = 0; id < 3; ++id) AddWrite(0, id);
  EXPECT_EQ(deliveries_.size(), 3U);
  for (uint64_t id = 0; id < 3; ++id) EXPECT_EQ(Take().id, id);
  EXPECT_TRUE(deliveries_.empty());
  EXPECT_TRUE(deliveries_.held().empty()) << "a Write has no receive";
}

TEST_F(DeliveriesTest, ReceiveOfATakenMessageIsHeld) {
  const WorkId receive = WorkId::OfReceive(kSharedReceives, 8);
  AddMessage(0, receive);
  EXPECT_TRUE(deliveries_.held().empty()) << "it is not taken yet";
  EXPECT_EQ(Take().kind, OpKind::kReceive);
  ASSERT_EQ(deliveries_.held().size(), 1U);
  EXPECT_EQ(deliveries_.held()[0].receive, receive);
  EXPECT_EQ(deliveries_.held()[0].channel, At(0));
  deliveries_.Release();
  EXPECT_TRUE(deliveries_.held().empty());
}

TEST_F(DeliveriesTest, ForgottenChannelHasNoCompletion) {
  AddWrite(0, 1);
  AddWrite(1, 2);
  AddMessage(0, WorkId::OfReceive(kSharedReceives, 8));
  AddMessage(1, WorkId::OfReceive(kSharedReceives, 9));
  EXPECT_EQ(Forget(0), std::vector{WorkId::OfReceive(kSharedReceives, 8)});
  EXPECT_EQ(deliveries_.size(), 2U);
  EXPECT_EQ(Take().id, 2U);
  EXPECT_EQ(Take().channel, At(1));
}

TEST_F(DeliveriesTest, SharedReceiveOfAForgottenChannelStaysHeld) {
  AddMessage(0, WorkId::OfReceive(kSharedReceives, 8));
  Take();
  EXPECT_TRUE(Forget(0).empty()) << "the owner still reads it";
  ASSERT_EQ(deliveries_.held().size(), 1U);
  EXPECT_EQ(deliveries_.held()[0].channel, nullptr);
}

TEST_F(DeliveriesTest, OwnReceiveGoesWithItsChannel) {
  AddMessage(0, WorkId::OfReceive(1, 8));
  AddMessage(1, WorkId::OfReceive(2, 8));
  Take();
  Take();
  Forget(0);
  ASSERT_EQ(deliveries_.held().size(), 1U);
  EXPECT_EQ(deliveries_.held()[0].channel, At(1));
}

}  // namespace
}  // namespace erda::fabric::verbs
