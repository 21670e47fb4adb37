// The store over real verbs, in one guest, with clients and with a pool on the NVDIMM.
#include <fmt/core.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "bench/floors/perftest.h"
#include "bench/ycsb/zipfian.h"
#include "lab/fixture.h"

namespace erda {
namespace {

class StoreLab : public LabTest {
 protected:
  void SetUp() override {
    LabTest::SetUp();
    if (!HasFatalFailure()) WipeDevice();
  }
  static ClientOptions By(PutPath path, Ack ack = Ack::kPersisted) {
    ClientOptions options;
    options.put_path = path;
    options.ack = ack;
    return options;
  }
  // Over verbs the operator has to allow the reserve path.
  static Words WithReserving(Words more = {}) {
    more.insert(more.end(), {"--pool-writes", "everybody"});
    return more;
  }
};

TEST_F(StoreLab, TwoClientsPutGetAndDelete) {
  const auto server = StartServer(WithReserving());
  EXPECT_NE(server->out().find("power-safe"), std::string::npos) << server->out();
  const auto one = Connect(By(PutPath::kAuto));
  const auto two = Connect(By(PutPath::kReserve));
  ASSERT_TRUE(one && two);
  auto info = InfoOf(*one);
  EXPECT_EQ(info["durability"], "power-safe");
  EXPECT_EQ(info["flush_method"], "server-flush");
  std::map<std::string, std::string> model;
  Random random(1);
  for (int i = 0; i < 600; ++i) {
    Client& client = i % 2 == 0 ? *one : *two;
    Client& other = i % 2 == 0 ? *two : *one;
    const std::string key = fmt::format("key{}", random.Uniform(40));
    if (random.Chance(0.2)) {
      ASSERT_EQ(client.Delete(key).code(), model.erase(key) > 0 ? Code::kOk : Code::kNotFound);
    } else {
      const size_t size = random.Chance(0.1) ? random.Uniform(300'000) : random.Uniform(3000);
      model[key] = std::string(size, static_cast<char>('a' + i % 26)) + key;
      const Status put = client.Put(key, model[key]);
      ASSERT_TRUE(put.ok()) << put.ToString();
    }
    const auto found = other.Get(key);
    if (model.contains(key)) {
      ASSERT_TRUE(found.ok()) << found.status().ToString();
      ASSERT_TRUE(*found == model[key]) << "what one has put the other finds";
    } else {
      ASSERT_EQ(found.status().code(), Code::kNotFound);
    }
  }
  info = InfoOf(*one);
  EXPECT_EQ(info["keys"], std::to_string(model.size()));
  EXPECT_EQ(info["violations"], "0");
  StopServer(*server);
}

TEST_F(StoreLab, ManyOperationsOfYcsbAGiveTheResultsOfAMap) {
  constexpr uint64_t kRecords = 500;
  constexpr int kOperations = 20'000;
  const auto server = StartServer();
  ClientOptions options;
  options.queue_depth = 16;
  const auto client = Connect(options);
  ASSERT_TRUE(client);
  std::map<std::string, std::string> model;
  Random random(7);
  const auto key_of = [](uint64_t record) { return fmt::format("user{:08}", record); };
  const auto value_of = [&](int number) {
    return fmt::format("{:010}", number) + std::string(random.Uniform(1500), 'v');
  };
  for (uint64_t record = 0; record < kRecords; ++record) {
    model[key_of(record)] = value_of(0);
    ASSERT_TRUE(client->Put(key_of(record), model[key_of(record)]).ok());
  }
  bench::Zipfian zipfian(kRecords);
  int wrong = 0;
  int finished = 0;
  for (int i = 1; i <= kOperations; ++i) {
    const std::string key = key_of(zipfian.Next(random));
    Status started;
    do {
      if (i % 2 == 0) {
        // The operations of a client on one key take effect in the order started. So the model knows the value to find.
        started = client->GetAsync(key, [&wrong, &finished, expected = model[key]](Result<std::string_view> found) {
          ++finished;
          if (!found.ok() || *found != expected) ++wrong;
        });
      } else {
        const std::string value = value_of(i);
        started = client->PutAsync(key, value, [&wrong, &finished](const Status& status) {
          ++finished;
          if (!status.ok()) ++wrong;
        });
        if (started.ok()) model[key] = value;
      }
      if (!started.ok()) client->Poll();
    } while (started.code() == Code::kResourceExhausted);
    ASSERT_TRUE(started.ok()) << started.ToString();
  }
  ASSERT_TRUE(client->Drain().ok());
  EXPECT_EQ(finished, kOperations);
  EXPECT_EQ(wrong, 0);
  const auto reader = Connect();
  for (const auto& [key, value] : model) {
    const auto found = reader->Get(key);
    ASSERT_TRUE(found.ok() && *found == value) << key;
  }
  std::map<std::string, std::string> scanned;
  for (std::optional<uint64_t> cursor = 0; cursor;) {
    const auto page = reader->Scan({*cursor, 100, 1 << 20});
    ASSERT_TRUE(page.ok()) << page.status().ToString();
    for (const ScannedKey& each : page->keys) EXPECT_TRUE(scanned.emplace(each.key, each.value).second) << each.key;
    cursor = page->next;
  }
  EXPECT_TRUE(scanned == model) << scanned.size() << " keys";
  StopServer(*server);
}

TEST_F(StoreLab, ConditionsDecideAndIncrementsAddUp) {
  const auto server = StartServer(WithReserving());
  for (const PutPath path : {PutPath::kInline, PutPath::kReserve, PutPath::kDelegate}) {
    const auto one = Connect(By(path));
    const auto two = Connect(By(path));
    ASSERT_TRUE(one && two);
    const std::string key = fmt::format("key {}", static_cast<int>(path));
    const std::string value(path == PutPath::kInline ? 100 : 20'000, 'v');
    const auto first = one->Put(key, value, PutOptions{kAbsent, {}});
    ASSERT_TRUE(first.ok()) << first.status().ToString();
    EXPECT_EQ(two->Put(key, value + "2", PutOptions{kAbsent, {}}).status().code(), Code::kConflict);
    const auto second = two->Put(key, value + "2", PutOptions{*first, {}});
    ASSERT_TRUE(second.ok()) << second.status().ToString();
    EXPECT_EQ(one->Put(key, value + "3", PutOptions{*first, {}}).status().code(), Code::kConflict);
    EXPECT_EQ(one->Delete(key, DeleteOptions{*first}).code(), Code::kConflict);
    const auto found = one->GetVersioned(key);
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(found->version, *second);
    EXPECT_TRUE(found->value == value + "2");
    EXPECT_TRUE(one->Delete(key, DeleteOptions{*second}).ok());
    EXPECT_EQ(two->Get(key).status().code(), Code::kNotFound);

    const std::string counter = "count of " + key;
    int added = 0;
    for (int i = 0; i < 500; ++i) {
      for (Client* client : {one.get(), two.get()}) {
        const auto count = [&added](const Result<int64_t>& sum) { added += sum.ok() ? 1 : 0; };
        while (client->IncrementAsync(counter, 1, count).code() == Code::kResourceExhausted) client->Poll();
      }
    }
    ASSERT_TRUE(one->Drain().ok() && two->Drain().ok());
    EXPECT_EQ(added, 1000);
    const auto sum = one->Increment(counter, 0);
    ASSERT_TRUE(sum.ok());
    EXPECT_EQ(*sum, 1000);
  }
  StopServer(*server);
}

TEST_F(StoreLab, ValuesExpireForClientsThatKnowTheirLocation) {
  auto server = StartServer();
  const auto writer = Connect();
  const auto reader = Connect();
  ASSERT_TRUE(writer && reader);
  const PutOptions soon{{}, std::chrono::milliseconds(2000)};
  const PutOptions late{{}, std::chrono::hours(1)};
  for (const size_t size : {10, 3000, 100'000}) {
    const std::string value(size, 'v');
    ASSERT_TRUE(writer->Put(fmt::format("late {}", size), value, late).ok());
    const auto begin = std::chrono::steady_clock::now();
    ASSERT_TRUE(writer->Put(fmt::format("soon {}", size), value, soon).ok());
    for (int i = 0; i < 3; ++i) {  // From the second get on, the client knows the location.
      const auto found = reader->Get(fmt::format("soon {}", size));
      const bool early = std::chrono::steady_clock::now() - begin < *soon.ttl;
      ASSERT_TRUE(found.ok() || !early) << "it has not expired";
    }
  }
  for (const size_t size : {10, 3000, 100'000}) {
    const auto is_over = [&] { return reader->Get(fmt::format("soon {}", size)).status().code() == Code::kNotFound; };
    EXPECT_TRUE(WaitUntil(is_over)) << size;
    EXPECT_EQ(writer->Get(fmt::format("soon {}", size)).status().code(), Code::kNotFound);
  }
  StopServer(*server);
  server = StartServer();
  for (const size_t size : {10, 3000, 100'000}) {
    const auto found = Connect()->GetVersioned(fmt::format("late {}", size));
    ASSERT_TRUE(found.ok()) << found.status().ToString();
    EXPECT_TRUE(found->expires.has_value());
    EXPECT_EQ(Connect()->Get(fmt::format("soon {}", size)).status().code(), Code::kNotFound);
  }
  StopServer(*server);
}

TEST_F(StoreLab, SleepingClientFindsAllAfterTheIndexGrew) {
  const auto server = StartServer({"--index-entries", "128"});
  const auto writer = Connect();
  const auto sleeper = Connect();
  ASSERT_TRUE(writer && sleeper);
  constexpr int kKeys = 5000;
  ASSERT_TRUE(sleeper->Put("key 0", "0").ok());
  int put = 0;
  for (int i = 0; i < kKeys; ++i) {
    const auto count = [&put](const Status& status) { put += status.ok() ? 1 : 0; };
    const auto start = [&] { return writer->PutAsync(fmt::format("key {}", i), std::to_string(i), count); };
    while (start().code() == Code::kResourceExhausted) writer->Poll();
  }
  ASSERT_TRUE(writer->Drain().ok());
  ASSERT_EQ(put, kKeys);
  EXPECT_GE(std::stoull(InfoOf(*writer)["index_slots"]), 5000U);
  for (int i = 0; i < kKeys; ++i) {
    const auto found = sleeper->Get(fmt::format("key {}", i));
    ASSERT_TRUE(found.ok()) << i << ": " << found.status().ToString();
    ASSERT_EQ(*found, std::to_string(i));
  }
  EXPECT_EQ(sleeper->Get("nobody's").status().code(), Code::kNotFound);
  StopServer(*server);
}

TEST_F(StoreLab, AClientThatIsKilledLeavesWholeValues) {
  const auto server = StartServer(WithReserving());
  const auto client = Connect();
  ASSERT_TRUE(client);
  const auto name = [](int key) { return fmt::format("key{}", key); };
  constexpr int kKeys = 20;
  for (int key = 0; key < kKeys; ++key) ASSERT_TRUE(client->Put(name(key), std::string(5'000, 'o')).ok());
  for (int round = 0; round < 4; ++round) {
    // erda-ycsb puts with one-sided Writes until it is killed.
    Process writer(
        Command("erda-ycsb", {"--address", Address(), "--workload", "update", "--records", "20", "--operations",
                              "100000000", "--value-size", "50000", "--path", "reserve", "--depth", "16", "--quiet"}));
    const uint64_t before = std::stoull(InfoOf(*client)["puts_reserved"]);
    ASSERT_TRUE(WaitUntil([&] { return std::stoull(InfoOf(*client)["puts_reserved"]) > before + 100 + 7 * round; }))
        << "running: " << writer.Running() << writer.out() << writer.err();
    writer.Signal(SIGKILL);
    EXPECT_EQ(writer.Wait().code, 128 + SIGKILL);
    // The server fences the client, and settles or takes back each put that the client left in flight.
    EXPECT_TRUE(WaitUntil([&] {
      auto info = InfoOf(*client);
      return info["clients"] == "1" && info["in_flight"] == "0";
    }));
    for (int key = 0; key < kKeys; ++key) {
      const auto found = client->Get(name(key));
      ASSERT_TRUE(found.ok()) << found.status().ToString();
    }
  }
  EXPECT_TRUE(client->Put("afterwards", "works").ok());
  StopServer(*server);
}

TEST_F(StoreLab, OneServerServesBothFabricsAtOnce) {
  const auto server = StartServer(WithReserving({"--listen", Address(), "--listen", SocketAddress(), "--shards", "2"}));
  const auto remote = Connect(Address(), By(PutPath::kReserve));
  const auto local = Connect(SocketAddress(), By(PutPath::kReserve));
  ASSERT_TRUE(remote && local);
  for (int i = 0; i < 100; ++i) {
    const std::string key = fmt::format("key{}", i % 10);
    const std::string value = fmt::format("{} of remote", i) + std::string(i * 100, 'r');
    ASSERT_TRUE(remote->Put(key, value).ok());
    ASSERT_EQ(*local->Get(key), value);
    ASSERT_TRUE(local->Put(key, "local" + value).ok());
    ASSERT_EQ(*remote->Get(key), "local" + value);
  }
  ASSERT_TRUE(local->Delete("key0").ok());
  EXPECT_EQ(remote->Get("key0").status().code(), Code::kNotFound);
  StopServer(*server);
}

TEST_F(StoreLab, ClientPutsAndGetsOverIPv6) {
  const auto server = StartServer({"--listen", Address6()});
  EXPECT_NE(server->out().find(Address6()), std::string::npos) << server->out();
  const auto client = Connect(Address6());
  ASSERT_TRUE(client);
  ASSERT_TRUE(client->Put("key", "six").ok());
  EXPECT_EQ(*client->Get("key"), "six");
  StopServer(*server);
}

TEST_F(StoreLab, AddressNamesTheDevice) {
  const std::string address = "verbs://0.0.0.0:7701?device=" + Lab("DEVICE");
  const auto server = StartServer({"--listen", address});
  const std::string reached = "verbs://" + Lab("SERVER") + ":7701";
  EXPECT_NE(server->out().find(reached), std::string::npos) << "what clients can connect to: " << server->out();
  const auto client = Connect(reached + "?device=" + Lab("DEVICE"));
  ASSERT_TRUE(client);
  EXPECT_TRUE(client->Put("key", "value").ok());
  const auto nobody = Client::Connect(reached + "?device=none0");
  EXPECT_EQ(nobody.status().code(), Code::kUnavailable);
  EXPECT_NE(nobody.status().message().find("none0"), std::string_view::npos) << nobody.status().ToString();
  StopServer(*server);
}

// The device has addresses of both families, so the server must choose one of the right family.
TEST_F(StoreLab, AddressNamesTheDeviceOverIPv6) {
  const std::string device = "?device=" + Lab("DEVICE");
  const auto server = StartServer({"--listen", "verbs://[::]:7701" + device});
  const std::string reached = "verbs://[" + Lab("SERVER6") + "]:7701";
  EXPECT_NE(server->out().find(reached), std::string::npos) << "what clients can connect to: " << server->out();
  const auto client = Connect(reached + device);
  ASSERT_TRUE(client);
  EXPECT_TRUE(client->Put("key", "value").ok());
  StopServer(*server);
}

TEST_F(StoreLab, AddressNamesTheGid) {
  const auto server = StartServer();
  const auto device = floors::FindDevice("/sys/class/infiniband", Lab("SERVER"));
  ASSERT_TRUE(device);
  const std::string address = Address() + "?device=" + device->name + "&gid=";
  const auto client = Connect(address + std::to_string(device->gid_index), {});
  ASSERT_TRUE(client);
  EXPECT_TRUE(client->Put("key", "value").ok());
  EXPECT_EQ(*client->Get("key"), "value");
  const auto nobody = Client::Connect(address + "1000");
  EXPECT_EQ(nobody.status().code(), Code::kUnavailable);
  EXPECT_NE(nobody.status().message().find("device " + device->name + " has no such address"), std::string_view::npos)
      << nobody.status().ToString();
  StopServer(*server);
}

TEST_F(StoreLab, ReadAfterWriteNeedsNoCommit) {
  const auto server = StartServer(WithReserving({"--flush", "read-after-write"}));
  const auto client = Connect(By(PutPath::kReserve));
  ASSERT_TRUE(client);
  EXPECT_EQ(InfoOf(*client)["flush_method"], "read-after-write");
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(client->Put("key", fmt::format("value {}", i)).ok());
    ASSERT_EQ(*client->Get("key"), fmt::format("value {}", i));
  }
  EXPECT_EQ(InfoOf(*client)["commits"], "0");
  StopServer(*server);
}

TEST_F(StoreLab, EachPollingAnswersPutsAndGets) {
  for (const std::string way : {"adaptive", "busy", "sleep"}) {
    SCOPED_TRACE(way);
    WipeDevice();
    const auto server = StartServer(WithReserving({"--polling", way}));
    ClientOptions options = By(PutPath::kReserve);
    options.polling = way == "busy" ? Polling::kBusy : way == "sleep" ? Polling::kSleep : Polling::kAdaptive;
    const auto client = Connect(options);
    ASSERT_TRUE(client);
    for (int i = 0; i < 100; ++i) {
      if (i % 20 == 0) ::usleep(20'000);  // Long enough for a server or client that sleeps.
      ASSERT_TRUE(client->Put("key", fmt::format("value {}", i)).ok());
      ASSERT_EQ(*client->Get("key"), fmt::format("value {}", i));
    }
    if (way == "busy") {
      EXPECT_EQ(InfoOf(*client)["sleeps"], "0");
    }
    StopServer(*server);
  }
}

// rdma_cm carries the challenge with a refusal, and the answer with the next request to connect.
TEST_F(StoreLab, ClientNeedsATokenAndAReaderChangesNothing) {
  const std::string tokens = std::filesystem::temp_directory_path() / "erda-lab-tokens";
  std::ofstream(tokens) << "the-token-of-a-writer\nthe-token-of-a-reader read-only\n";
  std::filesystem::permissions(tokens, std::filesystem::perms::owner_read);
  const auto server = StartServer({"--token-file", tokens, "--shards", "2"});
  const auto with = [](const std::string& token) {
    ClientOptions options;
    options.token = token;
    return Client::Connect(Address(), options);
  };
  EXPECT_EQ(with("").status().code(), Code::kPermissionDenied);
  EXPECT_EQ(with("the-token-of-nobody").status().code(), Code::kPermissionDenied);
  const auto writer = with("the-token-of-a-writer");
  ASSERT_TRUE(writer.ok()) << writer.status().ToString();
  for (int i = 0; i < 50; ++i) {
    const std::string value(i % 10 == 0 ? 50'000 : 100, static_cast<char>('a' + i % 26));
    ASSERT_TRUE((*writer)->Put(fmt::format("key{}", i), value).ok());
  }
  const auto reader = with("the-token-of-a-reader");
  ASSERT_TRUE(reader.ok()) << reader.status().ToString();
  for (int i = 0; i < 50; ++i) EXPECT_TRUE((*reader)->Get(fmt::format("key{}", i)).ok()) << i;
  EXPECT_EQ((*reader)->Put("key1", "other").code(), Code::kPermissionDenied);
  EXPECT_EQ((*reader)->Delete("key1").code(), Code::kPermissionDenied);
  PutOptions expires;
  expires.ttl = std::chrono::milliseconds(1000);
  ASSERT_TRUE((*writer)->Put("expires", "value", expires).ok());
  EXPECT_TRUE(WaitUntil([&] { return (*reader)->Get("expires").status().code() == Code::kNotFound; }));
  EXPECT_EQ((*reader)->stats().reconnects, 0U);
  StopServer(*server);
  std::filesystem::remove(tokens);
}

TEST_F(StoreLab, ClientsComeBackToAServerThatRestarts) {
  Ledger ledger(3);
  auto server = StartServer();
  const auto client = Connect();
  ASSERT_TRUE(client);
  for (const int signal : {SIGTERM, SIGKILL}) {
    for (int i = 0; i < 60; ++i) {
      const std::string key = fmt::format("key{}", i % 30);
      ASSERT_TRUE(client->Put(key, ledger.Next(key)).ok());
      ledger.Acknowledge(key);
    }
    server->Signal(signal);
    server->Wait();
    EXPECT_EQ(client->Get("key1").status().code(), Code::kUnavailable);
    server = StartServer();
    ASSERT_TRUE(WaitUntil([&] { return client->Get("key1").ok(); }));
    EXPECT_TRUE(ledger.Check(*client));
  }
  StopServer(*server);
}

}  // namespace
}  // namespace erda
