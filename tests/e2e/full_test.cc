// Pools without room.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "e2e/fixture.h"

namespace erda {
namespace {

class FullPool : public EveryPool {};

TEST_P(FullPool, RefusesPutsWhenTheLogIsFullAndServesOtherRequests) {
  ServerOptions options = SmallOptions();
  for (const PutPath path : {PutPath::kInline, PutPath::kReserve, PutPath::kDelegate}) {
    options.pool = GetParam() == PoolKind::kDram ? "dram:" : Path("pool" + std::to_string(static_cast<int>(path)));
    const auto server = Serve(options);
    const auto client = Connect({.put_path = path});
    std::map<std::string, std::string> model;
    const auto fill = [&](const std::string& name) {
      Status full;
      for (uint64_t i = 0; full.ok() && i < 1000; ++i) {
        const std::string key = name + std::to_string(i);
        const std::string value = Bytes(i, 3000);
        full = client->Put(key, value);
        if (full.ok()) model[key] = value;
      }
      ExpectFails(full, Code::kResourceExhausted, "log");
    };
    fill("key");
    const size_t keys = model.size();
    EXPECT_GE(keys * 3000, 4 * options.region_size) << "of 6 regions";
    for (int i = 0; i < 3; ++i) ExpectFails(client->Put("new", Bytes(1, 3000)), Code::kResourceExhausted, "log");
    EXPECT_EQ(client->Get("new").status().code(), Code::kNotFound);
    for (const auto& [key, value] : model) ASSERT_EQ(*client->Get(key) == value, true) << key;
    EXPECT_EQ(CountersOf(*client).at("keys"), keys);
    EXPECT_GE(CountersOf(*client).at("refused"), 4U);

    // Deletes make room, in any part of the log.
    for (size_t i = 0; i < keys; i += 2) {
      const std::string key = "key" + std::to_string(i);
      ASSERT_TRUE(client->Delete(key).ok()) << key;
      ASSERT_EQ(client->Get(key).status().code(), Code::kNotFound) << key;
      model.erase(key);
    }
    fill("more");
    EXPECT_GE(model.size(), keys * 5 / 6) << "the cleaner may keep a part of a region";
    for (const auto& [key, value] : model) ASSERT_EQ(*client->Get(key) == value, true) << key;
    for (const auto& [key, value] : model) ASSERT_TRUE(client->Delete(key).ok()) << key;
    EXPECT_EQ(SettledCountersOf(*client).at("keys"), 0U);
    EXPECT_EQ(CountersOf(*client).at("violations"), 0U);
  }
}

// The index grows into the log, so the log is full in the end.
TEST_P(FullPool, TakesSmallKeysUntilTheLogIsFullAndServesOtherRequests) {
  ServerOptions options = Options();
  options.pool_size = 1 << 20;
  options.region_size = 16 << 10;
  options.segment_size = 8 << 10;
  options.index_entries = 64;
  for (const PutPath path : {PutPath::kInline, PutPath::kReserve, PutPath::kDelegate}) {
    SCOPED_TRACE("path " + std::to_string(static_cast<int>(path)));
    options.pool = GetParam() == PoolKind::kDram ? "dram:" : Path("pool" + std::to_string(static_cast<int>(path)));
    const auto server = Serve(options);
    const auto client = Connect({.put_path = path});
    const auto sleeper = Connect();
    EXPECT_EQ(CountersOf(*client).at("index_slots"), 128U) << "the smallest";
    std::map<std::string, std::string> model;
    const auto fill = [&](const std::string& name) {
      Status full;
      for (uint64_t i = 0; full.ok() && i < 100'000; ++i) {
        const std::string key = name + std::to_string(i);
        const std::string value = Bytes(i, 20);
        full = client->Put(key, value);
        if (full.ok()) model[key] = value;
      }
      ExpectFails(full, Code::kResourceExhausted, "log");
    };
    const auto expect_all = [&](Client& reader) {
      for (const auto& [key, value] : model) {
        const auto got = reader.Get(key);
        ASSERT_TRUE(got.ok()) << key << ": " << got.status().ToString();
        ASSERT_TRUE(*got == value) << key;
      }
    };
    fill("key");
    const size_t keys = model.size();
    // Each key takes 80 bytes of the log, and less than 32 bytes of the index.
    EXPECT_GE(keys * (80 + 32), options.pool_size * 3 / 4);
    EXPECT_GE(CountersOf(*client).at("index_slots"), keys);
    for (int i = 0; i < 3; ++i) ExpectFails(client->Put("new", Bytes(1, 20)), Code::kResourceExhausted, "log");
    EXPECT_EQ(client->Get("new").status().code(), Code::kNotFound);
    expect_all(*client);
    expect_all(*sleeper);
    EXPECT_EQ(SettledCountersOf(*client).at("keys"), keys);

    // Deletes make room, in any part of the log.
    for (size_t i = 0; i < keys; i += 2) {
      const std::string key = "key" + std::to_string(i);
      ASSERT_TRUE(client->Delete(key).ok()) << key;
      model.erase(key);
    }
    fill("more");
    EXPECT_GE(model.size(), keys * 5 / 6) << "the cleaner may keep a part of a region";
    expect_all(*client);
    expect_all(*sleeper);
    for (size_t i = 0; i < keys; i += 2) {
      ASSERT_EQ(sleeper->Get("key" + std::to_string(i)).status().code(), Code::kNotFound) << i;
    }
    for (const auto& [key, value] : model) ASSERT_TRUE(client->Delete(key).ok()) << key;
    EXPECT_EQ(SettledCountersOf(*client).at("keys"), 0U);
    EXPECT_TRUE(client->Put("new", "value").ok()) << "there is room again";
    EXPECT_EQ(*sleeper->Get("new"), "value");
    EXPECT_EQ(CountersOf(*client).at("violations"), 0U);
  }
}

TEST_P(FullPool, ClientCannotExceedItsReservations) {
  ServerOptions options = Options();
  options.reservations_per_client = 2;
  const auto server = Serve(options);
  const auto client = Connect({.put_path = PutPath::kReserve, .queue_depth = 32});
  uint64_t ok = 0;
  uint64_t refused = 0;
  for (int i = 0; i < 32; ++i) {
    const Status started = client->PutAsync("key" + std::to_string(i), Bytes(1, 50'000), [&](const Status& put) {
      ok += put.ok() ? 1 : 0;
      if (put.ok()) return;
      ++refused;
      ExpectFails(put, Code::kResourceExhausted, "2 puts in flight");
    });
    ASSERT_TRUE(started.ok());
  }
  ASSERT_TRUE(client->Drain().ok());
  EXPECT_EQ(ok + refused, 32U);
  EXPECT_GE(ok, 2U);
  EXPECT_EQ(SettledCountersOf(*client).at("refused"), refused);
  EXPECT_TRUE(client->Put("key", "value").ok()) << "those are done by now";
}

// The idle client's chunk keeps regions from being cleaned. Other clients need that room, and the idle client does not
// poll.
TEST_P(FullPool, IdleClientBlocksNoPutWithItsChunk) {
  ServerOptions options = SmallOptions();
  std::map<bool, int> stored;
  for (const bool stays : {false, true}) {
    options.pool = GetParam() == PoolKind::kDram ? "dram:" : Path("pool" + std::to_string(stays ? 1 : 0));
    const auto server = Serve(options);
    const auto client = Connect();
    auto idle = Connect({.put_path = PutPath::kDelegate});
    for (int i = 0; i < 30; ++i) ASSERT_TRUE(idle->Put("idle" + std::to_string(i), Bytes(1, 3000)).ok());
    ASSERT_NE(InfoOf(*client).at("chunks"), "0");
    for (int i = 0; i < 30; ++i) ASSERT_TRUE(client->Delete("idle" + std::to_string(i)).ok());
    if (!stays) idle.reset();
    Status full;
    while (full.ok() && stored[stays] < 1000) {
      full = client->Put("key" + std::to_string(stored[stays]), Bytes(2, 3000));
      if (full.ok()) ++stored[stays];
    }
    ExpectFails(full, Code::kResourceExhausted, "log");
    EXPECT_EQ(CountersOf(*client).at("overdue"), stays ? 1U : 0U);
    EXPECT_EQ(InfoOf(*client).at("chunks"), "0");
    ASSERT_TRUE(client->Delete("key0").ok());
    // The idle client goes on.
    if (stays) {
      EXPECT_TRUE(idle->Delete("key1").ok()) << "over a new connection";
      EXPECT_EQ(idle->stats().reconnects, 1U);
    }
    EXPECT_EQ(CountersOf(*client).at("violations"), 0U);
  }
  EXPECT_GE(stored[true] + 2, stored[false]);
}

INSTANTIATE_TEST_SUITE_P(E2e, FullPool, kEveryPool, PoolName);

}  // namespace
}  // namespace erda
