// Conformance: the effects and the order of Read and Write.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "fabric/fixture.h"

namespace erda::fabric {
namespace {

class TransferTest : public FabricTest {
 protected:
  void SetUp() override {
    FabricTest::SetUp();
    if (!HasFatalFailure()) Connect();
  }
};

INSTANTIATE_TEST_SUITE_P(Fabrics, TransferTest, testing::ValuesIn(AllWorlds()), KindName);

constexpr size_t kSizes[] = {0, 1, 7, 8, 9, 63, 64, 65, 255, 4096, 65537, (1 << 20) + 3, 4 << 20};
constexpr size_t kGuard = 64;

TEST_P(TransferTest, AReadFetchesTheBytesOfThePeer) {
  uint64_t id = 100;
  for (const size_t size : kSizes) {
    const size_t local = kGuard + id % 8;
    const size_t remote = (id * 3) % 64;
    const std::string fetched = Pattern(size, id);
    const std::string before = Pattern(size + 2 * kGuard, id + 1);
    Put(server_.bytes(remote, size), fetched);
    Put(client_.bytes(local - kGuard, size + 2 * kGuard), before);
    ASSERT_TRUE(Post(*client_.channel, Read(client_, local, size, remote, id)).ok());
    ASSERT_TRUE(PumpUntil(client_, OpKind::kRead));
    ASSERT_EQ(client_.events.size(), 1U);
    EXPECT_EQ(client_.events[0].channel, client_.channel.get());
    EXPECT_EQ(client_.events[0].code, Code::kOk);
    EXPECT_EQ(client_.events[0].id, id);
    EXPECT_EQ(client_.events[0].bytes, size);
    std::string expected = before;
    expected.replace(kGuard, size, fetched);
    EXPECT_TRUE(client_.text(local - kGuard, size + 2 * kGuard) == expected) << "of " << size << " bytes";
    client_.events.clear();
    ++id;
  }
  EXPECT_TRUE(server_.events.empty()) << "a one-sided operation is not heard of";
}

TEST_P(TransferTest, AWritePlacesTheBytesAtThePeer) {
  uint64_t id = 100;
  for (const size_t size : kSizes) {
    const size_t local = (id * 5) % 64;
    const size_t remote = kGuard + id % 8;
    const std::string placed = Pattern(size, id);
    const std::string before = Pattern(size + 2 * kGuard, id + 1);
    Put(client_.bytes(local, size), placed);
    Put(server_.bytes(remote - kGuard, size + 2 * kGuard), before);
    const WorkRequest batch[] = {Write(client_, local, size, remote, id), Read(client_, kMemoryBytes - 1, 1, 0)};
    ASSERT_TRUE(client_.channel->Post(batch).ok());
    ASSERT_TRUE(PumpUntil(client_, OpKind::kRead)) << "the Read that pushes the Write out";
    ASSERT_EQ(client_.events.size(), 2U);
    EXPECT_EQ(client_.events[0].kind, OpKind::kWrite);
    EXPECT_EQ(client_.events[0].code, Code::kOk);
    EXPECT_EQ(client_.events[0].id, id);
    EXPECT_EQ(client_.events[0].bytes, size);
    std::string expected = before;
    expected.replace(kGuard, size, placed);
    EXPECT_TRUE(server_.text(remote - kGuard, size + 2 * kGuard) == expected) << "of " << size << " bytes";
    client_.events.clear();
    ++id;
  }
  EXPECT_TRUE(server_.events.empty()) << "a one-sided operation is not heard of";
}

TEST_P(TransferTest, TheAcceptingEndReadsAndWritesToo) {
  Put(client_.bytes(1000, 100), Pattern(100, 1));
  Put(server_.bytes(0, 100), Pattern(100, 2));
  const WorkRequest batch[] = {Read(server_, 3000, 100, 1000), Write(server_, 0, 100, 2000), Read(server_, 200, 8, 0)};
  ASSERT_TRUE(server_.channel->Post(batch).ok());
  ASSERT_TRUE(PumpUntil(server_, OpKind::kRead, 2));
  EXPECT_EQ(server_.text(3000, 100), Pattern(100, 1));
  EXPECT_EQ(client_.text(2000, 100), Pattern(100, 2));
}

TEST_P(TransferTest, AReadSeesTheWritesPostedBeforeIt) {
  for (uint64_t round = 0; round < 30; ++round) {
    const size_t size = 1 + (round * 977) % 20000;
    Put(client_.bytes(0, size), Pattern(size, round));
    const WorkRequest batch[] = {Unsignaled(Write(client_, 0, size, round)), Read(client_, 1 << 20, size, round)};
    ASSERT_TRUE(client_.channel->Post(batch).ok());
    ASSERT_TRUE(PumpUntil(client_, OpKind::kRead, round + 1));
    ASSERT_TRUE(client_.text(1 << 20, size) == Pattern(size, round)) << "round " << round;
  }
}

TEST_P(TransferTest, WritesToOnePlaceHappenInTheOrderPosted) {
  constexpr size_t kSize = 3000;
  std::vector<WorkRequest> batch;
  for (uint64_t i = 0; i < 20; ++i) {
    Put(client_.bytes(i * kSize, kSize), Pattern(kSize, i));
    batch.push_back(Write(client_, i * kSize, kSize, 5));
  }
  batch.push_back(Read(client_, 1 << 20, kSize, 5));
  ASSERT_TRUE(client_.channel->Post(batch).ok());
  ASSERT_TRUE(PumpUntil(client_, OpKind::kRead));
  EXPECT_TRUE(client_.text(1 << 20, kSize) == Pattern(kSize, 19));
}

TEST_P(TransferTest, AReadIsNotOvertakenByALaterWrite) {
  Put(server_.bytes(0, 4096), Pattern(4096, 1));
  Put(client_.bytes(0, 4096), Pattern(4096, 2));
  const WorkRequest batch[] = {Read(client_, 8192, 4096, 0), Write(client_, 0, 4096, 0), Read(client_, 16384, 4096, 0)};
  ASSERT_TRUE(client_.channel->Post(batch).ok());
  ASSERT_TRUE(PumpUntil(client_, OpKind::kRead, 2));
  EXPECT_TRUE(client_.text(8192, 4096) == Pattern(4096, 1));
  EXPECT_TRUE(client_.text(16384, 4096) == Pattern(4096, 2));
}

TEST_P(TransferTest, CompletionsComeInTheOrderPosted) {
  std::vector<WorkRequest> batch;
  for (uint64_t id = 0; id < 60; ++id) {
    const size_t size = (id * 7919) % 10000;
    if (id % 4 == 0) batch.push_back(Read(client_, 0, size, 0, id));
    if (id % 4 == 1) batch.push_back(Write(client_, 1 << 20, size, 1 << 20, id));
    if (id % 4 == 2) batch.push_back(WriteImm(client_, 1 << 20, size, 1 << 20, 1, id));
    if (id % 4 == 3) batch.push_back(Send(client_, 1 << 20, id, id));
  }
  ASSERT_TRUE(client_.channel->Post(batch).ok());
  ASSERT_TRUE(PumpUntil([&] { return client_.events.size() >= batch.size(); }));
  Settle();
  ASSERT_EQ(client_.events.size(), batch.size());
  for (size_t i = 0; i < batch.size(); ++i) {
    EXPECT_EQ(client_.events[i].id, i);
    EXPECT_EQ(client_.events[i].kind, batch[i].kind);
    EXPECT_EQ(client_.events[i].bytes, batch[i].local.size());
    EXPECT_EQ(client_.events[i].code, Code::kOk);
  }
}

TEST_P(TransferTest, AnUnsignaledOperationDoesNotComplete) {
  const WorkRequest batch[] = {Unsignaled(Write(client_, 0, 100, 0, 1)), Unsignaled(WriteImm(client_, 0, 0, 0, 7, 2)),
                               Unsignaled(Send(client_, 0, 10, 3)), Write(client_, 0, 8, 0, 4)};
  ASSERT_TRUE(client_.channel->Post(batch).ok());
  ASSERT_TRUE(PumpUntil([&] { return server_.events.size() == 2 && client_.events.size() == 1; }));
  Settle();
  ASSERT_EQ(client_.events.size(), 1U);
  EXPECT_EQ(client_.events[0].id, 4U);
}

TEST_P(TransferTest, AReadCompletesThoughUnsignaled) {
  ASSERT_TRUE(Post(*client_.channel, Unsignaled(Read(client_, 0, 100, 0, 1))).ok());
  ASSERT_TRUE(PumpUntil(client_, OpKind::kRead));
  EXPECT_EQ(client_.events[0].id, 1U);
}

TEST_P(TransferTest, ManyOperationsAreOutstanding) {
  constexpr size_t kOps = 4096;
  constexpr size_t kSize = 24;
  for (size_t i = 0; i < kOps; ++i) Put(client_.bytes(i * kSize, kSize), Pattern(kSize, i));
  for (size_t i = 0; i < kOps; i += 64) {
    std::vector<WorkRequest> batch;
    for (size_t op = i; op < i + 64; ++op)
      batch.push_back(Unsignaled(Write(client_, op * kSize, kSize, op * kSize, op)));
    ASSERT_TRUE(client_.channel->Post(batch).ok());
  }
  for (size_t i = 0; i < kOps; ++i)
    ASSERT_TRUE(Post(*client_.channel, Read(client_, (1 << 20) + i * kSize, kSize, i * kSize, i)).ok());
  ASSERT_TRUE(PumpUntil(client_, OpKind::kRead, kOps));
  ASSERT_EQ(client_.events.size(), kOps);
  for (size_t i = 0; i < kOps; ++i) ASSERT_EQ(client_.events[i].id, i);
  EXPECT_TRUE(client_.text(1 << 20, kOps * kSize) == client_.text(0, kOps * kSize));
}

TEST_P(TransferTest, EmptyBatchPostsNothing) {
  EXPECT_TRUE(client_.channel->Post({}).ok());
  Settle();
  EXPECT_TRUE(client_.events.empty());
}

TEST_P(TransferTest, TransfersReachTheEdgesOfARegion) {
  Put(client_.bytes(0, 2), "ab");
  Put(server_.bytes(0, 1), "y");
  Put(server_.bytes(kMemoryBytes - 1, 1), "z");
  const WorkRequest batch[] = {Read(client_, 10, 1, 0),
                               Read(client_, 11, 1, kMemoryBytes - 1),
                               Write(client_, 0, 1, 0),
                               Write(client_, 1, 1, kMemoryBytes - 1),
                               Read(client_, 20, 0, kMemoryBytes),
                               Read(client_, 1 << 20, 7 << 20, 1 << 20)};
  ASSERT_TRUE(client_.channel->Post(batch).ok());
  ASSERT_TRUE(PumpUntil(client_, OpKind::kRead, 4));
  for (const Event& event : client_.events) EXPECT_EQ(event.code, Code::kOk) << event.id;
  EXPECT_EQ(client_.text(10, 2), "yz");
  EXPECT_EQ(server_.text(0, 1), "a");
  EXPECT_EQ(server_.text(kMemoryBytes - 1, 1), "b");
}

TEST_P(TransferTest, EachOfferedRegionIsReachedByItsNumber) {
  auto small = SharedMemory::Create("erda-test", 4096);
  ASSERT_TRUE(small.ok());
  auto second = server_.fabric->Register(small->view(), Access::kRemoteReadWrite);
  ASSERT_TRUE(second.ok());
  Region* const offer[] = {server_.region.get(), second->get()};
  const ChannelPair pair = Connect({}, Offer(server_, offer));
  ASSERT_TRUE(pair.client && pair.server);
  EXPECT_EQ(pair.client->peer_regions()[1].size, 4096U);
  Put(client_.bytes(0, 8), "region01");
  WorkRequest batch[] = {Write(client_, 0, 7, 50), Write(client_, 7, 1, 50), Read(client_, 100, 1, 50),
                         Read(client_, 101, 1, 50)};
  batch[1].remote.region = 1;
  batch[3].remote.region = 1;
  ASSERT_TRUE(pair.client->Post(batch).ok());
  ASSERT_TRUE(PumpUntil(client_, OpKind::kRead, 2));
  EXPECT_EQ(server_.text(50, 7), "region0");
  EXPECT_EQ(AsString(small->bytes().subspan(50, 1)), "1");
  EXPECT_EQ(client_.text(100, 2), "r1");
}

TEST_P(TransferTest, ARegionForLocalUseHoldsLocalBytes) {
  auto memory = SharedMemory::Create("erda-test", 4096);
  ASSERT_TRUE(memory.ok());
  auto region = client_.fabric->Register(memory->view(), Access::kLocal);
  ASSERT_TRUE(region.ok());
  Put(server_.bytes(0, 10), "0123456789");
  WorkRequest read = Read(client_, 0, 10, 0);
  read.local = memory->bytes().subspan(3, 10);
  ASSERT_TRUE(Post(*client_.channel, read).ok());
  ASSERT_TRUE(PumpUntil(client_, OpKind::kRead));
  EXPECT_EQ(AsString(memory->bytes().subspan(3, 10)), "0123456789");
}

TEST_P(TransferTest, ReadableRegionCanBeRead) {
  const auto read_only = Register(server_, Access::kRemoteRead);
  Region* const offer[] = {read_only.get()};
  const ChannelPair pair = Connect({}, Offer(server_, offer));
  ASSERT_TRUE(pair.client && pair.server);
  Put(server_.bytes(77, 10), "0123456789");
  ASSERT_TRUE(Post(*pair.client, Read(client_, 0, 10, 77)).ok());
  ASSERT_TRUE(PumpUntil(client_, OpKind::kRead));
  EXPECT_EQ(client_.text(0, 10), "0123456789");
  Put(server_.bytes(77, 10), "abcdefghij");
  ASSERT_TRUE(Post(*pair.client, Read(client_, 0, 10, 77)).ok());
  ASSERT_TRUE(PumpUntil(client_, OpKind::kRead, 2)) << "what the owner changes is seen";
  EXPECT_EQ(client_.text(0, 10), "abcdefghij");
}

// If a fabric reads at once, the result is that of a posted Read.
TEST_P(TransferTest, AReadAtOnceFetchesTheBytesOfThePeer) {
  size_t at_once = 0;
  for (const size_t size : kSizes) {
    const std::string fetched = Pattern(size, size + 1);
    Put(server_.bytes(77, size), fetched);
    const std::string before = Pattern(size + 2 * kGuard, size + 2);
    Put(client_.bytes(0, size + 2 * kGuard), before);
    for (int i = 0; i < 20; ++i) {
      if (!client_.channel->ReadNow(client_.bytes(kGuard, size), {0, 77})) continue;
      ++at_once;
      std::string expected = before;
      expected.replace(kGuard, size, fetched);
      EXPECT_TRUE(client_.text(0, size + 2 * kGuard) == expected) << "of " << size << " bytes";
    }
  }
  const bool always = GetParam().name == "shm";
  const bool never = GetParam().name == "verbs";
  EXPECT_TRUE(always ? at_once == 20 * std::size(kSizes) : never ? at_once == 0 : at_once > 0) << at_once;
  Settle();
  EXPECT_TRUE(client_.events.empty()) << "nothing completes";
  EXPECT_TRUE(server_.events.empty()) << "a one-sided operation is not heard of";
}

TEST_P(TransferTest, AReadAtOnceSeesTheWritesPostedBeforeIt) {
  for (uint64_t round = 0; round < 50; ++round) {
    const std::string written = Pattern(500, round);
    Put(client_.bytes(0, 500), written);
    ASSERT_TRUE(Post(*client_.channel, Write(client_, 0, 500, 1000)).ok());
    if (client_.channel->ReadNow(client_.bytes(1000, 500), {0, 1000})) {
      EXPECT_TRUE(client_.text(1000, 500) == written);
    }
    ASSERT_TRUE(PumpUntil(client_, OpKind::kWrite, round + 1));
  }
}

TEST_P(TransferTest, ForbiddenReadAtOnceFailsWithoutHarm) {
  const auto local = client_.bytes(0, 16);
  for (int i = 0; i < 20; ++i) {
    EXPECT_FALSE(client_.channel->ReadNow(local, {0, kMemoryBytes - 15}));
    EXPECT_FALSE(client_.channel->ReadNow(local, {0, UINT64_MAX - 7}));
    EXPECT_FALSE(client_.channel->ReadNow(local, {1, 0}));
  }
  ASSERT_TRUE(Post(*client_.channel, Read(client_, 0, 16, 0)).ok());
  ASSERT_TRUE(PumpUntil(client_, OpKind::kRead));
  EXPECT_EQ(client_.events[0].code, Code::kOk);
}

// One channel writes, and another reads the same place meanwhile. A Read may see a mixture of rounds, but each aligned
// word belongs to one of them. Both may begin and end in the middle of words.
TEST_P(TransferTest, AWordIsNeverTorn) {
  constexpr size_t kSize = 1024;
  const bool any = world_->whole_in_any_transfer();
  Region* const offer[] = {server_.region.get()};
  const ChannelPair reader = Connect({}, Offer(server_, offer));
  ASSERT_TRUE(reader.client && reader.server);
  for (size_t round = 1; round <= 80; ++round) {
    const size_t source = round * 2048 + round % 8;
    std::fill_n(client_.bytes(source, kSize).data(), kSize, static_cast<std::byte>(round));
    ASSERT_TRUE(Post(*client_.channel, Unsignaled(Write(client_, source, kSize, any ? round % 7 : 0))).ok());
    const size_t from = any ? round % 9 : 0;
    const size_t into = (1 << 20) + round % 5;
    ASSERT_TRUE(Post(*reader.client, Read(client_, into, kSize - from, from)).ok());
    ASSERT_TRUE(PumpUntil(client_, OpKind::kRead, round));
    for (size_t word = 16; word < kSize; word += 8) {  // The words that every Write covers.
      const std::string seen = client_.text(into + word - from, 8);
      ASSERT_EQ(seen, std::string(8, seen[0])) << "round " << round << ", word at " << word;
    }
  }
}

TEST_P(TransferTest, ManyChannelsShareAQueue) {
  constexpr size_t kChannels = 8;
  Region* const offer[] = {server_.region.get()};
  std::vector<ChannelPair> pairs;
  for (size_t i = 0; i < kChannels; ++i) {
    pairs.push_back(Connect({}, Offer(server_, offer)));
    ASSERT_TRUE(pairs.back().client && pairs.back().server);
  }
  for (size_t i = 0; i < kChannels; ++i) {
    Put(server_.bytes(i * 100, 100), Pattern(100, i));
    for (uint64_t id = 0; id < 10; ++id)
      ASSERT_TRUE(Post(*pairs[i].client, Read(client_, i * 100, 100, i * 100, id)).ok());
  }
  ASSERT_TRUE(PumpUntil(client_, OpKind::kRead, 10 * kChannels));
  for (size_t i = 0; i < kChannels; ++i) {
    const std::vector<Event> own = client_.Of(pairs[i].client.get());
    ASSERT_EQ(own.size(), 10U);
    for (uint64_t id = 0; id < 10; ++id) EXPECT_EQ(own[id].id, id);
    EXPECT_EQ(client_.text(i * 100, 100), Pattern(100, i));
  }
}

}  // namespace
}  // namespace erda::fabric
