// The compared schemes end to end over shm: server, client, and their counts.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "bench/bytes/measure.h"
#include "bench/bytes/report.h"
#include "bench/floors/temporary_folder.h"
#include "bench/schemes/client/connect.h"
#include "bench/schemes/client/open_store.h"
#include "bench/schemes/client/scheme_client.h"
#include "bench/schemes/server/server.h"

namespace erda::schemes {
namespace {

class SchemesTest : public testing::TestWithParam<Scheme> {
 protected:
  [[nodiscard]] std::string Address() const { return "shm:" + folder_.path() + "/socket"; }
  [[nodiscard]] ServerSettings Settings() const {
    ServerSettings settings;
    settings.scheme = GetParam();
    settings.pool.pool = {folder_.path() + "/pool", 16 << 20, {}};
    settings.listen = Address();
    return settings;
  }
  void StartServer() { StartServer(Settings()); }
  void StartServer(const ServerSettings& settings) {
    server_.reset();
    auto server = Server::Start(settings);
    ASSERT_TRUE(server.ok()) << server.status().ToString();
    server_ = *std::move(server);
  }

  [[nodiscard]] std::unique_ptr<SchemeClient> Connect(uint32_t depth = 64) const {
    ClientOptions options;
    options.queue_depth = depth;
    auto client = ConnectScheme(GetParam(), Address(), options);
    EXPECT_TRUE(client.ok()) << client.status().ToString();
    return client.ok() ? *std::move(client) : nullptr;
  }
  static std::optional<std::string> Get(SchemeClient& client, std::string_view key) {
    std::string out(65536, '\0');
    const auto size = client.Get(key, std::as_writable_bytes(std::span(out)));
    if (!size.ok()) {
      EXPECT_EQ(size.status().code(), Code::kNotFound) << size.status().ToString();
      return std::nullopt;
    }
    out.resize(*size);
    return out;
  }
  // The server may need this very processor.
  static void Look(SchemeClient& client) {
    if (client.Poll() == 0) std::this_thread::yield();
  }
  static void ExpectOk(const Status& status) { EXPECT_TRUE(status.ok()) << status.ToString(); }

  floors::TemporaryFolder folder_;
  std::unique_ptr<Server> server_;
};

std::string SchemeNamed(const testing::TestParamInfo<Scheme>& info) { return std::string(SchemeName(info.param)); }
INSTANTIATE_TEST_SUITE_P(Both, SchemesTest, testing::Values(Scheme::kRedoLogging, Scheme::kReadAfterWrite),
                         SchemeNamed);

TEST_P(SchemesTest, PutsUpdatesAndDeletesValuesOfAllSizes) {
  StartServer();
  const auto client = Connect();
  ASSERT_NE(client, nullptr);
  for (const size_t size : {0, 1, 16, 64, 256, 1024, 4096, 16000}) {
    const std::string key = "key of " + std::to_string(size);
    EXPECT_EQ(Get(*client, key), std::nullopt);
    EXPECT_EQ(client->Delete(key).code(), Code::kNotFound);
    ExpectOk(client->Put(key, std::string(size, 'a')));
    EXPECT_EQ(Get(*client, key), std::string(size, 'a'));
    for (const size_t other : {size, size / 2, 2 * size % 16001}) {
      ExpectOk(client->Put(key, std::string(other, 'b')));
      EXPECT_EQ(Get(*client, key), std::string(other, 'b'));
    }
    ExpectOk(client->Delete(key));
    EXPECT_EQ(Get(*client, key), std::nullopt);
    EXPECT_EQ(client->Delete(key).code(), Code::kNotFound);
  }
}

// Operations on one key take effect in the order started, so the answer of each get is known when it starts.
TEST_P(SchemesTest, ManyInFlightTakeEffectInTheirOrder) {
  StartServer();
  const auto client = Connect(32);
  ASSERT_NE(client, nullptr);
  Random random(7);
  std::map<std::string, std::optional<std::string>> now;
  uint64_t started = 0;
  uint64_t finished = 0;
  const auto done = [&finished](const Status& status) {
    EXPECT_TRUE(status.ok() || status.code() == Code::kNotFound) << status.ToString();
    ++finished;
  };
  while (started < 20000) {
    const std::string key = "key" + std::to_string(random.Uniform(50));
    const uint64_t draw = random.Uniform(10);
    Status status;
    if (draw < 5) {
      status = client->GetAsync(key, [expected = now[key], &finished](Result<std::string_view> value) {
        ++finished;
        EXPECT_EQ(value.ok(), expected.has_value());
        if (value.ok() && expected) {
          EXPECT_EQ(*value, *expected);
        }
      });
    } else if (draw < 9) {
      const std::string value(random.Uniform(2000), static_cast<char>('a' + started % 26));
      status = client->PutAsync(key, value, done);
      if (status.ok()) now[key] = value;
    } else {
      status = client->DeleteAsync(key, done);
      if (status.ok()) now[key] = std::nullopt;
    }
    if (status.ok()) {
      ++started;
      continue;
    }
    ASSERT_EQ(status.code(), Code::kResourceExhausted) << status.ToString();
    Look(*client);
  }
  while (finished < started) Look(*client);
  for (const auto& [key, value] : now) EXPECT_EQ(Get(*client, key), value);
  const auto counters = client->ServerCounters();
  ASSERT_TRUE(counters.ok());
  EXPECT_EQ(counters->unapplied, 0U);
  StartServer();
  const auto again = Connect();
  ASSERT_NE(again, nullptr);
  for (const auto& [key, value] : now) EXPECT_EQ(Get(*again, key), value);
}

// The log is so small that the clients wait for room in it.
TEST_P(SchemesTest, SeveralClientsShareASmallLog) {
  ServerSettings settings = Settings();
  settings.pool.log_bytes = 64 << 10;
  StartServer(settings);
  constexpr int kClients = 3;
  std::vector<std::thread> threads;
  for (int c = 0; c < kClients; ++c) {
    threads.emplace_back([this, c] {
      const auto client = Connect(16);
      ASSERT_NE(client, nullptr);
      uint64_t finished = 0;
      uint64_t started = 0;
      const auto done = [&finished](const Status& status) {
        ++finished;
        EXPECT_TRUE(status.ok()) << status.ToString();
      };
      while (started < 1000) {
        // A separate key, and a key that all clients share.
        const std::string key = started % 2 == 0 ? "own " + std::to_string(c) : "shared";
        const auto status = client->PutAsync(key, key + std::string(started, '.'), done);
        if (status.ok()) {
          ++started;
        } else {
          Look(*client);
        }
      }
      while (finished < started) Look(*client);
      EXPECT_EQ(Get(*client, "own " + std::to_string(c)), "own " + std::to_string(c) + std::string(998, '.'));
      const auto shared = Get(*client, "shared");
      ASSERT_TRUE(shared);
      EXPECT_EQ(*shared, "shared" + std::string(shared->size() - 6, '.'));
    });
  }
  for (auto& thread : threads) thread.join();
  const auto client = Connect();
  ASSERT_NE(client, nullptr);
  const auto counters = client->ServerCounters();
  ASSERT_TRUE(counters.ok());
  EXPECT_EQ(counters->puts, 1000U * kClients);
  EXPECT_EQ(counters->applied, 1000U * kClients);
  EXPECT_EQ(counters->keys, kClients + 1U);
}

// The formulas of docs/benchmarks/schemes.md: an entry and a destination for each put, and 16 bytes of the index for a
// new key.
TEST_P(SchemesTest, NvmBytesAreThoseOfTheFormulas) {
  StartServer();
  const auto client = Connect();
  ASSERT_NE(client, nullptr);
  const auto total = [&client] {
    const auto server = client->ServerNvmBytes();
    EXPECT_TRUE(server.ok());
    return server.ok() ? *server + client->ClientNvmBytes() : 0;
  };
  uint64_t before = total();
  const auto since = [&] {
    const uint64_t now = total();
    return now - std::exchange(before, now);
  };
  for (const uint64_t value_size : {16, 64, 256, 1024, 4096}) {
    const std::string key = "a key of 24 bytes: " + std::to_string(10000 + value_size);
    ASSERT_EQ(key.size(), 24U);
    const uint64_t pair = key.size() + value_size;
    ExpectOk(client->Put(key, std::string(value_size, 'a')));
    EXPECT_EQ(since(), 36 + 2 * pair);
    EXPECT_EQ(client->ClientNvmBytes() > 0, GetParam() == Scheme::kReadAfterWrite);
    ExpectOk(client->Put(key, std::string(value_size, 'b')));
    EXPECT_EQ(since(), 20 + 2 * pair);
    EXPECT_EQ(Get(*client, key), std::string(value_size, 'b'));
    EXPECT_EQ(since(), 0U);
    ExpectOk(client->Delete(key));
    EXPECT_EQ(since(), key.size() + 24);
  }
}

TEST_P(SchemesTest, PoolAndClientMustBeOfTheScheme) {
  StartServer();
  const bool is_redo = GetParam() == Scheme::kRedoLogging;
  const auto other = ConnectScheme(is_redo ? Scheme::kReadAfterWrite : Scheme::kRedoLogging, Address(), {});
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.status().code(), Code::kInvalidArgument);
  EXPECT_NE(other.status().message().find(SchemeName(GetParam())), std::string_view::npos) << other.status().message();
  const auto erda = bench::OpenStore("erda", Address(), {});
  ASSERT_FALSE(erda.ok());
  EXPECT_EQ(bench::OpenStore("other", Address(), {}).status().code(), Code::kInvalidArgument);

  server_.reset();
  ServerSettings settings = Settings();
  settings.scheme = is_redo ? Scheme::kReadAfterWrite : Scheme::kRedoLogging;
  EXPECT_EQ(Server::Start(settings).status().code(), Code::kInvalidArgument);
}

TEST_P(SchemesTest, ValueThatDoesNotFitIsRefusedAndOthersAreServed) {
  StartServer();
  const auto client = Connect();
  ASSERT_NE(client, nullptr);
  const size_t most = client->max_value_bytes(3);
  ExpectOk(client->Put("key", std::string(most, 'm')));
  EXPECT_EQ(client->Put("key", std::string(most + 1, 'm')).code(), Code::kInvalidArgument);
  EXPECT_EQ(client->Put("", "value").code(), Code::kInvalidArgument);
  EXPECT_EQ(client->Put(std::string(1025, 'k'), "value").code(), Code::kInvalidArgument);
  std::array<std::byte, 10> small;
  EXPECT_EQ(client->Get("key", small).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(Get(*client, "key"), std::string(most, 'm'));
  Status status;
  for (int i = 0; i < 5000 && status.ok(); ++i) {
    status = client->Put("key" + std::to_string(i), std::string(most - 8, 'f'));
  }
  EXPECT_EQ(status.code(), Code::kResourceExhausted) << status.ToString();
  EXPECT_EQ(Get(*client, "key"), std::string(most, 'm'));
  ExpectOk(client->Delete("key0"));
  ASSERT_TRUE(client->ServerCounters().ok());  // This also applies the delete.
  ExpectOk(client->Put("key0", "again"));
}

// The size of the log counts when a pool is created. A refused pool must not remain and block the next try.
TEST_P(SchemesTest, RefusedPoolWithATooSmallLogLeavesNoPool) {
  ServerSettings settings = Settings();
  settings.pool.log_bytes = 64 << 10;
  settings.slot_bytes = 32 << 10;
  EXPECT_EQ(Server::Start(settings).status().code(), Code::kInvalidArgument);
  settings.pool.log_bytes = 128 << 10;
  StartServer(settings);
}

TEST_P(SchemesTest, OperationsEndWhenTheServerGoesAway) {
  StartServer();
  const auto client = Connect();
  ASSERT_NE(client, nullptr);
  ExpectOk(client->Put("key", "value"));
  server_.reset();
  const Status status = client->Put("key", "value");
  EXPECT_EQ(status.code(), Code::kUnavailable) << status.ToString();
  EXPECT_EQ(client->GetAsync("key", [](const auto&) {}).code(), Code::kUnavailable);
  StartServer();
  const auto again = Connect();
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(Get(*again, "key"), "value");
}

TEST(Bytes, FormulasAreThoseOfTable1) {
  using bytes::Kind;
  using bytes::PaperBytes;
  // A key of 24 and a value of 1024 bytes, so N is 1048.
  EXPECT_EQ(PaperBytes(true, Kind::kCreate, 24, 1024), 24U + 10 + 1048);
  EXPECT_EQ(PaperBytes(true, Kind::kUpdate, 24, 1024), 9U + 1048);
  EXPECT_EQ(PaperBytes(true, Kind::kDelete, 24, 1024), 24U + 9);
  EXPECT_EQ(PaperBytes(false, Kind::kCreate, 24, 1024), 24U + 12 + 2 * 1048);
  EXPECT_EQ(PaperBytes(false, Kind::kUpdate, 24, 1024), 4U + 2 * 1048);
  EXPECT_EQ(PaperBytes(false, Kind::kDelete, 24, 1024), 24U + 8);
}

TEST(Bytes, BytesAreCountedForEachStore) {
  bytes::Settings settings;
  settings.value_sizes = {1024};
  settings.keys = 100;
  const auto report = bytes::Measure(settings);
  ASSERT_TRUE(report.ok()) << report.status().ToString();
  ASSERT_EQ(report->rows.size(), 4U);
  for (const auto& row : report->rows) {
    SCOPED_TRACE(row.scheme + " " + row.path);
    if (row.scheme == "erda") {
      // The log's marks are added.
      EXPECT_GE(row.counted[1], 36 + 24 + 1024 + 16);
      EXPECT_LT(row.counted[1], 36 + 24 + 1024 + 16 + 20);
    } else {
      EXPECT_EQ(row.counted, (std::array<double, 3>{2132, 2116, 48}));
    }
  }
  const auto ratio = report->ErdaOver("redo", 1024, bytes::Kind::kUpdate);
  EXPECT_LT(ratio.counted, 0.53);
  EXPECT_NEAR(ratio.paper, 1057.0 / 2100, 1e-9);
  EXPECT_EQ(report->ErdaOver("redo", 512, bytes::Kind::kUpdate).counted, 0);
}

}  // namespace
}  // namespace erda::schemes
