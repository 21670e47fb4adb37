// Conformance: WriteImm and Send, their contents, their order, and their limits.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "fabric/fixture.h"

namespace erda::fabric {
namespace {

using MessageTest = FabricTest;

INSTANTIATE_TEST_SUITE_P(Fabrics, MessageTest, testing::ValuesIn(AllWorlds()), KindName);

TEST_P(MessageTest, AWriteImmArrivesAfterEverythingPostedBefore) {
  Connect();
  for (uint64_t round = 0; round < 50; ++round) {
    const size_t size = 1 + (round * 1009) % 30000;
    const std::string bytes = Pattern(3 * size, round);
    Put(client_.bytes(0, 3 * size), bytes);
    const WorkRequest batch[] = {Unsignaled(Write(client_, 0, size, 0)), Unsignaled(Write(client_, size, size, size)),
                                 Unsignaled(WriteImm(client_, 2 * size, size, 2 * size, 7))};
    ASSERT_TRUE(client_.channel->Post(batch).ok());
    // Checked when it arrives, and not a step later.
    ASSERT_TRUE(PumpUntil(server_, OpKind::kReceiveImm, round + 1));
    ASSERT_TRUE(server_.text(0, 3 * size) == bytes) << "round " << round;
    Settle();
  }
}

TEST_P(MessageTest, ASendArrivesAfterEverythingPostedBefore) {
  Connect();
  for (uint64_t round = 0; round < 50; ++round) {
    const size_t size = 1 + (round * 1009) % 30000;
    Put(client_.bytes(0, size), Pattern(size, round));
    const WorkRequest batch[] = {Unsignaled(Write(client_, 0, size, 9)), Unsignaled(Send(client_, 0, 1))};
    ASSERT_TRUE(client_.channel->Post(batch).ok());
    ASSERT_TRUE(PumpUntil(server_, OpKind::kReceive, round + 1));
    ASSERT_TRUE(server_.text(9, size) == Pattern(size, round)) << "round " << round;
    Settle();
  }
}

TEST_P(MessageTest, AWriteImmBringsItsImmediateAndItsSize) {
  Connect();
  const uint32_t immediates[] = {0, 1, 0x7fffffff, 0x80000000, 0xffffffff};
  for (const uint32_t imm : immediates) {
    const size_t size = imm % 1000;
    ASSERT_TRUE(Post(*client_.channel, WriteImm(client_, 0, size, 0, imm, imm)).ok());
    ASSERT_TRUE(PumpUntil([&] { return !server_.events.empty() && !client_.events.empty(); }));
    EXPECT_EQ(server_.events[0].channel, server_.channel.get());
    EXPECT_EQ(server_.events[0].kind, OpKind::kReceiveImm);
    EXPECT_EQ(server_.events[0].code, Code::kOk);
    EXPECT_EQ(server_.events[0].imm, imm);
    EXPECT_EQ(server_.events[0].bytes, size);
    EXPECT_EQ(client_.events[0].kind, OpKind::kWriteImm);
    EXPECT_EQ(client_.events[0].id, imm);
    server_.events.clear();
    client_.events.clear();
  }
}

TEST_P(MessageTest, AnEmptyWriteImmNeedsNoRegion) {
  const ChannelPair pair = Connect({}, {});
  ASSERT_TRUE(pair.client && pair.server);
  WorkRequest request;
  request.kind = OpKind::kWriteImm;
  request.imm = 99;
  ASSERT_TRUE(Post(*pair.client, request).ok());
  ASSERT_TRUE(Post(*pair.server, request).ok());
  ASSERT_TRUE(PumpUntil([&] { return server_.events.size() == 2 && client_.events.size() == 2; }));
  EXPECT_EQ(server_.Count(OpKind::kReceiveImm), 1U);
  EXPECT_EQ(client_.Count(OpKind::kReceiveImm), 1U);
  for (const Event& event : server_.events) EXPECT_EQ(event.bytes, 0U);
}

TEST_P(MessageTest, ASendBringsItsBytes) {
  Connect();
  for (size_t size = 0; size <= kSendBytesMax; size += size < 16 ? 1 : 24) {
    Put(server_.bytes(size % 8, size), Pattern(size, size));
    ASSERT_TRUE(Post(*server_.channel, Send(server_, size % 8, size, size)).ok());
    ASSERT_TRUE(PumpUntil(client_, OpKind::kReceive));
    EXPECT_EQ(client_.events[0].channel, client_.channel.get());
    EXPECT_EQ(client_.events[0].bytes, size);
    EXPECT_EQ(client_.events[0].data, Pattern(size, size));
    client_.events.clear();
  }
}

TEST_P(MessageTest, ASendThatIsTooLongPostsNothing) {
  Connect();
  const WorkRequest batch[] = {Write(client_, 0, 8, 0), Send(client_, 0, kSendBytesMax + 1)};
  Put(client_.bytes(0, 8), "whatever");
  EXPECT_EQ(client_.channel->Post(batch).code(), Code::kInvalidArgument);
  Settle();
  EXPECT_TRUE(client_.events.empty());
  EXPECT_TRUE(server_.events.empty());
  EXPECT_EQ(server_.text(0, 8), std::string(8, '\0'));
  EXPECT_TRUE(client_.channel->connected()) << "it is the caller's mistake, the channel stays";
}

TEST_P(MessageTest, KindsOfArrivalsCannotBePosted) {
  Connect();
  for (const OpKind kind : {OpKind::kReceiveImm, OpKind::kReceive, OpKind::kConnected, OpKind::kClosed}) {
    WorkRequest request = Read(client_, 0, 8, 0);
    request.kind = kind;
    EXPECT_EQ(Post(*client_.channel, request).code(), Code::kInvalidArgument);
  }
  Settle();
  EXPECT_TRUE(client_.events.empty());
}

TEST_P(MessageTest, MessagesArriveInTheOrderPosted) {
  Connect(256);
  for (uint32_t i = 0; i < 200; ++i) {
    Put(client_.bytes(i * 8, 8), Pattern(8, i));
    const bool send = i % 3 == 0;
    ASSERT_TRUE(
        Post(*client_.channel, Unsignaled(send ? Send(client_, i * 8, 8) : WriteImm(client_, i * 8, 8, 0, i))).ok());
  }
  ASSERT_TRUE(PumpUntil([&] { return server_.events.size() == 200; }));
  for (uint32_t i = 0; i < 200; ++i) {
    if (i % 3 == 0) {
      EXPECT_EQ(server_.events[i].data, Pattern(8, i));
    } else {
      EXPECT_EQ(server_.events[i].imm, i);
    }
  }
}

TEST_P(MessageTest, AMessageStaysUntilTheNextPoll) {
  Connect();
  for (size_t i = 0; i < 5; ++i) {
    Put(client_.bytes(i * 256, 256), Pattern(256, i));
    ASSERT_TRUE(Post(*client_.channel, Unsignaled(Send(client_, i * 256, 256))).ok());
  }
  std::array<Completion, 5> polled;
  size_t count = 0;
  // The first Poll that finds something returns some of them; the rest stay for later.
  for (size_t step = 0; step < world_->patience() && count == 0; ++step) {
    world_->Advance();
    client_.Poll();
    count = server_.queue->Poll(polled);
  }
  ASSERT_GT(count, 0U);
  for (size_t step = 0; step < 100; ++step) {
    world_->Advance();
    client_.Poll();
  }
  for (size_t i = 0; i < count; ++i) EXPECT_EQ(AsString(polled[i].data), Pattern(256, i));
  ASSERT_TRUE(PumpUntil([&] { return server_.events.size() + count == 5; }));
}

TEST_P(MessageTest, APollTakesNoMoreThanItHasRoomFor) {
  Connect();
  for (uint32_t i = 0; i < 8; ++i) ASSERT_TRUE(Post(*client_.channel, Unsignaled(WriteImm(client_, 0, 0, 0, i))).ok());
  for (size_t step = 0; step < world_->quiet() && world_->Advance(); ++step) client_.Poll();
  Completion one;
  EXPECT_EQ(server_.queue->Poll({}), 0U);
  for (uint32_t i = 0; i < 8; ++i) {
    ASSERT_EQ(server_.queue->Poll({&one, 1}), 1U);
    EXPECT_EQ(one.imm, i);
  }
  EXPECT_EQ(server_.queue->Poll({&one, 1}), 0U);
}

TEST_P(MessageTest, NoMoreMessagesThanTheDepthAreUnconsumed) {
  constexpr uint32_t kDepth = 6;
  Connect(kDepth);
  for (End* end : {&client_, &server_}) {
    End& peer = end == &client_ ? server_ : client_;
    std::vector<WorkRequest> batch(kDepth + 1, Unsignaled(WriteImm(*end, 0, 0, 0, 1)));
    EXPECT_EQ(end->channel->Post(batch).code(), Code::kResourceExhausted);
    Settle();
    EXPECT_TRUE(peer.events.empty()) << "nothing of it was posted";

    for (uint32_t i = 0; i < kDepth; ++i)
      ASSERT_TRUE(Post(*end->channel, i % 2 == 0 ? Unsignaled(Send(*end, 0, 5)) : batch[0]).ok());
    EXPECT_EQ(Post(*end->channel, Send(*end, 0, 5)).code(), Code::kResourceExhausted);
    EXPECT_EQ(Post(*end->channel, batch[0]).code(), Code::kResourceExhausted);
    EXPECT_TRUE(Post(*end->channel, Unsignaled(Write(*end, 0, 5, 0))).ok()) << "only messages count";
    // Their arrival makes no room; only the peer's Poll does.
    for (size_t step = 0; step < world_->quiet() && world_->Advance(); ++step) end->Poll();
    EXPECT_EQ(Post(*end->channel, batch[0]).code(), Code::kResourceExhausted);

    // Up to half the depth may be consumed without this end's knowledge. Of more, it hears.
    constexpr uint32_t kUnreported = kDepth / 2;
    Completion one;
    for (uint32_t i = 0; i <= kUnreported; ++i) ASSERT_EQ(peer.queue->Poll({&one, 1}), 1U);
    ASSERT_TRUE(PumpUntil([&] { return Post(*end->channel, batch[0]).ok(); }));
    ASSERT_TRUE(PumpUntil([&] { return peer.events.size() == kDepth - kUnreported; })) << "all but the polled ones";
    peer.events.clear();
    batch.resize(kDepth - kUnreported);
    ASSERT_TRUE(PumpUntil([&] { return end->channel->Post(batch).ok(); })) << "all was consumed";
    ASSERT_TRUE(PumpUntil([&] { return peer.events.size() == batch.size(); }));
    peer.events.clear();
  }
}

TEST_P(MessageTest, TheDepthIsTheConnectingEnds) {
  ChannelOptions client;
  ChannelOptions server;
  client.message_depth = kMessageDepthMax;
  server.message_depth = 1;
  const ChannelPair pair = Connect(client, server);
  ASSERT_TRUE(pair.client && pair.server);
  const std::vector<WorkRequest> batch(kMessageDepthMax, Unsignaled(WriteImm(client_, 0, 0, 0, 1)));
  ASSERT_TRUE(pair.client->Post(batch).ok());
  ASSERT_TRUE(pair.server->Post(batch).ok());
  ASSERT_TRUE(PumpUntil(
      [&] { return server_.events.size() == kMessageDepthMax && client_.events.size() == kMessageDepthMax; }));
}

TEST_P(MessageTest, ADepthOfOneIsEnoughToTalk) {
  Connect(1);
  for (uint32_t round = 0; round < 300; ++round) {
    ASSERT_TRUE(PumpUntil([&] { return Post(*client_.channel, Unsignaled(WriteImm(client_, 0, 0, 0, round))).ok(); }));
    ASSERT_TRUE(PumpUntil(server_, OpKind::kReceiveImm));
    ASSERT_EQ(server_.events[0].imm, round);
    server_.events.clear();
    ASSERT_TRUE(PumpUntil([&] { return Post(*server_.channel, Unsignaled(Send(server_, 0, 200))).ok(); }));
    ASSERT_TRUE(PumpUntil(client_, OpKind::kReceive));
    client_.events.clear();
  }
}

}  // namespace
}  // namespace erda::fabric
