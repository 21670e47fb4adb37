// Clients without write access to the pool send large values through staging buffers at the server.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"
#include "e2e/fixture.h"
#include "e2e/raw_peer.h"

namespace erda {
namespace {

using format::Placing;
using format::Request;
using format::RequestOp;

class Staging : public EveryPool {
 protected:
  // Every client stages.
  [[nodiscard]] ServerOptions Options() const {
    ServerOptions options = EveryPool::Options();
    options.pool_writes = PoolWrites::kNobody;
    return options;
  }
  // A pool with segments of 16 KiB, and staging buffers of the same size.
  [[nodiscard]] ServerOptions SmallOptions() const {
    ServerOptions options = EveryPool::SmallOptions();
    options.pool_writes = PoolWrites::kNobody;
    options.staging_bytes = 0;
    return options;
  }
  static void ExpectNoViolation(Client& client) { EXPECT_EQ(CountersOf(client).at("violations"), 0U); }
};
INSTANTIATE_TEST_SUITE_P(E2e, Staging, kEveryPool, PoolName);

TEST_P(Staging, EverySizeUpToTheLargestArrivesWithOneWriteToThePool) {
  const auto server = Serve(Options());
  const auto reader = Connect({.cache_entries = 0});
  for (const PutPath path : {PutPath::kAuto, PutPath::kDelegate}) {
    for (const Ack ack : {Ack::kPlaced, Ack::kPersisted}) {
      const auto client = Connect({.ack = ack, .put_path = path});
      ASSERT_EQ(InfoOf(*client).at("placing"), "staging");
      for (const size_t key_size : {size_t{1}, size_t{24}, size_t{1024}}) {
        const std::string key = Bytes(key_size, key_size);
        const size_t largest = client->max_value_bytes(key_size);
        for (const size_t size : {size_t{0}, size_t{1}, size_t{63}, size_t{4096}, size_t{16'300}, size_t{17'000},
                                  size_t{100'001}, largest - 1, largest}) {
          SCOPED_TRACE(size);
          const std::string value = Bytes(size + key_size, size);
          const Counters before = CountersOf(*client);
          const uint64_t requests = client->stats().requests;
          ASSERT_TRUE(client->Put(key, value).ok());
          EXPECT_EQ(client->stats().requests, requests + 1);
          const Counters after = CountersOf(*client);
          const bool staged = path == PutPath::kDelegate || size > 16'324 - key_size;
          EXPECT_EQ(after.at("puts_staged") - before.at("puts_staged"), staged ? 1U : 0U);
          EXPECT_EQ(after.at("puts_inline") - before.at("puts_inline"), 1U);
          EXPECT_LT(after.at("nvm_bytes_written") - before.at("nvm_bytes_written"), size + key_size + 400);
          EXPECT_EQ(SettledCountersOf(*client).at("in_flight"), 0U);
          EXPECT_EQ(*client->Get(key) == value, true);
          EXPECT_EQ(*reader->Get(key) == value, true);
        }
        ExpectFails(client->Put(key, Bytes(1, largest + 1)), Code::kInvalidArgument, "value");
      }
      EXPECT_EQ(client->stats().nvm_bytes_written, 0U);
    }
  }
  ExpectNoViolation(*reader);
}

TEST_P(Staging, OnlyReservationsAreRefused) {
  const auto server = Serve(Options());
  const auto client = Connect({.put_path = PutPath::kReserve});
  ExpectFails(client->Put("key", "value"), Code::kPermissionDenied, "does not let");
  ExpectFails(client->Put("key", Bytes(1, 100'000)), Code::kPermissionDenied, "does not let");
  EXPECT_EQ(client->Get("key").status().code(), Code::kNotFound);
  EXPECT_EQ(client->Increment("number", 5).value(), 5);
  EXPECT_TRUE(client->Delete("number").ok());
  const auto inline_only = Connect({.put_path = PutPath::kInline});
  EXPECT_TRUE(inline_only->Put("key", "value").ok());
  ExpectFails(inline_only->Put("key", Bytes(1, 100'000)), Code::kInvalidArgument, "inline");
  ExpectNoViolation(*client);
}

TEST_P(Staging, LargeValuesTakeConditionsAndTimesToLive) {
  const auto server = Serve(Options());
  const auto client = Connect();
  const std::string large = Bytes(1, 50'000);
  const std::string other = Bytes(2, 60'000);
  const auto first = client->Put("key", large, {.if_version = kAbsent});
  ASSERT_TRUE(first.ok()) << first.status().ToString();
  EXPECT_EQ(client->Put("key", other, {.if_version = kAbsent}).status().code(), Code::kConflict);
  EXPECT_EQ(client->Put("key", other, {.if_version = *first + 1}).status().code(), Code::kConflict);
  EXPECT_EQ(*client->Get("key") == large, true);
  const auto second = client->Put("key", other, {.if_version = *first, .ttl = std::chrono::hours(1)});
  ASSERT_TRUE(second.ok()) << second.status().ToString();
  const auto got = client->GetVersioned("key");
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got->value == other, true);
  EXPECT_EQ(got->version, *second);
  EXPECT_TRUE(got->expires.has_value());
  EXPECT_TRUE(client->Delete("key", {.if_version = *second}).ok());
  const size_t largest = client->max_value_bytes(3);
  ASSERT_TRUE(client->Put("key", Bytes(3, largest - 8), {.ttl = std::chrono::milliseconds(1)}).ok());
  EXPECT_TRUE(WaitUntil([&] { return client->Get("key").status().code() == Code::kNotFound; }));
  EXPECT_EQ(CountersOf(*client).at("puts_staged"), 3U) << "without those that changed nothing";
  ExpectNoViolation(*client);
}

TEST_P(Staging, BuffersAndMultiGetsTakeStagedValues) {
  const auto server = Serve(Options());
  const auto client = Connect();
  auto from = client->MakeBuffer(200'000);
  auto into = client->MakeBuffer(200'000);
  ASSERT_TRUE(from.ok() && into.ok());
  for (const size_t size : {size_t{100}, size_t{20'000}, size_t{200'000}}) {
    const std::string value = Bytes(size, size);
    std::ranges::copy(AsBytes(value), from->bytes().begin());
    for (int i = 0; i < 2; ++i) {
      ASSERT_TRUE(client->Put("key", *from, size).ok());
      ASSERT_EQ(client->Get("key", *into).value(), size);
      EXPECT_EQ(AsString(into->bytes().first(size)) == value, true);
    }
  }
  std::vector<std::string> keys;
  for (int i = 0; i < 20; ++i) {
    keys.push_back("key" + std::to_string(i));
    ASSERT_TRUE(client->Put(keys.back(), Bytes(i, 30'000)).ok());
  }
  const std::vector<std::string_view> views(keys.begin(), keys.end());
  const auto values = client->MultiGet(views);
  ASSERT_EQ(values.size(), keys.size());
  for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i].ok() && *values[i] == Bytes(i, 30'000), true) << i;
  ExpectNoViolation(*client);
}

// Each staging buffer has room for one large value, so nearly all puts wait for it.
TEST_P(Staging, ManyPutsOfManyClientsWaitForRoomAndSucceed) {
  ServerOptions options = SmallOptions();
  options.pool_size = 16 << 20;
  options.region_size = 512 << 10;
  options.segment_size = 64 << 10;
  options.shards = 2;
  const auto server = Serve(options);
  constexpr uint32_t kClients = 4;
  constexpr int kPuts = 150;
  AtOnce(kClients, [&](uint32_t number) {
    const auto client = Connect({.put_path = number % 2 == 0 ? PutPath::kDelegate : PutPath::kAuto, .queue_depth = 32});
    ASSERT_NE(client, nullptr);
    Random random(number + 1);
    std::map<std::string, std::string> model;
    for (int i = 0; i < kPuts; ++i) {
      const std::string key = std::to_string(number) + "key" + std::to_string(random.Uniform(20));
      const size_t most = client->max_value_bytes(key.size());
      model[key] = Bytes(random.Next(), random.Chance(0.3) ? random.Uniform(500) : random.Between(most / 2, most));
      const auto put = [&] {
        return client->PutAsync(key, model[key],
                                [](const Status& status) { EXPECT_TRUE(status.ok()) << status.ToString(); });
      };
      Status begun = put();
      while (begun.code() == Code::kResourceExhausted) {
        client->Poll();
        begun = put();
      }
      ASSERT_TRUE(begun.ok()) << begun.ToString();
    }
    ASSERT_TRUE(client->Drain().ok());
    for (const auto& [key, value] : model) ASSERT_EQ(*client->Get(key) == value, true) << key;
  });
  const auto client = Connect();
  EXPECT_GT(CountersOf(*client).at("puts_staged"), 300U);
  ExpectNoViolation(*client);
}

TEST_P(Staging, AFullLogRefusesAndDeletesMakeRoom) {
  const auto server = Serve(SmallOptions());
  const auto client = Connect({.put_path = PutPath::kDelegate});
  std::map<std::string, std::string> model;
  Status full;
  for (uint64_t i = 0; full.ok() && i < 1000; ++i) {
    const std::string key = "key" + std::to_string(i);
    const std::string value = Bytes(i, 3000);
    full = client->Put(key, value);
    if (full.ok()) model[key] = value;
  }
  ExpectFails(full, Code::kResourceExhausted, "log");
  EXPECT_GT(model.size(), 100U);
  for (const auto& [key, value] : model) ASSERT_EQ(*client->Get(key) == value, true) << key;
  for (auto it = model.begin(); it != model.end();) {
    ASSERT_TRUE(client->Delete(it->first).ok());
    it = std::next(model.erase(it));
  }
  // The cleaner cleans overwritten values while puts wait.
  for (uint64_t round = 0; round < 5; ++round) {
    for (auto& [key, value] : model) {
      value = Bytes(round * 1000 + key.size(), 3000);
      ASSERT_TRUE(client->Put(key, value).ok()) << key;
    }
  }
  EXPECT_GT(CountersOf(*client).at("puts_delayed"), 0U);
  for (const auto& [key, value] : model) ASSERT_EQ(*client->Get(key) == value, true) << key;
  ExpectNoViolation(*client);
}

// Each put ends, and acknowledged values stay.
TEST_P(Staging, ServerThatStopsOrDiesKeepsAcknowledgedPuts) {
  if (GetParam() == PoolKind::kDram) return;  // a volatile pool keeps nothing
  for (const bool killed : {false, true}) {
    if (killed && GetParam() != PoolKind::kPowerSafe) continue;  // the other servers are in this process
    ServerOptions options = Options();
    options.pool = Path(killed ? "killed" : "stopped");
    options.segment_size = 64 << 10;
    options.region_size = 1 << 20;
    options.staging_bytes = 128 << 10;
    auto server = Serve(options);
    const auto client = Connect({.queue_depth = 16, .timeout = std::chrono::milliseconds(60'000)});
    std::map<std::string, std::string> acknowledged;
    uint32_t under_way = 0;
    const auto put = [&](uint64_t number) {
      const std::string key = "key" + std::to_string(number);
      const std::string value = Bytes(number, 17'000 + number % 20'000);
      ++under_way;
      const Status begun = client->PutAsync(key, value, [&, key, value](const Status& status) {
        --under_way;
        if (status.ok()) acknowledged[key] = value;
        EXPECT_TRUE(status.ok() || status.code() == Code::kUnavailable) << status.ToString();
      });
      ASSERT_TRUE(begun.ok()) << begun.ToString();
    };
    uint64_t number = 0;
    for (; number < 200; ++number) {
      put(number);
      while (under_way == 16) client->Poll();
    }
    while (under_way < 16) put(number++);
    killed ? server->Signal(SIGKILL) : server->Stop();
    EXPECT_TRUE(WaitUntil([&] {
      client->Poll();
      return under_way == 0;
    }));
    EXPECT_GT(acknowledged.size(), 100U);
    server.reset();
    server = Serve(options);
    const auto reader = Connect();
    for (const auto& [key, value] : acknowledged) ASSERT_EQ(*reader->Get(key) == value, true) << key;
    for (uint64_t i = 0; i < number; ++i) {
      const std::string key = "key" + std::to_string(i);
      const auto value = reader->Get(key);
      if (value.status().code() == Code::kNotFound) continue;
      ASSERT_EQ(value.ok() && *value == Bytes(i, 17'000 + i % 20'000), true) << key;
    }
    EXPECT_TRUE(client->Put("key", Bytes(1, 40'000)).ok()) << "it connects again, with another buffer";
    EXPECT_EQ(*reader->Get("key") == Bytes(1, 40'000), true);
  }
}

TEST_P(Staging, ClientThatDiesDuringAPutLeavesAWholeValue) {
  const auto server = Serve(Options());
  const auto client = Connect();
  ASSERT_TRUE(client->Put("key", "older").ok());
  Request put{};
  put.op = static_cast<uint8_t>(RequestOp::kPutStaged);
  put.key_size = 3;
  put.value_size = 200'000;
  std::string last = "older";
  for (uint64_t i = 0; i < 20; ++i) {
    SCOPED_TRACE(i);
    RawPeer peer(Address());
    ASSERT_EQ(peer.hello().placing, static_cast<uint8_t>(Placing::kStaging));
    EXPECT_TRUE(WaitUntil([&] { return CountersOf(*client).at("clients") == 2; }));
    peer.Write(format::kStagingRegion, 4096, Bytes(i, 200'000));
    put.address = 4096;
    if (i % 2 == 0) peer.Post(put, "key");
    peer.Leave();
    EXPECT_TRUE(WaitUntil([&] { return CountersOf(*client).at("clients") == 1; }));
    const auto value = client->Get("key");
    ASSERT_TRUE(value.ok()) << value.status().ToString();
    EXPECT_TRUE(*value == last || (i % 2 == 0 && *value == Bytes(i, 200'000)));
    last = *value;
    EXPECT_EQ(SettledCountersOf(*client).at("in_flight"), 0U);
  }
  ExpectNoViolation(*client);
  EXPECT_TRUE(client->Put("key", "newer").ok());
  EXPECT_EQ(*client->Get("key"), "newer");
}

// --- The rights that the options give

TEST_P(Staging, ServerOptionsDecideTheWritersOfThePool) {
  for (const PoolWrites writes : {PoolWrites::kNobody, PoolWrites::kSameUser, PoolWrites::kEverybody}) {
    for (const uint64_t staging_bytes : {uint64_t{0}, uint64_t{10} << 20}) {
      ServerOptions options = Options();
      options.pool_writes = writes;
      options.staging_bytes = staging_bytes;
      options.region_size = 2 << 20;
      options.segment_size = 1 << 20;
      const auto server = Serve(options);
      RawPeer peer(Address());
      ASSERT_EQ(peer.offered().size(), 4U);
      const bool stages = writes == PoolWrites::kNobody;
      EXPECT_EQ(peer.hello().placing, static_cast<uint8_t>(stages ? Placing::kStaging : Placing::kPool));
      EXPECT_EQ(peer.offered()[3].size,
                stages ? std::max<uint64_t>(staging_bytes, options.segment_size) : options.pool_size);
      EXPECT_EQ(peer.offered()[0].access, fabric::Access::kRemoteRead);
      const auto client = Connect({.put_path = PutPath::kDelegate});
      for (int i = 0; i < 3; ++i) ASSERT_TRUE(client->Put("key", Bytes(1, 100'000)).ok());
      EXPECT_EQ(*client->Get("key") == Bytes(1, 100'000), true);
      EXPECT_EQ(CountersOf(*client).at("puts_staged"), stages ? 3U : 0U);
    }
  }
}

TEST_F(E2eTest, InvalidPoolWritesAccessAndStagingBytesAreRefused) {
  const auto refused = [&](const auto& change) {
    ServerOptions options = Options(PoolKind::kDram);
    change(options);
    EXPECT_EQ(Server::Open(options).status().code(), Code::kInvalidArgument);
  };
  refused([](ServerOptions& options) { options.pool_writes = PoolWrites{3}; });
  refused([](ServerOptions& options) { options.shm_access = ShmAccess{3}; });
  refused([](ServerOptions& options) { options.staging_bytes = (1 << 30) + 1; });
}

}  // namespace
}  // namespace erda
