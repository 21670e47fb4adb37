// Conformance: operations without permission, and channels that end.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <vector>

#include "fabric/fixture.h"

namespace erda::fabric {
namespace {

class FailureTest : public FabricTest {
 protected:
  // Checks that there is one kClosed on that channel, and nothing after it. Returns the events before it, in the order
  // posted.
  std::vector<Event> Closed(const End& end, const Channel* channel) {
    std::vector<Event> events = end.Of(channel);
    EXPECT_EQ(std::count_if(events.begin(), events.end(), [](const Event& e) { return e.kind == OpKind::kClosed; }), 1);
    EXPECT_FALSE(channel->error().ok());
    EXPECT_FALSE(channel->connected());
    if (events.empty()) return {};
    EXPECT_EQ(events.back().kind, OpKind::kClosed);
    events.pop_back();
    return events;
  }
};

INSTANTIATE_TEST_SUITE_P(Fabrics, FailureTest, testing::ValuesIn(AllWorlds()), KindName);

// A request without permission. Region 0 allows reads and writes, region 1 only reads.
struct Offence {
  std::string name;
  std::function<WorkRequest(const End&)> request;
};

WorkRequest InRegion(uint32_t region, WorkRequest request) {
  request.remote.region = region;
  return request;
}

std::vector<Offence> Offences(size_t region_bytes) {
  return {
      {"a read that ends behind the region", [=](const End& end) { return Read(end, 64, 9, region_bytes - 8); }},
      {"a read that begins behind the region", [=](const End& end) { return Read(end, 64, 1, region_bytes); }},
      {"a read whose end overflows", [](const End& end) { return Read(end, 64, 16, UINT64_MAX - 7); }},
      {"a write that ends behind the region", [=](const End& end) { return Write(end, 64, 9, region_bytes - 8); }},
      {"a write far behind the region", [=](const End& end) { return Write(end, 64, 8, region_bytes << 20); }},
      {"a write whose end overflows", [](const End& end) { return Write(end, 64, 16, UINT64_MAX - 15); }},
      {"a message behind the region", [=](const End& end) { return WriteImm(end, 64, 8, region_bytes - 7, 1); }},
      {"a write where it may only read", [](const End& end) { return InRegion(1, Write(end, 64, 8, 0)); }},
      {"a message where it may only read", [](const End& end) { return InRegion(1, WriteImm(end, 64, 8, 0, 1)); }},
      {"a read of no region", [](const End& end) { return InRegion(2, Read(end, 64, 8, 0)); }},
      {"a write to no region", [](const End& end) { return InRegion(8, Write(end, 64, 8, 0)); }},
      {"a write to the last number", [](const End& end) { return InRegion(UINT32_MAX, Write(end, 64, 8, 0)); }},
  };
}

TEST_P(FailureTest, ForbiddenOperationFailsTheChannelForGood) {
  const auto read_only = Register(server_, Access::kRemoteRead);
  Region* const offer[] = {server_.region.get(), read_only.get()};
  for (const Offence& offence : Offences(kMemoryBytes)) {
    SCOPED_TRACE(offence.name);
    const std::string before = Pattern(4096, 1);
    Put(server_.bytes(0, 4096), before);
    Put(server_.bytes(kMemoryBytes - 4096, 4096), before);
    Put(client_.bytes(64, 64), Pattern(64, 2));
    const ChannelPair pair = Connect({}, Offer(server_, offer));
    ASSERT_TRUE(pair.client && pair.server);
    WorkRequest offending = offence.request(client_);
    offending.id = 2;
    const WorkRequest batch[] = {Read(client_, 4096, 8, 0, 1), offending, Unsignaled(Write(client_, 64, 8, 0, 3)),
                                 Read(client_, 4096, 8, 8, 4), Send(client_, 0, 8, 5)};
    ASSERT_TRUE(pair.client->Post(batch).ok()) << "that it is not permitted is said by the completion";
    EXPECT_FALSE(pair.client->ReadNow(client_.bytes(8192, 8), {0, 0})) << "though the peer may be there still";
    ASSERT_TRUE(PumpUntil([&] { return !pair.client->error().ok() && !pair.server->error().ok(); }));
    Settle();

    const std::vector<Event> events = Closed(client_, pair.client.get());
    ASSERT_EQ(events.size(), 5U);
    const Code expected[] = {Code::kOk, Code::kPermissionDenied, Code::kUnavailable, Code::kUnavailable,
                             Code::kUnavailable};
    for (size_t i = 0; i < 5; ++i) {
      EXPECT_EQ(events[i].id, i + 1);
      EXPECT_EQ(events[i].kind, batch[i].kind);
      EXPECT_EQ(events[i].code, expected[i]) << "operation " << i + 1;
    }
    EXPECT_TRUE(Closed(server_, pair.server.get()).empty());
    EXPECT_EQ(Post(*pair.client, Read(client_, 0, 8, 0)).code(), Code::kUnavailable);
    EXPECT_EQ(Post(*pair.server, Send(server_, 0, 8)).code(), Code::kUnavailable);
    EXPECT_TRUE(server_.text(0, 4096) == before) << "neither it nor what follows was executed";
    EXPECT_TRUE(server_.text(kMemoryBytes - 4096, 4096) == before);
    server_.events.clear();
    client_.events.clear();
  }
}

// Two peers may read everything, and each has a part to write to. (Over shm a part begins where the memory does, so one
// peer has separate memory.)
TEST_P(FailureTest, PeerCannotWriteIntoAnotherPeersPart) {
  const std::string before = Pattern(8192, 1);
  const auto other_memory = SharedMemory::Create("other", 8192);
  ASSERT_TRUE(other_memory.ok());
  const MemoryView whole = server_.memory.view();
  const auto readable = Register(server_, Access::kRemoteRead);
  const auto first =
      server_.fabric->Register({whole.bytes.first(4096), whole.fd, whole.fd_read_only}, Access::kRemoteReadWrite);
  const auto second = server_.fabric->Register(other_memory->view(), Access::kRemoteReadWrite);
  ASSERT_TRUE(first.ok() && second.ok());
  Put(client_.bytes(64, 64), Pattern(64, 2));
  struct Try {
    Region* mine;
    uint32_t region;
    uint64_t offset;
  };
  const Try tries[] = {{first->get(), 1, 4096},  {first->get(), 1, 4089},  {first->get(), 0, 4096},
                       {first->get(), 0, 0},     {second->get(), 0, 0},    {second->get(), 0, 4096},
                       {second->get(), 1, 8185}, {second->get(), 1, 8192}, {second->get(), 2, 0}};
  for (const auto& [mine, region, offset] : tries) {
    SCOPED_TRACE("region " + std::to_string(region) + " at " + std::to_string(offset));
    Put(server_.bytes(0, 8192), before);
    Put(other_memory->bytes(), before);
    Region* const offer[] = {readable.get(), mine};
    const ChannelPair pair = Connect({}, Offer(server_, offer));
    ASSERT_TRUE(pair.client && pair.server);
    ASSERT_TRUE(Post(*pair.client, InRegion(region, Write(client_, 64, 8, offset))).ok());
    ASSERT_TRUE(PumpUntil([&] { return !pair.client->error().ok() && !pair.server->error().ok(); }));
    Settle();
    const std::vector<Event> events = Closed(client_, pair.client.get());
    ASSERT_EQ(events.size(), 1U);
    EXPECT_EQ(events[0].code, Code::kPermissionDenied);
    EXPECT_TRUE(server_.text(0, 8192) == before);
    EXPECT_TRUE(AsString(other_memory->bytes()) == before);
    server_.events.clear();
    client_.events.clear();
  }
}

TEST_P(FailureTest, UnsignaledOffenceIsReported) {
  Connect();
  ASSERT_TRUE(Post(*client_.channel, Unsignaled(Write(client_, 0, 1, kMemoryBytes, 7))).ok());
  ASSERT_TRUE(PumpUntil(client_, OpKind::kClosed));
  Settle();
  const std::vector<Event> events = Closed(client_, client_.channel.get());
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].id, 7U);
  EXPECT_EQ(events[0].code, Code::kPermissionDenied);
}

TEST_P(FailureTest, AcceptingEndIsHeldToItsRights) {
  const ChannelPair pair = Connect({}, {});
  ASSERT_TRUE(pair.client && pair.server);
  ASSERT_TRUE(Post(*pair.server, Write(server_, 0, 1, 0, 7)).ok());
  ASSERT_TRUE(PumpUntil([&] { return !pair.client->error().ok() && !pair.server->error().ok(); }));
  Settle();
  const std::vector<Event> events = Closed(server_, pair.server.get());
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].code, Code::kPermissionDenied);
  EXPECT_TRUE(Closed(client_, pair.client.get()).empty());
}

TEST_P(FailureTest, FailureLeavesOtherChannelsAlone) {
  Connect();
  Region* const offer[] = {server_.region.get()};
  const ChannelPair other = Connect({}, Offer(server_, offer));
  ASSERT_TRUE(other.client && other.server);
  ASSERT_TRUE(Post(*client_.channel, Read(client_, 0, 1, kMemoryBytes)).ok());
  ASSERT_TRUE(PumpUntil([&] { return !client_.channel->error().ok() && !server_.channel->error().ok(); }));
  Settle();
  EXPECT_TRUE(other.client->connected());
  ASSERT_TRUE(Post(*other.client, Read(client_, 0, 8, 0, 77)).ok());
  ASSERT_TRUE(Post(*other.server, Send(server_, 0, 8)).ok());
  ASSERT_TRUE(PumpUntil(client_, OpKind::kReceive));
  ASSERT_TRUE(PumpUntil([&] {
    const std::vector<Event> events = client_.Of(other.client.get());
    return std::any_of(events.begin(), events.end(), [](const Event& e) { return e.id == 77 && e.code == Code::kOk; });
  }));
}

TEST_P(FailureTest, PostedOperationsAreFlushedInOrderWhenThePeerCloses) {
  for (size_t wait = 0; wait < 40; wait += 3) {
    Connect(256);
    std::vector<WorkRequest> batch;
    for (uint64_t id = 0; id < 100; ++id) {
      if (id % 3 == 0) batch.push_back(Read(client_, 1 << 20, 5000, 0, id));
      if (id % 3 == 1) batch.push_back(Unsignaled(Write(client_, 0, 5000, 1 << 20, id)));
      if (id % 3 == 2) batch.push_back(Send(client_, 0, 100, id));
    }
    ASSERT_TRUE(client_.channel->Post(batch).ok());
    for (size_t step = 0; step < wait; ++step) Pump();
    server_.channel.reset();
    server_.events.clear();
    ASSERT_TRUE(PumpUntil(client_, OpKind::kClosed));
    Settle();
    EXPECT_TRUE(server_.events.empty()) << "it is destroyed";
    // Executed operations completed, if they were signaled. From some operation on, all are flushed.
    std::vector<uint64_t> completed;
    uint64_t first_flushed = batch.size();
    for (const Event& event : Closed(client_, client_.channel.get())) {
      completed.push_back(event.id);
      if (event.code != Code::kOk) first_flushed = std::min(first_flushed, event.id);
      EXPECT_EQ(event.code, event.id < first_flushed ? Code::kOk : Code::kUnavailable);
    }
    std::vector<uint64_t> expected;
    for (uint64_t id = 0; id < batch.size(); ++id) {
      if (batch[id].signaled || id >= first_flushed) expected.push_back(id);
    }
    EXPECT_EQ(completed, expected) << "after waiting " << wait;
    client_.channel.reset();
    client_.events.clear();
  }
}

TEST_P(FailureTest, OperationsBeforeTheCloseArriveBeforeIt) {
  for (int round = 0; round < 20; ++round) {
    Connect();
    Put(client_.bytes(0, 3000), Pattern(3000, 5));
    const WorkRequest batch[] = {Send(client_, 0, 200), WriteImm(client_, 0, 3000, 500, 7)};
    ASSERT_TRUE(client_.channel->Post(batch).ok());
    ASSERT_TRUE(PumpUntil([&] {
      client_.Poll();
      return client_.Count(OpKind::kWriteImm) == 1;
    }));
    client_.channel.reset();
    ASSERT_TRUE(PumpUntil(server_, OpKind::kClosed));
    const std::vector<Event> events = Closed(server_, server_.channel.get());
    ASSERT_EQ(events.size(), 2U);
    EXPECT_EQ(events[0].data, Pattern(200, 5).substr(0, 200));
    EXPECT_EQ(events[1].imm, 7U);
    EXPECT_TRUE(server_.text(500, 3000) == Pattern(3000, 5));
    server_.channel.reset();
    server_.events.clear();
    client_.events.clear();
  }
}

TEST_P(FailureTest, AClosedChannelStaysClosed) {
  Connect();
  server_.channel.reset();
  ASSERT_TRUE(PumpUntil(client_, OpKind::kClosed));
  const std::string why = client_.channel->error().ToString();
  EXPECT_EQ(client_.channel->error().code(), Code::kUnavailable) << why;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Post(*client_.channel, Read(client_, 0, 8, 0)).code(), Code::kUnavailable);
    EXPECT_EQ(Post(*client_.channel, Send(client_, 0, 8)).code(), Code::kUnavailable);
    Settle();
  }
  EXPECT_EQ(client_.events.size(), 1U) << "kClosed, once";
  EXPECT_EQ(client_.channel->error().ToString(), why);
}

TEST_P(FailureTest, ADestroyedChannelCompletesNothingMore) {
  for (size_t wait = 0; wait < 60; wait += 4) {
    Connect();
    std::vector<WorkRequest> batch;
    for (uint64_t id = 0; id < 10; ++id) {
      batch.push_back(Read(client_, 0, 3000, 0, id));
      batch.push_back(Write(client_, 4096, 3000, 4096, id));
      batch.push_back(Send(client_, 0, 10, id));
    }
    ASSERT_TRUE(client_.channel->Post(batch).ok());
    ASSERT_TRUE(Post(*server_.channel, Send(server_, 0, 10)).ok());
    // Completions gather in the queue, and the channel goes before the poll.
    for (size_t step = 0; step < wait; ++step) world_->Advance();
    client_.channel.reset();
    ASSERT_TRUE(PumpUntil(server_, OpKind::kClosed));
    Settle();
    EXPECT_TRUE(client_.events.empty());
    EXPECT_EQ(server_.events.back().kind, OpKind::kClosed);
    server_.channel.reset();
    server_.events.clear();
  }
}

// (Once the number of a destroyed channel was given to a new one while the caller still held a message of it. The queue
// then took the new channel for the message's owner.)
TEST_P(FailureTest, AChannelMayGoWithAMessageThatWasJustPolled) {
  for (int round = 0; round < 3; ++round) {
    Connect(4);
    ASSERT_TRUE(Post(*server_.channel, Send(server_, 0, 10)).ok());
    std::array<Completion, 1> polled;
    size_t n = 0;
    for (size_t step = 0; step < world_->patience() && n == 0; ++step) {
      world_->Advance();
      server_.Poll();
      n = client_.queue->Poll(polled);
    }
    ASSERT_EQ(n, 1U);
    ASSERT_EQ(polled[0].kind, OpKind::kReceive);
    client_.channel.reset();
    server_.channel.reset();
    Connect(4);
    // Each of its receives is still there, once.
    for (uint64_t i = 0; i < 20; ++i) {
      Put(server_.bytes(0, 100), Pattern(100, i));
      ASSERT_TRUE(PumpUntil([&] { return Post(*server_.channel, Unsignaled(Send(server_, 0, 100))).ok(); }));
      ASSERT_TRUE(PumpUntil(client_, OpKind::kReceive));
      EXPECT_EQ(client_.events.back().data, Pattern(100, i));
      client_.events.clear();
    }
    client_.channel.reset();
    server_.channel.reset();
    client_.events.clear();
    server_.events.clear();
  }
}

TEST_P(FailureTest, TheMemoryOfADestroyedChannelIsLeftAlone) {
  for (size_t wait = 0; wait < 30; wait += 2) {
    Connect();
    ASSERT_TRUE(Post(*client_.channel, Read(client_, 0, 4096, 0)).ok());
    for (size_t step = 0; step < wait; ++step) world_->Advance();
    client_.channel.reset();
    Put(client_.bytes(0, 4096), Pattern(4096, wait));
    ASSERT_TRUE(PumpUntil(server_, OpKind::kClosed));
    Settle();
    EXPECT_TRUE(client_.text(0, 4096) == Pattern(4096, wait)) << "the Read does not land in it any more";
    server_.channel.reset();
    server_.events.clear();
    client_.events.clear();
  }
}

TEST_P(FailureTest, BothEndsMayCloseAtOnce) {
  for (int round = 0; round < 20; ++round) {
    Connect();
    ASSERT_TRUE(Post(*client_.channel, Write(client_, 0, 4096, 0)).ok());
    ASSERT_TRUE(Post(*server_.channel, Write(server_, 0, 4096, 0)).ok());
    for (int step = 0; step < round; ++step) world_->Advance();
    client_.channel.reset();
    server_.channel.reset();
    server_.events.clear();
    client_.events.clear();
    Settle();
    EXPECT_TRUE(client_.events.empty());
    EXPECT_TRUE(server_.events.empty());
  }
}

TEST_P(FailureTest, OffenceWhileThePeerClosesEndsTheChannelOnce) {
  for (int wait = 0; wait < 10; ++wait) {
    Connect();
    ASSERT_TRUE(Post(*client_.channel, Write(client_, 0, 1, kMemoryBytes)).ok());
    for (int step = 0; step < wait; ++step) world_->Advance();
    server_.channel.reset();
    server_.events.clear();
    ASSERT_TRUE(PumpUntil(client_, OpKind::kClosed));
    Settle();
    EXPECT_EQ(Closed(client_, client_.channel.get()).size(), 1U);
    client_.channel.reset();
    client_.events.clear();
  }
}

TEST_P(FailureTest, NewChannelServesAfterAFailure) {
  for (uint64_t round = 0; round < 10; ++round) {
    Connect();
    Put(server_.bytes(0, 64), Pattern(64, round));
    const WorkRequest batch[] = {Read(client_, 64, 64, 0), Write(client_, 0, 1, kMemoryBytes)};
    ASSERT_TRUE(client_.channel->Post(batch).ok());
    ASSERT_TRUE(PumpUntil([&] { return client_.Count(OpKind::kClosed) + server_.Count(OpKind::kClosed) == 2; }));
    EXPECT_EQ(client_.text(64, 64), Pattern(64, round));
    client_.channel.reset();
    server_.channel.reset();
    client_.events.clear();
    server_.events.clear();
  }
}

}  // namespace
}  // namespace erda::fabric
