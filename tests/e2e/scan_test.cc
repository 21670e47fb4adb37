// Scans return all keys once, page by page, whatever other clients do meanwhile.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/random.h"
#include "e2e/fixture.h"

namespace erda {
namespace {

using std::chrono::milliseconds;

std::string Key(uint64_t i) { return "key" + std::to_string(i); }

// All pages from a cursor on, by key. Expects that no key comes twice.
struct Told {
  std::map<std::string, ScannedKey> keys;
  uint64_t pages = 0;
  uint64_t damaged = 0;
};
Told ScanAll(Client& client, ScanOptions options = {}) {
  Told told;
  double part = 0;
  for (std::optional<uint64_t> cursor = options.cursor; cursor; ++told.pages) {
    options.cursor = *cursor;
    auto page = client.Scan(options);
    if (!page.ok()) {
      ADD_FAILURE() << page.status().ToString();
      return told;
    }
    for (ScannedKey& each : page->keys) {
      const std::string key = each.key;
      EXPECT_TRUE(told.keys.emplace(key, std::move(each)).second) << key << " comes twice";
    }
    told.damaged += page->damaged;
    EXPECT_TRUE(!page->next || *page->next > *cursor) << "the cursor does not go on";
    EXPECT_GT(page->part, part);
    part = page->part;
    EXPECT_EQ(part == 1, !page->next);
    cursor = page->next;
  }
  return told;
}

class ScanTest : public EveryPool {
 protected:
  [[nodiscard]] ServerOptions Small(uint32_t shards) const {
    ServerOptions options = Options();
    options.shards = shards;
    options.index_entries = shards * 128;
    return options;
  }
};
INSTANTIATE_TEST_SUITE_P(E2e, ScanTest, kEveryPool, PoolName);

TEST_P(ScanTest, AnEmptyPoolHasNoKeys) {
  const auto server = Serve();
  const auto client = Connect();
  const Told told = ScanAll(*client);
  EXPECT_TRUE(told.keys.empty());
  EXPECT_GE(told.pages, 1U);
}

class ScanEachKey : public ScanTest {
 protected:
  void Test(uint32_t shards) const;
};
INSTANTIATE_TEST_SUITE_P(E2e, ScanEachKey, kEveryPool, PoolName);

void ScanEachKey::Test(uint32_t shards) const {
  const auto server = Serve(Small(shards));
  const auto client = Connect();
  Random random(shards);
  std::map<std::string, std::string> values;
  for (uint64_t i = 0; i < 3000; ++i) {
    // Some values are larger than a request, or than the client's own memory for a version.
    const size_t size = i % 500 == 0 ? 60'000 : i % 50 == 0 ? 9000 : random.Uniform(300);
    values[Key(i)] = Bytes(i, size);
    const Status put = client->Put(Key(i), values[Key(i)]);
    ASSERT_TRUE(put.ok()) << put.ToString();
  }
  values[std::string("\0\xff", 2)] = "";
  ASSERT_TRUE(client->Put(std::string("\0\xff", 2), "").ok());
  values[std::string(1024, 'k')] = "long";
  ASSERT_TRUE(client->Put(std::string(1024, 'k'), "long").ok());
  for (uint64_t i = 0; i < 3000; i += 7) {
    ASSERT_TRUE(client->Delete(Key(i)).ok());
    values.erase(Key(i));
  }
  const auto reader = Connect();
  struct {
    size_t keys;
    size_t bytes;
    uint64_t pages;  // at least
  } const limits[] = {{1000, 4 << 20, 2},      {1, 1 << 20, values.size() / 2}, {100, 1 << 20, values.size() / 200},
                      {1'000'000, 10'000, 50}, {0, 0, values.size() / 2},       {SIZE_MAX, SIZE_MAX, 1}};
  for (const auto& [keys, bytes, pages] : limits) {
    SCOPED_TRACE(std::to_string(shards) + " shards, " + std::to_string(keys) + " keys, " + std::to_string(bytes));
    const Told told = ScanAll(*reader, {0, keys, bytes});
    EXPECT_EQ(told.keys.size(), values.size());
    EXPECT_GE(told.pages, pages);
    EXPECT_EQ(told.damaged, 0U);
    for (const auto& [key, value] : values) {
      const auto at = told.keys.find(key);
      ASSERT_NE(at, told.keys.end()) << key;
      ASSERT_EQ(at->second.value, value) << key;
      ASSERT_FALSE(at->second.expires) << key;
    }
  }
  const auto some = client->Scan();
  ASSERT_TRUE(some.ok());
  ASSERT_GT(some->keys.size(), 100U);
  for (size_t i = 0; i < 100; ++i) {
    const auto got = client->GetVersioned(some->keys[i].key);
    ASSERT_TRUE(got.ok());
    EXPECT_EQ(got->version, some->keys[i].version);
  }
}

TEST_P(ScanEachKey, ScanReturnsEachKeyOnceAsAGetWould) { Test(1); }
TEST_P(ScanEachKey, ScanReturnsEachKeyOfSeveralShardsOnce) { Test(3); }

TEST_P(ScanTest, TellsDeadlinesAndNoExpiredKeys) {
  const auto server = Serve();
  const auto client = Connect();
  for (uint64_t i = 0; i < 200; ++i) {
    PutOptions options;
    if (i % 3 == 1) options.ttl = milliseconds(1);
    if (i % 3 == 2) options.ttl = std::chrono::hours(1);
    ASSERT_TRUE(client->Put(Key(i), Bytes(i, 100), options).ok());
  }
  ASSERT_TRUE(WaitUntil([&] { return client->Get(Key(199)).status().code() == Code::kNotFound; }));
  const Told told = ScanAll(*client);
  for (uint64_t i = 0; i < 200; ++i) {
    const auto at = told.keys.find(Key(i));
    ASSERT_EQ(at != told.keys.end(), i % 3 != 1) << i;
    if (i % 3 == 1) continue;
    const auto got = client->GetVersioned(Key(i));
    ASSERT_TRUE(got.ok());
    EXPECT_EQ(at->second.expires, got->expires) << i;
    EXPECT_EQ(at->second.value, got->value) << i;
  }
}

TEST_P(ScanTest, TellsKeysAloneWithoutReadingValues) {
  const auto server = Serve();
  const auto client = Connect();
  std::set<std::string> keys;
  for (uint64_t i = 0; i < 500; ++i) {
    const std::string key = Key(i) + std::string(i % 50 == 0 ? 900 : i % 100, 'k');
    keys.insert(key);
    ASSERT_TRUE(client->Put(key, Bytes(i, i % 10 == 0 ? 50'000 : 9000)).ok());
  }
  PutOptions expires;
  expires.ttl = milliseconds(1);
  ASSERT_TRUE(client->Put("over", "value", expires).ok());
  ASSERT_TRUE(client->Put("removed", "value").ok());
  ASSERT_TRUE(client->Delete("removed").ok());
  ASSERT_TRUE(WaitUntil([&] { return client->Get("over").status().code() == Code::kNotFound; }));
  ASSERT_TRUE(WaitUntil([&] { return CountersOf(*client).at("in_flight") == 0; }));

  const auto reader = Connect({.cache_entries = 0});
  ASSERT_TRUE(reader->Scan({0, 0, 0, false}).ok());  // learns the control block and the index's growth
  const uint64_t before = reader->stats().read_bytes;
  ScanOptions options;
  options.values = false;
  const Told told = ScanAll(*reader, options);
  const uint64_t index_bytes = 16 * CountersOf(*client).at("index_slots");
  EXPECT_LT(reader->stats().read_bytes - before, 2 * index_bytes + keys.size() * 512 + 100'000);
  ASSERT_EQ(told.keys.size(), keys.size());
  for (const std::string& key : keys) {
    const auto at = told.keys.find(key);
    ASSERT_NE(at, told.keys.end()) << key;
    EXPECT_EQ(at->second.value, "");
    EXPECT_EQ(at->second.version, client->GetVersioned(key)->version);
  }
}

TEST_P(ScanTest, ScanSendsNoRequests) {
  const auto server = Serve();
  const auto client = Connect();
  for (uint64_t i = 0; i < 1000; ++i) ASSERT_TRUE(client->Put(Key(i), "value").ok());
  const auto reader = Connect({.queue_depth = 3});
  EXPECT_EQ(ScanAll(*reader).keys.size(), 1000U);
  EXPECT_EQ(reader->stats().requests, 0U);
  EXPECT_EQ(reader->stats().failures, 0U);
}

// A scan tells each key that stays, while other keys come and go and the index grows under the cursor.
TEST_P(ScanTest, TellsEachStayingKeyWhileOthersComeAndGo) {
  const auto server = Serve(Small(2));
  const auto writer = Connect();
  constexpr uint64_t kStay = 1000;
  for (uint64_t i = 0; i < kStay; ++i) ASSERT_TRUE(writer->Put(Key(i), Key(i) + " 0").ok());
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> round{0};
  std::vector<std::thread> writers;
  for (uint32_t w = 0; w < 2; ++w) {
    writers.emplace_back([&, w] {
      const auto client = Connect({.put_path = w == 0 ? PutPath::kReserve : PutPath::kAuto});
      Random random(w);
      for (uint64_t i = 0; !stop; ++i) {
        // New keys up to some number, which then come and go.
        const std::string other = "other" + std::to_string(w) + " " + std::to_string(i % 8000);
        EXPECT_TRUE(client->Put(other, Bytes(i, 50)).ok());
        if (i % 3 == 0) {
          const auto removed = client->Delete("other" + std::to_string(w) + " " + std::to_string(random.Uniform(8000)));
          EXPECT_TRUE(removed.ok() || removed.code() == Code::kNotFound);
        }
        const uint64_t stays = random.Uniform(kStay / 2) * 2 + w;  // each writer has separate keys
        EXPECT_TRUE(client->Put(Key(stays), Key(stays) + " " + std::to_string(i)).ok());
        if (w == 0) round = i;
      }
    });
  }
  const auto reader = Connect();
  for (uint64_t scans = 0; scans < 5 || round < 3000; ++scans) {
    const Told told = ScanAll(*reader, {0, scans % 2 == 0 ? size_t{50} : size_t{1000}, 1 << 20});
    for (uint64_t i = 0; i < kStay; ++i) {
      const auto at = told.keys.find(Key(i));
      if (at == told.keys.end()) {
        stop = true;
        ADD_FAILURE() << Key(i) << " was not told";
        break;
      }
      EXPECT_EQ(at->second.value.find(Key(i) + " "), 0U) << at->second.value;
    }
    if (stop) break;
    // A scan over shm never waits. On two processors, the others would get one operation in a time slice.
    std::this_thread::sleep_for(milliseconds(1));
  }
  stop = true;
  for (std::thread& thread : writers) thread.join();
}

// A page shows the client's puts and deletes that ended before the page began.
TEST_P(ScanTest, PageShowsEarlierPutsAndDeletes) {
  const auto server = Serve();
  const auto client = Connect();
  const auto other = Connect({.put_path = PutPath::kReserve});
  for (uint64_t round = 0; round < 50; ++round) {
    for (uint64_t i = 0; i < 20; ++i) {
      ASSERT_TRUE((i % 2 == 0 ? client : other)->Put(Key(i), std::to_string(round)).ok());
    }
    ASSERT_TRUE(client->Delete(Key(round % 20)).ok());
    const Told told = ScanAll(*client);
    EXPECT_EQ(told.keys.size(), 19U);
    for (const auto& [key, each] : told.keys) EXPECT_EQ(each.value, std::to_string(round)) << key;
  }
}

TEST_P(ScanTest, AnotherClientContinuesTheScanAfterGrowth) {
  const auto server = Serve(Small(1));
  const auto client = Connect();
  for (uint64_t i = 0; i < 300; ++i) ASSERT_TRUE(client->Put(Key(i), "first").ok());
  auto page = client->Scan({0, 100, SIZE_MAX});
  ASSERT_TRUE(page.ok());
  ASSERT_TRUE(page->next);
  std::set<std::string> told;
  for (const ScannedKey& each : page->keys) told.insert(each.key);
  EXPECT_GE(told.size(), 100U);
  for (uint64_t i = 300; i < 5000; ++i) ASSERT_TRUE(client->Put(Key(i), "second").ok());
  const auto another = Connect();
  for (const auto& [key, each] : ScanAll(*another, {*page->next, 1000, SIZE_MAX}).keys) {
    EXPECT_TRUE(told.insert(key).second) << key << " comes twice";
  }
  for (uint64_t i = 0; i < 300; ++i) EXPECT_TRUE(told.contains(Key(i))) << i;
}

TEST_P(ScanTest, ACursorOfNoShardIsRefused) {
  const auto server = Serve();
  const auto client = Connect();
  ExpectFails(client->Scan({uint64_t{1} << 40, 10, 10}).status(), Code::kInvalidArgument, "cursor");
  ExpectFails(client->Scan({UINT64_MAX, 10, 10}).status(), Code::kInvalidArgument, "cursor");
  ExpectFails(client->Scan({uint64_t{200} << 32 | 1, 10, 10}).status(), Code::kInvalidArgument, "cursor");
}

// An entry does not tell the size of a large value. So a page has one such value, even if several seem to fit.
TEST_P(ScanTest, APageHasFewLargeValues) {
  ServerOptions options = Options();
  options.pool_size = uint64_t{256} << 20;
  options.segment_size = 8 << 20;
  const auto server = Serve(options);
  const auto client = Connect();
  const std::string value(3 << 19, 'v');  // 1.5 MiB
  for (uint64_t i = 0; i < 4; ++i) ASSERT_TRUE(client->Put(Key(i), value).ok());
  const Told told = ScanAll(*client);
  ASSERT_EQ(told.keys.size(), 4U);
  for (const auto& [key, each] : told.keys) EXPECT_TRUE(each.value == value) << key;
  EXPECT_GE(told.pages, 4U);
}

// Callbacks must not throw. If one does, the scan throws that after its page, when nothing of it is under way.
TEST_P(ScanTest, ThrowingCallbackLeavesNoOperationUnderWay) {
  const auto server = Serve();
  const auto client = Connect();
  for (uint64_t i = 0; i < 200; ++i) ASSERT_TRUE(client->Put(Key(i), "value").ok());
  const auto thrower = [](const Result<std::string_view>& /*value*/) { throw std::runtime_error("thrown"); };
  ASSERT_TRUE(client->GetAsync(Key(0), thrower).ok());
  EXPECT_THROW((void)client->Scan(), std::runtime_error);
  EXPECT_EQ(ScanAll(*client).keys.size(), 200U);
  ASSERT_TRUE(client->GetAsync(Key(0), thrower).ok());
  EXPECT_THROW((void)client->Put(Key(1), std::string(9000, 'v')), std::runtime_error);
  EXPECT_EQ(*client->Get(Key(1)), std::string(9000, 'v'));
}

// Asynchronous operations of the same client go on meanwhile.
TEST_P(ScanTest, ScanGoesOnBesideOtherOperationsOfItsClient) {
  const auto server = Serve();
  const auto client = Connect({.queue_depth = 4});
  for (uint64_t i = 0; i < 500; ++i) ASSERT_TRUE(client->Put(Key(i), "value").ok());
  uint64_t finished = 0;
  for (uint64_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(client->PutAsync(Key(i), "new", [&](const Status& status) { finished += status.ok() ? 1 : 0; }).ok());
  }
  EXPECT_EQ(ScanAll(*client).keys.size(), 500U);
  ASSERT_TRUE(client->Drain().ok());
  EXPECT_EQ(finished, 4U);
}

class ScanRestart : public E2eTest {};

TEST_F(ScanRestart, ACursorOutlivesTheServer) {
  std::set<std::string> told;
  std::optional<uint64_t> next;
  {
    const auto server = Serve(PoolKind::kPowerSafe);
    const auto client = Connect();
    for (uint64_t i = 0; i < 500; ++i) ASSERT_TRUE(client->Put(Key(i), "value").ok());
    const auto page = client->Scan({0, 200, SIZE_MAX});
    ASSERT_TRUE(page.ok());
    for (const ScannedKey& each : page->keys) told.insert(each.key);
    next = page->next;
    server->Stop();
    EXPECT_EQ(client->Scan().status().code(), Code::kUnavailable);
  }
  const auto server = Serve(PoolKind::kPowerSafe);
  const auto client = Connect();
  ASSERT_TRUE(next);
  for (const auto& [key, each] : ScanAll(*client, {*next, 1000, SIZE_MAX}).keys) {
    EXPECT_TRUE(told.insert(key).second) << key << " comes twice";
  }
  EXPECT_EQ(told.size(), 500U);
}

}  // namespace
}  // namespace erda
