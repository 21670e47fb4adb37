// The receives of channels: own ones, and those that accepted channels share.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "fabric/verbs/cq.h"
#include "fabric/verbs/own_receives.h"
#include "fabric/verbs/receive_work.h"
#include "fabric/verbs/shared_receives.h"
#include "verbs/fixture.h"

namespace erda::fabric::verbs {
namespace {

constexpr uint32_t kGroup = SharedReceives::kGroup;

class ReceivesTest : public DeviceTest {
 protected:
  void SetUp() override {
    Open();
    ASSERT_NE(device_, nullptr);
    ASSERT_TRUE(cq_.Create(*device_).ok());
  }
  // Returns true if each receive was posted once, and none overlaps another.
  testing::AssertionResult AreApart(uint32_t channel, size_t count) {
    std::set<uint64_t> ids;
    std::vector<const std::byte*> data;
    for (const auto& receive : rdma_.receives) {
      if (WorkId(receive.id).channel() != channel) return testing::AssertionFailure() << "a receive of another channel";
      ids.insert(receive.id);
      data.push_back(receive.data);
    }
    std::ranges::sort(data);
    for (size_t i = 1; i < data.size(); ++i) {
      if (data[i] < data[i - 1] + kReceiveBytes) return testing::AssertionFailure() << "receives overlap";
    }
    if (ids.size() == count && data.size() == count) return testing::AssertionSuccess();
    return testing::AssertionFailure() << ids.size() << " ids of " << data.size() << " receives";
  }

  Cq cq_;
};

TEST_F(ReceivesTest, OwnReceivesDoNotOverlap) {
  OwnReceives receives;
  ASSERT_TRUE(receives.Open(*device_, rdma_.pair(), 7, 20).ok());
  EXPECT_TRUE(AreApart(7, 20));
  for (const auto& receive : rdma_.receives) {
    EXPECT_EQ(receive.queue, rdma_.pair());
    EXPECT_EQ(receives.Data(WorkId(receive.id).number()), receive.data);
  }
}

TEST_F(ReceivesTest, OwnReceiveIsPostedAgainUntilItsQueuePairGoes) {
  OwnReceives receives;
  receives.Post(0);  // Nothing is there yet.
  EXPECT_TRUE(rdma_.receives.empty());
  ASSERT_TRUE(receives.Open(*device_, rdma_.pair(), 7, 2).ok());
  rdma_.receives.clear();
  receives.Post(1);
  ASSERT_EQ(rdma_.receives.size(), 1U);
  EXPECT_EQ(WorkId(rdma_.receives[0].id), WorkId::OfReceive(7, 1));
  receives.Close();
  receives.Post(1);
  EXPECT_EQ(rdma_.receives.size(), 1U);
}

TEST_F(ReceivesTest, OwnReceivesNeedMemory) {
  OwnReceives receives;
  rdma_.register_error = ENOMEM;
  EXPECT_EQ(receives.Open(*device_, rdma_.pair(), 7, 2).code(), Code::kResourceExhausted);
  EXPECT_TRUE(rdma_.receives.empty());
}

TEST_F(ReceivesTest, SharedReceivesGrowWithTheirNeed) {
  SharedReceives receives;
  EXPECT_EQ(receives.queue(), nullptr);
  ASSERT_TRUE(receives.Reserve(*device_, cq_, 68).ok());
  EXPECT_TRUE(AreApart(kSharedReceives, kGroup));
  ASSERT_TRUE(receives.Reserve(*device_, cq_, 60).ok());
  EXPECT_EQ(rdma_.receives.size(), kGroup) << "there were enough";
  ASSERT_TRUE(receives.Reserve(*device_, cq_, 1).ok());
  EXPECT_TRUE(AreApart(kSharedReceives, 2 * kGroup));
  for (const auto& receive : rdma_.receives) {
    EXPECT_EQ(receive.queue, receives.queue());
    EXPECT_EQ(receives.Data(WorkId(receive.id).number()), receive.data);
  }
}

TEST_F(ReceivesTest, ReleasedReceivesServeTheNextChannel) {
  SharedReceives receives;
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(receives.Reserve(*device_, cq_, kGroup).ok());
    receives.Release(kGroup);
  }
  EXPECT_EQ(rdma_.receives.size(), kGroup);
}

TEST_F(ReceivesTest, DeviceLimitsTheSharedReceives) {
  rdma_.attributes.max_srq_wr = 2 * kGroup + 1;
  Open();
  SharedReceives receives;
  ASSERT_TRUE(receives.Reserve(*device_, cq_, 10 * kGroup).ok()) << "more peers share them, and ask again";
  EXPECT_EQ(rdma_.receives.size(), 2 * kGroup);
}

TEST_F(ReceivesTest, GroupsCoverTheNeed) {
  EXPECT_EQ(SharedReceives::GroupsToMake(0, 1, 1000), 1U);
  EXPECT_EQ(SharedReceives::GroupsToMake(0, kGroup, 1000), 1U);
  EXPECT_EQ(SharedReceives::GroupsToMake(0, kGroup + 1, 1000), 2U);
  EXPECT_EQ(SharedReceives::GroupsToMake(1, kGroup, 1000), 0U);
  EXPECT_EQ(SharedReceives::GroupsToMake(3, 1, 1000), 0U);
  EXPECT_EQ(SharedReceives::GroupsToMake(0, 10 * kGroup, 3 * kGroup), 3U);
  EXPECT_EQ(SharedReceives::GroupsToMake(3, 10 * kGroup, 3 * kGroup), 0U);
  EXPECT_EQ(SharedReceives::GroupsToMake(0, 1, kGroup - 1), 0U);
}

TEST_F(ReceivesTest, EachSharedReceiveHasAnEntryInTheCompletionQueue) {
  rdma_.attributes.max_cqe = 3 * kGroup - 1;
  Open();
  Cq small;
  ASSERT_TRUE(small.Create(*device_).ok());
  SharedReceives receives;
  EXPECT_EQ(receives.Reserve(*device_, small, 3 * kGroup).code(), Code::kResourceExhausted);
  EXPECT_EQ(rdma_.receives.size(), 2 * kGroup);
  EXPECT_TRUE(small.Reserve(kGroup - 1).ok());
  EXPECT_FALSE(small.Reserve(1).ok());
}

TEST_F(ReceivesTest, ChunkWithoutMemoryTakesNoEntries) {
  rdma_.attributes.max_cqe = kGroup;
  Open();
  Cq small;
  ASSERT_TRUE(small.Create(*device_).ok());
  SharedReceives receives;
  rdma_.register_error = ENOMEM;
  EXPECT_FALSE(receives.Reserve(*device_, small, 1).ok());
  rdma_.register_error = 0;
  EXPECT_TRUE(receives.Reserve(*device_, small, 1).ok());
}

}  // namespace
}  // namespace erda::fabric::verbs
