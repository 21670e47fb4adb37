// The identity of rdma_cm, and the making of its queue pair.
#include "fabric/verbs/connection.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "base/bytes.h"
#include "verbs/fixture.h"

namespace erda::fabric::verbs {
namespace {

class ConnectionTest : public DeviceTest {
 protected:
  void SetUp() override {
    Open();
    connection_ = std::make_unique<Connection>(device_, "peer");
    auto socket = device_->Lookup({"127.0.0.1", 7700, {}, {}});
    ASSERT_TRUE(socket.ok());
    ASSERT_TRUE(connection_->Resolve(nullptr, *socket, this).ok());
  }
  Status CreatePair() { return connection_->CreatePair({nullptr, nullptr, 8, 128}); }

  std::unique_ptr<Connection> connection_;
};

TEST_F(ConnectionTest, DeviceGivesTheInlineBytesThatItHas) {
  for (const auto& [most, given] :
       {std::pair(512U, 256U), {256U, 256U}, {255U, 128U}, {60U, 32U}, {1U, 1U}, {0U, 0U}}) {
    rdma_.inline_most = most;
    ASSERT_TRUE(CreatePair().ok());
    EXPECT_EQ(connection_->inline_bytes(), given);
    EXPECT_EQ(connection_->sends(), 128U);
    connection_->DestroyPair();
  }
}

TEST_F(ConnectionTest, DeviceWithFewRequestsHasAShortQueue) {
  rdma_.attributes.max_qp_wr = 50;
  SetUp();
  ASSERT_TRUE(CreatePair().ok());
  EXPECT_EQ(connection_->sends(), 50U);
  connection_->DestroyPair();
}

TEST_F(ConnectionTest, QueuePairThatCannotBeMadeIsReported) {
  for (const auto& [error, code] : {std::pair(ENOMEM, Code::kResourceExhausted), {EINVAL, Code::kUnavailable}}) {
    rdma_.pair_error = error;
    rdma_.inline_asked.clear();
    const Status status = CreatePair();
    EXPECT_EQ(status.code(), code);
    EXPECT_NE(status.message().find("peer: cannot create a queue pair"), std::string_view::npos) << status.ToString();
    EXPECT_EQ(rdma_.inline_asked.back(), 0U) << "it was not tried without inline data";
    EXPECT_EQ(connection_->pair(), nullptr);
  }
}

TEST_F(ConnectionTest, RouteOverAnotherDeviceIsRefused) {
  EXPECT_TRUE(connection_->ResolveRoute().ok());
  ibv_context other{};
  rdma_.last_id->verbs = &other;
  EXPECT_EQ(connection_->ResolveRoute().code(), Code::kUnavailable);
}

TEST_F(ConnectionTest, KnockIsThePrivateData) {
  const auto knock = MakeKnock({}, 10, 77);
  ASSERT_TRUE(connection_->Ask(knock).ok());
  EXPECT_EQ(rdma_.knock, knock);
}

TEST_F(ConnectionTest, QueuePairThatCannotDisconnectFailsAtOnce) {
  ASSERT_TRUE(CreatePair().ok());
  connection_->Disconnect();
  EXPECT_FALSE(rdma_.in_error) << "rdma_cm does it";
  rdma_.disconnect_fails = true;
  connection_->Disconnect();
  EXPECT_TRUE(rdma_.in_error);
  EXPECT_FALSE(connection_->device_dead());
  connection_->DestroyPair();
}

TEST_F(ConnectionTest, DeviceThatCannotChangeAQueuePairCountsAsDead) {
  ASSERT_TRUE(CreatePair().ok());
  rdma_.disconnect_fails = true;
  rdma_.modify_fails = true;
  connection_->Disconnect();
  EXPECT_TRUE(connection_->device_dead());
  connection_->DestroyPair();
}

TEST_F(ConnectionTest, IdentityThatIsGivenBackBelongsToTheCaller) {
  rdma_cm_id* id = nullptr;
  ::rdma_create_id(nullptr, &id, nullptr, RDMA_PS_TCP);
  {
    Connection accepting(device_, "a client");
    accepting.Adopt(id, &accepting);
    EXPECT_EQ(id->context, &accepting);
    accepting.GiveBack();
    EXPECT_EQ(accepting.pair(), nullptr);
  }
  EXPECT_EQ(id->context, nullptr);
  ::rdma_destroy_id(id);
}

TEST_F(ConnectionTest, RefusalNamesThePeer) {
  EXPECT_EQ(connection_->Refused("why").ToString(), Status(Code::kUnavailable, "peer: why").ToString());
  EXPECT_NE(connection_->DeviceRefused(EIO).message().find("peer: the device takes no request"),
            std::string_view::npos);
}

}  // namespace
}  // namespace erda::fabric::verbs
