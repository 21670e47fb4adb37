// The completion queue of the device, and its growth.
#include "fabric/verbs/cq.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <array>

#include "verbs/fixture.h"

namespace erda::fabric::verbs {
namespace {

class CqTest : public DeviceTest {
 protected:
  void Create(int most) {
    rdma_.attributes.max_cqe = most;
    Open();
    ASSERT_NE(device_, nullptr);
    ASSERT_TRUE(cq_.Create(*device_).ok());
  }
  Cq cq_;
};

TEST_F(CqTest, QueueGrowsWhenItsEntriesAreTaken) {
  Create(10'000);
  EXPECT_EQ(cq_.get()->cqe, 1024);
  ASSERT_TRUE(cq_.Reserve(1000).ok());
  ASSERT_TRUE(cq_.Reserve(24).ok());
  EXPECT_TRUE(rdma_.resizes.empty());
  ASSERT_TRUE(cq_.Reserve(1).ok());
  EXPECT_EQ(rdma_.resizes, std::vector{2048});
  ASSERT_TRUE(cq_.Reserve(5000).ok());
  EXPECT_EQ(rdma_.resizes, (std::vector{2048, 6025}));
}

TEST_F(CqTest, ReleasedEntriesAreTakenAgain) {
  Create(10'000);
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(cq_.Reserve(1000).ok());
    cq_.Release(1000);
  }
  EXPECT_TRUE(rdma_.resizes.empty());
}

TEST_F(CqTest, QueueHasNoMoreEntriesThanTheDevice) {
  Create(1500);
  ASSERT_TRUE(cq_.Reserve(1100).ok());
  EXPECT_EQ(rdma_.resizes, std::vector{1500});
  const Status status = cq_.Reserve(401);
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_NE(status.message().find("1500 entries"), std::string_view::npos) << status.ToString();
  EXPECT_TRUE(cq_.Reserve(400).ok()) << "the refused entries count";
}

TEST_F(CqTest, SmallDeviceHasASmallQueue) {
  Create(100);
  EXPECT_EQ(cq_.get()->cqe, 100);
  EXPECT_TRUE(cq_.Reserve(100).ok());
  EXPECT_FALSE(cq_.Reserve(1).ok());
}

TEST_F(CqTest, GrowthDoublesAtLeast) {
  EXPECT_EQ(Cq::GrownTo(1000, 1001, 10'000), 2000U);
  EXPECT_EQ(Cq::GrownTo(1000, 3000, 10'000), 3000U);
  EXPECT_EQ(Cq::GrownTo(1000, 1001, 1500), 1500U);
  EXPECT_EQ(Cq::GrownTo(UINT32_MAX - 5, UINT32_MAX - 4, UINT32_MAX), UINT32_MAX);
}

TEST_F(CqTest, PollReturnsNoMoreThanFits) {
  Create(100);
  for (uint64_t id = 0; id < 3; ++id) {
    ibv_wc wc{};
    wc.wr_id = id;
    rdma_.Complete(wc);
  }
  std::array<ibv_wc, 2> out;
  ASSERT_EQ(cq_.Poll(out), 2);
  EXPECT_EQ(out[1].wr_id, 1U);
  ASSERT_EQ(cq_.Poll(out), 1);
  EXPECT_EQ(out[0].wr_id, 2U);
  EXPECT_EQ(cq_.Poll(out), 0);
}

TEST_F(CqTest, AcknowledgedDescriptorIsUnreadable) {
  Create(100);
  cq_.Acknowledge();  // Returns, although there is no event.
  const uint64_t events = 3;
  ASSERT_EQ(::write(cq_.descriptor(), &events, sizeof(events)), static_cast<ssize_t>(sizeof(events)));
  cq_.Acknowledge();
  pollfd watched{cq_.descriptor(), POLLIN, 0};
  EXPECT_EQ(::poll(&watched, 1, 0), 0);
}

}  // namespace
}  // namespace erda::fabric::verbs
