// The counters, and operations that cost the server nothing.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "e2e/fixture.h"

namespace erda {
namespace {

class Counting : public EveryPool {};

// Header 32, key, checksum 4, value. The words of the entry come on top.
uint64_t ObjectBytes(size_t key, size_t value) { return 32 + key + 4 + value; }

TEST_P(Counting, EachPutWritesItsValueToNvmOnce) {
  ServerOptions options = Options();
  options.region_size = options.segment_size = 8 << 20;  // large, so that its mark does not move here
  const auto server = Serve(options);
  const std::string key = "a key of 21 bytes ...";
  const std::string value = Bytes(1, 3000);
  const auto written = [&](Client& client, const std::function<Status()>& call) {
    const uint64_t server_before = SettledCountersOf(client).at("nvm_bytes_written");
    const uint64_t client_before = client.stats().nvm_bytes_written;
    EXPECT_TRUE(call().ok());
    return SettledCountersOf(client).at("nvm_bytes_written") - server_before +  //
           client.stats().nvm_bytes_written - client_before;
  };
  {
    const auto filler = Connect();  // the first object of a pool opens a segment
    ASSERT_TRUE(filler->Put("filler", "value").ok());
  }
  for (const Ack ack : {Ack::kPlaced, Ack::kPersisted}) {
    for (const PutPath path : {PutPath::kInline, PutPath::kReserve}) {
      const auto client = Connect({.ack = ack, .put_path = path});
      const auto put = [&] { return client->Put(key, value); };
      // For a new key: meta, the word that publishes, and the word that settles. For an old key there is no meta, but
      // the left version gets a flag.
      EXPECT_EQ(written(*client, put), ObjectBytes(key.size(), value.size()) + 24);
      EXPECT_EQ(written(*client, put), ObjectBytes(key.size(), value.size()) + 24);
      EXPECT_EQ(client->stats().nvm_bytes_written, path == PutPath::kReserve ? 2 * (4 + value.size()) : 0);
      // The tombstone, the flag, the word that publishes the tombstone, and the word that frees the entry.
      EXPECT_EQ(written(*client, [&] { return client->Delete(key); }), ObjectBytes(key.size(), 0) + 24);
    }
  }
}

TEST_P(Counting, SmallValuesGoInlineAndLargeOnesIntoAChunk) {
  ServerOptions options = Options();
  options.slot_bytes = 4096;
  const auto server = Serve(options);
  const auto client = Connect();
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(client->Put("small", Bytes(i, 3900)).ok());
  EXPECT_EQ(CountersOf(*client).at("puts_inline"), 10U);
  EXPECT_EQ(InfoOf(*client).at("chunks"), "0");
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(client->Put("large", Bytes(i, 4096)).ok());
  const Info info = InfoOf(*client);
  EXPECT_EQ(info.at("puts_inline"), "10");
  EXPECT_EQ(info.at("puts_reserved"), "2") << "the first, and the one that asked for a chunk";
  EXPECT_EQ(info.at("puts_delegated"), "8");
  EXPECT_EQ(*client->Get("large"), Bytes(9, 4096));
}

TEST_P(Counting, ClientsReadTheServersCountsByKindAndOutcome) {
  ServerOptions options = Options();
  options.shards = 2;
  const auto server = Serve(options);
  const auto client = Connect({.put_path = PutPath::kInline});
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(client->Put("key" + std::to_string(i), "value").ok());
  EXPECT_EQ(client->Delete("none").code(), Code::kNotFound);
  // The shard counts a time after it has answered.
  const auto times = [&] {
    uint64_t count = 0;
    const auto activity = client->ServerActivity();
    if (!activity.ok()) return count;
    for (const OperationStats& operation : activity->operations) count += operation.time.count();
    return count;
  };
  ASSERT_TRUE(WaitUntil([&] { return times() == 31; }));
  const auto read = client->ServerActivity();
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  // The server of a power-safe pool is a separate process.
  const Activity own = GetParam() == PoolKind::kPowerSafe ? *read : server->server().activity();
  ASSERT_EQ(read->operations.size(), own.operations.size());
  for (size_t i = 0; i < own.operations.size(); ++i) {
    EXPECT_EQ(read->operations[i].kind, own.operations[i].kind);
    EXPECT_EQ(read->operations[i].outcomes, own.operations[i].outcomes);
    EXPECT_EQ(read->operations[i].time.counts, own.operations[i].time.counts);
    EXPECT_EQ(read->operations[i].time.sum_nanos, own.operations[i].time.sum_nanos);
  }
  ASSERT_EQ(read->fabrics.size(), 1U);
  EXPECT_EQ(read->fabrics[0].scheme, "shm");
  EXPECT_EQ(read->fabrics[0].connections, 2U);
  EXPECT_EQ(read->fabrics[0].requests, 31U);
  EXPECT_EQ(read->fabrics[0].violations, 0U);
  const Info info = InfoOf(*client);
  EXPECT_EQ(info.at("requests_put_inline_ok"), "30");
  EXPECT_EQ(info.at("requests_delete_not_found"), "1");
  EXPECT_FALSE(info.contains("requests_delete_ok"));
  EXPECT_EQ(info.at("fabric_shm_requests"), "31");
  EXPECT_LE(std::stoull(info.at("requests_put_inline_p50_ns")), std::stoull(info.at("requests_put_inline_p999_ns")));
}

TEST_P(Counting, ServerCountsEachOperation) {
  ServerOptions options = Options();
  options.shards = 2;
  const auto server = Serve(options);
  const auto client = Connect({.put_path = PutPath::kInline});
  const auto reserving = Connect({.put_path = PutPath::kReserve});
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(client->Put("key" + std::to_string(i), "value").ok());
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(reserving->Put("key" + std::to_string(i + 20), "value").ok());
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(client->Delete("key" + std::to_string(i)).ok());
  ASSERT_EQ(client->Delete("none").code(), Code::kNotFound);
  const Counters counters = SettledCountersOf(*client);
  EXPECT_EQ(counters.at("puts_inline"), 30U);
  EXPECT_EQ(counters.at("puts_reserved"), 20U);
  EXPECT_EQ(counters.at("commits"), IsPowerSafe(GetParam()) ? 20U : 0U);
  EXPECT_EQ(counters.at("settled"), 20U);
  EXPECT_EQ(counters.at("deletes"), 5U);
  EXPECT_EQ(counters.at("keys"), 35U);
  EXPECT_EQ(counters.at("clients"), 4U) << "two clients, of two shards each";
  EXPECT_EQ(counters.at("refused"), 0U);
  EXPECT_EQ(counters.at("violations"), 0U);
  EXPECT_EQ(counters.at("taken_back"), 0U);
  EXPECT_GT(counters.at("index_slots"), 35U);
  EXPECT_GT(counters.at("log_bytes_used"), 50 * 48U);
  EXPECT_LT(counters.at("log_bytes_used"), counters.at("log_bytes_total"));
  EXPECT_LE(counters.at("log_bytes_total"), options.pool_size);

  EXPECT_EQ(client->stats().puts, 30U);
  EXPECT_EQ(client->stats().deletes, 6U);
  EXPECT_EQ(client->stats().requests, 36U);
  EXPECT_EQ(client->stats().failures, 0U);
  EXPECT_EQ(reserving->stats().requests, IsPowerSafe(GetParam()) ? 40U : 20U);

  if (GetParam() == PoolKind::kPowerSafe) return;  // the rest needs a server in this process
  const ServerStats stats = server->server().stats();
  EXPECT_EQ(stats.puts, 50U);
  EXPECT_EQ(stats.puts_inline, 30U);
  EXPECT_EQ(stats.puts_reserved, 20U);
  EXPECT_EQ(stats.deletes, 5U);
  EXPECT_EQ(stats.keys, 35U);
  EXPECT_EQ(stats.clients, 4U);
  EXPECT_EQ(stats.in_flight, 0U);
  EXPECT_EQ(stats.nvm_bytes_written, counters.at("nvm_bytes_written"));
  EXPECT_EQ(stats.log_bytes_used, counters.at("log_bytes_used"));
}

TEST_P(Counting, InfoDescribesTheServer) {
  ServerOptions options = Options();
  options.shards = 3;
  options.region_size = 1 << 20;
  options.segment_size = 256 << 10;
  const auto server = Serve(options);
  const auto client = Connect();
  const Info info = InfoOf(*client);
  constexpr const char* kDurabilities[] = {"volatile", "process-safe", "power-safe", "power-safe", "power-safe"};
  EXPECT_EQ(info.at("durability"), kDurabilities[static_cast<size_t>(GetParam())]);
  EXPECT_EQ(info.at("flush_method"), IsPowerSafe(GetParam()) ? "server-flush" : "none");
  EXPECT_EQ(info.at("pool_bytes"), std::to_string(options.pool_size));
  EXPECT_EQ(info.at("shards"), "3");
  EXPECT_EQ(info.at("region_bytes"), std::to_string(1 << 20));
  EXPECT_EQ(info.at("segment_bytes"), std::to_string(256 << 10));
  EXPECT_EQ(info.at("inline_request_bytes"), "16384");
  EXPECT_EQ(info.at("pool_uuid").size(), 32U);
}

// Clients of shm write with a CPU, so a Read does not flush their values. The server keeps the promise of kPersisted.
TEST_P(Counting, FlushMethodThatCannotPersistIsNotChosen) {
  ServerOptions options = Options();
  options.flush = FlushChoice::kReadAfterWrite;
  const auto server = Serve(options);
  const auto client = Connect({.put_path = PutPath::kReserve});
  ASSERT_TRUE(client->Put("key", "value").ok());
  const bool power_safe = IsPowerSafe(GetParam());
  EXPECT_EQ(InfoOf(*client).at("flush_method"), power_safe ? "server-flush" : "none");
  EXPECT_EQ(CountersOf(*client).at("commits"), power_safe ? 1U : 0U);
}

TEST_P(Counting, AddressesOfOneDeviceShareAFabric) {
  if (GetParam() == PoolKind::kPowerSafe) return;  // that server is in a separate process
  ServerOptions options = Options();
  options.listen.push_back("shm:" + Path("second"));
  const auto server = Serve(options);
  const std::vector<ServerFabric> fabrics = server->server().fabrics();
  ASSERT_EQ(fabrics.size(), 1U);
  EXPECT_EQ(fabrics[0].scheme, "shm");
  EXPECT_EQ(fabrics[0].device, "");
  EXPECT_EQ(fabrics[0].flush_method, IsPowerSafe(GetParam()) ? "server-flush" : "none");
  EXPECT_GT(fabrics[0].registered_in.count(), 0);
  for (const std::string& address : server->server().addresses()) EXPECT_TRUE(Client::Connect(address).ok());
}

TEST_P(Counting, AGetCostsTheServerNothing) {
  const auto server = Serve();
  const auto client = Connect();
  for (const size_t size : {0, 100, 5000, 100'000}) {
    ASSERT_TRUE(client->Put("key" + std::to_string(size), Bytes(size, size)).ok());
  }
  // Timers wake an idle shard for a time, and each of these wake-ups counts as a sleep. Gets that cost the server
  // anything would change its counters in every round.
  (void)SettledCountersOf(*client);
  uint64_t rounds = 0;
  EXPECT_TRUE(WaitUntil([&] {
    const Counters before = CountersOf(*client);
    ++rounds;
    for (int i = 0; i < 500; ++i) {
      for (const size_t size : {0, 100, 5000, 100'000}) {
        EXPECT_EQ(client->Get("key" + std::to_string(size))->size(), size);
      }
      EXPECT_EQ(client->Get("none").status().code(), Code::kNotFound);
    }
    const Counters after = CountersOf(*client);
    return after == before && after.at("sleeps") > 0;
  }));
  EXPECT_EQ(client->stats().gets, 2500U * rounds);
  EXPECT_EQ(client->stats().requests, 4U + (IsPowerSafe(GetParam()) ? 1U : 0U)) << "those of the puts";
}

INSTANTIATE_TEST_SUITE_P(E2e, Counting, kEveryPool, PoolName);

class Idle : public E2eTest {
 protected:
  // Returns the processor time of this process's threads with that name, in clock ticks.
  static long TicksOf(const std::string& name) {
    long ticks = -1;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
      std::ifstream file(task.path() / "stat");
      std::string line;
      std::getline(file, line);
      if (line.find("(" + name + ")") == std::string::npos) continue;
      std::istringstream fields(line.substr(line.rfind(')') + 2));
      std::string skipped;
      for (int i = 0; i < 11; ++i) fields >> skipped;
      long user = 0;
      long system = 0;
      fields >> user >> system;
      ticks = std::max(ticks, 0L) + user + system;
    }
    return ticks;
  }
};

TEST_F(Idle, AServerWithNothingToDoTakesNoProcessorTime) {
  ServerOptions options = Options(PoolKind::kDram);
  options.shards = 2;
  const auto server = Serve(PoolKind::kDram, options);
  const auto client = Connect();
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(client->Put("key" + std::to_string(i), "value").ok());
  (void)SettledCountersOf(*client);
  for (const std::string name : {"erda-shard0", "erda-shard1", "erda-doorman"}) {
    ASSERT_GE(TicksOf(name), 0) << name;
    const long before = TicksOf(name);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    EXPECT_LE(TicksOf(name) - before, 1) << name;
  }
}

}  // namespace
}  // namespace erda
