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

using format::LogAddress;
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
    hello.geometry = *format::ChooseGeometry({64 << 20, 2, 4 << 20, 1 << 20, 0, 1});
    ASSERT_GT(hello.geometry.heads_per_shard, 1U);
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
  void Connect() { Connect(link()); }
  // The fabric has one connection at a time.
  void Connect(Link& down) {
    connections_.Ensure(down);
    ASSERT_TRUE(connections_.OnConnected(down));
    EXPECT_EQ(fabric_.Take().id, ControlCopy::kReadId);
    ASSERT_TRUE(connections_.OnControlRead(down));
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
    requests_.FreeSlot(link(), slot);
    return true;
  }
  // Looks for a chunk of the head. Returns true if the client posted a request for one.
  bool AsksForChunk(uint32_t head) {
    (void)FindsChunk(head);
    return TakesChunkRequest(head);
  }
  // Returns true if there is a chunk of the head.
  bool FindsChunk(uint32_t head) {
    EXPECT_TRUE(requests_.FindChunk(link(), head, kObject, &chunk_));
    return chunk_ != nullptr;
  }
  // Returns true if the client posted a request for a chunk of the head.
  bool TakesChunkRequest(uint32_t head, RequestOp op = RequestOp::kDelegate) {
    if (fabric_.posted.empty()) return false;
    sent_ = fabric_.Take();
    const auto request = LoadAs<Request>(sent_.local);
    EXPECT_EQ(request.op, static_cast<uint8_t>(op));
    EXPECT_EQ(request.head, head);
    return true;
  }
  // Answers the request for a chunk that was sent last.
  bool Refuse() {
    Reply reply{};
    reply.id = LoadAs<Request>(sent_.local).id;
    reply.code = static_cast<uint8_t>(Code::kResourceExhausted);
    return OnReply(sent_.imm, reply);
  }
  bool Give(LogAddress address) {
    const auto request = LoadAs<Request>(sent_.local);
    Reply reply{};
    reply.id = request.id;
    reply.head = request.head;
    reply.address = address.raw();
    reply.header.kind = static_cast<uint8_t>(format::ObjectKind::kChunk);
    reply.header.value_size = static_cast<uint32_t>(format::ChunkValueBytes(request.value_size));
    return OnReply(sent_.imm, reply);
  }

  static constexpr uint64_t kObject = 160;

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
  Delegated::Chunk* chunk_ = nullptr;
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
  ASSERT_TRUE(AsksForChunk(0));
  const auto first = LoadAs<Request>(sent_.local);
  EXPECT_FALSE(AsksForChunk(1));
  ASSERT_TRUE(Refuse());
  ASSERT_TRUE(TakesChunkRequest(1));
  EXPECT_NE(LoadAs<Request>(sent_.local).id, first.id);
}

TEST_F(OwnRequestsTest, ChunkRequestTakesTheNextFreeSlot) {
  for (OpIndex owner = 0; owner < 4; ++owner) (void)link().slots.Take(owner);
  EXPECT_FALSE(AsksForChunk(0));
  requests_.FreeSlot(link(), 2);
  ASSERT_TRUE(TakesChunkRequest(0));
  EXPECT_EQ(sent_.imm, 2U);
  EXPECT_FALSE(link().slots.has_free());
}

TEST_F(OwnRequestsTest, UnusedChunkIsGivenBackOnceItIsRevoked) {
  ASSERT_TRUE(AsksForChunk(0));
  const auto address = LogAddress::At(3, 4096);
  ASSERT_TRUE(Give(address));
  ASSERT_TRUE(FindsChunk(0));
  requests_.OnChunkRevoked(link(), address);
  EXPECT_TRUE(TakesChunkRequest(0, RequestOp::kGiveBack));
}

TEST_F(OwnRequestsTest, RevokedChunkIsGivenBackOnceItsPutIsAnswered) {
  ASSERT_TRUE(AsksForChunk(0));
  const auto address = LogAddress::At(3, 4096);
  ASSERT_TRUE(Give(address));
  ASSERT_TRUE(FindsChunk(0));
  const LogAddress object = OwnRequests::PlaceInChunk(link(), *chunk_, kObject);
  requests_.OnChunkRevoked(link(), address);
  EXPECT_TRUE(fabric_.posted.empty());
  EXPECT_TRUE(requests_.OnPutAnswered(link(), 0, object, false));
  EXPECT_TRUE(TakesChunkRequest(0, RequestOp::kGiveBack));
}

TEST_F(OwnRequestsTest, FailedChunkRequestTellsItsCallerThatTheConnectionFailed) {
  fabric_.fails_posts = true;
  EXPECT_FALSE(requests_.FindChunk(link(), 0, kObject, &chunk_));
  EXPECT_FALSE(link().up());
}

TEST_F(OwnRequestsTest, ChunkOfAnyLinkCounts) {
  Links& links = connections_.links();
  ASSERT_EQ(links.size(), 2U);
  Lose();
  connections_.DestroyClosed();
  Connect(*links[1]);
  EXPECT_FALSE(links.HasChunks());
  EXPECT_TRUE(requests_.FindChunk(*links[1], links[1]->known.FirstHead(), kObject, &chunk_));
  EXPECT_TRUE(links.HasChunks());
}

TEST_F(OwnRequestsTest, ReplyToAnotherChunkRequestClosesTheLink) {
  ASSERT_TRUE(AsksForChunk(0));
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
