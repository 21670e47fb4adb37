// Closing and opening the same bytes again.
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "base/random.h"
#include "base/test_hash.h"
#include "server/store.h"

namespace erda::server {
namespace {

using format::FlushMethod;
using format::SegmentState;

class ReopenTest : public testing::TestWithParam<FlushMethod> {
 protected:
  static StoreOptions Options() {
    StoreOptions options;
    options.flush = GetParam();
    return options;
  }
  Store store_{Options()};
};
INSTANTIATE_TEST_SUITE_P(Flush, ReopenTest, EveryFlushMethod(), FlushMethodName);

TEST_P(ReopenTest, KeepsAllContents) {
  std::map<std::string, std::string> contents;
  for (int i = 0; i < 40; ++i) {
    const std::string key = "key" + std::to_string(i);
    contents[key] = std::string(static_cast<size_t>(i * 20), 'x') + key;
    ASSERT_EQ(store_.Inline(key, contents[key]).code, Code::kOk);
  }
  for (int round = 0; round < 3; ++round) {
    store_.CloseAndReopen();
    EXPECT_EQ(store_.versions().index().census().used(), contents.size());
    for (const auto& [key, value] : contents) EXPECT_EQ(store_.Get(key), value);
  }
}

TEST_P(ReopenTest, AnEmptyPoolStaysEmpty) {
  store_.CloseAndReopen();
  EXPECT_EQ(store_.versions().index().census().used(), 0U);
  EXPECT_EQ(store_.Get("k"), kAbsent);
  EXPECT_EQ(store_.Inline("k", "v").code, Code::kOk);
}

TEST_P(ReopenTest, ReopeningSettlesOrTakesBackVersionsInFlight) {
  store_.Inline("whole", "v1");
  store_.Land(store_.Reserve("whole", "v2", 1));
  store_.Inline("torn", "v1");
  store_.LandPart(store_.Reserve("torn", "v2", 1), 5);
  store_.Reserve("nothing", "v1", 2);
  const Reserved between = store_.Reserve("between", "v1", 3);
  store_.Reserve("between", "v2", 2);
  store_.Land(between);
  store_.CloseAndReopen();
  EXPECT_EQ(store_.Get("whole"), "v2");
  EXPECT_EQ(store_.Get("torn"), "v1");
  EXPECT_EQ(store_.Get("nothing"), kAbsent);
  EXPECT_EQ(store_.Get("between"), "v1");
  EXPECT_EQ(store_.versions().in_flight(), 0U);
  for (const char* key : {"whole", "torn", "between"}) EXPECT_TRUE(store_.WordOf(key).settled()) << key;
  EXPECT_EQ(store_.versions().index().census().used(), 3U);
}

TEST_P(ReopenTest, VersionsNeverRepeat) {
  uint64_t last = 0;
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 5; ++i) {
      const uint64_t inline_version = store_.Inline("k", "v").header.version;
      EXPECT_GT(inline_version, last);
      last = store_.Reserve("k", "v").version();
      EXPECT_GT(last, inline_version);
    }
    store_.CloseAndReopen();
  }
}

// A server that dies does not close the pool. The next one must not give out its versions again after the recovery.
TEST_P(ReopenTest, VersionsNeverRepeatAfterADeath) {
  const uint64_t last = store_.Inline("k", "v").header.version;
  store_.Open();
  EXPECT_GT(store_.Inline("k", "v").header.version, last);
}

TEST_P(ReopenTest, LogContinuesAtItsEnd) {
  const std::string value(300, 'x');
  format::LogAddress last;
  for (int i = 0; i < 30; ++i) {
    const Outcome outcome = store_.Inline("key" + std::to_string(i), value + std::to_string(i));
    ASSERT_EQ(outcome.code, Code::kOk);
    EXPECT_GT(outcome.address.raw(), last.raw()) << i;
    last = outcome.address;
    store_.CloseAndReopen();
  }
  for (int i = 0; i < 30; ++i) EXPECT_EQ(store_.Get("key" + std::to_string(i)), value + std::to_string(i));
}

TEST_P(ReopenTest, UnfinishedReservationIsPassedOver) {
  store_.Reserve("dead", std::string(100, 'x'), 1);
  store_.Inline("k", "v1");
  store_.CloseAndReopen();
  const Outcome outcome = store_.Inline("k", "v2");
  ASSERT_EQ(outcome.code, Code::kOk);
  EXPECT_EQ(store_.Get("k"), "v2");
  EXPECT_EQ(store_.WordOf("k").new_address(), outcome.address);
  EXPECT_FALSE(store_.WordOf("k").old_address().none());
}

TEST_P(ReopenTest, LogHasTheSameEndWithAndWithoutReopening) {
  const auto fill = [](Store& store, bool reopen) {
    int puts = 0;
    while (store.Inline("k", std::string(500, 'x')).code == Code::kOk) {
      ++puts;
      if (reopen) store.CloseAndReopen();
    }
    store.versions().part().PublishGauges();
    return std::pair(puts, store.counter(format::Counter::kLogBytesUsed));
  };
  Store other(Options());
  EXPECT_EQ(fill(store_, true), fill(other, false));
}

TEST_P(ReopenTest, FullSegmentsAreMarkedSettledWhenNothingInThemIsInFlight) {
  const Reserved reserved = store_.Reserve("k", "v1", 1, Ack::kPlaced);
  const auto fill = [&] {
    for (int i = 0; i < 8; ++i) ASSERT_EQ(store_.Inline("filler", std::string(500, 'x')).code, Code::kOk);
  };
  EXPECT_EQ(store_.SegmentStateOf(reserved), SegmentState::kOpen);
  fill();
  EXPECT_EQ(store_.SegmentStateOf(reserved), SegmentState::kSealed);
  store_.Land(reserved);
  EXPECT_EQ(store_.SegmentStateOf(reserved), SegmentState::kSealed);
  store_.Sweep();
  EXPECT_EQ(store_.SegmentStateOf(reserved), SegmentState::kSettled);

  const Reserved done = store_.Reserve("k", "v2", 1);
  store_.Land(done);
  store_.Sweep();
  fill();
  EXPECT_EQ(store_.SegmentStateOf(done), SegmentState::kSettled);

  const Reserved dead = store_.Reserve("k", "v3", 1);
  fill();
  EXPECT_EQ(store_.SegmentStateOf(dead), SegmentState::kSealed);
  store_.EndSession(1);
  EXPECT_EQ(store_.SegmentStateOf(dead), SegmentState::kSettled);

  const Reserved superseded = store_.Reserve("k", "v4", 1);
  fill();
  ASSERT_EQ(store_.Delete("k"), Code::kOk);
  EXPECT_EQ(store_.SegmentStateOf(superseded), SegmentState::kSealed);  // its writer can still write there
  store_.EndSession(1);
  EXPECT_EQ(store_.SegmentStateOf(superseded), SegmentState::kSettled);
}

TEST_P(ReopenTest, EveryHeadOfAShardKeepsItsValues) {
  StoreOptions options = Options();
  options.wish = {0, 1, 4096, 4096, 256};
  options.wish.pool_size = 131072 + 80 * 4096;
  options.wish.regions_per_head = 30;
  Store store(options);
  ASSERT_GE(store.geometry().heads_per_shard, 3U);
  std::map<uint32_t, int> keys_of_head;
  for (int i = 0; i < 100; ++i) {
    const std::string key = "key" + std::to_string(i);
    ++keys_of_head[store.Inline(key, "v" + key).head];
    store.Land(store.Reserve(key, "w" + key, 1, Ack::kPlaced));
  }
  EXPECT_EQ(keys_of_head.size(), store.geometry().heads_per_shard);
  for (int i = 0; i < 100; i += 2) EXPECT_EQ(store.Delete("key" + std::to_string(i)), Code::kOk);
  store.CloseAndReopen();
  for (int i = 0; i < 100; ++i) {
    const std::string key = "key" + std::to_string(i);
    EXPECT_EQ(store.Get(key), i % 2 == 0 ? std::string(kAbsent) : "w" + key);
  }
}

TEST_P(ReopenTest, ShardWritesOnlyItsPartOfThePool) {
  StoreOptions options = Options();
  options.wish.shards = 2;
  options.wish.pool_size = 131072 + 8 * 16384;
  options.shard = 1;
  Store store(options);
  int puts = 0;
  for (int i = 0; i < 40; ++i) {
    const std::string key = "key" + std::to_string(i);
    if (store.geometry().ShardOf(HashKey(key)) != 1) continue;
    ++puts;
    ASSERT_EQ(store.Inline(key, "v").code, Code::kOk);
    EXPECT_EQ(store.Get(key), "v");
  }
  ASSERT_GT(puts, 10);
  store.CloseAndReopen();
  EXPECT_EQ(store.versions().index().census().used(), static_cast<uint64_t>(puts));
  // The bytes of shard 0 stay zero: its record, its index and its regions.
  const auto& g = store.geometry();
  const auto expect_zero = [&](uint64_t offset, uint64_t size) {
    for (uint64_t at = offset; at < offset + size; at += 8) {
      ASSERT_EQ(LoadAs<uint64_t>(store.pool().bytes().subspan(at, 8)), 0U) << "at " << at;
    }
  };
  expect_zero(format::kShardRecordsOffset, sizeof(uint64_t) * 8);
  expect_zero(g.FirstSlotOffset(0, 0), g.index_slots * sizeof(format::IndexEntry));
  for (uint32_t i = 0; i < g.regions_per_shard; ++i) expect_zero(g.RegionOffset(g.RegionOf(0, i)), g.region_size);
}

TEST_P(ReopenTest, ADamagedRegionTableIsRefusedWithAMessage) {
  store_.Inline("k", "v");
  store_.Close();
  // A second region has the word of the same head slot.
  auto bytes = store_.pool().view().bytes.subspan(format::kRegionTableOffset);
  std::memcpy(bytes.data() + sizeof(uint64_t), bytes.data(), sizeof(uint64_t));
  nvm::Writer writer(store_.pool());
  std::vector<uint64_t> control(format::ControlBytes(store_.geometry()) / sizeof(uint64_t));
  Versions versions(writer, store_.geometry(), 1, 0, std::as_writable_bytes(std::span(control)), {});
  const Status status = versions.part().Open();
  EXPECT_EQ(status.code(), Code::kCorruption);
  EXPECT_NE(status.message().find("region 1"), std::string_view::npos) << status.ToString();
}

}  // namespace
}  // namespace erda::server
