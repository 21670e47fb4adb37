// Values that expire: absent for all clients from their deadline on, and freed later.
#include <gtest/gtest.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/hand_clock.h"
#include "base/server_time.h"
#include "base/test_hash.h"
#include "format/control_block.h"
#include "nvm/writer.h"
#include "server/cleaning/cleaning_fixture.h"
#include "server/control/expiry_clock.h"
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
  Present Judge(std::string_view key) { return store_.versions().judging().Judge(key, HashKey(key)); }
  Outcome Increment(std::string_view key, int64_t delta) {
    Versions& versions = store_.versions();
    const Outcome outcome = versions.puts().Increment(key, HashKey(key), Judge(key), delta, Ack::kPersisted);
    (void)versions.PublishPuts();
    return outcome;
  }
  // Expires the version as the cleaner's proposal does.
  bool Expire(std::string_view key, format::LogAddress address) {
    return store_.versions().removing().Expire(store_.versions().PublishPuts(), HashKey(key),
                                               store_.geometry().HeadOf(HashKey(key)), address);
  }
  [[nodiscard]] uint64_t Now() const { return store_.time().Micros() / 1000; }
  // Returns the time that readers find in the control block.
  [[nodiscard]] uint64_t Told() const {
    return LoadAs<uint64_t>(store_.control().subspan(offsetof(format::ControlBlock, time)));
  }
  Store store_{Options()};
};
INSTANTIATE_TEST_SUITE_P(Flush, ExpiryTest, EveryFlushMethod(), FlushMethodName);

TEST_P(ExpiryTest, ValueIsPresentUntilItsDeadlineOnEveryPath) {
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

TEST_P(ExpiryTest, VersionThatNeverArrivedHasNotExpired) {
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

// (I4) A version that was in flight before the expired one does not come back.
TEST_P(ExpiryTest, VersionInFlightBeforeAnExpiredOneDoesNotComeBack) {
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
  // The same holds for the version below a put that is taken back.
  const Reserved next = store_.Reserve("k", "next", 1);
  EXPECT_EQ(store_.Get("k"), kAbsent);
  store_.EndSession(1);
  EXPECT_EQ(store_.Get("k"), kAbsent);
  EXPECT_TRUE(store_.WordOf("k").empty());
}

// A get finds the whole version. It is older than the one in flight, and newer than the expired old one.
TEST_P(ExpiryTest, DeleteSettlesArrivedVersionsBeforeItReportsAbsence) {
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

TEST_P(ExpiryTest, DeleteFindsNothingIfTheNewestWholeVersionHasExpired) {
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

TEST_P(ExpiryTest, IncrementKeepsTheDeadlineAndStartsAtZeroAfterIt) {
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

// With flipped bits in its deadline, a value does not expire.
TEST_P(ExpiryTest, ADamagedDeadlineIsDamage) {
  store_.PutFor(1'000'000);
  store_.Inline("k", "v");
  const auto at = store_.WordOf("k").new_address();
  const auto offset = store_.geometry().RegionOffset(store_.Published(0, at.slot()).region()) + at.offset_in_slot();
  store_.pool().view().bytes[offset + format::kLabelOffset + 4] ^= std::byte{8};  // a deadline long ago
  EXPECT_EQ(store_.Get("k"), kDamaged);
  EXPECT_EQ(Judge("k").state, Present::State::kDamaged);
  EXPECT_FALSE(Expire("k", at));
  for (int i = 0; i < 3; ++i) store_.cleaner().Sweep();
  store_.Clean();
  EXPECT_EQ(store_.Get("k"), kDamaged);
  EXPECT_EQ(store_.counter(Counter::kExpired), 0U);
  EXPECT_EQ(store_.Delete("k"), Code::kOk) << "it is not as if nothing were there";
}

TEST_P(ExpiryTest, VersionThatNeverArrivedHasNotExpiredAfterARestart) {
  store_.Inline("stays", "older");
  store_.PutFor(10);
  store_.Inline("goes", "older");
  store_.Reserve("stays", "newer");
  store_.PutFor(0);
  store_.Reserve("goes", "newer");
  store_.PassTime(11);
  EXPECT_EQ(store_.GetAfterCrash("stays"), "older");
  EXPECT_EQ(store_.GetAfterCrash("goes"), kAbsent);
  store_.Recover();
  EXPECT_EQ(store_.Get("stays"), "older");
  EXPECT_EQ(store_.Get("goes"), kAbsent);
  EXPECT_EQ(store_.Delete("goes"), Code::kNotFound);
  EXPECT_TRUE(Expire("goes", store_.WordOf("goes").new_address()));
}

TEST_P(ExpiryTest, ATimeToLiveBeginsWithTheReservation) {
  store_.Inline("k", "older");
  store_.PutFor(10);
  const Reserved slow = store_.Reserve("k", "slow");
  store_.PassTime(11);
  store_.Land(slow);
  if (GetParam() == FlushMethod::kServerFlush) {
    EXPECT_EQ(store_.Commit(slow), Code::kOk);
  }
  store_.Sweep();
  EXPECT_EQ(store_.Get("k"), kAbsent);
  EXPECT_EQ(store_.GetAfterCrash("k"), kAbsent);
}

TEST_P(ExpiryTest, CommitMayComeAfterItsVersionWasFreed) {
  store_.PutFor(10);
  const Reserved reserved = store_.Reserve("k", "v");
  store_.Land(reserved);
  store_.Sweep();
  ASSERT_TRUE(store_.WordOf("k").settled());
  store_.PassTime(11);
  ASSERT_TRUE(Expire("k", store_.WordOf("k").new_address()));
  store_.PutFor(0);
  store_.Inline("k", "next");
  if (GetParam() == FlushMethod::kServerFlush) {
    EXPECT_EQ(store_.Commit(reserved), Code::kOk);
  }
  EXPECT_EQ(store_.versions().in_flight(), 0U);
  EXPECT_EQ(store_.Get("k"), "next");
  EXPECT_EQ(store_.Violation(), "");
}

// (I12) Otherwise a client that knows the location would find the key absent, even after the next put.
TEST_P(ExpiryTest, FreedVersionIsLeft) {
  store_.PutFor(10);
  store_.Inline("k", "v");
  const auto at = store_.WordOf("k").new_address();
  const auto offset = store_.geometry().RegionOffset(store_.Published(0, at.slot()).region()) + at.offset_in_slot();
  const auto is_left = [&] { return LoadAs<format::ObjectHeader>(store_.pool().bytes().subspan(offset)).left(); };
  store_.PassTime(11);
  EXPECT_FALSE(is_left());
  ASSERT_TRUE(Expire("k", at));
  EXPECT_TRUE(is_left());
}

TEST_P(ExpiryTest, VersionsGrowAfterAnExpiredOne) {
  store_.PutFor(10);
  const uint64_t first = store_.Inline("k", "v1").header.version;
  store_.PassTime(11);
  EXPECT_GT(store_.Inline("k", "v2").header.version, first);
  const uint64_t second = Judge("k").version;
  store_.PassTime(11);
  ASSERT_TRUE(Expire("k", store_.WordOf("k").new_address()));
  store_.PutFor(0);
  EXPECT_GT(store_.Inline("k", "v3").header.version, second);
  EXPECT_EQ(store_.Get("k"), "v3");
}

TEST_P(ExpiryTest, ConditionWaitsForAVersionInFlightAfterAnExpiredOne) {
  store_.PutFor(10);
  store_.Inline("k", "v");
  store_.PassTime(11);
  store_.PutFor(0);
  const Reserved first = store_.Reserve("k", "first", 1);
  EXPECT_EQ(Judge("k").state, Present::State::kUndecided);
  store_.EndSession(1);
  EXPECT_EQ(Judge("k").state, Present::State::kAbsent);
  const Reserved second = store_.Reserve("k", "second", 2);
  store_.Land(second);
  EXPECT_EQ(Judge("k").version, second.version());
  EXPECT_NE(second.version(), first.version());
}

TEST_P(ExpiryTest, LastPutOfABatchDecidesTheDeadline) {
  store_.PutTogether();
  store_.PutFor(10);
  store_.Inline("stays", "v1");
  store_.PutFor(0);
  store_.Inline("stays", "v2");
  store_.Inline("goes", "v1");
  store_.PutFor(10);
  store_.Inline("goes", "v2");
  store_.PublishTogether();
  EXPECT_EQ(store_.Get("goes"), "v2");
  store_.PassTime(11);
  EXPECT_EQ(store_.Get("stays"), "v2");
  EXPECT_EQ(store_.Get("goes"), kAbsent);
  EXPECT_EQ(store_.Violation(), "");
}

TEST_P(ExpiryTest, ADeadlineTakesSpaceOfTheLargestValue) {
  store_.PutFor(10);
  const std::string largest(format::ValueBytesMax(store_.geometry(), 1, true), 'v');
  EXPECT_EQ(store_.geometry().segment_size,
            format::FirstObjectOffset(0) + format::ObjectBytes(format::LabelSize(1, true), largest.size()));
  ASSERT_EQ(store_.Inline("i", largest).code, Code::kOk);
  const Reserved reserved = store_.Reserve("r", largest);
  ASSERT_EQ(reserved.code(), Code::kOk);
  store_.Land(reserved);
  store_.Sweep();
  for (const char* key : {"i", "r"}) EXPECT_EQ(store_.Get(key), largest) << key;
  store_.PassTime(11);
  for (const char* key : {"i", "r"}) EXPECT_EQ(store_.Get(key), kAbsent) << key;
  EXPECT_EQ(store_.Violation(), "");
}

TEST_P(ExpiryTest, ThePoolKeepsTheTime) {
  const auto kept = [&] {
    const auto at = store_.pool().bytes().subspan(format::ShardRecordOffset(0));
    return format::CheckedWord(LoadAs<format::ShardRecord>(at).time).number();
  };
  EXPECT_EQ(kept(), 0U);
  store_.PassTime(5);
  ExpiryClock& clock = store_.versions().part().clock();
  const uint64_t ahead = ExpiryClock::kNoteAhead;
  const uint64_t first = clock.Raise();
  EXPECT_EQ(first, store_.time().Micros() / 1000);
  EXPECT_EQ(kept(), first + ahead) << "no word passes it";
  store_.PassTime(ahead);
  EXPECT_EQ(clock.Raise(), first + ahead);
  EXPECT_EQ(kept(), first + ahead);
  store_.PassTime(1);
  EXPECT_EQ(clock.Raise(), first + ahead + 1);
  EXPECT_EQ(kept(), first + 2 * ahead + 1);
  store_.Close();
  EXPECT_EQ(kept(), store_.time().Micros() / 1000);
}

// A server dies, and the wall clock of the next one was set back.
TEST_P(ExpiryTest, ToldTimeNeverFallsWithTheWallClock) {
  store_.PutFor(10);
  store_.Inline("k", "v");
  store_.PassTime(11);
  EXPECT_EQ(Judge("k").state, Present::State::kAbsent);
  const uint64_t told = Told();
  const HandClock clock;
  const ServerTime earlier(clock, store_.time().Micros() - 5'000'000);
  nvm::Writer nvm(store_.pool());
  std::vector<uint64_t> control(format::ControlBytes(store_.geometry()) / sizeof(uint64_t));
  ExpiryClock next(nvm, 0, std::as_writable_bytes(std::span(control)), earlier);
  next.Begin();
  EXPECT_GE(control[offsetof(format::ControlBlock, time) / sizeof(uint64_t)], told);
  EXPECT_GE(next.Raise(), told);
}

// A reader whose answer depends on the time finds that time in the control block.
TEST_P(ExpiryTest, TheShardTellsTheTimeByWhichItJudges) {
  store_.PutFor(10);
  store_.Inline("k", "v");
  store_.PassTime(9);
  EXPECT_EQ(Judge("k").state, Present::State::kThere);
  EXPECT_EQ(Told(), Now());
  store_.PassTime(1);
  EXPECT_LT(Told(), Now());
  EXPECT_EQ(Judge("k").state, Present::State::kAbsent);
  EXPECT_EQ(Told(), Now());
  store_.PassTime(1);
  EXPECT_EQ(store_.Delete("k"), Code::kNotFound);
  EXPECT_EQ(Told(), Now());
  store_.PassTime(1);
  EXPECT_TRUE(Expire("k", store_.WordOf("k").new_address()));
  EXPECT_EQ(Told(), Now());
  // A value without a deadline needs no time.
  store_.PutFor(0);
  store_.Inline("k", "v");
  store_.PassTime(1);
  EXPECT_EQ(Judge("k").state, Present::State::kThere);
  EXPECT_LT(Told(), Now());
}

class ExpiryCleaningTest : public CleaningTest {
 protected:
  void Sweep() {
    store_->Clean();  // a server expires nothing before it has counted all keys
    for (uint64_t slot = 0; slot <= store_->geometry().index_slots; slot += 1024) store_->cleaner().Sweep();
    while (store_->CleanStep()) {
    }
  }
  [[nodiscard]] uint64_t Keys() { return store_->Keys(); }
};

TEST_F(ExpiryCleaningTest, SweepFreesOnlyExpiredVersions) {
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

// The sweep goes on as long as any value may have a deadline.
TEST_F(ExpiryCleaningTest, SweepEndsWithoutDeadlinesAndBeginsWithTheNextDeadline) {
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

TEST_F(ExpiryCleaningTest, CleaningCopiesNoExpiredVersionsAndKeepsDeadlines) {
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

TEST_F(ExpiryCleaningTest, PutWithoutRoomGetsTheRoomOfExpiredVersions) {
  store_->PutFor(10);
  uint64_t filled = 0;
  while (store_->Put(Key(filled), ValueOf(filled, 500)).code == Code::kOk) ++filled;
  ASSERT_GT(filled, 100U);
  EXPECT_EQ(store_->Put("one more", ValueOf(1, 500)).code, Code::kResourceExhausted);
  store_->PutFor(0);
  store_->PassTime(11);
  // No request told the log about the expired values. The log has changed only so far that a put may try again.
  ASSERT_EQ(store_->Delete(Key(filled - 1)), Code::kNotFound);
  Sweep();
  for (uint64_t i = 0; i < filled / 2; ++i) {
    ASSERT_EQ(store_->Put("new" + std::to_string(i), ValueOf(i, 500)).code, Code::kOk) << i;
  }
}

// No sweep ran before the put.
TEST_F(ExpiryCleaningTest, PutWaitsForASweepOfTheWholeIndex) {
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

TEST_F(ExpiryCleaningTest, RegionsWithOnlyExpiredVersionsAreFreed) {
  for (uint64_t i = 0; i < 10; ++i) Put(Key(i));
  store_->PutFor(10);
  for (uint64_t i = 10; i < 110; ++i) Put(Key(i), 700);
  store_->PutFor(0);
  store_->Clean();
  const uint64_t before = store_->versions().log().regions().free_regions();
  const uint64_t moves = store_->counter(Counter::kCleanMoves);
  store_->PassTime(11);
  for (uint64_t i = 10; i < 110; ++i) model_[Key(i)] = kAbsent;
  Sweep();
  store_->cleaning().Ask();
  store_->Clean();
  EXPECT_EQ(Keys(), 10U);
  EXPECT_GE(store_->versions().log().regions().free_regions(), before + 3);
  EXPECT_LE(store_->counter(Counter::kCleanMoves), moves + 10) << "what has expired is not copied";
  ExpectAll();
}

// (C3) Another put may come between the cleaner's look and the shard's decision.
TEST_F(ExpiryCleaningTest, SpaceOfAnExpiredVersionBelowATakenBackPutIsFreed) {
  store_->PutFor(10);
  for (uint64_t i = 0; i < 60; ++i) Put(Key(i), 500);
  store_->PutFor(0);
  store_->PassTime(11);
  for (uint64_t i = 0; i < 60; ++i) model_[Key(i)] = kAbsent;
  store_->versions().growth().CountKeys(store_->geometry().index_slots);
  store_->cleaning().Ask();
  for (int i = 0; store_->counter(Counter::kCleaning) != 0; ++i) {
    ASSERT_LT(i, 100'000);
    store_->cleaner().Step();
    // The proposals are under way.
    for (uint64_t key = 0; key < 60; ++key) {
      if (store_->WordOf(Key(key)).settled()) store_->Reserve(Key(key), "never comes", 1);
    }
    store_->cleaning().Step();
  }
  ExpectAll();
  EXPECT_GT(Keys(), 0U);
  store_->EndSession(1);
  ExpectAll();
  Sweep();
  store_->cleaning().Ask();
  store_->Clean();
  EXPECT_EQ(Keys(), 0U);
  ExpectAll();
}

// The expired version is the old version of one in flight, so the cleaner copies it like any other.
TEST_F(ExpiryCleaningTest, ExpiredOldVersionOfOneInFlightIsMoved) {
  store_->PutFor(10);
  Put("old");
  store_->PutFor(0);
  for (uint64_t i = 0; i < 90; ++i) Put(Key(i), 500);
  store_->PassTime(11);
  model_["old"] = kAbsent;
  store_->Reserve("old", "never comes", 1);
  const auto before = store_->WordOf("old").old_address();
  for (uint64_t i = 0; i < 90; i += 2) Put(Key(i), 500);
  store_->cleaning().Ask();
  store_->Clean();
  EXPECT_NE(store_->WordOf("old").old_address(), before);
  EXPECT_EQ(store_->counter(Counter::kExpired), 0U);
  ExpectAll();
  store_->EndSession(1);
  ExpectAll();
  Sweep();
  EXPECT_EQ(store_->counter(Counter::kExpired), 1U);
  EXPECT_TRUE(store_->WordOf("old").empty());
  ExpectAll();
}

TEST_F(ExpiryCleaningTest, TheSweepGoesOnAfterARestart) {
  store_->PutFor(10);
  for (uint64_t i = 0; i < 20; ++i) Put(Key(i));
  store_->PutFor(0);
  Put("stays");
  store_->PassTime(11);
  for (uint64_t i = 0; i < 20; ++i) model_[Key(i)] = kAbsent;
  store_->CloseAndReopen();
  Sweep();
  EXPECT_EQ(Keys(), 1U);
  store_->PutFor(10);
  for (uint64_t i = 0; i < 20; ++i) Put(Key(i));
  store_->PutFor(0);
  store_->PassTime(11);
  for (uint64_t i = 0; i < 20; ++i) model_[Key(i)] = kAbsent;
  store_->Recover();
  ExpectAll();
  Sweep();
  EXPECT_EQ(Keys(), 1U);
  ExpectAll();
}

// An increment keeps the deadline, and its version has another place in the log.
TEST_F(ExpiryCleaningTest, SweepFindsCountersThatWereIncrementedMeanwhile) {
  Versions& versions = store_->versions();
  store_->PutFor(100);
  store_->cleaning().WillExpire();
  ASSERT_EQ(store_->Put("n", std::string(8, '\0')).code, Code::kOk);
  store_->PutFor(0);
  for (int i = 0; i < 20; ++i) {
    const Present present = versions.judging().Judge("n", HashKey("n"));
    ASSERT_EQ(versions.puts().Increment("n", HashKey("n"), present, 1, Ack::kPersisted).code, Code::kOk);
    (void)versions.PublishPuts();
    store_->PassTime(4);
    Sweep();
  }
  EXPECT_EQ(Keys(), 1U);
  store_->PassTime(100);
  for (int round = 0; round < 2; ++round) Sweep();
  EXPECT_EQ(Keys(), 0U);
}

TEST_F(ExpiryCleaningTest, EachWaitingPutGetsTheRoomOfVersionsExpiredBefore) {
  store_->PutFor(10);
  uint64_t filled = 0;
  for (; store_->LogBytesUsed() < 12 * 16384 * 6 / 10; ++filled) {
    ASSERT_EQ(store_->Put(Key(filled), ValueOf(filled, 500)).code, Code::kOk);
  }
  for (uint64_t i = 0; i < 10 * filled; ++i) {
    if (i % filled == 0) store_->PassTime(11);
    ASSERT_EQ(store_->Put("new" + std::to_string(i), ValueOf(i, 500)).code, Code::kOk) << i;
  }
}

TEST_F(ExpiryCleaningTest, RefusedPutGetsTheRoomOfVersionsExpiredSince) {
  store_->PutFor(10);
  uint64_t filled = 0;
  while (store_->Put(Key(filled), ValueOf(filled, 500)).code == Code::kOk) ++filled;
  EXPECT_EQ(store_->Put("one more", ValueOf(1, 500)).code, Code::kResourceExhausted);
  store_->PutFor(0);
  store_->PassTime(11);
  EXPECT_EQ(store_->Put("one more", ValueOf(1, 500)).code, Code::kOk);
}

}  // namespace
}  // namespace erda::server
