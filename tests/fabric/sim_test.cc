// The behaviour of the simulated fabric beyond the contract: it repeats itself, and it makes the worst choices.
#include "fabric/sim/network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"
#include "fabric/fixture.h"
#include "fabric/sim_pair.h"

namespace erda::fabric {
namespace {

// A run with everything: writes, reads and messages both ways, and channels that break from time to time.
uint64_t Storm(uint64_t seed, std::vector<std::string>* trace = nullptr) {
  SimOptions options;
  options.drop_chance = 0.002;
  if (trace != nullptr) options.trace = [trace](const std::string& line) { trace->push_back(line); };
  SimPair pair(seed, options);
  Random random(seed);
  for (uint64_t id = 0; id < 1000; ++id) {
    End& end = random.Chance(0.5) ? pair.client : pair.server;
    const size_t size = random.Uniform(500);
    const size_t local = random.Uniform(4000);
    WorkRequest request = Read(end, local, size, random.Uniform(4000), id);
    request.kind = static_cast<OpKind>(random.Uniform(4));
    if (request.kind == OpKind::kSend) request.local = request.local.first(size / 2);
    (void)Post(*end.channel, request);
    for (uint64_t steps = random.Uniform(6); steps > 0; --steps) pair.Step();
    if (pair.client.channel->error().ok() && pair.server.channel->error().ok()) continue;
    pair.client.channel.reset();
    pair.server.channel.reset();
    pair.Connect();
  }
  pair.Run();
  return pair.network.history_hash();
}

TEST(SimTest, ASeedRepeatsTheRunBitForBit) {
  std::set<uint64_t> histories;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    std::vector<std::string> first;
    std::vector<std::string> second;
    const uint64_t history = Storm(seed, &first);
    EXPECT_EQ(history, Storm(seed, &second));
    EXPECT_EQ(history, Storm(seed)) << "the trace changes nothing";
    EXPECT_EQ(first, second);
    histories.insert(history);
  }
  EXPECT_EQ(histories.size(), 10U) << "and each seed is another run";
}

TEST(SimTest, TimeIsVirtualAndNeverGoesBack) {
  SimPair pair(1);
  Nanoseconds before = pair.network.Now();
  ASSERT_TRUE(Post(*pair.client.channel, Write(pair.client, 0, 1000, 0)).ok());
  while (pair.Step()) {
    EXPECT_GE(pair.network.Now(), before);
    before = pair.network.Now();
  }
  pair.network.RunUntil(before + std::chrono::hours(1));
  EXPECT_EQ(pair.network.Now(), before + std::chrono::hours(1));
  pair.network.RunUntil(before);
  EXPECT_EQ(pair.network.Now(), before + std::chrono::hours(1));
  EXPECT_FALSE(pair.Step());
}

TEST(SimTest, RunUntilRunsAllEventsUpToItsTime) {
  SimOptions options;
  options.delay_min = options.delay_max = Nanoseconds(1000);
  options.long_delay_chance = 0;
  SimPair pair(1, options);
  const Nanoseconds begin = pair.network.Now();
  ASSERT_TRUE(Post(*pair.client.channel, Read(pair.client, 0, 8, 0)).ok());
  pair.network.RunUntil(begin + Nanoseconds(2999));
  pair.client.Poll();
  EXPECT_TRUE(pair.client.events.empty()) << "to go there, to read, to come back: a delay each";
  pair.network.RunUntil(begin + Nanoseconds(3000));
  pair.client.Poll();
  EXPECT_EQ(pair.client.Count(OpKind::kRead), 1U);
}

// Returns the number of runs of 100 in which the second of two Reads of one batch takes an older word than the first.
size_t OlderBehind(const SimOptions& options) {
  size_t older = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SimPair pair(seed, options);
    const WorkRequest batch[] = {Read(pair.client, 0, 8, 0, 0), Read(pair.client, 8, 8, 0, 1)};
    EXPECT_TRUE(pair.client.channel->Post(batch).ok());
    for (char step = 1; pair.client.Count(OpKind::kRead) < 2; ++step) {
      Put(pair.server.bytes(0, 8), std::string(8, step));
      EXPECT_TRUE(pair.Step());
    }
    older += pair.client.text(8, 8) < pair.client.text(0, 8) ? 1 : 0;
    EXPECT_EQ(pair.client.events[0].id, 0U) << "completions come in order all the same";
  }
  return older;
}

TEST(SimTest, ReadsInFlightTogetherTakeTheirBytesInAnyOrder) {
  EXPECT_GT(OlderBehind({}), 20U);
  SimOptions in_order;
  in_order.reads_in_order = true;
  EXPECT_EQ(OlderBehind(in_order), 0U);
}

TEST(SimTest, ReadTakesItsBytesBetweenEarlierAndLaterWrites) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SimPair pair(seed);
    Put(pair.client.bytes(0, 8), "earlier!");
    Put(pair.client.bytes(8, 8), "later...");
    const WorkRequest batch[] = {Write(pair.client, 0, 8, 0, 0), Read(pair.client, 16, 8, 0, 1),
                                 Read(pair.client, 24, 8, 0, 2), Write(pair.client, 8, 8, 0, 3)};
    ASSERT_TRUE(pair.client.channel->Post(batch).ok());
    pair.Run();
    EXPECT_EQ(pair.client.text(16, 16), "earlier!earlier!");
    EXPECT_EQ(pair.server.text(0, 8), "later...");
  }
}

TEST(SimTest, AWriteLandsInPiecesAndNotInAddressOrder) {
  constexpr size_t kSize = 512;
  size_t mixtures = 0;
  size_t last_word_first = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SimPair pair(seed);
    Put(pair.client.bytes(0, kSize), std::string(kSize, 'n'));
    ASSERT_TRUE(Post(*pair.client.channel, Write(pair.client, 0, kSize, 0)).ok());
    bool mixed = false;
    bool backwards = false;
    while (pair.Step()) {
      const std::string seen = pair.server.text(0, kSize);
      for (size_t word = 0; word < kSize; word += 8) ASSERT_EQ(seen.substr(word, 8), std::string(8, seen[word]));
      mixed = mixed || (seen.find('n') != std::string::npos && seen.find('\0') != std::string::npos);
      backwards = backwards || (seen.front() == '\0' && seen.back() == 'n');
    }
    EXPECT_EQ(pair.server.text(0, kSize), std::string(kSize, 'n'));
    mixtures += mixed ? 1 : 0;
    last_word_first += backwards ? 1 : 0;
  }
  EXPECT_GT(mixtures, 20U);
  EXPECT_GT(last_word_first, 5U) << "never poll the last byte";
}

TEST(SimTest, AReadSeesMixturesOfDifferentTimes) {
  constexpr size_t kSize = 512;
  size_t mixtures = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SimPair pair(seed);
    ASSERT_TRUE(Post(*pair.client.channel, Read(pair.client, 0, kSize, 0)).ok());
    for (char now = 'a'; pair.Step(); ++now) Put(pair.server.bytes(0, kSize), std::string(kSize, now));
    const std::string seen = pair.client.text(0, kSize);
    if (seen != std::string(kSize, seen[0])) ++mixtures;
    for (size_t word = 0; word < kSize; word += 8) ASSERT_EQ(seen.substr(word, 8), std::string(8, seen[word]));
  }
  EXPECT_GT(mixtures, 20U);
}

TEST(SimTest, AWriteCompletesBeforeItIsPlaced) {
  size_t early = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SimPair pair(seed);
    Put(pair.client.bytes(0, 800), Pattern(800, seed));
    ASSERT_TRUE(Post(*pair.client.channel, Write(pair.client, 0, 800, 0)).ok());
    while (pair.client.events.empty() && pair.Step()) {
    }
    ASSERT_EQ(pair.client.events.size(), 1U);
    if (pair.server.text(0, 800) != Pattern(800, seed)) ++early;
    Put(pair.client.bytes(0, 800), Pattern(800, 99));
    pair.Run();
    EXPECT_EQ(pair.server.text(0, 800), Pattern(800, seed)) << "the buffer may be reused when it completed";
  }
  EXPECT_GT(early, 10U);
}

TEST(SimTest, AReadAtOnceWaitsForWritesThatHaveCompletedAndAreNotPlaced) {
  constexpr size_t kSize = 512;
  size_t at_once = 0;
  size_t waited = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SimPair pair(seed);
    Put(pair.client.bytes(0, kSize), std::string(kSize, 'w'));
    ASSERT_TRUE(Post(*pair.client.channel, Write(pair.client, 0, kSize, 0)).ok());
    while (pair.client.Count(OpKind::kWrite) == 0) ASSERT_TRUE(pair.Step());
    const bool placed = pair.server.text(0, kSize) == std::string(kSize, 'w');
    if (pair.client.channel->ReadNow(pair.client.bytes(1000, kSize), {0, 0})) {
      ++at_once;
      EXPECT_TRUE(pair.client.text(1000, kSize) == std::string(kSize, 'w')) << "seed " << seed;
    }
    waited += placed ? 0 : 1;
  }
  EXPECT_GT(at_once, 10U);
  EXPECT_GT(waited, 10U);
}

TEST(SimTest, AWriteTakesItsBytesAsLateAsItMay) {
  size_t changed = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SimPair pair(seed);
    ASSERT_TRUE(Post(*pair.client.channel, Write(pair.client, 0, 800, 0)).ok());
    Put(pair.client.bytes(0, 800), std::string(800, 'x'));
    pair.Run();
    if (pair.server.text(0, 800).find('x') != std::string::npos) ++changed;
  }
  EXPECT_GT(changed, 20U) << "a caller that changes the buffer too early is caught";
}

TEST(SimTest, LocalBytesOutsideEveryRegionAreRefused) {
  SimPair pair(1);
  std::vector<std::byte> unregistered(64);
  for (const OpKind kind : {OpKind::kRead, OpKind::kWrite, OpKind::kWriteImm, OpKind::kSend}) {
    WorkRequest request;
    request.kind = kind;
    request.local = unregistered;
    EXPECT_EQ(Post(*pair.client.channel, request).code(), Code::kInvalidArgument);
    request.local = pair.server.bytes(0, 8);
    EXPECT_EQ(Post(*pair.client.channel, request).code(), Code::kInvalidArgument) << "it is another node's";
    request.local = {pair.client.bytes(SimPair::kBytes - 8, 8).data(), 9};
    EXPECT_EQ(Post(*pair.client.channel, request).code(), Code::kInvalidArgument) << "it ends behind the region";
  }
  const auto late = pair.client.fabric->Register({unregistered, -1, -1}, Access::kLocal);
  ASSERT_TRUE(late.ok());
  WorkRequest request = Send(pair.client, 0, 0);
  request.local = unregistered;
  EXPECT_TRUE(Post(*pair.client.channel, request).ok());
  pair.Run();
  EXPECT_EQ(pair.server.Count(OpKind::kReceive), 1U);
}

TEST(SimTest, UnconsumedMessagesAreCountedExactly) {
  SimPair pair(1);
  for (int i = 0; i < 64; ++i) ASSERT_TRUE(Post(*pair.client.channel, Send(pair.client, 0, 1)).ok());
  EXPECT_EQ(Post(*pair.client.channel, Send(pair.client, 0, 1)).code(), Code::kResourceExhausted);
  while (pair.network.Step()) {
  }
  EXPECT_EQ(Post(*pair.client.channel, Send(pair.client, 0, 1)).code(), Code::kResourceExhausted);
  Completion one;
  ASSERT_EQ(pair.server.queue->Poll({&one, 1}), 1U);
  EXPECT_TRUE(Post(*pair.client.channel, Send(pair.client, 0, 1)).ok());
  EXPECT_EQ(Post(*pair.client.channel, Send(pair.client, 0, 1)).code(), Code::kResourceExhausted);
}

}  // namespace
}  // namespace erda::fabric
