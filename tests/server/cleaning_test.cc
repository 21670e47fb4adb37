// The cleaner and the shard's side of cleaning, stepped in turn with requests.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/random.h"
#include "format/log_layout.h"
#include "server/crash_pool.h"
#include "server/store.h"

namespace erda::server {
namespace {

using format::Counter;
using format::EntryWord;
using format::HeadSlot;
using format::LogAddress;
using format::Reason;
using format::RegionWord;

std::string ValueOf(uint64_t number, size_t size) {
  std::string value = std::to_string(number);
  Random random(number);
  while (value.size() < size) value += static_cast<char>(random.Between('a', 'z'));
  return value;
}

// So many regions of four segments of 4 KiB, an index of 2048 slots.
format::GeometryWish Wish(uint64_t regions, uint64_t region_size = 16384) {
  return {98304 + 36864 + regions * region_size, 1, region_size, 4096, 2048};
}

class CleaningTest : public testing::Test {
 protected:
  explicit CleaningTest(uint64_t regions = 12) { MakeStore(Wish(regions)); }

  void MakeStore(const format::GeometryWish& wish) {
    StoreOptions options;
    options.wish = wish;
    store_.emplace(options);
    model_.clear();
  }

  static std::string Key(uint64_t i) { return "key" + std::to_string(i); }
  // The key has another value, and one step of cleaning is made.
  void Put(const std::string& key, size_t size = 200) {
    const std::string value = ValueOf(++puts_, size);
    ASSERT_EQ(store_->Put(key, value).code, Code::kOk) << key;
    model_[key] = value;
    store_->CleanStep();
  }
  // Each of so many keys gets other values, so often in the middle.
  void Overwrite(uint64_t keys, uint64_t times) {
    for (uint64_t i = 0; i < keys * times && !HasFailure(); ++i) Put(Key(random_.Uniform(keys)));
  }
  // So many regions are cleaned.
  void Churn(uint64_t regions) {
    const uint64_t until = store_->counter(Counter::kCleanRegions) + regions;
    for (int i = 0; store_->counter(Counter::kCleanRegions) < until; ++i) {
      ASSERT_LT(i, 100'000);
      Put(Key(random_.Uniform(100)));
    }
  }
  void ExpectAll() {
    for (const auto& [key, value] : model_) ASSERT_EQ(store_->Get(key), value) << key;
    ASSERT_EQ(store_->Violation(), "");
  }

  // The region that a place is in, as clients see it.
  [[nodiscard]] HeadSlot RegionOf(LogAddress address) const { return store_->Published(0, address.slot()); }
  [[nodiscard]] std::byte* BytesAt(LogAddress address) {
    return store_->pool().view().bytes.data() + store_->geometry().RegionOffset(RegionOf(address).region()) +
           address.offset_in_region();
  }
  void DamageValue(const std::string& key) {
    BytesAt(store_->WordOf(key).new_address())[format::ValueOffset(key.size()) + 5] ^= std::byte{1};
  }
  void DamageHeader(const std::string& key, size_t field) {
    BytesAt(store_->WordOf(key).new_address())[field] ^= std::byte{1};
  }

  std::optional<Store> store_;
  Random random_{1};
  uint64_t puts_ = 0;
  std::map<std::string, std::string> model_;
};

// --- For ever

class CleaningForEverTest : public CleaningTest {
 protected:
  CleaningForEverTest() : CleaningTest(28) {}
};

TEST_F(CleaningForEverTest, OverwritingNeverRunsOut) {
  ASSERT_EQ(store_->geometry().regions_per_shard, 28U);
  const uint64_t total = store_->versions().log().bytes_total();
  const uint64_t keys = total * 7 / 10 / format::ObjectSpace(7, 200);
  for (uint64_t i = 0; i < keys; ++i) Put(Key(i));
  while (store_->versions().log().appended() < 20 * total && !HasFailure()) {
    const std::string key = Key(random_.Uniform(keys));
    if (random_.Chance(0.5)) {
      Put(key);
    } else {
      const std::string value = ValueOf(++puts_, 200);
      const Reserved reserved = store_->Reserve(key, value);
      if (reserved.outcome.reason == Reason::kLogFull) continue;
      ASSERT_EQ(reserved.code(), Code::kOk);
      ASSERT_TRUE(store_->Finish(reserved));
      model_[key] = value;
    }
    const std::string other = Key(random_.Uniform(keys));
    ASSERT_EQ(store_->Get(other), model_[other]);
    ASSERT_EQ(store_->Get(key), model_[key]);
    if (puts_ % 5000 == 0) ExpectAll();
  }
  ExpectAll();
  EXPECT_GT(store_->counter(Counter::kCleanRegions), 20 * 28U);
  EXPECT_GT(store_->versions().log().bytes_live(), total * 69 / 100);
  store_->CloseAndReopen();
  ExpectAll();
  EXPECT_EQ(FindUnrest(store_->Bytes()), "");
}

TEST_F(CleaningTest, WhatIsDeadAltogetherIsEmptiedWithoutACopy) {
  for (int i = 0; i < 2000; ++i) Put("key");
  EXPECT_GT(store_->counter(Counter::kCleanRegions), 10U);
  EXPECT_EQ(store_->counter(Counter::kCleanMoves), 0U);
  ExpectAll();
}

// What looks like the end of a segment is its end.
TEST_F(CleaningTest, WhatIsFreeIsZeroes) {
  Churn(30);
  store_->Clean();
  int free = 0;
  for (uint32_t region = 0; region < 12; ++region) {
    const RegionWord word(
        LoadAs<uint64_t>(store_->pool().bytes().subspan(format::kRegionTableOffset + region * sizeof(uint64_t))));
    if (word != RegionWord::Free(word.generation())) continue;
    ++free;
    EXPECT_GT(word.generation(), 0U);
    EXPECT_TRUE(IsZero(store_->pool().bytes().subspan(store_->geometry().RegionOffset(region), 16384))) << region;
  }
  EXPECT_GT(free, 0);
}

TEST_F(CleaningTest, AskedForItCleansUntilNothingIsLeft) {
  Overwrite(100, 5);
  const uint64_t used = store_->LogBytesUsed();
  store_->cleaning().Ask();
  store_->Clean();
  EXPECT_FALSE(store_->cleaning().asked());
  ExpectAll();
  // What is live, the two that are written to, and the ends of segments.
  EXPECT_LT(store_->LogBytesUsed(), used);
  EXPECT_LT(store_->LogBytesUsed(), store_->versions().log().bytes_live() * 5 / 4 + 2 * 16384);
}

TEST_F(CleaningTest, ItGoesOnAfterACloseAndAfterADeath) {
  std::map<uint32_t, uint32_t> generations;  // the newest of each region
  for (int round = 0; round < 8; ++round) {
    Churn(5);
    for (int i = 0; i < 7; ++i) store_->cleaner().Step();  // what it proposes then gets lost
    round % 2 == 0 ? store_->Recover() : store_->CloseAndReopen();
    ExpectAll();
    EXPECT_EQ(FindUnrest(store_->Bytes()), "");
    std::set<uint32_t> used;
    for (uint32_t region = 0; region < 12; ++region) {
      const RegionWord word(
          LoadAs<uint64_t>(store_->pool().bytes().subspan(format::kRegionTableOffset + region * sizeof(uint64_t))));
      EXPECT_TRUE(word.generation() == 0 || used.insert(word.generation()).second);
      EXPECT_GE(word.generation(), generations[region]);
      generations[region] = word.generation();
    }
  }
  Churn(5);
  ExpectAll();
}

// --- What is in flight

TEST_F(CleaningTest, ARegionWithAReservationInFlightWaitsAndNoOtherDoes) {
  for (const bool finished : {true, false}) {
    SCOPED_TRACE(finished);
    const Reserved reserved = store_->Reserve("held", "value", 1);
    ASSERT_EQ(reserved.code(), Code::kOk);
    const HeadSlot region = RegionOf(reserved.outcome.address);
    Churn(40);
    EXPECT_EQ(RegionOf(reserved.outcome.address), region);
    ExpectAll();
    if (finished) {
      ASSERT_TRUE(store_->Finish(reserved));
      EXPECT_EQ(store_->Get("held"), "value");
    } else {
      store_->EndSession(1);
      EXPECT_EQ(store_->Get("held"), finished ? "value" : std::string(kAbsent));
    }
    Churn(40);
    EXPECT_NE(RegionOf(reserved.outcome.address), region);
    EXPECT_EQ(store_->Get("held"), finished ? "value" : std::string(kAbsent));
    store_->Delete("held");
  }
}

TEST_F(CleaningTest, WhatArrivedWithoutACommitIsSettledBeforeAPutIsRefused) {
  StoreOptions options;
  options.wish = Wish(12);
  options.flush = format::FlushMethod::kNone;  // no commit comes
  store_.emplace(options);
  // Reservations in all regions, and their values are there.
  for (int i = 0; i < 3000; ++i) {
    const std::string key = Key(random_.Uniform(30));
    Reserved reserved = store_->Reserve(key, ValueOf(++puts_, 200), 1);
    if (reserved.outcome.reason == Reason::kLogFull) {
      Put(key);
      continue;
    }
    ASSERT_EQ(reserved.code(), Code::kOk);
    store_->Land(reserved);
    model_[key] = reserved.value;
  }
  ExpectAll();
}

// (I11) The way from the newest version to the oldest that may still arrive leads through one that was taken back.
TEST_F(CleaningTest, AVersionThatWasTakenBackStaysWhereANewerOneLeadsOverIt) {
  Put("key");
  const std::string settled = model_["key"];
  const auto on_to_the_next_region = [&](LogAddress address) {
    while (store_->WordOf("other").new_address().slot() == address.slot()) {
      ASSERT_EQ(store_->Put("other", ValueOf(++puts_, 900)).code, Code::kOk);
    }
  };
  Put("other");
  const Reserved oldest = store_->Reserve("key", "oldest", 1, Ack::kPlaced);
  on_to_the_next_region(oldest.outcome.address);
  const Reserved taken_back = store_->Reserve("key", "taken back", 2, Ack::kPlaced);
  on_to_the_next_region(taken_back.outcome.address);
  const Reserved newest = store_->Reserve("key", "newest", 3, Ack::kPlaced);
  ASSERT_NE(taken_back.outcome.address.slot(), oldest.outcome.address.slot());
  ASSERT_NE(taken_back.outcome.address.slot(), newest.outcome.address.slot());
  model_.clear();
  store_->EndSession(2);
  const HeadSlot region = RegionOf(taken_back.outcome.address);
  Churn(40);
  EXPECT_EQ(RegionOf(taken_back.outcome.address), region);
  EXPECT_EQ(store_->Get("key"), settled);
  store_->Land(oldest);
  EXPECT_EQ(store_->Get("key"), "oldest");
  store_->EndSession(3);
  EXPECT_EQ(store_->Get("key"), "oldest");
  store_->EndSession(1);
  EXPECT_EQ(store_->Get("key"), "oldest");
  Churn(40);
  EXPECT_NE(RegionOf(taken_back.outcome.address), region);
  EXPECT_EQ(store_->Get("key"), "oldest");
}

TEST_F(CleaningTest, TheOldVersionIsMovedAndATakeBackReturnsToIt) {
  Put("key");
  const LogAddress original = store_->WordOf("key").new_address();
  const HeadSlot region = RegionOf(original);
  while (store_->WordOf("other").new_address().slot() == original.slot()) Put("other", 900);
  store_->Reserve("key", "never there", 1);
  Churn(40);
  EXPECT_NE(RegionOf(original), region);
  EXPECT_FALSE(store_->WordOf("key").settled());
  EXPECT_NE(store_->WordOf("key").old_address(), original);
  ExpectAll();
  store_->EndSession(1);
  EXPECT_TRUE(store_->WordOf("key").settled());
  Churn(10);
  ExpectAll();
}

TEST_F(CleaningTest, AMoveOfWhatHasChangedSinceIsRefused) {
  Put("key");
  const LogAddress address = store_->WordOf("key").new_address();
  const LogAddress elsewhere = LogAddress::At(address.slot(), 12288);
  Versions& versions = store_->versions();
  Put("key");
  EXPECT_FALSE(versions.Move(HashKey("key"), 0, address, elsewhere));
  const LogAddress settled = store_->WordOf("key").new_address();
  const Reserved reserved = store_->Reserve("key", "value");
  EXPECT_FALSE(versions.Move(HashKey("key"), 0, reserved.outcome.address, elsewhere));  // not settled
  EXPECT_FALSE(versions.Move(HashKey("key"), 1, settled, elsewhere));
  EXPECT_FALSE(versions.Move(HashKey("other"), 0, settled, elsewhere));
  EXPECT_EQ(store_->WordOf("key").old_address(), settled);
  EXPECT_TRUE(versions.Move(HashKey("key"), 0, settled, elsewhere));
  EXPECT_EQ(store_->WordOf("key").old_address(), elsewhere);
  EXPECT_EQ(store_->WordOf("key").new_address(), reserved.outcome.address);
}

// --- Damage

TEST_F(CleaningTest, ADamagedValueStaysDamagedWhereItIsMovedTo) {
  Put("damaged");
  const LogAddress original = store_->WordOf("damaged").new_address();
  DamageValue("damaged");
  model_.erase("damaged");
  Churn(40);
  EXPECT_NE(store_->WordOf("damaged").new_address(), original);
  EXPECT_EQ(store_->Get("damaged"), kDamaged);
  store_->CloseAndReopen();
  EXPECT_EQ(store_->Get("damaged"), kDamaged);
  Put("damaged");
  Churn(40);
  ExpectAll();
}

// Its key is not known, so nothing can be moved: the entry leads to where no object is, and its region is used anew.
TEST_F(CleaningTest, ADamagedHeaderIsSetAsideAndStaysDamageUntilTheKeyIsPutAnew) {
  Put("damaged");
  const LogAddress original = store_->WordOf("damaged").new_address();
  const HeadSlot region = RegionOf(original);
  DamageHeader("damaged", offsetof(format::ObjectHeader, version));
  model_.erase("damaged");
  Churn(40);
  EXPECT_NE(store_->WordOf("damaged").new_address(), original);
  EXPECT_NE(RegionOf(original), region);
  EXPECT_GE(store_->counter(Counter::kSetAside), 1U);
  EXPECT_EQ(store_->Get("damaged"), kDamaged);
  EXPECT_EQ(store_->Delete("damaged"), Code::kCorruption);
  Churn(40);  // it is set aside again, with the region that it leads to now
  EXPECT_EQ(store_->Get("damaged"), kDamaged);
  Put("damaged");
  Churn(40);
  ExpectAll();
}

// Objects behind damage, and behind a damaged segment header, are moved like all others.
TEST_F(CleaningTest, WhatStandsBehindDamageIsMoved) {
  for (int i = 0; i < 40; ++i) Put(Key(1000 + i));
  const LogAddress first = store_->WordOf(Key(1000)).new_address();
  const HeadSlot region = RegionOf(first);
  DamageHeader(Key(1000), offsetof(format::ObjectHeader, key_size));
  const uint64_t segment = store_->geometry().RegionOffset(region.region()) + store_->geometry().segment_size;
  store_->pool().view().bytes[segment] ^= std::byte{1};
  model_.erase(Key(1000));
  Churn(60);
  EXPECT_NE(RegionOf(first), region);
  EXPECT_EQ(store_->Get(Key(1000)), kDamaged);
  for (const auto& [key, value] : model_) {
    ASSERT_EQ(store_->Get(key), value) << key;
    EXPECT_NE(RegionOf(store_->WordOf(key).new_address()), region) << key;
  }
}

class ScrubTest : public CleaningTest {
 protected:
  ScrubTest() {
    for (int i = 0; i < 50; ++i) Put(Key(i));
    store_->cleaning().on_damage = [this](std::string_view key) { told_.emplace_back(key); };
  }
  // All entries are looked at once or more, and what is found is told.
  void Scrub(int rounds = 40) {
    for (int i = 0; i < rounds; ++i) {
      store_->cleaner().Scrub(8192);
      store_->Clean();
    }
  }
  std::vector<std::string> told_;
};

TEST_F(ScrubTest, WhatIsWholeIsNotReported) {
  store_->Reserve(Key(1), "in flight", 1);
  store_->Delete(Key(2));
  Scrub();
  EXPECT_TRUE(told_.empty());
  EXPECT_GT(store_->counter(Counter::kScrubBytes), 2 * 49 * 200U);
  EXPECT_EQ(store_->counter(Counter::kDamagedKeys), 0U);
}

TEST_F(ScrubTest, DamageIsToldWithItsKey) {
  DamageValue(Key(3));
  DamageHeader(Key(4), offsetof(format::ObjectHeader, version));
  Scrub();
  ASSERT_GE(told_.size(), 4U);  // round and round
  EXPECT_EQ(std::set<std::string>(told_.begin(), told_.end()), (std::set<std::string>{Key(3), Key(4)}));
  EXPECT_EQ(store_->counter(Counter::kDamagedKeys), told_.size());
}

TEST_F(ScrubTest, AKeyThatCannotBeKnownIsNone) {
  DamageHeader(Key(3), sizeof(format::ObjectHeader));  // the key itself
  DamageHeader(Key(4), offsetof(format::ObjectHeader, key_size) + 1);
  Scrub();
  ASSERT_FALSE(told_.empty());
  EXPECT_EQ(std::set<std::string>(told_.begin(), told_.end()), (std::set<std::string>{""}));
}

TEST_F(ScrubTest, WhatWasPutAnewIsNotReported) {
  DamageValue(Key(3));
  for (int i = 0; i < 40; ++i) store_->cleaner().Scrub(8192);  // proposed, and not told
  Put(Key(3));
  Scrub();
  EXPECT_TRUE(told_.empty());
}

TEST_F(ScrubTest, TheDamagedKeyIsThatOfTheEntryAsItIsNow) {
  const auto slot_of = [&](const std::string& key) {
    return *store_->versions().index().Find(HashKey(key), [](index::Slot, const format::IndexEntry&) { return true; });
  };
  const index::Slot slot = slot_of(Key(3));
  const LogAddress address = store_->WordOf(Key(3)).new_address();
  EXPECT_EQ(store_->versions().DamagedKey(slot, 0, address), std::nullopt);
  DamageValue(Key(3));
  EXPECT_EQ(store_->versions().DamagedKey(slot, 0, address), Key(3));
  EXPECT_EQ(store_->versions().DamagedKey(slot, 1, address), std::nullopt);
  EXPECT_EQ(store_->versions().DamagedKey(slot, 0, store_->WordOf(Key(4)).new_address()), std::nullopt);
  EXPECT_EQ(store_->versions().DamagedKey(slot_of(Key(4)), 0, address), std::nullopt);
}

// --- Full

TEST_F(CleaningTest, FullOfLiveDataItRefusesPutsUntilThereIsSomethingToGain) {
  uint64_t keys = 0;
  for (;; ++keys) {
    const Outcome outcome = store_->Put(Key(keys), ValueOf(keys, 200));
    if (outcome.code != Code::kOk) {
      EXPECT_EQ(outcome.reason, Reason::kLogFull);
      break;
    }
    model_[Key(keys)] = ValueOf(keys, 200);
  }
  // Of 12 regions one is the cleaner's.
  EXPECT_GT(store_->versions().log().bytes_live(), 9 * 14000U);
  EXPECT_FALSE(store_->cleaning().Expects());
  EXPECT_EQ(store_->Put("another", ValueOf(1, 200)).reason, Reason::kLogFull);
  ExpectAll();
  for (int i = 0; i < 100; ++i) store_->CleanStep();
  EXPECT_FALSE(store_->cleaning().Expects());

  for (uint64_t i = 0; i < keys; i += 4) {
    ASSERT_EQ(store_->Delete(Key(i)), Code::kOk);
    model_.erase(Key(i));
  }
  EXPECT_TRUE(store_->cleaning().Expects());
  for (uint64_t i = 0; i < keys / 10; ++i) Put("new" + std::to_string(i));
  ExpectAll();
  for (int i = 0; i < 2000 && !HasFailure(); ++i) Put("new" + std::to_string(random_.Uniform(keys / 10)));
  ExpectAll();
}

// In each region something is held, and the rest is dead. Once a put was refused, only what changes gives hope: here it
// is that a client goes, and no entry.
TEST_F(CleaningTest, ARegionThatIsLetGoMakesRoomAgain) {
  Put("other");
  SessionId sessions = 0;
  for (;; ++sessions) {
    const Reserved held = store_->Reserve(Key(sessions), "never there", sessions);
    if (held.outcome.reason == Reason::kLogFull) break;
    ASSERT_EQ(held.code(), Code::kOk);
    ASSERT_LT(sessions, 20U);
    if (store_->Put(Key(sessions), "newer").code != Code::kOk) break;
    while (store_->WordOf("other").new_address().slot() == held.outcome.address.slot() &&
           store_->Put("other", ValueOf(++puts_, 200)).code == Code::kOk) {
    }
  }
  EXPECT_EQ(store_->Put("another", "value").reason, Reason::kLogFull);
  EXPECT_FALSE(store_->cleaning().Expects());
  const uint64_t live = store_->versions().log().bytes_live();
  for (SessionId session = 0; session < sessions; ++session) store_->EndSession(session);
  EXPECT_EQ(store_->versions().log().bytes_live(), live);
  EXPECT_TRUE(store_->cleaning().Expects());
  EXPECT_EQ(store_->Put("another", "value").code, Code::kOk);
}

// What is copied may not fit into as many segments as it came from: the cleaner must not give its last free region for
// copies that do not empty another.
TEST_F(CleaningTest, DeletesMakeRoomForLargeValuesToo) {
  for (uint64_t seed = 1; seed <= 40 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    MakeStore(Wish(31));
    Random random(seed);
    const uint64_t keys = store_->versions().log().bytes_total() / 2200;
    for (int refused = 0, puts = 0; refused < 20 && puts < 5000; ++puts) {
      const std::string key = Key(random.Uniform(keys));
      const std::string value = ValueOf(++puts_, random.Between(700, 2880));
      const Outcome outcome = store_->Put(key, value);
      refused += outcome.code == Code::kOk ? 0 : 1;
      if (outcome.code == Code::kOk) model_[key] = value;
    }
    ExpectAll();
    std::erase_if(model_,
                  [&](const auto& of_key) { return random.Chance(0.5) && store_->Delete(of_key.first) == Code::kOk; });
    for (uint64_t i = 0; i < 20; ++i) ASSERT_EQ(store_->Put(Key(i), ValueOf(i, 700)).code, Code::kOk) << i;
  }
}

// --- Copies of an earlier server

TEST_F(CleaningTest, WhatAnEarlierCleanerLeftBehindItsLastCopyIsWrittenOver) {
  for (const bool crash : {true, false}) {
    Churn(10);
    const auto copies = store_->versions().log().OpenCopies(0);
    ASSERT_TRUE(copies);
    const uint64_t segment = store_->geometry().RegionOffset(copies->region) + copies->segment * 4096;
    uint64_t end = format::FirstObjectOffset(copies->segment);
    for (const auto& [key, value] : model_) {
      const LogAddress address = store_->WordOf(key).new_address();
      if (address.slot() != copies->slot || address.offset_in_region() / 4096 != copies->segment) continue;
      end = std::max(end, address.offset_in_region() % 4096 + format::ObjectSpace(key.size(), value.size()));
    }
    ASSERT_LT(end, 4096U);
    std::memset(store_->pool().view().bytes.data() + segment + end, 0x7e, 4096 - end);
    crash ? store_->Recover() : store_->CloseAndReopen();
    EXPECT_EQ(store_->versions().log().OpenCopies(0), copies);
    Churn(1);
    while (store_->versions().log().OpenCopies(0) == copies && !HasFailure()) {
      const auto left = store_->pool().bytes().subspan(segment + 4095, 1);
      if (left[0] == std::byte{0}) break;
      Put(Key(random_.Uniform(100)));
    }
    const auto rest = store_->pool().bytes().subspan(segment + end, 4096 - end);
    EXPECT_EQ(AsString(rest).find(std::string(64, '\x7e')), std::string_view::npos);
    Churn(20);
    ExpectAll();
  }
}

// Nobody knows how long it is, so nothing is put behind it, or in its place.
TEST_F(CleaningTest, ALastCopyThatIsDamagedIsNotWrittenOver) {
  for (const bool crash : {true, false}) {
    SCOPED_TRACE(crash);
    MakeStore(Wish(12));
    uint64_t last = 0;
    std::string key;
    for (int i = 0; last < 2000 || last > 3000; ++i) {  // there would be room behind it
      ASSERT_LT(i, 100);
      Churn(1);
      const auto copies = store_->versions().log().OpenCopies(0);
      last = 0;
      if (!copies) continue;
      for (const auto& [k, value] : model_) {
        const LogAddress address = store_->WordOf(k).new_address();
        if (address.slot() != copies->slot || address.offset_in_region() / 4096 != copies->segment) continue;
        if (address.offset_in_region() % 4096 < last) continue;
        last = address.offset_in_region() % 4096;
        key = k;
      }
    }
    DamageHeader(key, offsetof(format::ObjectHeader, value_size));
    const std::span<const std::byte> there(BytesAt(store_->WordOf(key).new_address()), 200);
    const std::vector<std::byte> damaged(there.begin(), there.end());
    crash ? store_->Recover() : store_->CloseAndReopen();
    model_.erase(key);
    Put("other");  // counts
    const uint64_t copied = store_->counter(Counter::kCleanBytesCopied);
    store_->cleaning().Ask();
    while (store_->counter(Counter::kCleanBytesCopied) == copied) ASSERT_TRUE(store_->CleanStep());
    EXPECT_TRUE(std::equal(there.begin(), there.end(), damaged.begin()));
    store_->Clean();
    EXPECT_EQ(store_->Get(key), kDamaged);
    for (const auto& [k, value] : model_) ASSERT_EQ(store_->Get(k), value) << k;
  }
}

// The shard dies with copies that were not proposed, proposals that were not applied, and moves that are in the caches
// only; then the power goes.
TEST(CleaningCrashTest, NothingIsLostWhateverHadBeenProposed) {
  uint64_t regions_cleaned = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    StoreOptions options;
    options.wish = Wish(8);
    auto pool = std::make_unique<CrashPool>(options.wish.pool_size);
    CrashPool* crash_pool = pool.get();
    std::optional<Store> store(std::in_place, options, std::move(pool));
    std::map<std::string, std::string> model;
    uint64_t puts = 0;
    for (int life = 0; life < 4; ++life) {
      for (uint64_t left = 100 + random.Uniform(300); left > 0; --left) {
        const std::string key = "key" + std::to_string(random.Uniform(150));
        const std::string value = ValueOf(++puts, 200);
        ASSERT_EQ(store->Put(key, value).code, Code::kOk);
        model[key] = value;
        for (uint64_t steps = random.Uniform(6); steps > 0; --steps) {
          random.Chance(0.5) ? static_cast<void>(store->cleaner().Step()) : static_cast<void>(store->cleaning().Step());
        }
      }
      regions_cleaned += store->counter(Counter::kCleanRegions);
      if (random.Chance(0.5)) {
        crash_pool->ProcessDies();
      } else {
        pool = std::make_unique<CrashPool>(crash_pool->AfterPowerCut(random, 0.5));
        crash_pool = pool.get();
        options.take_up = TakeUp::kNotYet;
        store.emplace(options, std::move(pool));
      }
      store->Recover();
      for (const auto& [key, value] : model) ASSERT_EQ(store->Get(key), value) << key;
      ASSERT_EQ(store->Violation(), "");
      ASSERT_EQ(FindUnrest(store->Bytes()), "");
    }
  }
  EXPECT_GT(regions_cleaned, 1000U);
}

// Nobody who is left may find zeroes where an entry led.
TEST(CleaningCrashTest, EntriesAreOnTheMediumBeforeARegionIsEmptied) {
  StoreOptions options;
  options.wish = Wish(8);
  auto made = std::make_unique<CrashPool>(options.wish.pool_size);
  CrashPool& pool = *made;
  Store store(options, std::move(made));
  const format::Geometry& geometry = store.geometry();
  const uint64_t index_bytes = geometry.index_slots * sizeof(format::IndexEntry);
  uint64_t emptied = 0;
  const auto check = [&] {
    for (uint32_t region = 0; region < geometry.regions(); ++region) {
      const uint64_t at = format::kRegionTableOffset + region * sizeof(uint64_t);
      const RegionWord word(LoadAs<uint64_t>(pool.bytes().subspan(at)));
      if (word != RegionWord::Emptied(word.generation()) || pool.IsDurable(at, sizeof(uint64_t))) continue;
      ++emptied;
      EXPECT_TRUE(pool.IsDurable(geometry.SlotOffset(0, 0), index_bytes));
    }
  };
  Random random(1);
  for (int life = 0; life < 20; ++life) {
    pool.before_fence = check;
    for (int i = 0; i < 200; ++i) {
      ASSERT_EQ(store.Put("key" + std::to_string(random.Uniform(200)), ValueOf(random.Next(), 200)).code, Code::kOk);
      store.CleanStep();
    }
    for (uint64_t steps = random.Uniform(10); steps > 0; --steps) store.CleanStep();
    pool.ProcessDies();
    store.Recover();
  }
  EXPECT_GT(emptied, 50U);
}

// --- Slots

// A head has 32 slots, and may come to hold a region in each, all of them partly live: to clean one the cleaner needs
// another.
TEST_F(CleaningTest, AHeadWithAllItsSlotsInUseIsCleaned) {
  MakeStore(Wish(37, 4096));
  ASSERT_EQ(store_->geometry().heads_per_shard, 2U);
  ASSERT_EQ(store_->geometry().regions_per_shard, 40U);
  std::vector<std::string> keys;
  for (uint64_t i = 0; keys.size() < 160; ++i) {
    if (store_->geometry().HeadOf(HashKey(Key(i))) == 0) keys.push_back(Key(i));
  }
  // About half of what the slots hold is live.
  for (int i = 0; i < 3000 && !HasFailure(); ++i) Put(keys[random_.Uniform(keys.size())]);
  ExpectAll();
}

// And it does not keep other heads from being cleaned.
TEST_F(CleaningTest, AHeadWithAllItsSlotsLiveLeavesTheOtherHeadsAlone) {
  MakeStore(Wish(37, 4096));
  ASSERT_EQ(store_->geometry().heads_per_shard, 2U);
  const auto head_of = [&](const std::string& key) { return store_->geometry().HeadOf(HashKey(key)); };
  for (uint64_t i = 0;; ++i) {
    if (head_of(Key(i)) != 0) continue;
    const Outcome outcome = store_->Put(Key(i), ValueOf(i, 200));
    if (outcome.reason == Reason::kLogFull) break;
    ASSERT_EQ(outcome.code, Code::kOk);
    model_[Key(i)] = ValueOf(i, 200);
  }
  ASSERT_EQ(store_->versions().log().crowded_heads(), 1U);
  std::vector<std::string> keys;
  for (uint64_t i = 0; keys.size() < 30; ++i) {
    if (head_of(Key(i)) == 1) keys.push_back(Key(i));
  }
  for (int i = 0; i < 3000 && !HasFailure(); ++i) Put(keys[random_.Uniform(keys.size())]);
  ExpectAll();
}

TEST_F(CleaningTest, AsManyRegionsAsTheHeadsHaveSlots) {
  for (const uint64_t regions : {32, 62, 64}) {
    SCOPED_TRACE(regions);
    MakeStore(Wish(regions));
    ASSERT_EQ(store_->geometry().regions_per_shard, regions);
    const uint64_t total = store_->versions().log().bytes_total();
    const uint64_t keys = total / 2 / format::ObjectSpace(7, 500);
    while (store_->versions().log().appended() < 10 * total && !HasFailure()) Put(Key(random_.Uniform(keys)), 500);
    ExpectAll();
  }
}

}  // namespace
}  // namespace erda::server
