// A completion queue with several channels, with the device and the peers played by the test.
#include "fabric/verbs/queue.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <string>
#include <vector>

#include "base/bytes.h"
#include "fabric/verbs/receive_work.h"
#include "verbs/fixture.h"

namespace erda::fabric::verbs {
namespace {

class VerbsQueueTest : public QueueTest {
 protected:
  [[nodiscard]] bool Readable() const {
    pollfd watched{queue_->descriptor(), POLLIN, 0};
    return ::poll(&watched, 1, 0) == 1;
  }
  // Lets a message arrive without a Poll. Returns the id of its receive.
  uint64_t Deliver(rdma_cm_id* id) {
    void* const receiver = id->qp->srq != nullptr ? static_cast<void*>(id->qp->srq) : id->qp;
    const auto receive = std::ranges::find(rdma_.receives, receiver, &FakeRdma::Receive::queue);
    ibv_wc wc{};
    wc.opcode = IBV_WC_RECV;
    wc.byte_len = 8;
    wc.wr_id = receive->id;
    wc.qp_num = id->qp->qp_num;
    rdma_.receives.erase(receive);
    rdma_.Complete(wc);
    return wc.wr_id;
  }
  [[nodiscard]] bool IsPosted(uint64_t receive) const {
    return std::ranges::find(rdma_.receives, receive, &FakeRdma::Receive::id) != rdma_.receives.end();
  }
  Completion PollOne() {
    std::array<Completion, 1> out;
    EXPECT_EQ(queue_->Poll(out), 1U);
    return out[0];
  }
};

TEST_F(VerbsQueueTest, CompletionsReachTheirChannels) {
  const auto first = Connect();
  const auto second = Connect();
  ASSERT_TRUE(Post(*second, Work(OpKind::kWrite)).ok());
  ASSERT_TRUE(Post(*first, Work(OpKind::kRead)).ok());
  CompleteSent();
  const auto polled = TakePolled();
  ASSERT_EQ(polled.size(), 2U);
  EXPECT_EQ(polled[0].channel, second.get());
  EXPECT_EQ(polled[1].channel, first.get());
}

TEST_F(VerbsQueueTest, PollReturnsNoMoreThanFits) {
  const auto channel = Connect();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Post(*channel, Work(OpKind::kWrite)).ok());
  for (const auto& sent : rdma_.TakeSent()) rdma_.Complete(sent);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(PollOne().kind, OpKind::kWrite);
  std::array<Completion, 1> out;
  EXPECT_EQ(queue_->Poll(out), 0U);
}

TEST_F(VerbsQueueTest, ReceiveIsPostedAgainByTheNextPoll) {
  for (const bool asking : {true, false}) {
    const auto channel = Connect(asking);
    const uint64_t receive = Deliver(rdma_.last_id);
    EXPECT_EQ(PollOne().kind, OpKind::kReceive);
    EXPECT_FALSE(IsPosted(receive)) << "the owner reads it";
    Poll();
    EXPECT_TRUE(IsPosted(receive));
  }
}

// The data of a WriteImm is not in the receive, and neither is the greeting once it is read.
TEST_F(VerbsQueueTest, ReceiveWithoutAMessageIsPostedAgainAtOnce) {
  for (const bool asking : {true, false}) {
    const size_t before = rdma_.receives.size();
    const auto channel = Connect(asking);
    const size_t connected = rdma_.receives.size() - before;
    EXPECT_EQ(connected, asking ? ReceivesFor(kDepth) : SharedReceives::kGroup) << "the greeting's receive is lost";
    ArriveImm(rdma_.last_id, 1);
    EXPECT_EQ(rdma_.receives.size() - before, connected);
  }
}

TEST_F(VerbsQueueTest, DestroyedChannelIsNotPolled) {
  auto channel = Connect();
  const auto other = Connect();
  rdma_cm_id* const id = rdma_.last_id;
  ASSERT_TRUE(Post(*channel, Work(OpKind::kWrite)).ok());
  CompleteSent();
  TakePolled();
  ASSERT_TRUE(Post(*channel, Work(OpKind::kWrite)).ok());
  rdma_.Complete(rdma_.TakeSent()[0]);
  Deliver(id);
  channel.reset();
  Poll();
  const auto polled = TakePolled();
  ASSERT_EQ(polled.size(), 1U);
  EXPECT_EQ(polled[0].channel, other.get());
}

TEST_F(VerbsQueueTest, SharedReceivesOfADestroyedChannelAreNotLost) {
  auto channel = Connect(false);
  const size_t receives = rdma_.receives.size();
  const uint64_t read = Deliver(rdma_.last_id);
  EXPECT_EQ(PollOne().kind, OpKind::kReceive);
  Deliver(rdma_.last_id);                  // In the queue, not polled.
  ASSERT_TRUE(queue_->TakeCompletions());  // Taken from the device.
  Deliver(rdma_.last_id);                  // Still in the device's queue.
  channel.reset();
  EXPECT_FALSE(IsPosted(read)) << "the owner reads it until the next Poll";
  EXPECT_EQ(rdma_.receives.size(), receives - 1);
  Poll();
  EXPECT_TRUE(IsPosted(read));
  EXPECT_EQ(rdma_.receives.size(), receives);
}

// The owner still reads the data while the queue closes the channel.
TEST_F(VerbsQueueTest, OwnReceiveIsNotPostedToADestroyedQueuePair) {
  const auto channel = Connect();
  ASSERT_TRUE(Post(*channel, Work(OpKind::kWrite)).ok());
  Deliver(rdma_.last_id);
  EXPECT_EQ(PollOne().kind, OpKind::kReceive);
  rdma_.Happen(rdma_.last_id, RDMA_CM_EVENT_DEVICE_REMOVAL);
  queue_->Disarm();
  auto at_most = std::chrono::nanoseconds(std::chrono::hours(1));
  EXPECT_FALSE(queue_->Arm(&at_most)) << "the channel is closed";
  ASSERT_EQ(rdma_.last_id->qp, nullptr);
  Poll();
  EXPECT_EQ(TakePolled().back().kind, OpKind::kClosed);
}

TEST_F(VerbsQueueTest, QueuePairOfADestroyedChannelIsUnknown) {
  auto channel = Connect();
  const uint32_t pair = rdma_.last_id->qp->qp_num;
  EXPECT_NE(queue_->channels().FindByPair(pair), nullptr);
  channel.reset();
  EXPECT_EQ(queue_->channels().FindByPair(pair), nullptr);
}

TEST_F(VerbsQueueTest, NumberOfADestroyedChannelIsUsedAgain) {
  auto first = Connect();
  rdma_cm_id* const id = rdma_.last_id;
  Deliver(id);
  EXPECT_EQ(PollOne().kind, OpKind::kReceive);
  const uint32_t number = queue_->channels().NumberOf(dynamic_cast<VerbsChannel*>(first.get()));
  first.reset();
  const auto second = Connect();
  EXPECT_EQ(queue_->channels().NumberOf(dynamic_cast<VerbsChannel*>(second.get())), number);
  ASSERT_TRUE(Post(*second, Work(OpKind::kWrite)).ok());
  CompleteSent();
  EXPECT_EQ(TakePolled().size(), 1U);
}

TEST_F(VerbsQueueTest, LateCompletionDoesNotReachTheNextChannelOfTheNumber) {
  auto first = Connect();
  ASSERT_TRUE(Post(*first, Work(OpKind::kWrite)).ok());
  rdma_.Complete(rdma_.TakeSent()[0], IBV_WC_WR_FLUSH_ERR);
  rdma_.at_destruction.assign(rdma_.completions.begin(), rdma_.completions.end());
  rdma_.completions.clear();
  first.reset();
  const auto second = Connect();
  ASSERT_TRUE(Post(*second, Work(OpKind::kWrite)).ok());
  Poll();
  EXPECT_TRUE(TakePolled().empty());
  EXPECT_TRUE(second->connected());
}

TEST_F(VerbsQueueTest, SharedReceivesOfADestroyedChannelServeTheNextOne) {
  auto channel = Connect(false, 1000);
  const size_t receives = rdma_.receives.size();
  for (int i = 0; i < 3; ++i) {
    channel.reset();
    channel = Connect(false, 1000);
    EXPECT_EQ(rdma_.receives.size(), receives);
  }
}

TEST_F(VerbsQueueTest, EventsOfConnectedChannelsAreHeardAfterManyPolls) {
  const auto channel = Connect();
  rdma_.Happen(rdma_.last_id, RDMA_CM_EVENT_DISCONNECTED);
  for (uint32_t i = 0; i < 2 * LookPace::kPollsPerLook && channel->connected(); ++i) Poll();
  EXPECT_FALSE(channel->connected());
}

TEST_F(VerbsQueueTest, ArmedQueueSleepsNoLongerThanItsNextLook) {
  auto at_most = std::chrono::nanoseconds(std::chrono::hours(1));
  EXPECT_TRUE(queue_->Arm(&at_most));
  EXPECT_EQ(at_most, std::chrono::hours(1)) << "it has no channel";
  const auto connected = Connect();
  EXPECT_TRUE(queue_->Arm(&at_most));
  EXPECT_EQ(at_most, LookPace::kLookEvery);
  const auto connecting = Ask();
  EXPECT_TRUE(queue_->Arm(&at_most));
  EXPECT_EQ(at_most, LookPace::kLookSoon);
}

TEST_F(VerbsQueueTest, QueueWithACompletionDoesNotSleep) {
  const auto channel = Connect();
  ASSERT_TRUE(Post(*channel, Work(OpKind::kWrite)).ok());
  rdma_.Complete(rdma_.TakeSent()[0]);
  const int armed = rdma_.armed;
  auto at_most = std::chrono::nanoseconds(std::chrono::hours(1));
  EXPECT_FALSE(queue_->Arm(&at_most));
  EXPECT_EQ(rdma_.armed, armed + 1) << "it arms before it looks";
  EXPECT_FALSE(queue_->Arm(&at_most));
  queue_->Wait(std::chrono::hours(1));  // Returns at once, or the test never ends.
  EXPECT_EQ(PollOne().kind, OpKind::kWrite);
}

TEST_F(VerbsQueueTest, CompletionJustBeforeTheArmingIsSeen) {
  const auto channel = Connect();
  ASSERT_TRUE(Post(*channel, Work(OpKind::kWrite)).ok());
  rdma_.Complete(rdma_.TakeSent()[0]);
  rdma_.before_arming.swap(rdma_.completions);
  auto at_most = std::chrono::nanoseconds(std::chrono::hours(1));
  EXPECT_FALSE(queue_->Arm(&at_most)) << "no signal comes for it";
}

TEST_F(VerbsQueueTest, WakeEndsTheNextWait) {
  queue_->Wake();
  EXPECT_TRUE(Readable());
  queue_->Wait(std::chrono::hours(1));  // Returns at once, or the test never ends.
  EXPECT_FALSE(Readable());
}

TEST_F(VerbsQueueTest, EventEndsTheWait) {
  const auto channel = Connect();
  rdma_.Happen(rdma_.last_id, RDMA_CM_EVENT_DISCONNECTED);
  EXPECT_TRUE(Readable());
  queue_->Disarm();
  EXPECT_FALSE(Readable());
  EXPECT_FALSE(channel->connected());
}

TEST_F(VerbsQueueTest, ChannelsThatTheDeviceHasNoRoomForAreRefused) {
  device_.reset();
  region_.reset();
  queue_.reset();
  rdma_.attributes.max_cqe = 500;  // For three queue pairs of 128 requests, and their receives.
  SetUp();
  std::vector<std::unique_ptr<Channel>> channels;
  Result<std::unique_ptr<Channel>> refused = Status(Code::kInternal, "none was refused");
  for (int i = 0; i < 10 && refused.status().code() == Code::kInternal; ++i) {
    auto channel =
        VerbsChannel::Connect(queue_.get(), device_, {"127.0.0.1", 7700, {}, {}}, "peer", {queue_.get(), {}, {}, 4});
    if (channel.ok()) {
      channels.push_back(*std::move(channel));
    } else {
      refused = std::move(channel);
    }
  }
  EXPECT_EQ(channels.size(), 3U);
  EXPECT_EQ(refused.status().code(), Code::kResourceExhausted) << refused.status().ToString();
  channels.pop_back();
  EXPECT_NE(Ask(), nullptr) << "the last one left its room";
}

}  // namespace
}  // namespace erda::fabric::verbs
