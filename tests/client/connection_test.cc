// A connection's channel: the memory that it offers, and the order in which it posts.
#include "client/connection.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "client/hand_fabric.h"

namespace erda::client {
namespace {

class ConnectionTest : public testing::Test {
 protected:
  void SetUp() override { Open(); }
  void Open() {
    format::HelloRequest hello{};
    hello.slots = 3;
    const Status status = connection_.Open(fabric_, *queue_, "hand:server", hello, this);
    ASSERT_TRUE(status.ok()) << status.ToString();
  }
  static fabric::WorkRequest Work(uint64_t id) {
    fabric::WorkRequest work;
    work.id = id;
    return work;
  }
  std::vector<uint64_t> TakeIds() {
    std::vector<uint64_t> ids;
    while (!fabric_.posted.empty()) ids.push_back(fabric_.Take().id);
    return ids;
  }

  HandFabric fabric_;
  const std::unique_ptr<fabric::CompletionQueue> queue_ = *fabric_.CreateQueue();
  Connection connection_;
};

TEST_F(ConnectionTest, ConnectionOffersMemoryForEachReply) {
  ASSERT_EQ(fabric_.offered().size(), 3 * sizeof(format::Reply));
  format::Reply reply{};
  reply.id = 77;
  std::memcpy(fabric_.offered().data() + 2 * sizeof(reply), &reply, sizeof(reply));
  EXPECT_EQ(connection_.ReplyIn(2).id, 77U);
  EXPECT_EQ(connection_.ReplyIn(1).id, 0U);
  EXPECT_EQ(connection_.channel()->user, this);
}

TEST_F(ConnectionTest, GatheredRequestsGoFirstAndWithOneDoorbell) {
  connection_.Gather(std::vector{Work(1), Work(2)});
  EXPECT_EQ(connection_.gathered(), 2U);
  EXPECT_TRUE(fabric_.posted.empty());
  ASSERT_TRUE(connection_.Post(std::vector{Work(3)}).ok());
  EXPECT_EQ(TakeIds(), (std::vector<uint64_t>{1, 2, 3}));
  EXPECT_EQ(fabric_.posts, 1U);
  EXPECT_EQ(connection_.gathered(), 0U);
}

TEST_F(ConnectionTest, FlushWithoutRequestsRingsNoDoorbell) {
  ASSERT_TRUE(connection_.Flush().ok());
  EXPECT_EQ(fabric_.posts, 0U);
  connection_.Gather(std::vector{Work(1)});
  ASSERT_TRUE(connection_.Flush().ok());
  ASSERT_TRUE(connection_.Flush().ok());
  EXPECT_EQ(fabric_.posts, 1U);
}

TEST_F(ConnectionTest, FailedFlushForgetsTheRequests) {
  connection_.Gather(std::vector{Work(1)});
  fabric_.fails_posts = true;
  EXPECT_EQ(connection_.Flush().code(), Code::kUnavailable);
  EXPECT_EQ(connection_.gathered(), 0U);
}

TEST_F(ConnectionTest, FailedOpenLeavesNoChannelAndNoMemory) {
  format::HelloRequest hello{};
  hello.slots = 1;
  Connection second;
  EXPECT_EQ(second.Open(fabric_, *queue_, "hand:server", hello, this).code(), Code::kUnavailable)
      << "it has one channel";
  EXPECT_EQ(second.channel(), nullptr);
}

// Over shm the peer of the old connection can still write into the memory that it was offered.
TEST_F(ConnectionTest, MovedConnectionKeepsItsMemoryAndTheNextGetsNewMemory) {
  const auto old_offer = fabric_.offered();
  connection_.Gather(std::vector{Work(1)});
  {
    const Connection closed = std::exchange(connection_, Connection());
    EXPECT_NE(closed.channel(), nullptr);
    EXPECT_EQ(connection_.channel(), nullptr);
    EXPECT_EQ(connection_.gathered(), 0U);
    EXPECT_TRUE(fabric_.Knows(old_offer));
  }
  EXPECT_FALSE(fabric_.Knows(old_offer));
  Open();
  EXPECT_TRUE(fabric_.Knows(fabric_.offered()));
}

}  // namespace
}  // namespace erda::client
