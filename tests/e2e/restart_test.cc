// Servers that stop and come back, and other servers in their place.
#include <gtest/gtest.h>
#include <signal.h>

#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "e2e/fixture.h"

namespace erda {
namespace {

// A get of a client that may have to connect again first. Each failure before that must be kUnavailable.
Result<std::string> GetAgain(Client& client, const std::string& key) {
  Result<std::string> value = Status(Code::kInternal);
  WaitUntil([&] {
    value = client.Get(key);
    return value.status().code() != Code::kUnavailable;
  });
  return value;
}
Status PutAgain(Client& client, const std::string& key, const std::string& value) {
  Status status;
  WaitUntil([&] {
    status = client.Put(key, value);
    return status.code() != Code::kUnavailable;
  });
  return status;
}

class Restart : public EveryPool {
 protected:
  [[nodiscard]] bool Keeps() const { return GetParam() != PoolKind::kDram; }
};

TEST_P(Restart, KeepsAllValuesOverACleanStop) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    ServerOptions options = Options();
    options.shards = static_cast<uint32_t>(random.Between(1, 3));
    if (Keeps()) options.pool = Path("pool" + std::to_string(seed));
    options.region_size = 1 << 20;
    options.segment_size = 64 << 10;
    std::map<std::string, std::string> model;
    for (int life = 0; life < 3; ++life) {
      const auto server = Serve(options);
      const auto client = Connect({.ack = random.Chance(0.5) ? Ack::kPlaced : Ack::kPersisted,
                                   .put_path = random.Chance(0.5) ? PutPath::kAuto : PutPath::kReserve});
      if (!Keeps()) model.clear();
      for (int key = 0; key < 200; ++key) {
        const auto found = model.find("key" + std::to_string(key));
        const auto value = client->Get("key" + std::to_string(key));
        if (found == model.end()) {
          ASSERT_EQ(value.status().code(), Code::kNotFound) << key;
        } else {
          ASSERT_EQ(value.ok() && *value == found->second, true) << key << ": " << value.status().ToString();
        }
      }
      EXPECT_EQ(CountersOf(*client).at("keys"), model.size());
      for (int i = 0; i < 600; ++i) {
        const std::string key = "key" + std::to_string(random.Uniform(200));
        if (random.Chance(0.3)) {
          ASSERT_EQ(client->Delete(key).code(), model.erase(key) > 0 ? Code::kOk : Code::kNotFound);
        } else {
          model[key] = Bytes(random.Next(), random.Chance(0.05) ? 20'000 : random.Uniform(2000));
          ASSERT_TRUE(client->Put(key, model[key]).ok());
        }
      }
      server->Stop();
    }
  }
}

TEST_P(Restart, ClientsConnectAgainByThemselves) {
  auto server = Serve();
  const auto client = Connect();
  ASSERT_TRUE(client->Put("key", "before").ok());
  for (uint64_t round = 1; round <= 3; ++round) {
    server->Stop();
    ExpectFails(client->Get("key").status(), Code::kUnavailable, Address());
    ExpectFails(client->Put("key", "never"), Code::kUnavailable, Address());
    ExpectFails(client->Delete("key"), Code::kUnavailable, Address());
    server = Serve();
    const auto value = GetAgain(*client, "key");
    if (Keeps()) {
      ASSERT_TRUE(value.ok()) << value.status().ToString();
      EXPECT_EQ(*value, "before");
    } else {
      EXPECT_EQ(value.status().code(), Code::kNotFound);
    }
    ASSERT_TRUE(PutAgain(*client, "key", "before").ok());
    EXPECT_EQ(client->stats().reconnects, round);
  }
}

// A client without an operation under way connects again before its next operation.
TEST_P(Restart, AnIdleClientDoesNotNotice) {
  auto server = Serve();
  const auto client = Connect();
  ASSERT_TRUE(client->Put("key", "old").ok());
  for (uint64_t round = 1; round <= 3; ++round) {
    server->Stop();
    server = Serve();
    EXPECT_TRUE(client->Put("key", "new").ok());
    server->Stop();
    server = Serve();
    const auto value = client->Get("key");
    EXPECT_EQ(value.ok() ? *value : "", Keeps() ? "new" : "");
    EXPECT_TRUE(Keeps() || value.status().code() == Code::kNotFound) << value.status().ToString();
    EXPECT_EQ(client->stats().reconnects, 2 * round);
  }
}

// A client may still have the memory of a stopped server mapped. It must read nothing from there.
TEST_P(Restart, ClientReadsNothingFromAStoppedServer) {
  auto server = Serve();
  const auto idle = Connect();
  ASSERT_TRUE(idle->Put("key", "old").ok());
  ASSERT_EQ(*idle->Get("key"), "old");
  server->Stop();
  server = Serve();
  const auto writer = Connect();
  ASSERT_TRUE(writer->Put("key", "new").ok());
  ASSERT_TRUE(writer->Put("other", "new").ok());
  EXPECT_EQ(*GetAgain(*idle, "key"), "new");
  EXPECT_EQ(*GetAgain(*idle, "other"), "new");
}

// If a put is acknowledged after the stop, the next server's store has its value.
TEST_P(Restart, PutAcknowledgedAfterTheStopIsNotLost) {
  if (!Keeps()) return;  // a volatile pool keeps nothing
  for (const Ack ack : {Ack::kPlaced, Ack::kPersisted}) {
    auto server = Serve();
    const auto writer = Connect({.ack = ack, .put_path = PutPath::kReserve});
    const auto watcher = Connect();
    ASSERT_TRUE(PutAgain(*writer, "key", "old").ok());
    const uint64_t reserved = CountersOf(*watcher).at("puts_reserved");
    Status outcome(Code::kInternal);
    ASSERT_TRUE(writer->PutAsync("key", "new", [&](Status put) { outcome = std::move(put); }).ok());
    ASSERT_TRUE(WaitUntil([&] { return CountersOf(*watcher).at("puts_reserved") > reserved; }));
    server->Stop();
    server = Serve();
    ASSERT_TRUE(writer->Drain().ok());
    const auto value = GetAgain(*watcher, "key");
    ASSERT_TRUE(value.ok()) << value.status().ToString();
    if (outcome.ok()) {
      EXPECT_EQ(*value, "new") << "its put was acknowledged";
    } else {
      EXPECT_EQ(outcome.code(), Code::kUnavailable) << outcome.ToString();
      EXPECT_TRUE(*value == "new" || *value == "old");
    }
    server->Stop();
  }
}

TEST_P(Restart, OperationsInFlightAtTheStopEnd) {
  for (const PutPath path : {PutPath::kInline, PutPath::kReserve, PutPath::kDelegate}) {
    auto server = Serve();
    const auto client = Connect({.put_path = path, .timeout = std::chrono::minutes(10)});
    std::map<Code, int> ends;
    int refused = 0;
    for (int i = 0; i < 60; ++i) {
      const auto count = [&](const auto& result) {
        if constexpr (std::is_same_v<std::decay_t<decltype(result)>, Status>) {
          ++ends[result.code()];
        } else {
          ++ends[result.status().code()];
        }
      };
      const std::string key = "key" + std::to_string(i % 7);
      const Status started = i % 3 == 0   ? client->GetAsync(key, count)
                             : i % 3 == 1 ? client->PutAsync(key, Bytes(1, 3000), count)
                                          : client->DeleteAsync(key, count);
      refused += started.ok() ? 0 : 1;
    }
    server->Stop();
    ASSERT_TRUE(client->Drain().ok());
    int ended = 0;
    for (const auto& [code, count] : ends) {
      EXPECT_TRUE(code == Code::kOk || code == Code::kNotFound || code == Code::kUnavailable) << CodeName(code);
      ended += count;
    }
    EXPECT_EQ(ended + refused, 60);
    EXPECT_GT(ends[Code::kUnavailable], 0);
  }
}

// A pool's hash seed is random, so the key is in the first of four shards in one of four rounds.
TEST_P(Restart, ClientNoticesThatItsShardIsGone) {
  for (int round = 0; round < 10; ++round) {
    ServerOptions options = Options();
    options.shards = 4;
    if (Keeps()) options.pool = Path("four" + std::to_string(round));
    auto server = Serve(options);
    const auto client = Connect();
    ASSERT_TRUE(client->Put("key", "value").ok());
    server->Stop();
    options.shards = 1;
    if (Keeps()) options.pool = Path("one" + std::to_string(round));
    server = Serve(options);
    EXPECT_EQ(GetAgain(*client, "key").status().code(), Code::kNotFound);
    EXPECT_TRUE(client->Put("key", "value").ok());
    server->Stop();
  }
}

TEST_P(Restart, ClientContinuesWithAnotherPoolAtTheSameAddress) {
  auto server = Serve();
  const auto client = Connect({.queue_depth = 16});
  const auto put_all = [&](const std::string& what) {
    for (int i = 0; i < 40; ++i) {
      const std::string key = "key" + std::to_string(i);
      ASSERT_TRUE(PutAgain(*client, key, what + key).ok());
    }
  };
  put_all("first");
  const std::string uuid = InfoOf(*client).at("pool_uuid");
  for (const uint32_t shards : {4, 1, 3}) {
    server->Stop();
    ServerOptions options = Options();
    options.shards = shards;
    if (Keeps()) options.pool = Path("other" + std::to_string(shards));
    server = Serve(options);
    for (int i = 0; i < 40; ++i) {
      ASSERT_EQ(GetAgain(*client, "key" + std::to_string(i)).status().code(), Code::kNotFound) << i;
    }
    put_all(std::to_string(shards));
    for (int i = 0; i < 40; ++i) {
      const std::string key = "key" + std::to_string(i);
      ASSERT_EQ(*GetAgain(*client, key), std::to_string(shards) + key);
    }
    EXPECT_NE(InfoOf(*client).at("pool_uuid"), uuid);
    EXPECT_EQ(InfoOf(*client).at("shards"), std::to_string(shards));
  }
}

INSTANTIATE_TEST_SUITE_P(E2e, Restart, kEveryPool, PoolName);

// A server that runs answers sooner, even if the processors are busy.
constexpr std::chrono::milliseconds kShortTimeout(2000);

class Loss : public E2eTest {};

TEST_F(Loss, LossOfTheServersProcessEndsWaitingOperations) {
  const auto server = Serve(PoolKind::kPowerSafe);
  const auto client = Connect({.timeout = std::chrono::minutes(10)});
  ASSERT_TRUE(client->Put("key", "value").ok());
  server->Signal(SIGSTOP);
  int ended = 0;
  for (int i = 0; i < 30; ++i) {
    const auto count = [&](const Status& status) {
      ExpectFails(status, Code::kUnavailable, Address());
      ++ended;
    };
    const std::string key = "key" + std::to_string(i % 20);
    ASSERT_TRUE((i % 2 == 0 ? client->PutAsync(key, Bytes(1, 100), count) : client->DeleteAsync(key, count)).ok());
  }
  for (int i = 0; i < 100; ++i) client->Poll();
  EXPECT_EQ(ended, 0);
  std::thread killer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    server->Signal(SIGKILL);
  });
  ASSERT_TRUE(client->Drain().ok());
  killer.join();
  EXPECT_EQ(ended, 30);
  ExpectFails(client->Get("key").status(), Code::kUnavailable, Address());
  ExpectFails(client->Put("key", "value"), Code::kUnavailable, Address());
  ExpectFails(client->ServerInfo().status(), Code::kUnavailable, Address());
}

TEST_F(Loss, FrozenServerCausesATimeout) {
  const auto server = Serve(PoolKind::kPowerSafe);
  const auto client = Connect({.timeout = kShortTimeout});
  ASSERT_TRUE(client->Put("key", "value").ok());
  server->Signal(SIGSTOP);
  ExpectFails(client->Put("key", "never"), Code::kTimeout, "2000 ms");
  ExpectFails(Client::Connect(Address(), How{.timeout = std::chrono::milliseconds(100)}.options()).status(),
              Code::kTimeout, "100 ms");
  server->Signal(SIGCONT);
  EXPECT_TRUE(PutAgain(*client, "key", "again").ok());
  EXPECT_EQ(*GetAgain(*client, "key"), "again");
}

TEST_F(Loss, LossOfAClientsThreadLeavesTheServerServing) {
  const auto server = Serve(PoolKind::kDram);
  const auto steady = Connect();
  ASSERT_TRUE(steady->Put("key", "value").ok());
  for (int i = 0; i < 30; ++i) {
    const auto client = Connect({.put_path = PutPath::kReserve});
    ASSERT_TRUE(client->PutAsync("key", Bytes(1, 100'000), [](auto) {}).ok());
    const auto value = steady->Get("key");
    ASSERT_TRUE(value.ok()) << value.status().ToString();
  }
  EXPECT_TRUE(WaitUntil([&] {
    const Counters counters = CountersOf(*steady);
    return counters.at("clients") == 1 && counters.at("in_flight") == 0;
  }));
  EXPECT_EQ(*steady->Get("key"), "value");
}

}  // namespace
}  // namespace erda
