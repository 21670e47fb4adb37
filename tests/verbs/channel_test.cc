// One end of a channel, with the device and the peer played by the test.
#include "fabric/verbs/channel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <thread>
#include <vector>

#include "base/bytes.h"
#include "verbs/fixture.h"

namespace erda::fabric::verbs {
namespace {

class VerbsChannelTest : public QueueTest {
 protected:
  // Returns the only completion since the last call.
  Completion Only() {
    const auto polled = TakePolled();
    EXPECT_EQ(polled.size(), 1U);
    return polled.empty() ? Completion() : polled.front();
  }
  void ExpectClosed(const Channel& channel, Code code) {
    const Completion closed = Only();
    EXPECT_EQ(closed.kind, OpKind::kClosed);
    EXPECT_EQ(CodeName(closed.code), CodeName(code));
    EXPECT_EQ(closed.channel, &channel);
    EXPECT_EQ(CodeName(channel.error().code()), CodeName(code));
    EXPECT_FALSE(channel.connected());
  }
};

// --- Connecting

TEST_F(VerbsChannelTest, AskingEndKnocksGreetsAndIsConnected) {
  const std::string data = "data of the caller";
  const auto channel = Ask({queue_.get(), {}, AsBytes(data), 7});
  Happen(RDMA_CM_EVENT_ADDR_RESOLVED);
  EXPECT_EQ(rdma_.last_id->qp, nullptr);
  Happen(RDMA_CM_EVENT_ROUTE_RESOLVED);
  Knock knock;
  std::vector<std::byte> knocked;
  ASSERT_TRUE(ReadKnock(rdma_.knock.data(), rdma_.knock.size(), &knock, &knocked));
  EXPECT_EQ(AsString(knocked), data);
  EXPECT_EQ(knock.message_depth, 7U);
  EXPECT_TRUE(rdma_.sent.empty()) << "the peer has not accepted";
  Happen(RDMA_CM_EVENT_ESTABLISHED);
  ASSERT_EQ(rdma_.sent.size(), 1U);
  EXPECT_EQ(rdma_.sent[0].piece.length, sizeof(Greeting));
  EXPECT_FALSE(channel->connected());
  const Greeting greeting = PeersGreeting();
  Arrive(rdma_.last_id, BytesOf(greeting));
  EXPECT_EQ(Only().kind, OpKind::kConnected);
  EXPECT_TRUE(channel->connected());
  EXPECT_EQ(channel->peer_regions().size(), 1U);
}

TEST_F(VerbsChannelTest, AcceptingEndAnswersTheGreeting) {
  auto channel = Accept();
  ASSERT_TRUE(channel.ok());
  EXPECT_EQ(rdma_.accepts, 1);
  EXPECT_TRUE(rdma_.sent.empty()) << "the connecting end greets first";
  const Greeting greeting = PeersGreeting();
  Arrive(rdma_.last_id, BytesOf(greeting));
  EXPECT_EQ(rdma_.sent.size(), 1U);
  EXPECT_EQ(Only().kind, OpKind::kConnected);
  EXPECT_EQ((*channel)->peer_regions().size(), 1U);
}

// rdma_cm tells both ends. The connecting end alone waits for it.
TEST_F(VerbsChannelTest, AcceptingEndWaitsForTheGreetingAlone) {
  auto channel = Accept();
  ASSERT_TRUE(channel.ok());
  Happen(RDMA_CM_EVENT_ESTABLISHED);
  EXPECT_TRUE(rdma_.sent.empty());
  EXPECT_FALSE((*channel)->connected());
}

TEST_F(VerbsChannelTest, BothEndsLetAPeerWithoutAReceiveAskAgainSoon) {
  constexpr uint8_t kSoon = 12;  // 0.64 ms.
  for (const bool asking : {true, false}) {
    rdma_.retry_timer = 0;
    const auto channel = Connect(asking);
    EXPECT_EQ(rdma_.retry_timer, kSoon);
  }
}

TEST_F(VerbsChannelTest, DataOfTheAcceptingEndComesWithItsGreeting) {
  const auto channel = Ask();
  for (const auto event : {RDMA_CM_EVENT_ADDR_RESOLVED, RDMA_CM_EVENT_ROUTE_RESOLVED, RDMA_CM_EVENT_ESTABLISHED}) {
    Happen(event);
  }
  const std::string data = "pool of 7 shards";
  const Greeting greeting = MakeGreeting({}, AsBytes(data), 1, 2);
  Arrive(rdma_.last_id, BytesOf(greeting));
  EXPECT_EQ(AsString(channel->peer_data()), data);
}

TEST_F(VerbsChannelTest, EachStepThatFailsSaysWhy) {
  const std::vector<std::pair<rdma_cm_event_type, std::string>> ends = {
      {RDMA_CM_EVENT_ADDR_ERROR, "no machine answers"},
      {RDMA_CM_EVENT_ROUTE_ERROR, "no RDMA route"},
      {RDMA_CM_EVENT_CONNECT_ERROR, "could not be made"},
      {RDMA_CM_EVENT_UNREACHABLE, "does not answer"},
      {RDMA_CM_EVENT_DEVICE_REMOVAL, "was removed"}};
  for (const auto& [event, why] : ends) {
    const auto channel = Ask();
    Happen(event);
    ExpectClosed(*channel, Code::kUnavailable);
    EXPECT_NE(channel->error().message().find("peer: "), std::string_view::npos);
    EXPECT_NE(channel->error().message().find(why), std::string_view::npos) << channel->error().ToString();
    EXPECT_FALSE(channel->peer_broke_rules());
  }
}

TEST_F(VerbsChannelTest, RefusalHasTheServersData) {
  const auto channel = Ask();
  Happen(RDMA_CM_EVENT_ADDR_RESOLVED);
  Happen(RDMA_CM_EVENT_ROUTE_RESOLVED);
  const std::string reason = "full";
  rdma_.Happen(rdma_.last_id, RDMA_CM_EVENT_REJECTED, 28, MakeKnock(AsBytes(reason), kRejectDataMax, 0));
  Poll();
  ExpectClosed(*channel, Code::kUnavailable);
  EXPECT_EQ(AsString(channel->peer_data()), reason);
}

TEST_F(VerbsChannelTest, QueuePairThatCannotBeMadeEndsTheChannel) {
  const auto channel = Ask();
  Happen(RDMA_CM_EVENT_ADDR_RESOLVED);
  rdma_.pair_error = ENOMEM;
  Happen(RDMA_CM_EVENT_ROUTE_RESOLVED);
  ExpectClosed(*channel, Code::kResourceExhausted);
}

TEST_F(VerbsChannelTest, AcceptingThatFailsGivesTheIdentityBack) {
  rdma_.migrate_fails = true;
  EXPECT_EQ(Accept().status().code(), Code::kUnavailable);
  rdma_.migrate_fails = false;
  rdma_.pair_error = ENOMEM;
  EXPECT_EQ(Accept().status().code(), Code::kResourceExhausted);
  rdma_.pair_error = 0;
  EXPECT_TRUE(Accept().ok());
}

TEST_F(VerbsChannelTest, InvalidGreetingEndsTheChannel) {
  const auto channel = Accept();
  ASSERT_TRUE(channel.ok());
  const std::string garbage = "garbage";
  Arrive(rdma_.last_id, AsBytes(garbage));
  CompleteSent(IBV_WC_WR_FLUSH_ERR);
  ExpectClosed(**channel, Code::kUnavailable);
}

TEST_F(VerbsChannelTest, NothingIsPostedBeforeTheChannelIsConnected) {
  const auto channel = Ask();
  EXPECT_EQ(Post(*channel, Work(OpKind::kWrite)).code(), Code::kUnavailable);
  EXPECT_FALSE(channel->OpenWindow(*region_, 0, 8).ok());
  EXPECT_EQ(channel->CloseWindow(1, 2).code(), Code::kUnavailable);
  EXPECT_TRUE(rdma_.sent.empty());
}

// --- Posting and completing

TEST_F(VerbsChannelTest, SignaledRequestCompletesWithItsIdAndSize) {
  const auto channel = Connect();
  WorkRequest work = Work(OpKind::kWrite, 100);
  work.id = 42;
  ASSERT_TRUE(Post(*channel, work).ok());
  ASSERT_EQ(rdma_.sent.size(), 1U);
  EXPECT_EQ(rdma_.sent[0].work.wr.rdma.remote_addr, kPeersRegion);
  EXPECT_EQ(rdma_.sent[0].work.wr.rdma.rkey, kPeersRegionKey);
  EXPECT_EQ(rdma_.sent[0].piece.lkey, region_->mr()->lkey);
  CompleteSent();
  const Completion done = Only();
  EXPECT_EQ(done.kind, OpKind::kWrite);
  EXPECT_EQ(done.code, Code::kOk);
  EXPECT_EQ(done.id, 42U);
  EXPECT_EQ(done.bytes, 100U);
}

TEST_F(VerbsChannelTest, UnsignaledRequestCompletesOnlyIfItFails) {
  const auto channel = Connect();
  WorkRequest work = Work(OpKind::kWrite);
  work.signaled = false;
  work.id = 1;
  ASSERT_TRUE(Post(*channel, work).ok());
  ASSERT_TRUE(Post(*channel, Work(OpKind::kWrite)).ok());
  CompleteSent();
  EXPECT_EQ(Only().id, 0U);
  ASSERT_TRUE(Post(*channel, work).ok());
  CompleteSent(IBV_WC_RETRY_EXC_ERR);
  CompleteSent(IBV_WC_WR_FLUSH_ERR);
  const auto polled = TakePolled();
  ASSERT_EQ(polled.size(), 2U);
  EXPECT_EQ(polled[0].id, 1U);
  EXPECT_EQ(polled[0].code, Code::kUnavailable);
  EXPECT_EQ(polled[1].kind, OpKind::kClosed);
}

TEST_F(VerbsChannelTest, CallerOfUnsignaledRequestsHearsNothingThatItDidNotAskFor) {
  const auto channel = Connect();
  WorkRequest work = Work(OpKind::kWrite);
  work.signaled = false;
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(Post(*channel, work).ok());
  EXPECT_GT(std::ranges::count_if(rdma_.sent, [](const auto& sent) { return sent.work.send_flags != 0; }), 0);
  CompleteSent();
  EXPECT_TRUE(TakePolled().empty());
}

TEST_F(VerbsChannelTest, CallerThatOnlyPostsMakesRoom) {
  const auto channel = Connect();
  size_t sent = 0;
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(Post(*channel, Work(OpKind::kWrite)).ok());
    for (const auto& request : rdma_.TakeSent()) {
      ++sent;
      rdma_.Complete(request);
    }
  }
  EXPECT_GT(sent, 200U) << "the requests wait, although the device has completed earlier ones";
}

TEST_F(VerbsChannelTest, RequestsThatWaitGoOutWhenEarlierOnesComplete) {
  const auto channel = Connect();
  constexpr size_t kPosted = 200;  // More than a queue pair has room for.
  for (size_t i = 0; i < kPosted; ++i) ASSERT_TRUE(Post(*channel, Work(OpKind::kWrite)).ok());
  EXPECT_LT(rdma_.sent.size(), kPosted);
  CompleteSent();
  EXPECT_FALSE(rdma_.sent.empty());
  CompleteSent();
  EXPECT_EQ(TakePolled().size(), kPosted);
}

TEST_F(VerbsChannelTest, FailedChannelPostsNothingMore) {
  const auto channel = Connect();
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(Post(*channel, Work(OpKind::kWrite)).ok());
  const auto sent = rdma_.TakeSent();
  Happen(RDMA_CM_EVENT_DISCONNECTED);
  EXPECT_EQ(rdma_.TakeSent().size(), 1U) << "the last request";
  rdma_.Complete(sent[50]);
  Poll();
  EXPECT_TRUE(rdma_.sent.empty());
  EXPECT_EQ(TakePolled().size(), 1U) << "it had completed before the failure";
}

TEST_F(VerbsChannelTest, DeniedRequestFailsTheChannelWithPermissionDenied) {
  for (const ibv_wc_status denied : {IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_INV_REQ_ERR}) {
    const auto channel = Connect();
    ASSERT_TRUE(Post(*channel, Work(OpKind::kRead)).ok());
    CompleteSent(denied);
    const auto polled = TakePolled();
    ASSERT_EQ(polled.size(), 2U);
    EXPECT_EQ(polled[0].kind, OpKind::kRead);
    EXPECT_EQ(polled[0].code, Code::kPermissionDenied);
    EXPECT_EQ(polled[1].kind, OpKind::kClosed);
    EXPECT_EQ(polled[1].code, Code::kPermissionDenied);
    EXPECT_EQ(Post(*channel, Work(OpKind::kRead)).code(), Code::kUnavailable);
  }
}

TEST_F(VerbsChannelTest, FailureFlushesAllRequestsInOrder) {
  const auto channel = Connect();
  constexpr uint64_t kPosted = 200;  // More than a queue pair has room for.
  for (uint64_t id = 0; id < kPosted; ++id) {
    WorkRequest work = Work(OpKind::kWrite);
    work.id = id;
    ASSERT_TRUE(Post(*channel, work).ok());
  }
  ASSERT_LT(rdma_.sent.size(), kPosted);
  rdma_.Complete(rdma_.TakeSent().front(), IBV_WC_RETRY_EXC_ERR);
  Poll();
  EXPECT_EQ(Only().id, 0U) << "the device has not flushed the others";
  const auto last = rdma_.TakeSent();
  ASSERT_EQ(last.size(), 1U) << "a last request ends those that asked for no completion";
  rdma_.Complete(last[0], IBV_WC_WR_FLUSH_ERR);
  Poll();
  const auto polled = TakePolled();
  ASSERT_FALSE(polled.empty());
  EXPECT_EQ(polled.back().kind, OpKind::kClosed);
  for (size_t i = 1; i + 1 < polled.size(); ++i) EXPECT_EQ(polled[i].id, polled[i - 1].id + 1);
  EXPECT_EQ(polled[polled.size() - 2].id, kPosted - 1);
}

TEST_F(VerbsChannelTest, RequestThatTheDeviceRefusesFailsTheChannel) {
  const auto channel = Connect();
  rdma_.post_error = EIO;
  WorkRequest work = Work(OpKind::kWrite);
  work.id = 9;
  ASSERT_TRUE(Post(*channel, work).ok()) << "it is flushed, like a posted one";
  Poll();
  const auto polled = TakePolled();
  ASSERT_EQ(polled.size(), 2U);
  EXPECT_EQ(polled[0].id, 9U);
  EXPECT_EQ(polled[0].code, Code::kUnavailable);
  EXPECT_EQ(polled[1].kind, OpKind::kClosed);
  EXPECT_NE(channel->error().message().find("the device takes no request"), std::string_view::npos);
}

TEST_F(VerbsChannelTest, BatchThatBreaksTheContractPostsNothing) {
  const auto channel = Connect();
  const std::vector<WorkRequest> works = {Work(OpKind::kWrite), Work(OpKind::kSend, kSendBytesMax + 1)};
  EXPECT_EQ(channel->Post(works).code(), Code::kInvalidArgument);
  EXPECT_TRUE(rdma_.sent.empty());
}

// --- Messages

TEST_F(VerbsChannelTest, MessageIsReadableUntilTheNextPoll) {
  for (const bool asking : {true, false}) {
    const auto channel = Connect(asking);
    const std::string text = "a message";
    Arrive(rdma_.last_id, AsBytes(text));
    // Poll went on until nothing came, so the data's receive is free again. The bytes are still there.
    const Completion message = Only();
    EXPECT_EQ(message.kind, OpKind::kReceive);
    EXPECT_EQ(AsString(message.data), text);
    ArriveImm(rdma_.last_id, 77);
    const Completion immediate = Only();
    EXPECT_EQ(immediate.kind, OpKind::kReceiveImm);
    EXPECT_EQ(immediate.imm, 77U);
  }
}

TEST_F(VerbsChannelTest, HalfTheDepthOfConsumedMessagesIsTold) {
  const auto channel = Connect();
  ArriveImm(rdma_.last_id, 1);
  EXPECT_TRUE(rdma_.sent.empty());
  ArriveImm(rdma_.last_id, 2);
  const auto told = rdma_.TakeSent();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].work.opcode, IBV_WR_RDMA_WRITE);
  EXPECT_EQ(told[0].work.wr.rdma.remote_addr, kPeersCreditPage + offsetof(CreditPage, told));
  EXPECT_EQ(told[0].work.wr.rdma.rkey, kPeersCreditKey);
  EXPECT_FALSE(told[0].work.send_flags & IBV_SEND_SIGNALED) << "nothing waits for it";
  uint64_t count = 0;
  std::memcpy(&count, reinterpret_cast<const void*>(told[0].piece.addr), sizeof(count));
  EXPECT_EQ(count, 2U);
}

TEST_F(VerbsChannelTest, EndWithoutRoomReadsThePeersCount) {
  const auto channel = Connect();
  for (uint32_t i = 0; i < kDepth; ++i) ASSERT_TRUE(Post(*channel, Work(OpKind::kSend)).ok());
  CompleteSent();
  TakePolled();
  EXPECT_EQ(Post(*channel, Work(OpKind::kSend)).code(), Code::kResourceExhausted);
  EXPECT_EQ(Post(*channel, Work(OpKind::kSend)).code(), Code::kResourceExhausted);
  ASSERT_EQ(rdma_.sent.size(), 1U) << "one Read at a time";
  EXPECT_EQ(rdma_.sent[0].work.wr.rdma.remote_addr, kPeersCreditPage + offsetof(CreditPage, consumed));
  const uint64_t consumed = 2;
  std::memcpy(reinterpret_cast<void*>(rdma_.sent[0].piece.addr), &consumed, sizeof(consumed));
  EXPECT_EQ(Post(*channel, Work(OpKind::kSend)).code(), Code::kResourceExhausted) << "the Read is under way";
  CompleteSent();
  EXPECT_TRUE(TakePolled().empty()) << "the caller did not read";
  EXPECT_TRUE(Post(*channel, Work(OpKind::kSend)).ok());
  EXPECT_TRUE(Post(*channel, Work(OpKind::kSend)).ok());
  EXPECT_EQ(Post(*channel, Work(OpKind::kSend)).code(), Code::kResourceExhausted);
}

TEST_F(VerbsChannelTest, EndThatCannotReadThePeersCountHasFailed) {
  const auto channel = Connect();
  for (uint32_t i = 0; i < kDepth; ++i) ASSERT_TRUE(Post(*channel, Work(OpKind::kSend)).ok());
  rdma_.post_error = EIO;
  EXPECT_EQ(Post(*channel, Work(OpKind::kSend)).code(), Code::kUnavailable);
}

TEST_F(VerbsChannelTest, PeerThatCountsUnsentMessagesBreaksTheRules) {
  const auto channel = Connect();
  for (uint32_t i = 0; i < kDepth; ++i) ASSERT_TRUE(Post(*channel, Work(OpKind::kSend)).ok());
  CompleteSent();
  TakePolled();
  ASSERT_EQ(Post(*channel, Work(OpKind::kSend)).code(), Code::kResourceExhausted);
  const uint64_t lie = kDepth + 1;
  std::memcpy(reinterpret_cast<void*>(rdma_.sent[0].piece.addr), &lie, sizeof(lie));
  CompleteSent();
  EXPECT_EQ(Post(*channel, Work(OpKind::kSend)).code(), Code::kUnavailable);
  EXPECT_TRUE(channel->peer_broke_rules());
  Poll();
  ExpectClosed(*channel, Code::kUnavailable);
}

TEST_F(VerbsChannelTest, PeerThatSendsTooMuchBreaksTheRules) {
  const std::vector<std::byte> longest(kSendBytesMax);
  const std::vector<std::byte> longer(kSendBytesMax + 1);
  const auto channel = Connect();
  Arrive(rdma_.last_id, longest);
  EXPECT_EQ(Only().kind, OpKind::kReceive);
  Arrive(rdma_.last_id, longer);
  ExpectClosed(*channel, Code::kUnavailable);
  EXPECT_TRUE(channel->peer_broke_rules());
}

TEST_F(VerbsChannelTest, PeerThatSendsMoreThanTheDepthBreaksTheRules) {
  const auto channel = Connect();
  for (uint32_t i = 0; i <= kDepth; ++i) {
    ibv_wc wc{};
    wc.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
    wc.wr_id = rdma_.receives[i].id;
    wc.qp_num = rdma_.last_id->qp->qp_num;
    rdma_.Complete(wc);
  }
  Poll();  // All of them were there before the owner consumed one.
  const auto polled = TakePolled();
  EXPECT_EQ(std::ranges::count(polled, OpKind::kReceiveImm, &Completion::kind), kDepth);
  EXPECT_EQ(std::ranges::count(polled, OpKind::kClosed, &Completion::kind), 1);
  EXPECT_TRUE(channel->peer_broke_rules());
}

TEST_F(VerbsChannelTest, PeerThatSendsBeforeItsGreetingBreaksTheRules) {
  auto channel = Accept();
  ASSERT_TRUE(channel.ok());
  ArriveImm(rdma_.last_id, 1);
  ExpectClosed(**channel, Code::kUnavailable);
  EXPECT_TRUE((*channel)->peer_broke_rules());
}

// --- Windows

TEST_F(VerbsChannelTest, WindowIsBoundBeforeTheMessageThatTellsOfIt) {
  const auto channel = Connect();
  const auto key = channel->OpenWindow(*region_, 64, 128);
  ASSERT_TRUE(key.ok()) << key.status().ToString();
  ASSERT_TRUE(Post(*channel, Work(OpKind::kSend)).ok());
  ASSERT_EQ(rdma_.sent.size(), 2U);
  EXPECT_EQ(rdma_.sent[0].work.opcode, IBV_WR_BIND_MW);
  EXPECT_EQ(rdma_.sent[0].work.send_flags, 0U) << "nothing waits for it";
  EXPECT_EQ(rdma_.sent[0].work.bind_mw.rkey, *key);
  EXPECT_EQ(rdma_.sent[0].work.bind_mw.bind_info.mr, region_->mr());
  EXPECT_EQ(rdma_.sent[0].work.bind_mw.bind_info.addr, reinterpret_cast<uint64_t>(memory_.data() + 64));
}

TEST_F(VerbsChannelTest, WindowIsFreedWhenItsClosingIsDone) {
  const auto channel = Connect();
  const auto key = channel->OpenWindow(*region_, 0, 8);
  ASSERT_TRUE(key.ok());
  ASSERT_TRUE(channel->CloseWindow(*key, 55).ok());
  EXPECT_EQ(rdma_.sent[1].work.opcode, IBV_WR_LOCAL_INV);
  EXPECT_EQ(rdma_.sent[1].work.invalidate_rkey, *key);
  const size_t freed = rdma_.freed_windows.size();
  CompleteSent();
  const Completion closed = Only();
  EXPECT_EQ(closed.kind, OpKind::kWindowClosed);
  EXPECT_EQ(closed.id, 55U);
  EXPECT_EQ(closed.code, Code::kOk);
  EXPECT_EQ(rdma_.freed_windows.size(), freed + 1);
  EXPECT_EQ(channel->CloseWindow(*key, 56).code(), Code::kInvalidArgument);
}

TEST_F(VerbsChannelTest, WindowNeedsAPieceOfARegionForWindows) {
  const auto channel = Connect();
  const auto other = Register(0, 8, Access::kRemoteReadWrite);
  EXPECT_EQ(channel->OpenWindow(*other, 0, 8).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(channel->OpenWindow(*region_, memory_.size(), 1).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(channel->OpenWindow(*region_, 0, 0).status().code(), Code::kInvalidArgument);
  EXPECT_TRUE(rdma_.sent.empty());
}

TEST_F(VerbsChannelTest, WindowThatCannotBeAllocatedIsReported) {
  const auto channel = Connect();
  rdma_.window_error = ENOMEM;
  const auto key = channel->OpenWindow(*region_, 0, 8);
  ASSERT_FALSE(key.ok());
  EXPECT_NE(key.status().message().find("peer: cannot allocate a memory window"), std::string_view::npos);
  EXPECT_TRUE(channel->connected());
}

TEST_F(VerbsChannelTest, EndOfTheChannelFreesItsWindowsAndTellsOfTheirClosing) {
  const auto channel = Connect();
  ASSERT_TRUE(channel->OpenWindow(*region_, 0, 8).ok());
  const auto key = channel->OpenWindow(*region_, 8, 8);
  ASSERT_TRUE(channel->CloseWindow(*key, 55).ok());
  Happen(RDMA_CM_EVENT_DISCONNECTED);
  CompleteSent(IBV_WC_WR_FLUSH_ERR);
  const auto polled = TakePolled();
  ASSERT_EQ(polled.size(), 2U);
  EXPECT_EQ(polled[0].kind, OpKind::kWindowClosed);
  EXPECT_EQ(polled[0].code, Code::kUnavailable);
  EXPECT_EQ(polled[1].kind, OpKind::kClosed);
}

// --- Ending

TEST_F(VerbsChannelTest, MessagesThatCameBeforeTheEndAreDelivered) {
  const auto channel = Connect();
  ibv_wc wc{};
  wc.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
  wc.wr_id = rdma_.receives[0].id;
  wc.qp_num = rdma_.last_id->qp->qp_num;
  rdma_.Complete(wc);
  Happen(RDMA_CM_EVENT_DISCONNECTED);
  const auto polled = TakePolled();
  ASSERT_EQ(polled.size(), 2U);
  EXPECT_EQ(polled[0].kind, OpKind::kReceiveImm);
  EXPECT_EQ(polled[1].kind, OpKind::kClosed);
}

TEST_F(VerbsChannelTest, PeerThatRejectsTheLastStepClosesTheChannel) {
  const auto channel = Connect();
  Happen(RDMA_CM_EVENT_REJECTED);
  ExpectClosed(*channel, Code::kUnavailable);
  EXPECT_NE(channel->error().message().find("closed the connection"), std::string_view::npos);
}

TEST_F(VerbsChannelTest, RemovedDeviceIsNotWaitedFor) {
  const auto channel = Connect();
  ASSERT_TRUE(Post(*channel, Work(OpKind::kWrite)).ok());
  Happen(RDMA_CM_EVENT_DEVICE_REMOVAL);
  const auto polled = TakePolled();
  ASSERT_EQ(polled.size(), 2U) << "the device completes nothing";
  EXPECT_EQ(rdma_.sent.size(), 1U) << "it gets no last request";
  EXPECT_EQ(polled[0].kind, OpKind::kWrite);
  EXPECT_EQ(polled[0].code, Code::kUnavailable);
  EXPECT_EQ(polled[1].kind, OpKind::kClosed);
  EXPECT_EQ(rdma_.last_id->qp, nullptr) << "nothing may touch the peer's memory";
}

TEST_F(VerbsChannelTest, DeviceThatTakesNoLastRequestIsNotWaitedFor) {
  const auto channel = Connect();
  ASSERT_TRUE(Post(*channel, Work(OpKind::kWrite)).ok());
  rdma_.post_error = EIO;
  Happen(RDMA_CM_EVENT_DISCONNECTED);
  EXPECT_EQ(TakePolled().size(), 2U);
  EXPECT_EQ(rdma_.last_id->qp, nullptr);
}

TEST_F(VerbsChannelTest, ChannelWaitsForTheDeviceToFlush) {
  const auto channel = Connect();
  ASSERT_TRUE(Post(*channel, Work(OpKind::kWrite)).ok());
  Happen(RDMA_CM_EVENT_DISCONNECTED);
  EXPECT_TRUE(TakePolled().empty());
  EXPECT_NE(rdma_.last_id->qp, nullptr);
  CompleteSent(IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(TakePolled().size(), 2U);
}

TEST_F(VerbsChannelTest, ClosedIsReportedOnce) {
  const auto channel = Connect();
  Happen(RDMA_CM_EVENT_DISCONNECTED);
  ExpectClosed(*channel, Code::kUnavailable);
  const std::string first = channel->error().ToString();
  Happen(RDMA_CM_EVENT_DEVICE_REMOVAL);
  EXPECT_TRUE(TakePolled().empty());
  EXPECT_EQ(channel->error().ToString(), first);
}

TEST_F(VerbsChannelTest, DestructionDisconnectsAndFreesEverything) {
  const int objects = rdma_.objects;
  auto channel = Connect();
  ASSERT_TRUE(channel->OpenWindow(*region_, 0, 8).ok());
  ASSERT_TRUE(Post(*channel, Work(OpKind::kWrite)).ok());
  const int before = rdma_.disconnects;
  channel.reset();
  EXPECT_EQ(rdma_.disconnects, before + 1);
  EXPECT_EQ(rdma_.objects, objects);
}

// A silent peer is probed by an empty Write.
TEST_F(VerbsChannelTest, SilentPeerIsProbed) {
  const auto channel = Connect();
  auto& end = dynamic_cast<VerbsChannel&>(*channel);
  const Nanoseconds now = SteadyClock::Instance().Now();
  end.OnLook(now);  // The peer's greeting was heard before this look.
  ASSERT_TRUE(rdma_.sent.empty());
  end.OnLook(now);
  ASSERT_EQ(rdma_.sent.size(), 1U);
  EXPECT_EQ(rdma_.sent[0].work.opcode, IBV_WR_RDMA_WRITE);
  EXPECT_EQ(rdma_.sent[0].work.num_sge, 0);
  end.OnLook(now);
  EXPECT_EQ(rdma_.sent.size(), 1U) << "a probe is under way";
  CompleteSent();
  EXPECT_TRUE(TakePolled().empty());
  EXPECT_TRUE(channel->connected());
  end.OnLook(now);
  EXPECT_TRUE(rdma_.sent.empty()) << "the peer was heard";
  end.OnLook(now);
  EXPECT_EQ(rdma_.sent.size(), 1U);
}

TEST_F(VerbsChannelTest, PeerThatDoesNotAnswerIsGivenUp) {
  const auto channel = Ask();
  auto& end = dynamic_cast<VerbsChannel&>(*channel);
  end.OnLook(SteadyClock::Instance().Now() + ChannelLife::kConnectIn + std::chrono::seconds(1));
  Poll();
  ExpectClosed(*channel, Code::kTimeout);
}

TEST_F(VerbsChannelTest, DeviceThatNeverFlushesIsGivenUp) {
  const auto channel = Connect();
  ASSERT_TRUE(Post(*channel, Work(OpKind::kWrite)).ok());
  Happen(RDMA_CM_EVENT_DISCONNECTED);
  auto& end = dynamic_cast<VerbsChannel&>(*channel);
  end.OnLook(SteadyClock::Instance().Now() + ChannelLife::kFlushIn + std::chrono::seconds(1));
  Poll();
  EXPECT_EQ(TakePolled().size(), 2U);
  EXPECT_EQ(rdma_.last_id->qp, nullptr);
}

}  // namespace
}  // namespace erda::fabric::verbs
