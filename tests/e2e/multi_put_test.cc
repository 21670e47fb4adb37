// Many puts in one call: the outcome of each, their order on a key, and what they cost the server.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "e2e/fixture.h"

namespace erda {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

constexpr PutPath kPaths[] = {PutPath::kAuto, PutPath::kInline, PutPath::kReserve, PutPath::kDelegate};

// Keys and values, with the puts that name them.
class Puts {
 public:
  void Add(const std::string& key, const std::string& value, const PutOptions& options = {}) {
    pairs_.emplace_back(key, value);
    options_.push_back(options);
  }
  [[nodiscard]] const std::string& key(size_t i) const { return pairs_[i].first; }
  [[nodiscard]] const std::string& value(size_t i) const { return pairs_[i].second; }
  [[nodiscard]] size_t size() const { return pairs_.size(); }
  [[nodiscard]] std::vector<Result<uint64_t>> Run(Client& client) const {
    std::vector<KeyValue> puts;
    for (size_t i = 0; i < size(); ++i) puts.push_back({key(i), value(i), options_[i]});
    auto results = client.MultiPut(puts);
    EXPECT_EQ(results.size(), size());
    return results;
  }

 private:
  std::vector<std::pair<std::string, std::string>> pairs_;
  std::vector<PutOptions> options_;
};

class MultiPuts : public EveryPool {};
INSTANTIATE_TEST_SUITE_P(E2e, MultiPuts, kEveryPool, PoolName);

// Each result has the version of the put in the same place. Three shards answer in any order.
TEST_P(MultiPuts, EachPutHasItsResultInItsPlace) {
  for (const PoolWrites writes : {PoolWrites::kSameUser, PoolWrites::kNobody}) {
    ServerOptions options = Options();
    options.shards = 3;
    options.pool_writes = writes;
    if (GetParam() != PoolKind::kDram) options.pool = Path("pool" + std::to_string(static_cast<int>(writes)));
    const auto server = Serve(options);
    const auto reader = Connect({.cache_entries = 0});
    for (const PutPath path : kPaths) {
      if (writes == PoolWrites::kNobody && path == PutPath::kReserve) continue;  // refused
      SCOPED_TRACE("path " + std::to_string(static_cast<int>(path)));
      const auto client = Connect({.put_path = path, .queue_depth = 8});
      const size_t step = path == PutPath::kInline ? 100 : 400;
      Puts puts;
      for (size_t i = 0; i < 100; ++i) puts.Add("key" + std::to_string(i), Bytes(i, i * step));
      const auto results = puts.Run(*client);
      for (size_t i = 0; i < puts.size(); ++i) {
        ASSERT_TRUE(results[i].ok()) << i << ": " << results[i].status().ToString();
        const auto got = reader->GetVersioned(puts.key(i));
        ASSERT_TRUE(got.ok()) << i << ": " << got.status().ToString();
        ASSERT_EQ(got->value == puts.value(i), true) << i;
        ASSERT_EQ(got->version, *results[i]) << i;
      }
      EXPECT_EQ(client->stats().puts, puts.size());
    }
    EXPECT_EQ(CountersOf(*reader).at("violations"), 0U);
  }
}

TEST_P(MultiPuts, WithoutPutsThereAreNoResults) {
  const auto server = Serve();
  const auto client = Connect();
  EXPECT_TRUE(client->MultiPut({}).empty());
  EXPECT_EQ(client->stats().requests, 0U);
}

TEST_P(MultiPuts, OnlyPutsThatBreakALimitFail) {
  const auto server = Serve();
  for (const PutPath path : kPaths) {
    const auto client = Connect({.put_path = path, .queue_depth = 4});
    const std::string long_key(1025, 'k');
    const std::string too_large(client->max_value_bytes(9) + 1, 'v');
    Puts puts;
    for (int i = 0; i < 5; ++i) {
      puts.Add("good" + std::to_string(i), std::to_string(i));
      puts.Add(long_key, "value");
      puts.Add("", "value");
      puts.Add("too large", too_large);
      puts.Add("brief", "value", {.ttl = milliseconds(0)});
    }
    const auto results = puts.Run(*client);
    for (size_t i = 0; i < puts.size(); i += 5) {
      EXPECT_TRUE(results[i].ok()) << results[i].status().ToString();
      ExpectFails(results[i + 1].status(), Code::kInvalidArgument, "key");
      ExpectFails(results[i + 2].status(), Code::kInvalidArgument, "key");
      ExpectFails(results[i + 3].status(), Code::kInvalidArgument, "value");
      ExpectFails(results[i + 4].status(), Code::kInvalidArgument, "ttl");
      EXPECT_EQ(*client->Get(puts.key(i)), puts.value(i));
    }
    for (const char* absent : {"too large", "brief"}) EXPECT_EQ(client->Get(absent).status().code(), Code::kNotFound);
  }
}

// Small values and large ones go different ways, and must not overtake each other.
TEST_P(MultiPuts, PutsOnOneKeyTakeEffectInOrder) {
  ServerOptions options = Options();
  options.shards = 2;
  const auto server = Serve(options);
  const auto reader = Connect({.cache_entries = 0});
  for (const uint32_t depth : {1, 7, 64, 256}) {
    SCOPED_TRACE("queue depth " + std::to_string(depth));
    const auto client = Connect({.queue_depth = depth});
    ASSERT_TRUE(client->PutAsync("key0", "an earlier put", [](const Status& put) { EXPECT_TRUE(put.ok()); }).ok());
    Puts puts;
    for (size_t i = 0; i < 300; ++i) {
      puts.Add("key" + std::to_string(i % 5), Bytes(depth * 1000 + i, i % 3 == 0 ? 30'000 + i : i));
    }
    const auto results = puts.Run(*client);
    for (size_t i = 0; i < puts.size(); ++i) {
      ASSERT_TRUE(results[i].ok()) << i << ": " << results[i].status().ToString();
      const uint64_t before = i < 5 ? 0 : *results[i - 5];
      ASSERT_GT(*results[i], before) << i;
    }
    for (size_t i = puts.size() - 5; i < puts.size(); ++i) {
      const auto got = reader->GetVersioned(puts.key(i));
      ASSERT_TRUE(got.ok()) << got.status().ToString();
      EXPECT_EQ(got->value == puts.value(i), true) << i;
      EXPECT_EQ(got->version, *results[i]);
    }
  }
}

TEST_P(MultiPuts, EachConditionIsJudgedByItself) {
  const auto server = Serve();
  for (const PutPath path : kPaths) {
    SCOPED_TRACE("path " + std::to_string(static_cast<int>(path)));
    const auto client = Connect({.put_path = path, .queue_depth = 8});
    const std::string large = Bytes(7, path == PutPath::kInline ? 9000 : 70'000);
    const auto version = client->Put("old", "v1", PutOptions());
    ASSERT_TRUE(version.ok()) << version.status().ToString();
    Puts puts;
    puts.Add("new", "v1", {.if_version = kAbsent});
    puts.Add("new", "v2", {.if_version = kAbsent});  // The first one has put it.
    puts.Add("old", "v2", {.if_version = *version + 1});
    puts.Add("old", large, {.if_version = *version});
    puts.Add("old", "v3", {.if_version = *version});  // The large value has replaced that version.
    puts.Add("none", large, {.if_version = *version});
    puts.Add("plain", large);
    const auto results = puts.Run(*client);
    for (const size_t i : {0, 3, 6}) EXPECT_TRUE(results[i].ok()) << i << ": " << results[i].status().ToString();
    for (const size_t i : {1, 2, 4, 5})
      ExpectFails(results[i].status(), Code::kConflict, i == 5 ? "absent" : "version");
    EXPECT_EQ(*client->Get("new"), "v1");
    EXPECT_EQ(*client->Get("old") == large, true);
    EXPECT_EQ(*client->Get("plain") == large, true);
    EXPECT_EQ(client->Get("none").status().code(), Code::kNotFound);
    for (const char* key : {"new", "old", "plain"}) ASSERT_TRUE(client->Delete(key).ok());
  }
}

TEST_P(MultiPuts, EachValueHasItsOwnTimeToLive) {
  const auto server = Serve();
  const auto client = Connect();
  Puts puts;
  puts.Add("stays", "v");
  puts.Add("goes", "v", {.ttl = milliseconds(20)});
  puts.Add("goes, large", std::string(50'000, 'v'), {.ttl = milliseconds(20)});
  puts.Add("lasts", std::string(50'000, 'v'), {.ttl = hours(1)});
  for (const auto& result : puts.Run(*client)) ASSERT_TRUE(result.ok()) << result.status().ToString();
  for (const char* key : {"goes", "goes, large"}) {
    EXPECT_TRUE(WaitUntil([&] { return client->Get(key).status().code() == Code::kNotFound; })) << key;
  }
  EXPECT_FALSE(client->GetVersioned("stays")->expires);
  const auto lasts = client->GetVersioned("lasts");
  ASSERT_TRUE(lasts.ok() && lasts->expires) << lasts.status().ToString();
  EXPECT_GT(*lasts->expires, std::chrono::system_clock::now() + std::chrono::minutes(30));
}

TEST_P(MultiPuts, FullLogRefusesSomePutsAndKeepsTheOthers) {
  ServerOptions options = SmallOptions();
  const auto server = Serve(options);
  const auto client = Connect();
  Puts puts;
  for (size_t i = 0; i < 600; ++i) puts.Add("key" + std::to_string(i), Bytes(i, 3000));
  const auto results = puts.Run(*client);
  size_t kept = 0;
  for (size_t i = 0; i < puts.size(); ++i) {
    const auto value = client->Get(puts.key(i));
    if (results[i].ok()) {
      ++kept;
      ASSERT_EQ(value.ok() && *value == puts.value(i), true) << i << ": " << value.status().ToString();
    } else {
      ExpectFails(results[i].status(), Code::kResourceExhausted, "log");
      ASSERT_EQ(value.status().code(), Code::kNotFound) << i;
    }
  }
  EXPECT_GE(kept * 3000, 4 * options.region_size) << "of 6 regions";
  EXPECT_LT(kept, puts.size());
}

// The callback of an operation runs inside MultiPut. A chain of such operations takes 20 round trips. So some puts have
// ended when the server goes away, and others have not begun.
TEST_P(MultiPuts, ServerThatGoesAwayInTheMiddleEndsEachPut) {
  for (const bool killed : {false, true}) {
    if (killed && GetParam() != PoolKind::kPowerSafe) continue;  // The other servers are in this process.
    SCOPED_TRACE(killed ? "killed" : "stopped");
    ServerOptions options = Options();
    if (GetParam() != PoolKind::kDram) options.pool = Path(killed ? "killed" : "stopped");
    auto server = Serve(options);
    const auto client = Connect({.queue_depth = 32});
    int left = 20;
    std::function<void(const Status&)> next = [&](const Status& before) {
      EXPECT_TRUE(before.ok()) << before.ToString();
      if (--left == 0) return killed ? server->Signal(SIGKILL) : server->Stop();
      EXPECT_TRUE(client->PutAsync("chain", "value", next).ok());
    };
    ASSERT_TRUE(client->PutAsync("chain", "value", next).ok());
    Puts puts;
    for (size_t i = 0; i < 3000; ++i) puts.Add("key" + std::to_string(i), Bytes(i, i % 10 == 0 ? 20'000 : 100));
    const auto results = puts.Run(*client);
    EXPECT_EQ(left, 0);
    EXPECT_TRUE(results.front().ok()) << results.front().status().ToString();
    ExpectFails(results.back().status(), Code::kUnavailable, "");
    server.reset();
    server = Serve(options);
    const auto reader = Connect();
    const bool keeps = GetParam() != PoolKind::kDram;
    for (size_t i = 0; i < puts.size(); ++i) {
      ASSERT_TRUE(results[i].ok() || results[i].status().code() == Code::kUnavailable)
          << results[i].status().ToString();
      const auto got = reader->GetVersioned(puts.key(i));
      if (results[i].ok() && keeps) {
        ASSERT_TRUE(got.ok()) << i << ": " << got.status().ToString();
        ASSERT_EQ(got->version, *results[i]);
      }
      if (got.ok()) {
        ASSERT_EQ(got->value == puts.value(i), true) << i;
      } else {
        ASSERT_EQ(got.status().code(), Code::kNotFound) << i;
      }
    }
    const auto again = puts.Run(*client);
    EXPECT_TRUE(again.back().ok()) << "it connects again: " << again.back().status().ToString();
  }
}

// Puts that are sent one by one cost the shard one fence each, or more.
TEST_P(MultiPuts, PutsShareFences) {
  const auto server = Serve();
  const auto client = Connect({.put_path = PutPath::kInline});
  const auto fences_of = [&](const std::function<void()>& work) {
    const uint64_t before = SettledCountersOf(*client).at("nvm_fences");
    work();
    return SettledCountersOf(*client).at("nvm_fences") - before;
  };
  Puts puts;
  for (size_t i = 0; i < 1000; ++i) puts.Add("key" + std::to_string(i), Bytes(i, 100));
  for (const auto& result : puts.Run(*client)) ASSERT_TRUE(result.ok());
  const uint64_t alone = fences_of([&] {
    for (size_t i = 0; i < puts.size(); ++i) ASSERT_TRUE(client->Put(puts.key(i), puts.value(i)).ok());
  });
  const uint64_t together = fences_of([&] {
    for (const auto& result : puts.Run(*client)) ASSERT_TRUE(result.ok());
  });
  EXPECT_GE(alone, puts.size());
  EXPECT_LT(together * 4, alone);
}

}  // namespace
}  // namespace erda
