// Conformance: random operations on many channels, both ways at once, checked against the contract for each.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"
#include "fabric/fixture.h"

namespace erda::fabric {
namespace {

constexpr size_t kAreaBytes = 64 << 10;  // Of each channel, in either memory.
constexpr size_t kStageBytes = 512 << 10;

// One direction of one channel. It writes into a separate area of the peer, and keeps the expected contents.
struct Talker {
  Channel* channel = nullptr;
  End* end = nullptr;
  const End* peer = nullptr;
  const Channel* peer_channel = nullptr;
  size_t area = 0;
  size_t staged = 0;
  std::string written = std::string(kAreaBytes, '\0');  // The contents after all posted operations.
  std::deque<WorkRequest> posted;                       // Posted and not completed; only signaled ones.
  std::deque<std::string> reads;                        // The expected results of these Reads.
  std::deque<uint32_t> messages;                        // Messages that have not arrived.
  uint32_t messages_posted = 0;
};

class MixTest : public FabricTest {
 protected:
  // Returns a place for bytes to write from. It is not reused while an operation may need it: the stage is large enough
  // for a burst.
  static size_t Stage(Talker& talker, const std::string& bytes) {
    const size_t at = kStageBytes * (1 + talker.area / kAreaBytes) + talker.staged;
    Put(talker.end->bytes(at, bytes.size()), bytes);
    talker.staged += bytes.size();
    return at;
  }

  static WorkRequest NextRead(Talker& talker, size_t offset, size_t size, uint64_t id) {
    talker.reads.push_back(talker.written.substr(offset, size));
    return Read(*talker.end, Stage(talker, std::string(size, '?')), size, talker.area + offset, id);
  }

  static WorkRequest Next(Talker& talker, Random& random, uint64_t id) {
    const size_t size = random.Chance(0.5) ? random.Uniform(64) : random.Uniform(6000);
    const size_t offset = random.Uniform(kAreaBytes - size);
    const uint64_t dice = random.Uniform(10);
    if (dice < 3) return NextRead(talker, offset, size, id);
    const std::string bytes = Pattern(dice < 9 ? size : size % (kSendBytesMax + 1), random.Next());
    WorkRequest request = Send(*talker.end, Stage(talker, bytes), bytes.size(), id);
    request.signaled = random.Chance(0.5);
    if (dice == 9) return request;
    talker.written.replace(offset, size, bytes);
    request.kind = dice < 7 ? OpKind::kWrite : OpKind::kWriteImm;
    request.remote.offset = talker.area + offset;
    request.imm = talker.messages_posted;
    if (request.kind == OpKind::kWriteImm) talker.messages.push_back(talker.messages_posted++);
    return request;
  }

  // Posts some operations. The last is a Read, after which all of them are placed.
  void Burst(Talker& talker, Random& random, uint64_t& id) {
    constexpr int kBatches = 4;
    for (int i = 1; i <= kBatches; ++i) {
      std::vector<WorkRequest> batch;
      for (uint64_t n = random.Uniform(8); n > 0; --n) batch.push_back(Next(talker, random, ++id));
      if (i == kBatches) batch.push_back(NextRead(talker, 0, 8, ++id));
      ASSERT_TRUE(talker.channel->Post(batch).ok());
      for (const WorkRequest& request : batch) {
        if (request.signaled) talker.posted.push_back(request);
      }
      for (uint64_t steps = random.Uniform(20); steps > 0; --steps) Pump();
    }
  }

  // Checks the talker's completions, and removes them from its lists.
  static void CheckOwn(Talker& talker) {
    for (const Event& event : talker.end->Of(talker.channel)) {
      if (event.kind == OpKind::kReceive || event.kind == OpKind::kReceiveImm) continue;
      ASSERT_FALSE(talker.posted.empty());
      const WorkRequest request = talker.posted.front();
      talker.posted.pop_front();
      ASSERT_EQ(event.id, request.id);
      ASSERT_EQ(event.kind, request.kind);
      ASSERT_EQ(event.code, Code::kOk);
      if (event.kind != OpKind::kRead) continue;
      ASSERT_TRUE(AsString(request.local) == talker.reads.front())
          << "a Read sees what its channel wrote before, and nothing after";
      talker.reads.pop_front();
    }
    EXPECT_TRUE(talker.posted.empty());
  }

  static void CheckPeer(Talker& talker) {
    for (const Event& event : talker.peer->Of(talker.peer_channel)) {
      if (event.kind != OpKind::kReceiveImm) continue;
      ASSERT_FALSE(talker.messages.empty());
      ASSERT_EQ(event.imm, talker.messages.front());
      talker.messages.pop_front();
    }
    EXPECT_TRUE(talker.messages.empty());
    ASSERT_TRUE(talker.peer->text(talker.area, kAreaBytes) == talker.written);
  }
};

INSTANTIATE_TEST_SUITE_P(Fabrics, MixTest, testing::ValuesIn(AllWorlds()), KindName);

TEST_P(MixTest, RandomOperationsKeepTheContract) {
  constexpr size_t kChannels = 4;
  Random random(GetParam().name.size());
  Region* const of_client[] = {client_.region.get()};
  Region* const of_server[] = {server_.region.get()};
  std::vector<ChannelPair> pairs;
  std::vector<Talker> talkers;
  for (size_t i = 0; i < kChannels; ++i) {
    pairs.push_back(Connect(Offer(client_, of_client), Offer(server_, of_server)));
    ASSERT_TRUE(pairs.back().client && pairs.back().server);
    for (End* end : {&client_, &server_}) {
      Talker& talker = talkers.emplace_back();
      const bool is_client = end == &client_;
      talker.end = end;
      talker.channel = is_client ? pairs[i].client.get() : pairs[i].server.get();
      talker.peer = is_client ? &server_ : &client_;
      talker.peer_channel = is_client ? pairs[i].server.get() : pairs[i].client.get();
      talker.area = i * kAreaBytes;
    }
  }

  uint64_t id = 0;
  for (int burst = 0; burst < 12; ++burst) {
    for (Talker& talker : talkers) ASSERT_NO_FATAL_FAILURE(Burst(talker, random, id));
    ASSERT_TRUE(PumpUntil([&] {
      return std::all_of(talkers.begin(), talkers.end(), [](const Talker& talker) {
        const auto own = talker.end->Of(talker.channel);
        return !talker.posted.empty() &&
               std::any_of(own.begin(), own.end(), [&](const Event& e) { return e.id == talker.posted.back().id; });
      });
    }));
    Settle();
    for (Talker& talker : talkers) {
      ASSERT_NO_FATAL_FAILURE(CheckOwn(talker));
      ASSERT_NO_FATAL_FAILURE(CheckPeer(talker));
      talker.staged = 0;
    }
    client_.events.clear();
    server_.events.clear();
  }
}

}  // namespace
}  // namespace erda::fabric
