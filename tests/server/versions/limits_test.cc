// Full indexes, full logs, and sessions with too much in flight. The error changes nothing, and other requests go on.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/test_hash.h"
#include "format/geometry.h"
#include "format/log_layout.h"
#include "server/store.h"

namespace erda::server {
namespace {

using format::FlushMethod;
using format::Reason;

StoreOptions SmallLog() {
  StoreOptions options;
  options.wish.region_size = 4096;  // one segment each
  options.wish.pool_size = 98304 + 4 * 4096;
  return options;
}

class LimitsTest : public testing::Test {
 protected:
  // Puts new keys until one is refused. Returns the keys and values that are there.
  std::map<std::string, std::string> Fill(Store& store, size_t value_bytes, Reason reason) {
    std::map<std::string, std::string> contents;
    for (int i = 0;; ++i) {
      const std::string key = "key" + std::to_string(i);
      const std::string value(value_bytes, static_cast<char>('a' + i % 26));
      const Outcome outcome = store.Inline(key, value);
      if (outcome.code != Code::kOk) {
        EXPECT_EQ(outcome.code, Code::kResourceExhausted);
        EXPECT_EQ(outcome.reason, reason);
        EXPECT_EQ(store.Get(key), kAbsent);
        refused_ = key;
        return contents;
      }
      contents[key] = value;
    }
  }
  static void ExpectContents(const Store& store, const std::map<std::string, std::string>& contents) {
    for (const auto& [key, value] : contents) EXPECT_EQ(store.Get(key), value) << key;
    EXPECT_EQ(store.Violation(), "");
  }
  std::string refused_;
};

// The hashes of the keys differ only in bits that no split uses.
TEST_F(LimitsTest, CollidingKeysFillTheirBlockAndOthersAreServed) {
  Store store;
  const auto put = [&](uint64_t i) {
    const Outcome outcome =
        store.versions().puts().PutInline("key" + std::to_string(i), i << 32, AsBytes("v"), Ack::kPersisted);
    (void)store.versions().PublishPuts();
    return outcome;
  };
  uint64_t keys = 0;
  while (put(keys).code == Code::kOk) ++keys;
  EXPECT_EQ(put(keys).reason, Reason::kIndexFull);
  EXPECT_EQ(keys, 128U) << "a block";
  EXPECT_EQ(put(0).code, Code::kOk) << "it is there already";
  // A quarter of the slots is used, and more slots would gain nothing.
  EXPECT_EQ(store.versions().index().size(), 4U * 128 + 128);
  EXPECT_EQ(store.Inline("another", "v").code, Code::kOk);
  EXPECT_EQ(store.Get("another"), "v");
  EXPECT_EQ(store.Violation(), "");
}

// A client that does not know the pool's seed can only guess one.
TEST_F(LimitsTest, KeysChosenByAnotherSeedAreSpread) {
  StoreOptions options;
  options.wish = {4 << 20, 1, 16384, 4096, 4096};
  Store store(options);
  const uint64_t slots = store.versions().index().size();
  uint64_t chosen = 0;
  for (uint64_t i = 0; chosen < 2 * format::kNeighbourhood; ++i) {
    const std::string key = "key" + std::to_string(i);
    if (store.versions().index().layout().HomeOf(HashKey(key, HashSeed{})) != 100) continue;
    ++chosen;
    ASSERT_EQ(store.Inline(key, "v").code, Code::kOk) << key;
  }
  EXPECT_EQ(store.versions().index().size(), slots) << "nothing was crowded";
  EXPECT_EQ(store.Violation(), "");
}

// A scan by places tells the keys in this order. They fill one block after the other. A split of the next block gains
// nothing before its turn.
TEST_F(LimitsTest, KeysInTheOrderOfTheirHashesAreTaken) {
  StoreOptions options;
  options.wish = {4 << 20, 1, 16384, 4096, 128};
  Store store(options);
  constexpr uint64_t kKeys = 8000;
  std::vector<std::string> keys;
  for (uint64_t i = 0; i < kKeys; ++i) keys.push_back("key" + std::to_string(i));
  const auto place = [](const std::string& key) {
    uint32_t bits = 0;
    for (uint64_t bit = 0, hash = HashKey(key); bit < 32; ++bit, hash >>= 1) bits = bits << 1 | (hash & 1);
    return bits;
  };
  std::ranges::sort(keys, {}, place);
  for (const std::string& key : keys) ASSERT_EQ(store.Inline(key, "v").code, Code::kOk) << key;
  // Keys that stand close together make the index no larger than this, while that is enough.
  EXPECT_LE(store.versions().index().size(), format::SparseIndexSlots(4 << 20, 1));
  for (const std::string& key : keys) ASSERT_EQ(store.Get(key), "v") << key;
  EXPECT_EQ(store.Violation(), "");
}

TEST_F(LimitsTest, AFullLogRefusesPutsAndServesGetsAndDeletes) {
  Store store(SmallLog());
  auto contents = Fill(store, 200, Reason::kLogFull);
  EXPECT_GT(contents.size(), 20U);
  ExpectContents(store, contents);
  const auto word = store.WordOf("key0");
  EXPECT_EQ(store.Inline("key0", std::string(200, 'x')).reason, Reason::kLogFull);
  EXPECT_EQ(store.Reserve("key0", std::string(200, 'x')).outcome.reason, Reason::kLogFull);
  EXPECT_EQ(store.WordOf("key0"), word);
  EXPECT_EQ(store.versions().in_flight(), 0U);
  ExpectContents(store, contents);
  for (auto it = contents.begin(); it != contents.end();) {
    EXPECT_EQ(store.Delete(it->first), Code::kOk);
    EXPECT_EQ(store.Get(it->first), kAbsent);
    it = contents.erase(it);
    ExpectContents(store, contents);
  }
  EXPECT_EQ(store.versions().index().census().used(), 0U);
}

TEST_F(LimitsTest, FullLogRefusesANewKeyWithoutTakingASlot) {
  Store store(SmallLog());
  const auto contents = Fill(store, 200, Reason::kLogFull);
  const uint64_t used = store.versions().index().census().used();
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(store.Inline("new" + std::to_string(i), std::string(3000, 'x')).reason, Reason::kLogFull);
  }
  EXPECT_EQ(store.versions().index().census().used(), used);
  ExpectContents(store, contents);
}

TEST_F(LimitsTest, AFullLogStillTakesCommitsAndEndsOfSessions) {
  Store store(SmallLog());
  const Reserved commits = store.Reserve("a", "v", 1);
  store.Reserve("b", "v", 2);
  Fill(store, 200, Reason::kLogFull);
  EXPECT_TRUE(store.Finish(commits));
  EXPECT_EQ(store.Get("a"), "v");
  store.EndSession(2);
  EXPECT_EQ(store.Get("b"), kAbsent);
  EXPECT_EQ(store.Delete("a"), Code::kOk);
  EXPECT_EQ(store.Get("a"), kAbsent);
}

TEST_F(LimitsTest, TheLastRegionIsNeverGivenOut) {
  Store store(SmallLog());
  Fill(store, 200, Reason::kLogFull);
  uint32_t free = 0;
  for (uint32_t region = 0; region < store.geometry().regions(); ++region) {
    const auto word = LoadAs<uint64_t>(store.pool().bytes().subspan(format::kRegionTableOffset + region * 8, 8));
    free += format::RegionWord(word).linked() ? 0 : 1;
  }
  EXPECT_EQ(free, 1U);
}

TEST_F(LimitsTest, SessionCannotExceedItsReservations) {
  StoreOptions options;
  options.reservations_per_session = 3;
  Store store(options);
  std::vector<Reserved> reserved;
  for (int i = 0; i < 3; ++i) reserved.push_back(store.Reserve("key" + std::to_string(i), "v", 1));
  const Reserved refused = store.Reserve("one more", "v", 1);
  EXPECT_EQ(refused.code(), Code::kResourceExhausted);
  EXPECT_EQ(refused.outcome.reason, Reason::kTooManyReservations);
  EXPECT_TRUE(store.WordOf("one more").empty());
  EXPECT_EQ(store.versions().in_flight(), 3U);
  // Other sessions and other put paths are not affected.
  EXPECT_EQ(store.Reserve("another session", "v", 2).code(), Code::kOk);
  EXPECT_EQ(store.Inline("inline", "v").code, Code::kOk);
  EXPECT_TRUE(store.Finish(reserved[0]));
  EXPECT_EQ(store.Reserve("one more", "v", 1).code(), Code::kOk);
  EXPECT_EQ(store.Reserve("two more", "v", 1).code(), Code::kResourceExhausted);
  store.EndSession(1);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(store.Reserve("again" + std::to_string(i), "v", 1).code(), Code::kOk);
}

TEST_F(LimitsTest, ArrivedReservationsDoNotCountAgainstTheLimit) {
  StoreOptions options;
  options.reservations_per_session = 3;
  Store store(options);
  for (int i = 0; i < 20; ++i) {
    const Reserved reserved = store.Reserve("k", std::to_string(i), 1, Ack::kPlaced);
    ASSERT_EQ(reserved.code(), Code::kOk) << i;
    store.Land(reserved);
    EXPECT_EQ(store.Get("k"), std::to_string(i));
  }
}

// No commit tells that these puts are done, and the shard is never idle.
TEST_F(LimitsTest, PutsWithoutCommitsAreNeverRefused) {
  StoreOptions options;
  options.flush = FlushMethod::kNone;
  options.wish = {64 << 20, 1, 4 << 20, 1 << 20, 4096};
  Store store(options);
  // One session leaves many reservations unfinished, and another one as many as it may have.
  std::vector<Reserved> unfinished;
  for (int i = 0; i < 1000; ++i) unfinished.push_back(store.Reserve("slow" + std::to_string(i), "v", 1));
  for (int i = 0; i < 20'000; ++i) {
    const Reserved put = store.Reserve("key" + std::to_string(i % 500), std::string(500, 'v'), 2, Ack::kPlaced);
    ASSERT_EQ(put.code(), Code::kOk) << i;
    store.Land(put);
    ASSERT_LE(store.versions().in_flight(), 1000U + 1024U);
  }
  for (int i = 1000; i < 1024; ++i) unfinished.push_back(store.Reserve("slow" + std::to_string(i), "v", 1));
  EXPECT_EQ(store.Reserve("one more", "v", 1).outcome.reason, Reason::kTooManyReservations);
  for (const Reserved& reserved : unfinished) EXPECT_EQ(reserved.code(), Code::kOk);
}

TEST_F(LimitsTest, PutsWithoutCommitsThatAreDoneHoldLittleOfTheLog) {
  StoreOptions options;
  options.flush = FlushMethod::kNone;
  options.wish = {64 << 20, 1, 4 << 20, 1 << 20, 4096};
  Store store(options);
  for (int i = 0; i < 5'000; ++i) {
    const Reserved put = store.Reserve("key" + std::to_string(i % 500), "v", static_cast<SessionId>(i % 16));
    ASSERT_EQ(put.code(), Code::kOk) << i;
    store.Land(put);
    ASSERT_LE(store.versions().in_flight(), 257U);
  }
}

TEST_F(LimitsTest, SupersededReservationsCountUntilTheyEnd) {
  StoreOptions options;
  options.reservations_per_session = 2;
  Store store(options);
  store.Inline("k", "v0");
  const Reserved first = store.Reserve("k", "v1", 1);
  store.Reserve("k", "v2", 1);
  EXPECT_EQ(store.Delete("k"), Code::kOk);
  EXPECT_EQ(store.Reserve("k", "v3", 1).outcome.reason, Reason::kTooManyReservations);
  EXPECT_TRUE(store.Finish(first));
  EXPECT_EQ(store.Reserve("k", "v3", 1).code(), Code::kOk);
  EXPECT_EQ(store.Get("k"), kAbsent);
}

}  // namespace
}  // namespace erda::server
