// The send queue of a queue pair: what goes out at once, what waits, and what completes.
#include "fabric/verbs/send_queue.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <numeric>
#include <vector>

#include "fabric/verbs/work_id.h"
#include "verbs/fake_rdma.h"

namespace erda::fabric::verbs {
namespace {

constexpr uint32_t kChannel = 5;
constexpr uint32_t kPlaces = 16;

class SendQueueTest : public testing::Test {
 protected:
  void Open(uint32_t places = kPlaces) { queue_.Open(rdma_.pair(), kChannel, places, 0); }
  static Request Make(OpKind kind, uint64_t id, bool signaled = true, Purpose purpose = Purpose::kCaller) {
    Request request;
    request.work.kind = kind;
    request.work.id = id;
    request.work.signaled = signaled;
    request.purpose = purpose;
    return request;
  }
  // Posts requests of these ids, each of which asks for a completion.
  int PostWrites(uint64_t first, uint64_t count) {
    std::vector<Request> requests;
    for (uint64_t id = first; id < first + count; ++id) requests.push_back(Make(OpKind::kWrite, id));
    return queue_.Post(requests);
  }
  int Post(const Request& request) { return queue_.Post({&request, 1}); }
  std::vector<uint64_t> Flush() {
    std::vector<uint64_t> ids;
    queue_.Flush([&](const PostedRequest& posted) { ids.push_back(posted.id); });
    return ids;
  }
  [[nodiscard]] unsigned LastFlags() const { return rdma_.sent.back().work.send_flags; }

  FakeRdma rdma_;
  PeerOffer peer_;
  Windows windows_;
  SendQueue queue_{peer_, windows_};
  PostedRequest taken_;
};

std::vector<uint64_t> Range(uint64_t first, uint64_t count) {
  std::vector<uint64_t> range(count);
  std::iota(range.begin(), range.end(), first);
  return range;
}

TEST_F(SendQueueTest, BatchIsOneChainAndOneDoorbell) {
  Open();
  ASSERT_EQ(PostWrites(0, 3), 0);
  EXPECT_EQ(rdma_.doorbells, std::vector<size_t>{3});
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(rdma_.sent[i].pair, rdma_.pair());
    EXPECT_EQ(WorkId(rdma_.sent[i].work.wr_id), WorkId::OfSend(kChannel, i));
  }
}

TEST_F(SendQueueTest, LongBatchHasSeveralDoorbells) {
  Open(128);
  ASSERT_EQ(PostWrites(0, 70), 0);
  EXPECT_EQ(rdma_.doorbells, (std::vector<size_t>{32, 32, 6}));
}

TEST_F(SendQueueTest, RequestsBeyondTheRoomWait) {
  Open();
  ASSERT_EQ(PostWrites(0, 20), 0);
  EXPECT_EQ(rdma_.sent.size(), kPlaces - 1);
  EXPECT_EQ(queue_.room(), 0U);
  ASSERT_TRUE(queue_.Take(4, &taken_));
  EXPECT_EQ(taken_.id, 4U);
  EXPECT_EQ(queue_.room(), 5U);
  ASSERT_EQ(queue_.PostWaiting(), 0);
  EXPECT_EQ(rdma_.sent.size(), 20U);
}

TEST_F(SendQueueTest, LaterRequestWaitsForEarlierOnesThatWait) {
  Open();
  ASSERT_EQ(PostWrites(0, 20), 0);
  ASSERT_TRUE(queue_.Take(14, &taken_));
  ASSERT_EQ(PostWrites(20, 1), 0);
  EXPECT_EQ(rdma_.sent.size(), 15U) << "it passed the others";
  ASSERT_EQ(queue_.PostWaiting(), 0);
  EXPECT_EQ(rdma_.sent.size(), 21U);
  EXPECT_EQ(Flush(), Range(15, 6));
}

TEST_F(SendQueueTest, RequestsWaitUntilTheQueueIsOpen) {
  ASSERT_EQ(PostWrites(0, 3), 0);
  EXPECT_TRUE(rdma_.sent.empty());
  Open();
  ASSERT_EQ(queue_.PostWaiting(), 0);
  EXPECT_EQ(rdma_.sent.size(), 3U);
}

TEST_F(SendQueueTest, ClosedQueueSendsNothing) {
  Open();
  ASSERT_EQ(PostWrites(0, 20), 0);
  queue_.Close();
  ASSERT_TRUE(queue_.Take(14, &taken_));
  ASSERT_EQ(queue_.PostWaiting(), 0);
  ASSERT_EQ(PostWrites(20, 1), 0);
  EXPECT_EQ(rdma_.sent.size(), kPlaces - 1);
  EXPECT_EQ(Flush(), Range(15, 6));
}

TEST_F(SendQueueTest, SomeUnsignaledRequestsAskTheDeviceForACompletion) {
  Open();
  for (uint32_t i = 1; i <= 8; ++i) {
    ASSERT_EQ(Post(Make(OpKind::kWrite, i, false)), 0);
    EXPECT_EQ(LastFlags(), i % (kPlaces / 4) == 0 ? unsigned{IBV_SEND_SIGNALED} : 0U) << i;
  }
  ASSERT_TRUE(queue_.Take(7, &taken_));
  EXPECT_FALSE(taken_.signaled) << "the caller did not ask for it";
  EXPECT_TRUE(queue_.idle());
}

TEST_F(SendQueueTest, SignaledRequestStartsTheCountAgain) {
  Open();
  for (const bool signaled : {false, false, true, false, false, false}) {
    ASSERT_EQ(Post(Make(OpKind::kWrite, 0, signaled)), 0);
    EXPECT_EQ(LastFlags(), signaled ? unsigned{IBV_SEND_SIGNALED} : 0U);
  }
}

TEST_F(SendQueueTest, ReadIsAlwaysSignaled) {
  Open();
  ASSERT_EQ(Post(Make(OpKind::kRead, 1, false)), 0);
  EXPECT_EQ(LastFlags(), unsigned{IBV_SEND_SIGNALED});
  ASSERT_TRUE(queue_.Take(0, &taken_));
  EXPECT_TRUE(taken_.signaled);
}

TEST_F(SendQueueTest, RequestAfterAReadWaitsForIt) {
  Open();
  ASSERT_EQ(Post(Make(OpKind::kRead, 0)), 0);
  ASSERT_EQ(Post(Make(OpKind::kRead, 1)), 0);
  EXPECT_FALSE(LastFlags() & IBV_SEND_FENCE) << "Reads do not wait for each other";
  for (const OpKind kind : {OpKind::kWrite, OpKind::kWriteImm, OpKind::kSend}) {
    ASSERT_EQ(Post(Make(kind, 2)), 0);
    EXPECT_TRUE(LastFlags() & IBV_SEND_FENCE);
  }
  ASSERT_EQ(Post(Make(OpKind::kWrite, 3, false, Purpose::kTellCredit)), 0);
  EXPECT_FALSE(LastFlags() & IBV_SEND_FENCE) << "the channel's own request waits for no Read";
  ASSERT_TRUE(queue_.Take(0, &taken_));
  ASSERT_EQ(Post(Make(OpKind::kWrite, 4)), 0);
  EXPECT_TRUE(LastFlags() & IBV_SEND_FENCE) << "one Read is left";
  ASSERT_TRUE(queue_.Take(1, &taken_));
  ASSERT_EQ(Post(Make(OpKind::kWrite, 5)), 0);
  EXPECT_FALSE(LastFlags() & IBV_SEND_FENCE);
}

TEST_F(SendQueueTest, NoRequestWaitsForTheChannelsOwnRead) {
  Open();
  ASSERT_EQ(Post(Make(OpKind::kRead, 0, true, Purpose::kAskCredit)), 0);
  ASSERT_EQ(Post(Make(OpKind::kWrite, 1)), 0);
  EXPECT_FALSE(LastFlags() & IBV_SEND_FENCE);
  ASSERT_TRUE(queue_.Take(0, &taken_));
  ASSERT_EQ(Post(Make(OpKind::kRead, 2)), 0);
  ASSERT_EQ(Post(Make(OpKind::kWrite, 3)), 0);
  EXPECT_TRUE(LastFlags() & IBV_SEND_FENCE) << "the own Read was counted as one of the caller";
}

TEST_F(SendQueueTest, MessagesCountWhenTheQueuePairHasThem) {
  Open();
  ASSERT_EQ(Post(Make(OpKind::kSend, 0, true, Purpose::kGreet)), 0);
  EXPECT_EQ(queue_.messages(), 0U) << "the greeting is none of the caller's";
  ASSERT_EQ(Post(Make(OpKind::kWriteImm, 1)), 0);
  ASSERT_EQ(Post(Make(OpKind::kSend, 2)), 0);
  EXPECT_EQ(queue_.messages(), 2U);
  ASSERT_EQ(PostWrites(3, kPlaces), 0);
  ASSERT_EQ(Post(Make(OpKind::kSend, 20)), 0);
  EXPECT_EQ(queue_.messages(), 2U) << "it waits";
  ASSERT_TRUE(queue_.Take(10, &taken_));
  ASSERT_EQ(queue_.PostWaiting(), 0);
  EXPECT_EQ(queue_.messages(), 3U);
}

TEST_F(SendQueueTest, RefusedRequestWaitsWithAllLaterOnes) {
  Open();
  rdma_.post_error = ENOMEM;
  rdma_.post_taken = 2;
  EXPECT_EQ(PostWrites(0, 5), ENOMEM);
  queue_.Close();
  EXPECT_EQ(rdma_.sent.size(), 2U);
  EXPECT_FALSE(queue_.Take(2, &taken_)) << "the device does not have it";
  EXPECT_EQ(Flush(), Range(0, 5));
}

TEST_F(SendQueueTest, RefusedWaitingRequestIsNotLost) {
  Open();
  ASSERT_EQ(PostWrites(0, 20), 0);
  ASSERT_TRUE(queue_.Take(9, &taken_));
  rdma_.post_error = EIO;
  rdma_.post_taken = 1;
  EXPECT_EQ(queue_.PostWaiting(), EIO);
  queue_.Close();
  EXPECT_EQ(Flush(), Range(10, 10));
  EXPECT_EQ(Flush(), Range(0, 0));
}

// The caller may have had no memory to handle the first answer.
TEST_F(SendQueueTest, LaterCallsReportTheRefusalToo) {
  Open();
  rdma_.post_error = EIO;
  EXPECT_EQ(PostWrites(0, 1), EIO);
  rdma_.post_error = 0;
  EXPECT_EQ(PostWrites(1, 1), EIO);
  EXPECT_EQ(queue_.PostWaiting(), EIO);
  EXPECT_TRUE(rdma_.sent.empty());
  queue_.Close();
  EXPECT_EQ(Flush(), Range(0, 2));
}

TEST_F(SendQueueTest, FlushThatThrowsGoesOnWithTheSameRequest) {
  Open();
  ASSERT_EQ(PostWrites(0, 20), 0);
  ASSERT_LT(queue_.room(), 1U) << "some are in the queue pair, and some wait";
  queue_.Close();
  std::vector<uint64_t> told;
  bool throws = true;  // at every other call
  for (;;) {
    try {
      queue_.Flush([&](const PostedRequest& posted) {
        if (std::exchange(throws, !throws)) throw std::bad_alloc();
        told.push_back(posted.id);
      });
      break;
    } catch (const std::bad_alloc&) {
    }
  }
  EXPECT_EQ(told, Range(0, 20));
}

TEST_F(SendQueueTest, LastRequestHasAPlaceInAFullQueue) {
  Open();
  ASSERT_EQ(PostWrites(0, kPlaces), 0);
  ASSERT_EQ(queue_.room(), 0U);
  queue_.Close();
  ASSERT_TRUE(queue_.PostLast());
  EXPECT_EQ(rdma_.sent.back().work.send_flags, unsigned{IBV_SEND_SIGNALED});
  ASSERT_TRUE(queue_.Take(kPlaces - 1, &taken_));
  EXPECT_EQ(taken_.purpose, Purpose::kLast);
  EXPECT_TRUE(queue_.idle());
}

TEST_F(SendQueueTest, DeadDeviceTakesNoLastRequest) {
  Open();
  rdma_.post_error = EIO;
  EXPECT_FALSE(queue_.PostLast());
}

TEST_F(SendQueueTest, LateCompletionTakesNothing) {
  Open();
  ASSERT_EQ(PostWrites(0, 3), 0);
  ASSERT_TRUE(queue_.Take(1, &taken_));
  EXPECT_FALSE(queue_.Take(0, &taken_));
  EXPECT_FALSE(queue_.Take(3, &taken_));
  EXPECT_EQ(Flush(), Range(2, 1));
}

TEST_F(SendQueueTest, CompletionHasTheKindIdAndBytesOfItsRequest) {
  PostedRequest posted = PostedOf(Make(OpKind::kWriteImm, 77, false));
  posted.bytes = 12;
  const Completion completion = CompletionOf(nullptr, posted, Code::kUnavailable);
  EXPECT_EQ(completion.kind, OpKind::kWriteImm);
  EXPECT_EQ(completion.code, Code::kUnavailable);
  EXPECT_EQ(completion.id, 77U);
  EXPECT_EQ(completion.bytes, 12U);
  const PostedRequest close = PostedOf(Make(OpKind::kWrite, 78, true, Purpose::kCloseWindow));
  EXPECT_EQ(CompletionOf(nullptr, close, Code::kOk).kind, OpKind::kWindowClosed);
}

TEST_F(SendQueueTest, CallerGetsCompletionsOfItsOwnRequestsOnly) {
  for (const Purpose purpose : {Purpose::kCaller, Purpose::kCloseWindow}) EXPECT_TRUE(IsTold(purpose));
  for (const Purpose purpose : {Purpose::kGreet, Purpose::kTellCredit, Purpose::kAskCredit, Purpose::kKeepAlive,
                                Purpose::kOpenWindow, Purpose::kLast}) {
    EXPECT_FALSE(IsTold(purpose));
  }
}

}  // namespace
}  // namespace erda::fabric::verbs
