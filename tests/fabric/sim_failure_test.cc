// The ends of simulated channels and processes: lost, late and impossible events.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/random.h"
#include "fabric/fixture.h"
#include "fabric/sim/network.h"
#include "fabric/sim_pair.h"

namespace erda::fabric {
namespace {

TEST(SimFailureTest, DroppedChannelFailsAtBothEndsAndMayLoseCompletedWrites) {
  size_t placed = 0;
  size_t lost = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SimPair pair(seed);
    Put(pair.client.bytes(0, 800), std::string(800, 'n'));
    const WorkRequest batch[] = {Write(pair.client, 0, 800, 0, 1), Read(pair.client, 4096, 8, 0, 2)};
    ASSERT_TRUE(pair.client.channel->Post(batch).ok());
    while (pair.client.events.empty() && pair.Step()) {
    }
    pair.network.DropChannel(*pair.client.channel);
    pair.Run();
    for (const End* end : {&pair.client, &pair.server}) {
      EXPECT_EQ(end->Count(OpKind::kClosed), 1U);
      EXPECT_EQ(end->events.back().kind, OpKind::kClosed);
      EXPECT_EQ(end->channel->error().code(), Code::kUnavailable);
    }
    ASSERT_EQ(pair.client.events.size(), 3U);
    EXPECT_EQ(pair.client.events[0].code, Code::kOk);
    EXPECT_EQ(pair.client.events[1].id, 2U);
    const std::string seen = pair.server.text(0, 800);
    if (pair.client.events[1].code == Code::kOk) {
      EXPECT_EQ(seen.find('\0'), std::string::npos) << "a Read that completes has flushed the Write";
    } else {
      EXPECT_EQ(pair.client.events[1].code, Code::kUnavailable);
    }
    if (seen.find('\0') == std::string::npos) ++placed;
    if (seen.find('\0') != std::string::npos) ++lost;
  }
  EXPECT_GT(placed, 20U);
  EXPECT_GT(lost, 20U);
}

TEST(SimFailureTest, CompletedWritesAreKeptIfTheOptionsSaySo) {
  SimOptions options;
  options.lose_completed = false;
  size_t late = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SimPair pair(seed, options);
    Put(pair.client.bytes(0, 800), std::string(800, 'n'));
    ASSERT_TRUE(Post(*pair.client.channel, Write(pair.client, 0, 800, 0, 1)).ok());
    while (pair.client.events.empty() && pair.Step()) {
    }
    if (pair.server.text(0, 800) != std::string(800, 'n')) ++late;
    pair.network.DropChannel(*pair.client.channel);
    if (seed % 3 == 0) pair.network.KillNode("client");
    if (seed % 3 == 1) pair.server.channel.reset();
    pair.Run();
    EXPECT_EQ(pair.server.text(0, 800), std::string(800, 'n'));
  }
  EXPECT_GT(late, 20U);
}

TEST(SimFailureTest, DropsByChanceBreakSomeChannels) {
  SimOptions options;
  options.drop_chance = 0.1;
  size_t broken = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SimPair pair(seed, options);
    const std::vector<WorkRequest> batch(5, Read(pair.client, 0, 64, 0));
    ASSERT_TRUE(pair.client.channel->Post(batch).ok());
    pair.Run();
    const size_t closed = pair.client.Count(OpKind::kClosed);
    EXPECT_EQ(pair.client.events.size(), 5 + closed);
    EXPECT_EQ(pair.server.Count(OpKind::kClosed), closed);
    broken += closed;
  }
  EXPECT_GT(broken, 20U);
  EXPECT_LT(broken, 65U);
}

TEST(SimFailureTest, AnyConnectedChannelMayBeDropped) {
  SimPair pair(1);
  EXPECT_TRUE(pair.network.DropChannel());
  pair.Run();
  EXPECT_EQ(pair.client.Count(OpKind::kClosed), 1U);
  EXPECT_FALSE(pair.network.DropChannel()) << "none is connected any more";
}

// Nothing lands after the target's Channel is destroyed. Before that it may, even when both ends know.
TEST(SimFailureTest, DestroyingTheTargetsChannelFencesIt) {
  size_t late = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    SimPair pair(seed);
    Put(pair.client.bytes(0, 4096), std::string(4096, 'n'));
    const std::vector<WorkRequest> batch(6, Write(pair.client, 0, 4096, 0));
    ASSERT_TRUE(pair.client.channel->Post(batch).ok());
    for (uint64_t steps = 1 + random.Uniform(20); steps > 0; --steps) pair.Step();
    pair.network.DropChannel(*pair.client.channel);
    while (pair.server.events.empty() && pair.Step()) {
    }
    const std::string known = pair.server.text(0, 4096);
    if (random.Chance(0.5)) {
      pair.Run();
      if (pair.server.text(0, 4096) != known) ++late;
    }
    pair.server.channel.reset();
    const std::string fenced = pair.server.text(0, 4096);
    Put(pair.client.bytes(0, 4096), std::string(4096, 'x'));
    pair.Run();
    EXPECT_TRUE(pair.server.text(0, 4096) == fenced) << "seed " << seed;
    EXPECT_EQ(fenced.find('x'), std::string::npos);
  }
  EXPECT_GT(late, 5U) << "kClosed is not yet a fence";
}

TEST(SimFailureTest, AKilledClientLeavesPiecesUnderWay) {
  size_t late = 0;
  size_t lost = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SimPair pair(seed);
    Put(pair.client.bytes(0, 4096), std::string(4096, 'n'));
    ASSERT_TRUE(Post(*pair.client.channel, Write(pair.client, 0, 4096, 0)).ok());
    for (int steps = 0; steps < 2; ++steps) pair.Step();
    pair.client.events.clear();
    pair.network.KillNode("client");
    const std::string at_death = pair.server.text(0, 4096);
    Put(pair.client.bytes(0, 4096), std::string(4096, 'x'));
    EXPECT_FALSE(pair.client.channel->connected());
    EXPECT_EQ(Post(*pair.client.channel, Read(pair.client, 0, 8, 0)).code(), Code::kUnavailable);
    pair.Run();
    EXPECT_TRUE(pair.client.events.empty()) << "the dead hear nothing";
    ASSERT_EQ(pair.server.events.size(), 1U);
    EXPECT_EQ(pair.server.events[0].kind, OpKind::kClosed);
    const std::string seen = pair.server.text(0, 4096);
    EXPECT_EQ(seen.find('x'), std::string::npos) << "the memory of the dead is not looked at";
    if (seen != at_death) ++late;
    if (seen.find('\0') != std::string::npos) ++lost;
  }
  EXPECT_GT(late, 50U);
  EXPECT_GT(lost, 50U);
}

TEST(SimFailureTest, TheMemoryOfAKilledServerIsLeftAlone) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SimPair pair(seed);
    Put(pair.client.bytes(0, 4096), std::string(4096, 'n'));
    const WorkRequest batch[] = {Write(pair.client, 0, 4096, 0, 1), WriteImm(pair.client, 0, 8, 0, 1, 2),
                                 Read(pair.client, 8192, 100, 0, 3)};
    ASSERT_TRUE(pair.client.channel->Post(batch).ok());
    for (uint64_t steps = seed % 12; steps > 0; --steps) pair.Step();
    pair.server.events.clear();
    pair.network.KillNode("server");
    const std::string at_death = pair.server.text(0, SimPair::kBytes);
    EXPECT_FALSE(pair.client.fabric->Connect("sim:server", pair.Options(pair.client)).ok());
    EXPECT_FALSE(pair.server.fabric->Listen("sim:other").ok()) << "the dead do nothing";
    EXPECT_FALSE(pair.server.fabric->CreateQueue().ok());
    pair.Run();
    EXPECT_TRUE(pair.server.text(0, SimPair::kBytes) == at_death);
    EXPECT_TRUE(pair.server.events.empty());
    EXPECT_EQ(pair.client.Count(OpKind::kClosed), 1U);
    ASSERT_EQ(pair.client.events.size(), 4U) << "three operations and kClosed";
  }
}

TEST(SimFailureTest, AKilledNodeComesBackAsANewProcess) {
  SimPair pair(1);
  pair.network.KillNode("server");
  pair.Run();
  pair.listener.reset();
  pair.server.channel.reset();
  pair.server.queue.reset();
  pair.server.region.reset();
  pair.fabrics.push_back(pair.network.CreateFabric("server"));
  pair.server.fabric = pair.fabrics.back().get();
  pair.server.region = std::move(*pair.server.fabric->Register(pair.server.memory.view(), Access::kRemoteReadWrite));
  pair.server.queue = std::move(*pair.server.fabric->CreateQueue());
  pair.listener = std::move(*pair.server.fabric->Listen("sim:server"));
  pair.client.channel.reset();
  pair.client.events.clear();
  pair.Connect();
  ASSERT_TRUE(Post(*pair.client.channel, Read(pair.client, 0, 8, 0)).ok());
  pair.Run();
  EXPECT_EQ(pair.client.Count(OpKind::kRead), 1U);
}

TEST(SimFailureTest, DyingServerRefusesWaitingPeers) {
  for (const bool arrived : {false, true}) {
    for (const bool taken : {false, true}) {
      SimPair pair(1);
      auto asking = pair.client.fabric->Connect("sim:server", pair.Options(pair.client));
      ASSERT_TRUE(asking.ok());
      if (arrived) pair.Run();
      const auto incoming = taken ? pair.listener->Poll() : nullptr;
      EXPECT_EQ(incoming != nullptr, arrived && taken);
      pair.network.KillNode("server");
      pair.Run();
      EXPECT_EQ(pair.client.Of(asking->get()).size(), 1U);
      EXPECT_FALSE((*asking)->error().ok());
      if (incoming != nullptr) {
        EXPECT_FALSE(incoming->Accept(pair.Options(pair.server)).ok());
      }
    }
  }
}

// One end of a channel that breaks at some time. It writes block after block, each with its number.
struct Writer {
  static constexpr size_t kBlock = 120;
  static constexpr uint32_t kBlocks = 40;

  void Post(Random& random) {
    if (posted == kBlocks) return;
    const size_t at = posted * kBlock;
    Put(end->bytes(at, kBlock), Pattern(kBlock, posted));
    WorkRequest request = Write(*end, at, kBlock, SimPair::kBytes / 2 + at, posted);
    request.kind = random.Chance(0.3) ? OpKind::kWriteImm : OpKind::kWrite;
    request.signaled = random.Chance(0.5);
    request.imm = posted;
    if (fabric::Post(*end->channel, request).ok()) ++posted;
  }

  // After a message, all blocks up to it are there.
  void CheckMessages() {
    for (; seen < peer->events.size(); ++seen) {
      const Event& event = peer->events[seen];
      if (event.kind != OpKind::kReceiveImm) continue;
      for (uint32_t block = 0; block <= event.imm; ++block)
        ASSERT_EQ(peer->text(SimPair::kBytes / 2 + block * kBlock, kBlock), Pattern(kBlock, block));
    }
  }

  // Completions come first, then flushes, all in order. One kClosed is the last.
  void CheckEnd() const {
    ASSERT_EQ(end->Count(OpKind::kClosed), 1U);
    ASSERT_EQ(end->events.back().kind, OpKind::kClosed);
    uint64_t next = 0;
    uint64_t next_message = 0;
    bool flushed = false;
    for (const Event& event : end->events) {
      if (event.kind == OpKind::kReceiveImm) {
        EXPECT_GE(event.imm, next_message);
        next_message = event.imm + 1;
      } else if (event.kind != OpKind::kClosed) {
        EXPECT_GE(event.id, next);
        if (flushed) {
          EXPECT_EQ(event.id, next) << "each is flushed";
          EXPECT_EQ(event.code, Code::kUnavailable);
        }
        flushed = flushed || event.code != Code::kOk;
        next = event.id + 1;
      }
    }
    if (flushed) {
      EXPECT_EQ(next, posted);
    }
  }

  End* end;
  End* peer;
  uint32_t posted = 0;
  size_t seen = 0;
};

TEST(SimFailureTest, BreakingChannelKeepsItsOrder) {
  SimOptions options;
  options.drop_chance = 0.01;
  options.long_delay_chance = 0.1;
  for (uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    SimPair pair(seed, options);
    Random random(seed);
    Writer writers[] = {{&pair.client, &pair.server}, {&pair.server, &pair.client}};
    const auto step = [&] {
      const bool more = pair.Step();
      for (Writer& writer : writers) writer.CheckMessages();
      return more;
    };
    for (uint32_t round = 0; round < 3 * Writer::kBlocks; ++round) {
      writers[random.Uniform(2)].Post(random);
      for (uint64_t steps = random.Uniform(5); steps > 0; --steps) step();
      ASSERT_FALSE(testing::Test::HasFailure());
    }
    pair.network.DropChannel();
    if (random.Chance(0.3)) pair.network.DropChannel(*pair.client.channel);
    while (step()) {
    }
    for (const Writer& writer : writers) ASSERT_NO_FATAL_FAILURE(writer.CheckEnd());
    ASSERT_FALSE(testing::Test::HasFailure());
  }
}

TEST(SimFailureTest, PeerOfAFailedOrLeftEndIsToldOnce) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SimPair pair(seed);
    Random random(seed);
    ASSERT_TRUE(Post(*pair.client.channel, Write(pair.client, 0, 1, SimPair::kBytes)).ok());
    const auto wait = [&] {
      for (uint64_t steps = random.Uniform(3); steps > 0; --steps) pair.Step();
    };
    wait();
    pair.network.DropChannel(*pair.client.channel);
    wait();
    if (random.Chance(0.5)) pair.network.KillNode("server");
    wait();
    pair.server.channel.reset();
    pair.Run();
    EXPECT_EQ(pair.client.Count(OpKind::kClosed), 1U);
    EXPECT_EQ(pair.client.events.back().kind, OpKind::kClosed);
    EXPECT_EQ(pair.client.events.size(), 2U);
  }
}

}  // namespace
}  // namespace erda::fabric
