// The index grows while clients put keys. Neither active nor idle clients notice.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"
#include "e2e/fixture.h"

namespace erda {
namespace {

constexpr uint64_t kSmallIndex = 128;
constexpr uint64_t kNobodys = 1'000'000;  // nobody puts keys from this number on

std::string Key(uint64_t i) { return "key" + std::to_string(i); }
std::string Value(uint64_t i, uint64_t round = 0) { return std::to_string(i) + " of " + std::to_string(round); }

// Starts an operation for each number, many at a time. Expects that each ends with this code.
void ForEach(Client& client, uint64_t from, uint64_t to, Code expected,
             const std::function<Status(uint64_t, Client::DoneCallback)>& start) {
  uint64_t as_expected = 0;
  for (uint64_t i = from; i < to; ++i) {
    const auto count = [&](const Status& status) { as_expected += status.code() == expected ? 1 : 0; };
    while (!start(i, count).ok()) client.Poll();
  }
  ASSERT_TRUE(client.Drain().ok());
  ASSERT_EQ(as_expected, to - from);
}
void PutSome(Client& client, uint64_t from, uint64_t to, uint64_t round = 0) {
  ForEach(client, from, to, Code::kOk, [&](uint64_t i, Client::DoneCallback done) {
    return client.PutAsync(Key(i), Value(i, round), std::move(done));
  });
}
void DeleteSome(Client& client, uint64_t from, uint64_t to, Code expected = Code::kOk) {
  ForEach(client, from, to, expected,
          [&](uint64_t i, Client::DoneCallback done) { return client.DeleteAsync(Key(i), std::move(done)); });
}
void ExpectValues(Client& client, uint64_t from, uint64_t to, uint64_t round = 0) {
  for (uint64_t i = from; i < to; ++i) {
    const auto value = client.Get(Key(i));
    ASSERT_TRUE(value.ok()) << Key(i) << ": " << value.status().ToString();
    ASSERT_EQ(*value, Value(i, round));
  }
}
void ExpectAbsent(Client& client, uint64_t from, uint64_t to) {
  for (uint64_t i = from; i < to; ++i) ASSERT_EQ(client.Get(Key(i)).status().code(), Code::kNotFound) << i;
}
uint64_t SlotsOf(Client& client) { return CountersOf(client).at("index_slots"); }
// Waits until the shard has made all splits that its keys need. It splits only while requests come.
uint64_t SettledSlotsOf(Client& client) {
  uint64_t slots = SlotsOf(client);
  for (int same = 0; same < 3;) {
    DeleteSome(client, kNobodys, kNobodys + 20, Code::kNotFound);  // each shard gets some of these
    const uint64_t now = SlotsOf(client);
    same = now == slots ? same + 1 : 0;
    slots = now;
  }
  return slots;
}

class Growth : public EveryPool {
 protected:
  // Each shard gets the smallest index.
  [[nodiscard]] ServerOptions Small(uint32_t shards = 1) const {
    ServerOptions options = Options();
    options.shards = shards;
    options.index_entries = shards * kSmallIndex;
    return options;
  }
};
INSTANTIATE_TEST_SUITE_P(E2e, Growth, kEveryPool, PoolName);

// --- Many keys

struct Pool {
  const char* name;
  uint64_t pool_size;
  uint64_t index_entries;
  uint32_t shards;
  uint64_t slots;  // at first
  uint64_t keys;
  uint32_t doublings;  // at least
};
// The first pool has the index that follows from its size.
constexpr Pool kDefault = {"Default", 8 << 20, 0, 1, (8 << 20) / 4096, 45'000, 5};
constexpr Pool kSmall = {"Small", 64 << 20, kSmallIndex, 1, kSmallIndex, 20'000, 7};
constexpr Pool kSmallShards = {"SmallShards", 64 << 20, 3 * kSmallIndex, 3, 3 * kSmallIndex, 20'000, 6};

class ManyKeys : public E2eTest, public testing::WithParamInterface<std::tuple<PoolKind, Pool>> {};

TEST_P(ManyKeys, AllClientsFindAllKeysAfterGrowth) {
  const auto& [kind, pool] = GetParam();
  ServerOptions options = Options(kind);
  options.pool_size = pool.pool_size;
  options.index_entries = pool.index_entries;
  options.shards = pool.shards;
  const auto server = E2eTest::Serve(kind, options);
  const auto writer = Connect();
  const auto sleeper = Connect();
  const auto without_cache = Connect({.cache_entries = 0});
  ASSERT_EQ(SlotsOf(*writer), pool.slots);
  PutSome(*writer, 0, 100);
  // The two clients learn the places of these keys.
  for (Client* client : {sleeper.get(), without_cache.get()}) ExpectValues(*client, 0, 100);

  PutSome(*writer, 100, pool.keys);
  EXPECT_GE(SlotsOf(*writer), pool.slots << pool.doublings);
  PutSome(*writer, 0, 50, 1);
  DeleteSome(*writer, 50, 70);
  const uint64_t kept = pool.keys - 1000;
  DeleteSome(*writer, kept, pool.keys);
  for (Client* client : {without_cache.get(), sleeper.get(), writer.get()}) {
    ExpectValues(*client, 0, 50, 1);
    ExpectAbsent(*client, 50, 70);
    ExpectValues(*client, 70, kept);
    ExpectAbsent(*client, kept, pool.keys + 1000);
    EXPECT_EQ(client->stats().failures, 0U);
    EXPECT_EQ(client->stats().reconnects, 0U);
  }
  const Counters counters = SettledCountersOf(*writer);
  EXPECT_EQ(counters.at("keys"), kept - 20);
  EXPECT_EQ(counters.at("refused"), 0U);
  EXPECT_EQ(counters.at("violations"), 0U);
}

INSTANTIATE_TEST_SUITE_P(E2e, ManyKeys, testing::Combine(kEveryPool, testing::Values(kDefault, kSmall, kSmallShards)),
                         [](const auto& tested) {
                           return PoolName({std::get<0>(tested.param), 0}) + std::get<1>(tested.param).name;
                         });

// The sleeper remembers versions from an earlier get or put. Other clients have replaced them since.
TEST_P(Growth, SleeperSeesLaterPutsOfOthers) {
  const auto server = Serve(Small());
  const auto writer = Connect();
  const auto sleeper = Connect();
  PutSome(*writer, 0, 50);
  PutSome(*sleeper, 50, 100);
  for (int i = 0; i < 2; ++i) ExpectValues(*sleeper, 0, 100);
  EXPECT_GE(sleeper->stats().cache_hits, 100U);
  for (uint64_t round = 1; round <= 3; ++round) {
    const uint64_t slots = SlotsOf(*writer);
    PutSome(*writer, 100 * (1 << (2 * round - 2)), 100 * (1 << (2 * round)));
    EXPECT_GE(SlotsOf(*writer), 2 * slots);
    const uint64_t misled = sleeper->stats().cache_misled;
    for (uint64_t i = 0; i < 100; i += 3) ASSERT_TRUE(writer->Put(Key(i), Value(i, round)).ok());
    for (uint64_t i = 1; i < 100; i += 3) ASSERT_TRUE(writer->Delete(Key(i)).ok());
    for (int twice = 0; twice < 2; ++twice) {
      for (uint64_t i = 0; i < 100; ++i) {
        if (i % 3 == 1) {
          ExpectAbsent(*sleeper, i, i + 1);
        } else {
          ExpectValues(*sleeper, i, i + 1, i % 3 == 0 ? round : 0);
        }
      }
    }
    EXPECT_GT(sleeper->stats().cache_misled, misled) << "it knew places";
    for (uint64_t i = 1; i < 100; i += 3) ASSERT_TRUE(writer->Put(Key(i), Value(i)).ok());
    for (uint64_t i = 1; i < 100; i += 3) ExpectValues(*sleeper, i, i + 1);
  }
}

// --- The cost of a get: a second look is a round trip with three Reads

class Costs : public Growth {
 protected:
  struct Cost {
    uint64_t reads;
    uint64_t second_looks;
  };
  static Cost CostOf(Client& client, uint64_t from, uint64_t to) {
    const ClientStats before = client.stats();
    ExpectValues(client, from, to);
    const ClientStats after = client.stats();
    return {after.reads - before.reads, after.second_looks - before.second_looks};
  }
};
INSTANTIATE_TEST_SUITE_P(E2e, Costs, kEveryPool, PoolName);

// After several doublings, the sleeper looks once by the last depth that it knew. That look tells the number of blocks,
// and it looks again by that.
TEST_P(Costs, ClientThatSleptTakesAFewMoreReadsOnce) {
  const auto server = Serve(Small());
  const auto writer = Connect();
  PutSome(*writer, 0, 50);
  for (const uint64_t keys : {1000U, 4000U, 12'000U}) {
    const auto sleeper = Connect({.cache_entries = 0});
    const uint64_t slots = SlotsOf(*writer);
    PutSome(*writer, 50, keys);
    EXPECT_GE(SettledSlotsOf(*writer), 2 * slots);
    const auto fresh = Connect({.cache_entries = 0});
    const Cost slept = CostOf(*sleeper, 0, keys);
    const Cost usual = CostOf(*fresh, 0, keys);
    // The number of keys that need a second look until the sleeper knows the whole index depends on the pool's hash
    // seed.
    EXPECT_LE(slept.reads, usual.reads + 18) << "of " << usual.reads;
    EXPECT_LE(slept.second_looks, usual.second_looks + 6) << "of " << usual.second_looks;
    const Cost again = CostOf(*sleeper, 0, keys);
    EXPECT_EQ(again.reads, usual.reads);
    EXPECT_EQ(again.second_looks, usual.second_looks);
  }
}

// The index grows by less than a doubling between two gets. The first run, which the clients know, holds all of it.
TEST_P(Costs, GetOfAKeyThatMovedToANewBlockTakesOneMoreRoundTrip) {
  constexpr uint64_t kWatched = 200;
  const auto server = Serve(Small());
  const auto writer = Connect();
  PutSome(*writer, 0, 1000);
  const uint64_t slots = SettledSlotsOf(*writer);
  const auto sleeper = Connect({.cache_entries = 0});
  const auto awake = Connect({.cache_entries = 0});
  uint64_t more = 0;
  for (uint64_t keys = 1000; keys < 6000; keys += 100) {
    PutSome(*writer, keys, keys + 100);
    (void)SettledSlotsOf(*writer);
    ExpectAbsent(*awake, kNobodys, kNobodys + 1);  // after this get it knows the number of blocks
    uint64_t gets_with_more = 0;
    for (uint64_t i = 0; i < kWatched; ++i) {
      const Cost usual = CostOf(*awake, i, i + 1);
      if (usual.second_looks != 0) continue;  // the key is far from its home, and always takes the second look
      EXPECT_EQ(usual.reads, 2U);
      const Cost slept = CostOf(*sleeper, i, i + 1);
      EXPECT_LE(slept.second_looks, 1U) << Key(i) << " of " << keys;
      EXPECT_LE(slept.reads, 2U + 3) << Key(i) << " of " << keys;
      gets_with_more += slept.second_looks;
    }
    EXPECT_LE(gets_with_more, 1U) << "it knows the number from then on; " << keys;
    more += gets_with_more;
  }
  EXPECT_GE(SlotsOf(*writer), 4 * slots);
  EXPECT_GT(more, 0U) << "nothing was tested";
}

TEST_P(Costs, AbsentKeyTakesNoMoreReadsAfterGrowth) {
  const auto server = Serve(Small());
  const auto writer = Connect();
  PutSome(*writer, 0, 4000);
  (void)SettledSlotsOf(*writer);
  const auto reader = Connect({.cache_entries = 0});
  const ClientStats before = reader->stats();
  ExpectAbsent(*reader, 4000, 6000);
  const uint64_t reads = reader->stats().reads - before.reads;
  EXPECT_GE(reads, 2000U * 4);
  EXPECT_LE(reads, 2000U * 4 + 20) << "a look that meets a move of an entry reads the number of moves once more";
  EXPECT_EQ(reader->stats().second_looks - before.second_looks, 2000U);
}

// --- Many at once

class GrowthOfMany : public Growth {};
INSTANTIATE_TEST_SUITE_P(E2e, GrowthOfMany, kEveryPool, PoolName);

TEST_P(GrowthOfMany, ClientsAtWorkDoNotNotice) {
  constexpr uint32_t kClients = 4;
  constexpr uint32_t kShards = 2;
  const auto server = Serve(Small(kShards));
  std::atomic<uint64_t> wrong{0};
  std::vector<std::map<std::string, std::string>> models(kClients);
  AtOnce(kClients, [&](uint32_t number) {
    constexpr PutPath kPaths[] = {PutPath::kAuto, PutPath::kInline, PutPath::kReserve, PutPath::kDelegate};
    const auto client = Connect({.put_path = kPaths[number], .cache_entries = number % 2 == 0 ? 0U : 65536U});
    auto& model = models[number];
    std::map<std::string, int64_t> sums;
    Random random(number + 1);
    for (uint64_t i = 0; i < 6000; ++i) {
      const std::string key = std::to_string(number) + "/" + std::to_string(random.Uniform(4000));
      const uint64_t dice = random.Uniform(20);
      if (dice < 10) {
        model[key] = Value(i, number) + Bytes(i, random.Uniform(100));
        wrong += client->Put(key, model[key]).ok() ? 0 : 1;
      } else if (dice < 12) {
        const Code expected = model.erase(key) > 0 ? Code::kOk : Code::kNotFound;
        wrong += client->Delete(key).code() == expected ? 0 : 1;
      } else if (dice < 14) {
        const std::string counter = "sum" + std::to_string(number) + "/" + std::to_string(random.Uniform(100));
        const auto delta = static_cast<int64_t>(random.Uniform(1000));
        const auto sum = client->Increment(counter, delta);
        wrong += sum.ok() && *sum == (sums[counter] += delta) ? 0 : 1;
      } else {
        const auto value = client->Get(key);
        const auto found = model.find(key);
        const bool as_expected =
            found == model.end() ? value.status().code() == Code::kNotFound : value.ok() && *value == found->second;
        wrong += as_expected ? 0 : 1;
      }
    }
    for (const auto& [counter, sum] : sums) model[counter] = std::string(AsString(BytesOf(sum)));
  });
  EXPECT_EQ(wrong.load(), 0U);
  const auto client = Connect();
  EXPECT_GE(SlotsOf(*client), kShards * kSmallIndex << 3);
  uint64_t keys = 0;
  for (uint32_t number = 0; number < kClients; ++number) {
    keys += models[number].size();
    for (const auto& [key, value] : models[number]) {
      const auto got = client->Get(key);
      ASSERT_TRUE(got.ok()) << key << ": " << got.status().ToString();
      ASSERT_TRUE(*got == value) << key;
    }
    for (uint64_t i = 0; i < 4000; ++i) {
      const std::string key = std::to_string(number) + "/" + std::to_string(i);
      if (models[number].contains(key)) continue;
      ASSERT_EQ(client->Get(key).status().code(), Code::kNotFound) << key;
    }
  }
  const Counters counters = SettledCountersOf(*client);
  EXPECT_EQ(counters.at("keys"), keys);
  EXPECT_EQ(counters.at("violations"), 0U);
}

// An untouched key is always present, wherever its entry goes. A key that nobody put is always absent.
TEST_P(GrowthOfMany, AKeyThatMovesIsNeverAbsent) {
  constexpr uint64_t kThere = 50;
  const auto server = Serve(Small());
  const auto writer = Connect();
  PutSome(*writer, 0, kThere);
  std::atomic<uint32_t> reading{0};
  std::atomic<bool> grown{false};
  std::atomic<uint64_t> wrong{0};
  AtOnce(3, [&](uint32_t number) {
    if (number == 0) {
      WaitUntil([&] { return reading == 2; });
      PutSome(*writer, kThere, 9000);
      grown = true;
      return;
    }
    const auto reader = Connect({.cache_entries = number == 1 ? 0U : 16U});
    ++reading;
    for (uint64_t last = 0; last < 2; last += grown ? 1 : 0) {
      for (uint64_t i = 0; i < kThere; ++i) {
        const auto value = reader->Get(Key(i));
        wrong += value.ok() && *value == Value(i) ? 0 : 1;
        wrong += reader->Get("none" + Key(i)).status().code() == Code::kNotFound ? 0 : 1;
      }
    }
  });
  EXPECT_EQ(wrong.load(), 0U);
  EXPECT_GE(SlotsOf(*writer), kSmallIndex << 6);
}

// --- Restart

class GrowthRestart : public Growth {
 protected:
  // The index grows in each life of the server. Then `end` ends the server.
  void LiveAndDie(const std::function<void(std::unique_ptr<TestServer>&)>& end) {
    const ServerOptions options = Small(2);
    uint64_t slots = 2 * kSmallIndex;
    uint64_t keys = 0;
    std::unique_ptr<Client> sleeper;
    for (const uint64_t more : {60U, 300U, 900U, 1700U, 4000U, 1U}) {
      SCOPED_TRACE(std::to_string(keys) + " keys");
      auto server = Serve(options);
      const auto client = Connect();
      ASSERT_TRUE(client);
      EXPECT_EQ(SlotsOf(*client), slots);
      ExpectValues(*client, 0, keys);
      ExpectAbsent(*client, keys, keys + 100);
      EXPECT_TRUE(WaitUntil([&] { return CountersOf(*client).at("keys") == keys; }));
      PutSome(*client, keys, keys + more);
      keys += more;
      if (!sleeper) sleeper = Connect();
      ExpectValues(*client, 0, keys);
      // The sleeper connects again. It forgets the locations that it knew.
      ExpectValues(*sleeper, keys - 1, keys);
      const uint64_t now = SettledSlotsOf(*client);
      EXPECT_GE(now, more >= 900 ? 2 * slots : slots);
      slots = now;
      end(server);
    }
    const auto server = Serve(options);
    const auto client = Connect();
    ASSERT_TRUE(client);
    EXPECT_EQ(SlotsOf(*client), slots);
    ExpectValues(*client, 0, keys);
    DeleteSome(*client, 0, keys);
    ExpectAbsent(*client, 0, keys);
    EXPECT_EQ(SettledCountersOf(*client).at("keys"), 0U);
    EXPECT_EQ(SlotsOf(*client), slots) << "it never shrinks";
  }
};
// The kinds of pools that outlive their server.
INSTANTIATE_TEST_SUITE_P(E2e, GrowthRestart,
                         testing::Values(PoolKind::kFile, PoolKind::kPowerSafe, PoolKind::kJournaled,
                                         PoolKind::kFronted),
                         PoolName);

TEST_P(GrowthRestart, RestartKeepsAllKeysAndGrowthContinues) {
  LiveAndDie([](std::unique_ptr<TestServer>& server) { server->Stop(); });
}

class GrowthRestartOfProcess : public GrowthRestart {};
INSTANTIATE_TEST_SUITE_P(E2e, GrowthRestartOfProcess, testing::Values(PoolKind::kPowerSafe), PoolName);

TEST_P(GrowthRestartOfProcess, KillKeepsAllKeys) {
  LiveAndDie([](std::unique_ptr<TestServer>& server) {
    server->Signal(SIGKILL);
    server.reset();
  });
}

// The kill comes in the middle of a growth. Acknowledged puts stay.
TEST_P(GrowthRestartOfProcess, AcknowledgedPutsSurviveAKillDuringGrowth) {
  std::set<uint64_t> acknowledged;
  uint64_t next = 0;
  for (const uint64_t until : {100U, 700U, 1400U, 2600U, 3100U}) {
    auto server = Serve(Small());
    const auto client = Connect({.timeout = std::chrono::minutes(1)});
    uint64_t failed = 0;
    while (acknowledged.size() < until && failed == 0) {
      const uint64_t i = next;
      const auto note = [&acknowledged, &failed, i](const Status& status) {
        if (status.ok()) acknowledged.insert(i);
        failed += status.ok() ? 0 : 1;
      };
      if (client->PutAsync(Key(i), Value(i), note).ok()) {
        ++next;
      } else {
        client->Poll();
      }
    }
    EXPECT_EQ(failed, 0U);
    server->Signal(SIGKILL);
    ASSERT_TRUE(client->Drain().ok());
    server.reset();
    server = Serve(Small());
    const auto reader = Connect();
    ASSERT_TRUE(reader);
    for (uint64_t i = 0; i < next; ++i) {
      const auto value = reader->Get(Key(i));
      if (value.ok() || acknowledged.contains(i)) {
        ASSERT_TRUE(value.ok()) << i << ": " << value.status().ToString();
        ASSERT_EQ(*value, Value(i));
      } else {
        ASSERT_EQ(value.status().code(), Code::kNotFound) << i;
      }
    }
    EXPECT_GE(SlotsOf(*reader), until);
    server->Stop();
  }
}

// --- The other operations, by a client that slept

class GrowthOperations : public Growth {
 protected:
  void SetUp() override {
    server_ = Serve(Small());
    writer_ = Connect();
    sleeper_ = Connect({.cache_entries = 0});
  }
  // Makes the index grow by several doublings.
  void Grow() {
    PutSome(*writer_, 10'000, 13'000);
    EXPECT_GE(SlotsOf(*writer_), kSmallIndex << 3);
  }

  std::unique_ptr<TestServer> server_;
  std::unique_ptr<Client> writer_;
  std::unique_ptr<Client> sleeper_;
};
INSTANTIATE_TEST_SUITE_P(E2e, GrowthOperations, kEveryPool, PoolName);

TEST_P(GrowthOperations, MultiGetsAnswerInTheirOrder) {
  PutSome(*writer_, 0, 80);
  Grow();
  std::vector<std::string> names;
  for (uint64_t i = 0; i < 100; ++i) names.push_back(Key(i * 37 % 100));
  for (uint64_t i = 9900; i < 13'100; ++i) names.push_back(Key(i));
  const std::vector<std::string_view> keys(names.begin(), names.end());
  const auto there = [](const std::string& name) {
    const uint64_t i = std::stoull(name.substr(3));
    return i < 80 || (i >= 10'000 && i < 13'000);
  };
  const auto values = sleeper_->MultiGet(keys);
  ASSERT_EQ(values.size(), names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    if (there(names[i])) {
      ASSERT_TRUE(values[i].ok()) << names[i] << ": " << values[i].status().ToString();
      ASSERT_EQ(*values[i], Value(std::stoull(names[i].substr(3))));
    } else {
      ASSERT_EQ(values[i].status().code(), Code::kNotFound) << names[i];
    }
  }
  PutSome(*writer_, 13'000, 20'000);
  const auto versioned = sleeper_->MultiGetVersioned(keys);
  for (size_t i = 0; i < names.size(); ++i) ASSERT_EQ(versioned[i].ok(), there(names[i]) || i >= names.size() - 100);
}

TEST_P(GrowthOperations, BuffersAreReadAndPut) {
  auto made = sleeper_->MakeBuffer(5000);
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  Buffer buffer = *std::move(made);
  const auto get = [&](uint64_t i) {
    const auto size = sleeper_->Get(Key(i), buffer);
    EXPECT_TRUE(size.ok()) << Key(i) << ": " << size.status().ToString();
    return size.ok() ? std::string(AsString(buffer.bytes().first(*size))) : "";
  };
  for (uint64_t i = 0; i < 50; ++i) ASSERT_TRUE(writer_->Put(Key(i), Bytes(i, i * 100)).ok());
  Grow();
  for (uint64_t i = 0; i < 50; ++i) ASSERT_TRUE(get(i) == Bytes(i, i * 100)) << i;
  EXPECT_EQ(sleeper_->Get("none", buffer).status().code(), Code::kNotFound);
  for (uint64_t i = 0; i < 100; ++i) {
    const std::string value = Bytes(i + 1, i * 50);
    std::copy(AsBytes(value).begin(), AsBytes(value).end(), buffer.bytes().begin());
    ASSERT_TRUE(sleeper_->Put(Key(i), buffer, value.size()).ok());
  }
  PutSome(*writer_, 13'000, 20'000);
  for (uint64_t i = 0; i < 100; ++i) ASSERT_TRUE(get(i) == Bytes(i + 1, i * 50)) << i;
}

TEST_P(GrowthOperations, VersionsAndConditionsHoldAfterGrowth) {
  std::vector<uint64_t> versions;
  for (uint64_t i = 0; i < 80; ++i) {
    const auto version = sleeper_->Put(Key(i), Value(i), PutOptions{});
    ASSERT_TRUE(version.ok());
    versions.push_back(*version);
  }
  Grow();
  for (uint64_t i = 0; i < 80; ++i) {
    const auto got = sleeper_->GetVersioned(Key(i));
    ASSERT_TRUE(got.ok()) << i << ": " << got.status().ToString();
    EXPECT_EQ(got->value, Value(i));
    EXPECT_EQ(got->version, versions[i]);
    ExpectFails(sleeper_->Put(Key(i), "no", {.if_version = kAbsent}).status(), Code::kConflict, "version");
    ExpectFails(sleeper_->Put(Key(i), "no", {.if_version = versions[i] + 1}).status(), Code::kConflict, "version");
    const auto put = sleeper_->Put(Key(i), Value(i, 1), {.if_version = versions[i]});
    ASSERT_TRUE(put.ok()) << put.status().ToString();
    EXPECT_GT(*put, versions[i]);
    ExpectFails(writer_->Delete(Key(i), {.if_version = versions[i]}), Code::kConflict, "version");
    if (i % 2 == 0) continue;
    ASSERT_TRUE(writer_->Delete(Key(i), {.if_version = *put}).ok());
    ASSERT_TRUE(sleeper_->Put(Key(i), Value(i, 1), {.if_version = kAbsent}).ok());
  }
  PutSome(*writer_, 13'000, 20'000);
  ExpectValues(*sleeper_, 0, 80, 1);
}

TEST_P(GrowthOperations, IncrementsContinueDuringGrowth) {
  for (int64_t round = 1; round <= 3; ++round) {
    for (uint64_t i = 0; i < 50; ++i) {
      const auto sum = (round % 2 == 0 ? writer_ : sleeper_)->Increment(Key(i), static_cast<int64_t>(i));
      ASSERT_TRUE(sum.ok()) << sum.status().ToString();
      ASSERT_EQ(*sum, round * static_cast<int64_t>(i));
    }
    PutSome(*writer_, 1000 << round, 2000 << round);
  }
  for (uint64_t i = 0; i < 50; ++i) ASSERT_EQ(*sleeper_->Get(Key(i)), AsString(BytesOf(3 * i)));
}

TEST_P(GrowthOperations, ValuesExpireWhereverTheirEntriesAre) {
  using std::chrono::hours;
  using std::chrono::milliseconds;
  std::vector<std::optional<Deadline>> expires;
  for (uint64_t i = 0; i < 40; ++i) {
    ASSERT_TRUE(sleeper_->Put(Key(i), Value(i), {.ttl = hours(1)}).ok());
    expires.push_back(sleeper_->GetVersioned(Key(i))->expires);
    ASSERT_TRUE(expires.back());
    ASSERT_TRUE(writer_->Put("goes" + Key(i), Value(i), {.ttl = milliseconds(1)}).ok());
  }
  Grow();
  for (uint64_t i = 0; i < 40; ++i) {
    const auto got = sleeper_->GetVersioned(Key(i));
    ASSERT_TRUE(got.ok()) << got.status().ToString();
    EXPECT_EQ(got->value, Value(i));
    EXPECT_EQ(got->expires, expires[i]);
    const std::string goes = "goes" + Key(i);
    EXPECT_TRUE(WaitUntil([&] { return sleeper_->Get(goes).status().code() == Code::kNotFound; })) << i;
  }
  EXPECT_TRUE(WaitUntil([&] { return CountersOf(*writer_).at("keys") == 3040; })) << CountersOf(*writer_).at("keys");
  EXPECT_EQ(CountersOf(*writer_).at("expired"), 40U);
  for (uint64_t i = 0; i < 40; ++i) ASSERT_TRUE(writer_->Put("goes" + Key(i), Value(i)).ok());
  for (uint64_t i = 0; i < 40; ++i) ASSERT_EQ(*sleeper_->Get("goes" + Key(i)), Value(i));
}

}  // namespace
}  // namespace erda
