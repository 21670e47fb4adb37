// Values that expire: absent for everybody from their deadline on, and freed behind it.
#include <gtest/gtest.h>

#include <string>

#include "base/hash.h"
#include "server/cleaning_fixture.h"
#include "server/store.h"

namespace erda::server {
namespace {

using format::Counter;
using format::FlushMethod;

class ExpiryTest : public testing::TestWithParam<FlushMethod> {
 protected:
  static StoreOptions Options() {
    StoreOptions options;
    options.flush = GetParam();
    return options;
  }
  Present Judge(std::string_view key) { return store_.versions().Judge(key, HashKey(key)); }
  Outcome Increment(std::string_view key, int64_t delta) {
    Versions& versions = store_.versions();
    const Outcome outcome = versions.Increment(key, HashKey(key), Judge(key), delta, Ack::kPersisted);
    versions.PublishPuts();
    return outcome;
  }
  // As the cleaner proposes it.
  bool Expire(std::string_view key, format::LogAddress address) {
    return store_.versions().Expire(HashKey(key), store_.geometry().HeadOf(HashKey(key)), address);
  }
  Store store_{Options()};
};
INSTANTIATE_TEST_SUITE_P(Flush, ExpiryTest, EveryFlushMethod(), FlushMethodName);

TEST_P(ExpiryTest, AValueIsThereUntilItsDeadlineOnEveryPath) {
  store_.PutFor(10);
  store_.Inline("inline", "v");
  ASSERT_TRUE(store_.Delegated("delegated", "v").has_value());
  const Reserved reserved = store_.Reserve("reserved", "v");
  store_.Land(reserved);
  store_.Sweep();
  store_.PassTime(9);
  for (const char* key : {"inline", "delegated", "reserved"}) {
    EXPECT_EQ(store_.Get(key), "v") << key;
    EXPECT_EQ(Judge(key).state, Present::State::kThere) << key;
  }
  EXPECT_EQ(store_.Violation(), "");
  store_.PassTime(2);
  for (const char* key : {"inline", "delegated", "reserved"}) {
    EXPECT_EQ(store_.Get(key), kAbsent) << key;
    EXPECT_EQ(Judge(key).state, Present::State::kAbsent) << key;
    EXPECT_EQ(Judge(key).version, 0U) << key;
    EXPECT_EQ(store_.Delete(key), Code::kNotFound) << key;
    EXPECT_FALSE(store_.WordOf(key).empty()) << "it is the cleaner that frees it";
  }
}

TEST_P(ExpiryTest, APutWithoutADeadlineStays) {
  store_.PutFor(10);
  store_.Inline("k", "v1");
  store_.PutFor(0);
  store_.Inline("k", "v2");
  store_.PassTime(100);
  EXPECT_EQ(store_.Get("k"), "v2");
}

TEST_P(ExpiryTest, NothingOlderComesBack) {
  store_.Inline("k", "older");
  store_.PutFor(10);
  store_.Inline("k", "newer");
  store_.PassTime(11);
  EXPECT_EQ(store_.Get("k"), kAbsent);
  EXPECT_EQ(store_.GetAfterCrash("k"), kAbsent);
  EXPECT_TRUE(Expire("k", store_.WordOf("k").new_address()));
  EXPECT_TRUE(store_.WordOf("k").empty());
  EXPECT_EQ(store_.GetAfterCrash("k"), kAbsent);
  store_.Recover();
  EXPECT_EQ(store_.Get("k"), kAbsent);
  EXPECT_EQ(store_.counter(Counter::kKeys), 0U);
}

TEST_P(ExpiryTest, WhatNeverArrivedHasNotExpired) {
  store_.Inline("k", "older");
  store_.PutFor(10);
  store_.Reserve("k", "newer");
  store_.PassTime(11);
  EXPECT_EQ(store_.Get("k"), "older");
  store_.EndSession(0);
  EXPECT_EQ(store_.Get("k"), "older");
}

TEST_P(ExpiryTest, ADeadlineSurvivesARestart) {
  store_.PutFor(10);
  store_.Inline("k", "v");
  store_.CloseAndReopen();
  store_.PassTime(9);
  EXPECT_EQ(store_.Get("k"), "v");
  store_.Recover();
  EXPECT_EQ(store_.Get("k"), "v");
  store_.PassTime(2);
  EXPECT_EQ(store_.Get("k"), kAbsent);
}

TEST_P(ExpiryTest, OnlyTheVersionThatTheEntryNamesIsFreed) {
  store_.PutFor(10);
  store_.Inline("k", "v1");
  const auto first = store_.WordOf("k").new_address();
  EXPECT_FALSE(Expire("k", first)) << "not yet";
  store_.PassTime(11);
  const Reserved newer = store_.Reserve("k", "v2");
  EXPECT_FALSE(Expire("k", first)) << "it is the old one of a version that may never arrive";
  store_.Land(newer);
  store_.Sweep();
  EXPECT_FALSE(Expire("k", first));
  EXPECT_EQ(store_.Get("k"), "v2");
  EXPECT_EQ(store_.counter(Counter::kExpired), 0U);
}

// (I4)
TEST_P(ExpiryTest, WhatWasInFlightBeforeItDoesNotComeBack) {
  const Reserved late = store_.Reserve("k", "late");
  store_.PutFor(10);
  store_.Inline("k", "v");
  store_.PassTime(11);
  ASSERT_TRUE(Expire("k", store_.WordOf("k").new_address()));
  store_.PutFor(0);
  store_.Land(late);
  if (GetParam() == FlushMethod::kServerFlush) {
    EXPECT_EQ(store_.Commit(late), Code::kOk) << "it was, before that";
  }
  store_.Sweep();
  EXPECT_EQ(store_.Get("k"), kAbsent);
  EXPECT_EQ(store_.versions().in_flight(), 0U);
  // Nor under a put that comes to nothing.
  const Reserved next = store_.Reserve("k", "next", 1);
  EXPECT_EQ(store_.Get("k"), kAbsent);
  store_.EndSession(1);
  EXPECT_EQ(store_.Get("k"), kAbsent);
  EXPECT_TRUE(store_.WordOf("k").empty());
}

// What a get finds is whole, older than what is on its way, and newer than the old one that has expired.
TEST_P(ExpiryTest, ADeleteSettlesWhatHasArrivedBeforeItSaysThatNothingIsThere) {
  store_.PutFor(10);
  store_.Inline("k", "expired");
  store_.PutFor(0);
  const Reserved whole = store_.Reserve("k", "whole", 0, Ack::kPlaced);
  const Reserved on_its_way = store_.Reserve("k", "on its way", 1, Ack::kPlaced);
  store_.Land(whole);
  store_.PassTime(11);
  ASSERT_EQ(store_.Get("k"), "whole");
  EXPECT_EQ(store_.Delete("k"), Code::kOk);
  EXPECT_EQ(store_.Get("k"), kAbsent);
}

TEST_P(ExpiryTest, ADeleteFindsNothingIfTheNewestThatIsWholeHasExpired) {
  store_.Inline("k", "stays");
  store_.PutFor(10);
  const Reserved whole = store_.Reserve("k", "expires", 0, Ack::kPlaced);
  store_.PutFor(0);
  const Reserved on_its_way = store_.Reserve("k", "on its way", 1, Ack::kPlaced);
  store_.Land(whole);
  store_.PassTime(11);
  ASSERT_EQ(store_.Get("k"), kAbsent);
  EXPECT_EQ(store_.Delete("k"), Code::kNotFound);
  EXPECT_EQ(store_.Get("k"), kAbsent);
}

TEST_P(ExpiryTest, AnIncrementKeepsTheDeadlineAndStartsAnewBehindIt) {
  const std::string one(8, '\0');
  store_.PutFor(10);
  store_.Inline("n", one);
  store_.PutFor(0);
  EXPECT_EQ(Increment("n", 5).number, 5U);
  store_.PassTime(9);
  EXPECT_EQ(Increment("n", 1).number, 6U);
  store_.PassTime(2);
  EXPECT_EQ(store_.Get("n"), kAbsent);
  EXPECT_EQ(Increment("n", 3).number, 3U);
  store_.PassTime(1000);
  EXPECT_EQ(Increment("n", 3).number, 6U);
}

// Bits of a deadline that flip let nothing expire.
TEST_P(ExpiryTest, ADamagedDeadlineIsDamage) {
  store_.PutFor(1'000'000);
  store_.Inline("k", "v");
  const auto at = store_.WordOf("k").new_address();
  const auto offset = store_.geometry().RegionOffset(store_.Published(0, at.slot()).region()) + at.offset_in_region();
  store_.pool().view().bytes[offset + format::kLabelOffset + 4] ^= std::byte{8};  // long ago
  EXPECT_EQ(store_.Get("k"), kDamaged);
  EXPECT_EQ(Judge("k").state, Present::State::kDamaged);
  EXPECT_FALSE(Expire("k", at));
  for (int i = 0; i < 3; ++i) store_.cleaner().Sweep();
  store_.Clean();
  EXPECT_EQ(store_.Get("k"), kDamaged);
  EXPECT_EQ(store_.counter(Counter::kExpired), 0U);
  EXPECT_EQ(store_.Delete("k"), Code::kOk) << "it is not as if nothing were there";
}

class ExpiryCleaningTest : public CleaningTest {
 protected:
  void Sweep() {
    for (uint64_t slot = 0; slot <= store_->geometry().index_slots; slot += 1024) store_->cleaner().Sweep();
    while (store_->CleanStep()) {
    }
  }
  [[nodiscard]] uint64_t Keys() { return store_->Keys(); }
};

TEST_F(ExpiryCleaningTest, TheSweepFreesWhatHasExpiredAndNothingElse) {
  store_->PutFor(10);
  for (uint64_t i = 0; i < 20; ++i) Put(Key(i));
  store_->PutFor(1000);
  for (uint64_t i = 20; i < 40; ++i) Put(Key(i));
  store_->PutFor(0);
  for (uint64_t i = 40; i < 60; ++i) Put(Key(i));
  Sweep();
  EXPECT_EQ(Keys(), 60U);
  ExpectAll();
  store_->PassTime(11);
  for (uint64_t i = 0; i < 20; ++i) model_[Key(i)] = kAbsent;
  ExpectAll();
  Sweep();
  EXPECT_EQ(Keys(), 40U);
  EXPECT_EQ(store_->counter(Counter::kExpired), 20U);
  ExpectAll();
}

// It looks on for as long as something might be left.
TEST_F(ExpiryCleaningTest, TheSweepEndsWhenNothingExpiresAndBeginsWithTheNextPutThatDoes) {
  for (uint64_t i = 0; i < 20; ++i) Put(Key(i));
  for (int round = 0; round < 5; ++round) Sweep();
  store_->PutFor(10);
  store_->cleaning().WillExpire();
  Put(Key(0));
  store_->PassTime(11);
  Sweep();
  EXPECT_EQ(Keys(), 19U);
  const Reserved reserved = store_->Reserve(Key(1), "never comes", 1);
  store_->PassTime(11);
  for (int round = 0; round < 5; ++round) Sweep();
  EXPECT_EQ(Keys(), 19U);
  store_->Land(reserved);
  store_->Sweep();
  for (int round = 0; round < 2; ++round) Sweep();
  EXPECT_EQ(Keys(), 18U) << "it was not settled for long";
}

TEST_F(ExpiryCleaningTest, CleaningCopiesNothingThatHasExpiredAndTheDeadlineOfWhatHasNot) {
  constexpr uint64_t kTtls[] = {0, 10, 100};
  for (uint64_t i = 0; i < 150; ++i) {
    store_->PutFor(kTtls[i % 3]);
    Put(Key(i), 500);
  }
  store_->PutFor(0);
  store_->PassTime(11);
  for (uint64_t i = 0; i < 150; ++i) {
    if (i % 3 == 0) Put(Key(i), 500);
    if (i % 3 == 1) model_[Key(i)] = kAbsent;
  }
  store_->cleaning().Ask();
  store_->Clean();
  ExpectAll();
  EXPECT_GT(store_->counter(Counter::kCleanMoves), 20U);
  EXPECT_GT(store_->counter(Counter::kExpired), 20U);
  EXPECT_LT(store_->counter(Counter::kCleanMoves), 60U) << "one in three";
  store_->PassTime(100);
  for (uint64_t i = 2; i < 150; i += 3) model_[Key(i)] = kAbsent;
  ExpectAll();
}

TEST_F(ExpiryCleaningTest, APutThatFindsNoRoomHasThatOfWhatHasExpired) {
  store_->PutFor(10);
  uint64_t filled = 0;
  while (store_->Put(Key(filled), ValueOf(filled, 500)).code == Code::kOk) ++filled;
  ASSERT_GT(filled, 100U);
  EXPECT_EQ(store_->Put("one more", ValueOf(1, 500)).code, Code::kResourceExhausted);
  store_->PutFor(0);
  store_->PassTime(11);
  // Nothing has told the log, and the log has changed in nothing but that a put may be tried again.
  ASSERT_EQ(store_->Delete(Key(filled - 1)), Code::kNotFound);
  Sweep();
  for (uint64_t i = 0; i < filled / 2; ++i) {
    ASSERT_EQ(store_->Put("new" + std::to_string(i), ValueOf(i, 500)).code, Code::kOk) << i;
  }
}

// Without a sweep of its own before.
TEST_F(ExpiryCleaningTest, APutWaitsUntilTheWholeIndexWasLookedThrough) {
  store_->PutFor(10);
  uint64_t filled = 0;
  while (store_->LogBytesUsed() < 12 * 16384 * 6 / 10) {
    ASSERT_EQ(store_->Put(Key(filled), ValueOf(filled, 500)).code, Code::kOk);
    ++filled;
  }
  store_->PutFor(0);
  store_->PassTime(11);
  for (uint64_t i = 0; i < 2 * filled; ++i) {
    ASSERT_EQ(store_->Put("new" + std::to_string(i % filled), ValueOf(i, 500)).code, Code::kOk) << i;
  }
  EXPECT_GE(store_->counter(Counter::kExpired), filled - 5);
}

}  // namespace
}  // namespace erda::server
