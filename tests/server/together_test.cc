// Puts of one batch: they share their fences, and are otherwise as if each had come alone. After a power cut in the
// middle: recovery_test.cc.
#include <gtest/gtest.h>

#include "base/hash.h"
#include "server/store.h"

namespace erda::server {
namespace {

using format::Counter;

class TogetherTest : public testing::Test {
 protected:
  static StoreOptions Options() {
    StoreOptions options;
    options.wish.index_entries = 1024;
    options.wish.pool_size += 16 * 1024;
    return options;
  }
  uint64_t Fences() {
    store_.versions().PublishGauges();
    return store_.counter(Counter::kNvmFences);
  }
  // Keys whose neighbourhoods have nothing in common.
  [[nodiscard]] std::vector<std::string> FarKeys(size_t count) const {
    std::vector<std::string> keys;
    for (int i = 0; keys.size() < count; ++i) {
      std::string key = "far" + std::to_string(i);
      const uint64_t home = store_.geometry().HomeOf(HashKey(key));
      if (home / 64 == 2 * keys.size()) keys.push_back(std::move(key));
    }
    return keys;
  }
  [[nodiscard]] std::vector<std::string> NearKeys(size_t count) const {
    std::vector<std::string> keys;
    for (int i = 0; keys.size() < count; ++i) {
      std::string key = "near" + std::to_string(i);
      if (store_.geometry().HomeOf(HashKey(key)) / 64 == 5) keys.push_back(std::move(key));
    }
    return keys;
  }
  Store store_{Options()};
};

TEST_F(TogetherTest, TwoFencesAreEnough) {
  const auto keys = FarKeys(6);
  store_.Inline("warm", "value");
  for (const char* value : {"new", "again"}) {  // new entries, and those that are there
    const uint64_t before = Fences();
    store_.PutTogether();
    for (const std::string& key : keys) EXPECT_EQ(store_.Inline(key, value).code, Code::kOk);
    EXPECT_EQ(Fences(), before);
    store_.PublishTogether();
    EXPECT_EQ(Fences(), before + 2);
    for (const std::string& key : keys) EXPECT_EQ(store_.Get(key), value);
  }
  EXPECT_EQ(store_.Violation(), "");
}

TEST_F(TogetherTest, EveryPathSharesThem) {
  const auto keys = FarKeys(3);
  for (const std::string& key : keys) store_.Inline(key, "old");
  ASSERT_TRUE(store_.Delegated(keys[0], "old", 1));  // the session has a chunk now
  const uint64_t before = Fences();
  store_.PutTogether();
  store_.Inline(keys[0], "inline");
  const Reserved reserved = store_.Reserve(keys[1], "reserved", 2);
  EXPECT_TRUE(store_.Delegated(keys[2], "delegated", 1));
  EXPECT_EQ(store_.versions().in_flight(), 0U);
  store_.PublishTogether();
  EXPECT_EQ(Fences(), before + 2);
  EXPECT_EQ(store_.versions().in_flight(), 1U);
  EXPECT_TRUE(store_.Finish(reserved));
  EXPECT_EQ(store_.Get(keys[0]), "inline");
  EXPECT_EQ(store_.Get(keys[1]), "reserved");
  EXPECT_EQ(store_.Get(keys[2]), "delegated");
}

TEST_F(TogetherTest, NothingIsThereBeforeItIsPublished) {
  store_.Inline("k", "old");
  store_.PutTogether();
  store_.Inline("k", "new");
  store_.Inline("other", "new");
  EXPECT_EQ(store_.Get("k"), "old");
  EXPECT_EQ(store_.Get("other"), kAbsent);
  store_.PublishTogether();
  EXPECT_EQ(store_.Get("k"), "new");
  EXPECT_EQ(store_.Get("other"), "new");
}

TEST_F(TogetherTest, PutsOfOneKeyComeOneAfterTheOther) {
  store_.PutTogether();
  store_.Inline("k", "first");
  const Outcome second = store_.Inline("k", "second");
  EXPECT_EQ(store_.Get("k"), "first");
  const Outcome third = store_.Inline("k", "third");
  store_.PublishTogether();
  EXPECT_EQ(store_.Get("k"), "third");
  EXPECT_EQ(store_.WordOf("k").new_address(), third.address);
  EXPECT_EQ(store_.WordOf("k").old_address(), second.address);
  EXPECT_EQ(third.header.previous, second.address.raw());
  EXPECT_EQ(store_.Keys(), 1U);
  EXPECT_EQ(store_.Violation(), "");
}

TEST_F(TogetherTest, NewKeysOfOneNeighbourhoodTakeASlotEach) {
  const auto keys = NearKeys(40);
  store_.PutTogether();
  for (const std::string& key : keys) EXPECT_EQ(store_.Inline(key, "of " + key).code, Code::kOk);
  store_.PublishTogether();
  for (const std::string& key : keys) EXPECT_EQ(store_.Get(key), "of " + key);
  EXPECT_EQ(store_.Keys(), keys.size());
  EXPECT_EQ(store_.Violation(), "");
}

// Entries are moved to let one in: those that the batch is about to change as well.
TEST_F(TogetherTest, AnEntryThatIsPutToMayMove) {
  const auto keys = NearKeys(100);  // more than their neighbourhoods hold, so some are elsewhere
  for (size_t i = 0; i < 60; ++i) store_.Inline(keys[i], "old");
  const uint64_t moved = store_.displacements();
  store_.PutTogether();
  for (size_t i = 0; i < 60; ++i) store_.Inline(keys[i], "new");
  std::vector<std::string> there(keys.begin(), keys.begin() + 60);
  for (size_t i = 60; i < keys.size(); ++i) {
    store_.Inline(keys[i - 60], "newer");
    if (store_.Inline(keys[i], "newer").code == Code::kOk) there.push_back(keys[i]);
  }
  store_.PublishTogether();
  EXPECT_GT(store_.displacements(), moved);
  for (const std::string& key : there) EXPECT_NE(store_.Get(key), kAbsent) << key;
  for (size_t i = 0; i < 40; ++i) EXPECT_EQ(store_.Get(keys[i]), "newer");
  EXPECT_EQ(store_.Keys(), there.size());
  EXPECT_EQ(store_.Violation(), "");
}

TEST_F(TogetherTest, WhatElseIsAskedForComesBehindThem) {
  const auto keys = FarKeys(2);
  store_.PutTogether();
  store_.Inline(keys[0], "deleted");
  EXPECT_EQ(store_.Delete(keys[0]), Code::kOk);
  EXPECT_EQ(store_.Get(keys[0]), kAbsent);

  const Reserved left = store_.Reserve(keys[0], "never", 1);
  store_.EndSession(1);
  EXPECT_EQ(store_.versions().in_flight(), 0U);
  EXPECT_EQ(store_.Get(keys[0]), kAbsent);

  store_.Inline(keys[1], "kept");
  store_.Report(keys[1]);
  EXPECT_EQ(store_.Get(keys[1]), "kept");

  store_.Inline(keys[1], "closed");
  store_.PublishTogether();
  store_.PutTogether();
  store_.Inline(keys[1], "at the end");
  store_.CloseAndReopen();
  EXPECT_EQ(store_.Get(keys[1]), "at the end");
}

// The commit of an older put of a key that is in the batch as well.
TEST_F(TogetherTest, ACommitDoesNotPassAPutOfItsKey) {
  const Reserved older = store_.Reserve("k", "older");
  store_.Land(older);
  store_.PutTogether();
  store_.Inline("k", "newer");
  EXPECT_EQ(store_.Commit(older), Code::kOk);
  store_.PublishTogether();
  EXPECT_EQ(store_.Get("k"), "newer");
  EXPECT_TRUE(store_.WordOf("k").settled());
}

TEST_F(TogetherTest, AsManyAsThereAre) {
  const auto keys = NearKeys(50);
  for (const std::string& key : keys) store_.Inline(key, "old");
  const uint64_t before = Fences();
  store_.PutTogether();
  for (const std::string& key : keys) store_.Inline(key, "new");
  store_.PublishTogether();
  EXPECT_LE(Fences(), before + 16);  // of 100; some for the marks
  for (const std::string& key : keys) EXPECT_EQ(store_.Get(key), "new");
}

}  // namespace
}  // namespace erda::server
