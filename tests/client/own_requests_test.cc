// Requests that a client sends for itself: when it sends one, and when it waits for the answer to the one before.
#include "client/own_requests.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/hand_clock.h"
#include "client/hand_fabric.h"
#include "client/put_op.h"
#include "format/durability.h"

namespace erda::client {
namespace {

using format::Reply;
using format::Request;
using format::RequestOp;

class OwnRequestsTest : public testing::Test {
 protected:
  void SetUp() override {
    format::HelloReply hello{};
    hello.magic = format::kHelloMagic;
    hello.protocol_version = format::kProtocolVersion;
    hello.slots = 4;
    hello.slot_bytes = 4096;
    hello.placing = static_cast<uint8_t>(format::Placing::kPool);
    hello.geometry = *format::ChooseGeometry({64 << 20, 1, 8 << 20, 4 << 20, 0});
    const auto data = BytesOf(hello);
    fabric_.peer_data.assign(data.begin(), data.end());
    fabric_.peer_regions.assign(4, {hello.geometry.pool_size, fabric::Access::kRemoteReadWrite});
    ASSERT_TRUE(operations_.Prepare(fabric_, 4).ok());
    operations_.AddKind(&puts_);
    ASSERT_TRUE(connections_.Prepare().ok());
    Connect();
    clock_.now = std::chrono::seconds(1);
  }
  void TearDown() override { connections_.Drop(); }

  [[nodiscard]] Link& link() { return *connections_.links()[0]; }
  void Connect() {
    ASSERT_TRUE(connections_.Connect().ok());
    ASSERT_TRUE(connections_.OnConnected(link()));
    EXPECT_EQ(fabric_.Take().id, ControlCopy::kReadId);
    ASSERT_TRUE(connections_.OnControlRead(link()));
  }
  // Loses the connection.
  void Lose() { connections_.CloseSince(link(), ": lost by hand"); }
  // Reports the key after `after`. Returns true if the client posted a report.
  bool Reports(std::string_view key, Nanoseconds after = std::chrono::milliseconds(1)) {
    clock_.now += after;
    EXPECT_TRUE(requests_.Report(link(), key));
    if (fabric_.posted.empty()) return false;
    sent_ = fabric_.Take();
    const auto request = LoadAs<Request>(sent_.local);
    EXPECT_EQ(request.op, static_cast<uint8_t>(RequestOp::kReport));
    EXPECT_EQ(AsString(sent_.local.subspan(sizeof(Request))), key);
    return true;
  }
  // Asks for the shard's time. Returns true if the client posted the question.
  bool AsksTime() {
    requests_.AskTime(link());
    if (fabric_.posted.empty()) return false;
    sent_ = fabric_.Take();
    EXPECT_EQ(sent_.imm & format::kAsksTime, format::kAsksTime);
    return true;
  }
  // Handles the reply in the slot, and frees the slot. Returns false if the link was closed.
  bool OnReply(uint32_t slot, const Reply& reply) {
    std::memcpy(fabric_.offered().data() + slot * sizeof(Reply), &reply, sizeof(reply));
    const OpIndex owner = link().slots.OwnerOf(slot);
    EXPECT_TRUE(OwnRequests::Owns(owner));
    if (!requests_.OnReply(link(), owner, slot)) return false;
    link().slots.Free(slot);
    return true;
  }
  // Adds a request for a chunk. Returns true if the client posted it.
  bool SendsChunkRequest(uint32_t head) {
    Request request{};
    request.op = static_cast<uint8_t>(RequestOp::kGiveBack);
    request.head = head;
    link().puts.delegated.to_send.push_back(request);
    return SendsWaitingChunkRequest();
  }
  bool SendsWaitingChunkRequest() {
    requests_.SendChunkRequests(link());
    if (fabric_.posted.empty()) return false;
    sent_ = fabric_.Take();
    return true;
  }

  HandFabric fabric_;
  HandClock clock_;
  const EngineOptions options_{};
  ClientStats stats_;
  Operations operations_;
  std::vector<PutOp> puts_;
  Connections connections_{fabric_, "hand:server", options_, clock_, operations_, stats_};
  Posting posting_{operations_, connections_, stats_};
  OwnRequests requests_{operations_, connections_, posting_, clock_, stats_};
  fabric::WorkRequest sent_;
};

TEST_F(OwnRequestsTest, OneReportIsUnderWayAtATime) {
  EXPECT_TRUE(Reports("first"));
  EXPECT_FALSE(Reports("second"));
  ASSERT_TRUE(OnReply(sent_.imm, {}));
  EXPECT_TRUE(Reports("second"));
}

TEST_F(OwnRequestsTest, ReportsAreAMillisecondApart) {
  EXPECT_TRUE(Reports("first"));
  ASSERT_TRUE(OnReply(sent_.imm, {}));
  EXPECT_FALSE(Reports("second", std::chrono::microseconds(999)));
  EXPECT_TRUE(Reports("second", std::chrono::microseconds(1)));
}

TEST_F(OwnRequestsTest, ReportOfALostConnectionDoesNotDelayTheNextReport) {
  EXPECT_TRUE(Reports("first"));
  Lose();
  connections_.DestroyClosed();
  Connect();
  EXPECT_TRUE(Reports("second"));
  EXPECT_FALSE(Reports("third"));
}

// The device may still send the first report from the memory that the second would use.
TEST_F(OwnRequestsTest, NoReportIsSentWhileAClosedConnectionIsNotDestroyed) {
  EXPECT_TRUE(Reports("first"));
  Lose();
  clock_.now += std::chrono::milliseconds(1);
  ASSERT_TRUE(connections_.has_closed());
  const uint64_t requests = stats_.requests;
  EXPECT_TRUE(requests_.Report(link(), "second"));
  EXPECT_EQ(stats_.requests, requests);
}

TEST_F(OwnRequestsTest, NoReportIsSentWithoutAFreeSlot) {
  for (OpIndex owner = 0; owner < 4; ++owner) (void)link().slots.Take(owner);
  EXPECT_FALSE(Reports("first"));
  link().slots.Free(0);
  EXPECT_TRUE(Reports("first", Nanoseconds(0))) << "the report that was not sent does not count";
}

TEST_F(OwnRequestsTest, TimeIsAskedForOnceUntilTheAnswer) {
  EXPECT_TRUE(AsksTime());
  EXPECT_FALSE(AsksTime());
  Reply reply{};
  reply.number = 5'000'000;
  ASSERT_TRUE(OnReply(sent_.imm & ~format::kAsksTime, reply));
  EXPECT_TRUE(link().known.time_hint.HasPassed(5'000, clock_.now));
  EXPECT_FALSE(link().known.time_hint.HasPassed(5'001, clock_.now));
  EXPECT_TRUE(AsksTime());
}

TEST_F(OwnRequestsTest, NextConnectionAsksForTheTimeAgain) {
  EXPECT_TRUE(AsksTime());
  Lose();
  connections_.DestroyClosed();
  Connect();
  EXPECT_TRUE(AsksTime());
}

TEST_F(OwnRequestsTest, ChunkRequestsGoOneAfterTheOther) {
  ASSERT_TRUE(SendsChunkRequest(0));
  const auto first = LoadAs<Request>(sent_.local);
  EXPECT_FALSE(SendsChunkRequest(1));
  Reply reply{};
  reply.id = first.id;
  ASSERT_TRUE(OnReply(sent_.imm, reply));
  ASSERT_TRUE(SendsWaitingChunkRequest());
  const auto second = LoadAs<Request>(sent_.local);
  EXPECT_EQ(second.head, 1U);
  EXPECT_NE(second.id, first.id);
}

TEST_F(OwnRequestsTest, ReplyToAnotherChunkRequestClosesTheLink) {
  ASSERT_TRUE(SendsChunkRequest(0));
  Reply reply{};
  reply.id = LoadAs<Request>(sent_.local).id + 1;
  EXPECT_FALSE(OnReply(sent_.imm, reply));
  EXPECT_FALSE(link().up());
}

TEST_F(OwnRequestsTest, SlotsOfOperationsAndFreeSlotsAreNotOwned) {
  EXPECT_FALSE(OwnRequests::Owns(RequestSlots::kFree));
  EXPECT_FALSE(OwnRequests::Owns(0));
  EXPECT_FALSE(OwnRequests::Owns(100'000));
}

}  // namespace
}  // namespace erda::client
