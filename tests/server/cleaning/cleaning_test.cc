// The cleaner and the shard's side of cleaning: without end, beside versions in flight, and in a full pool.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/test_hash.h"
#include "format/log_layout.h"
#include "server/cleaning/cleaning_fixture.h"

namespace erda::server {
namespace {

using format::Counter;
using format::HeadSlot;
using format::LogAddress;
using format::Reason;
using format::RegionWord;

// --- Cleaning without end

class CleaningForEverTest : public CleaningTest {
 protected:
  CleaningForEverTest() : CleaningTest(28) {}
};

TEST_F(CleaningForEverTest, OverwritingNeverRunsOut) {
  ASSERT_EQ(store_->geometry().regions_per_shard, 28U);
  const uint64_t total = store_->versions().log().regions().bytes_total();
  const uint64_t keys = total * 7 / 10 / format::ObjectSpace(7, 200);
  for (uint64_t i = 0; i < keys; ++i) Put(Key(i));
  while (store_->versions().log().tails().appended() < 20 * total && !HasFailure()) {
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

TEST_F(CleaningTest, DeadRegionIsEmptiedWithoutACopy) {
  for (int i = 0; i < 2000; ++i) Put("key");
  EXPECT_GT(store_->counter(Counter::kCleanRegions), 10U);
  EXPECT_EQ(store_->counter(Counter::kCleanMoves), 0U);
  ExpectAll();
}

// Free regions are zeroes, so that a recovery finds the end of each segment.
TEST_F(CleaningTest, FreeRegionsAreZeroes) {
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

TEST_F(CleaningTest, CleansAllDeadSpaceWhenAsked) {
  Overwrite(100, 5);
  const uint64_t used = store_->LogBytesUsed();
  store_->cleaning().Ask();
  store_->Clean();
  EXPECT_FALSE(store_->cleaning().asked());
  ExpectAll();
  // Live bytes, two regions in use, and the unused ends of segments.
  EXPECT_LT(store_->LogBytesUsed(), used);
  EXPECT_LT(store_->LogBytesUsed(), store_->versions().log().bytes_live() * 5 / 4 + 2 * 16384);
}

// The walk looks at each granule of a chunk. A look at a granule without a header is a small part of a copy.
TEST_F(CleaningTest, DeadValuesInChunksTakeFewSteps) {
  constexpr uint64_t kRegion = 256 << 10;
  MakeStore({98304 + 36864 + 8 * kRegion, 1, kRegion, 64 << 10, 2048});
  store_->CountKeys(store_->versions().index().size());
  uint64_t delegated = 0;
  uint64_t inlined = 0;
  for (uint64_t i = 0; store_->versions().log().regions().free_regions() > 3; ++i) {
    const std::string key = i % 16 == 0 ? "stays" + std::to_string(i) : Key(i % 4);
    const std::string value = ValueOf(i, 3000);
    const auto outcome = store_->Delegated(key, value, 1);
    ++(outcome ? delegated : inlined);
    ASSERT_EQ(outcome ? outcome->code : store_->Inline(key, value).code, Code::kOk);
    model_[key] = value;
  }
  ASSERT_GT(delegated, 9 * inlined);
  store_->GiveBack();
  const uint64_t cleaned = store_->counter(Counter::kCleanRegions);
  store_->cleaning().Ask();
  uint64_t steps = 0;
  while (store_->CleanStep()) ++steps;
  const uint64_t regions = store_->counter(Counter::kCleanRegions) - cleaned;
  RecordProperty("regions", static_cast<int>(regions));
  RecordProperty("steps", static_cast<int>(steps));
  EXPECT_GE(regions, 3U);
  EXPECT_GT(store_->counter(Counter::kCleanBytesCopied), 0U);
  const uint64_t zeroing = kRegion / (2 << 10);
  EXPECT_LT(steps, regions * (zeroing + kRegion / (4 << 10)));
  ExpectAll();
}

TEST_F(CleaningTest, CleaningGoesOnAfterACloseAndAfterADeath) {
  std::map<uint32_t, uint32_t> generations;  // the newest generation of each region
  for (int round = 0; round < 8; ++round) {
    Churn(5);
    for (int i = 0; i < 7; ++i) store_->cleaner().Step();  // these proposals are lost
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

// --- Versions in flight

TEST_F(CleaningTest, OnlyARegionWithAReservationInFlightWaits) {
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

TEST_F(CleaningTest, ArrivedPutsAreSettledBeforeAPutIsRefused) {
  StoreOptions options;
  options.wish = Wish(12);
  options.flush = format::FlushMethod::kNone;  // no commit comes
  store_.emplace(options);
  // All regions have reservations, whose values have landed.
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

// (I11) The way from the newest version to the oldest one that may still arrive leads through a version that was taken
// back.
TEST_F(CleaningTest, TakenBackVersionStaysWhileANewerOneLeadsOverIt) {
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

TEST_F(CleaningTest, MoveOfAChangedEntryIsRefused) {
  Put("key");
  const LogAddress address = store_->WordOf("key").new_address();
  const LogAddress elsewhere = LogAddress::At(address.slot(), 12288);
  Versions& versions = store_->versions();
  Put("key");
  EXPECT_FALSE(versions.moving().Move(versions.PublishPuts(), HashKey("key"), address, elsewhere));
  const LogAddress settled = store_->WordOf("key").new_address();
  const Reserved reserved = store_->Reserve("key", "value");
  EXPECT_FALSE(versions.moving().Move(versions.PublishPuts(), HashKey("key"), reserved.outcome.address,
                                      elsewhere));  // not settled
  EXPECT_FALSE(versions.moving().Move(versions.PublishPuts(), HashKey("other"), settled, elsewhere));
  EXPECT_EQ(store_->WordOf("key").old_address(), settled);
  EXPECT_TRUE(versions.moving().Move(versions.PublishPuts(), HashKey("key"), settled, elsewhere));
  EXPECT_EQ(store_->WordOf("key").old_address(), elsewhere);
  EXPECT_EQ(store_->WordOf("key").new_address(), reserved.outcome.address);
}

// --- Full

TEST_F(CleaningTest, PoolFullOfLiveDataRefusesPutsUntilDeletesGiveRoom) {
  uint64_t keys = 0;
  for (;; ++keys) {
    const Outcome outcome = store_->Put(Key(keys), ValueOf(keys, 200));
    if (outcome.code != Code::kOk) {
      EXPECT_EQ(outcome.reason, Reason::kLogFull);
      break;
    }
    model_[Key(keys)] = ValueOf(keys, 200);
  }
  // The cleaner keeps one of the 12 regions.
  EXPECT_GT(store_->versions().log().bytes_live(), 9 * 14000U);
  EXPECT_FALSE(store_->cleaning().waiting().Expects(0));
  EXPECT_EQ(store_->Put("another", ValueOf(1, 200)).reason, Reason::kLogFull);
  ExpectAll();
  for (int i = 0; i < 100; ++i) store_->CleanStep();
  EXPECT_FALSE(store_->cleaning().waiting().Expects(0));

  for (uint64_t i = 0; i < keys; i += 4) {
    ASSERT_EQ(store_->Delete(Key(i)), Code::kOk);
    model_.erase(Key(i));
  }
  EXPECT_TRUE(store_->cleaning().waiting().Expects(0));
  for (uint64_t i = 0; i < keys / 10; ++i) Put("new" + std::to_string(i));
  ExpectAll();
  for (int i = 0; i < 2000 && !HasFailure(); ++i) Put("new" + std::to_string(random_.Uniform(keys / 10)));
  ExpectAll();
}

// Each region has a reservation and is dead otherwise. After a put was refused, only a change gives hope. Here sessions
// end, and no entry changes.
TEST_F(CleaningTest, RegionThatIsNotHeldAnyMoreMakesRoom) {
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
  EXPECT_FALSE(store_->cleaning().waiting().Expects(0));
  const uint64_t live = store_->versions().log().bytes_live();
  for (SessionId session = 0; session < sessions; ++session) store_->EndSession(session);
  EXPECT_EQ(store_->versions().log().bytes_live(), live);
  EXPECT_TRUE(store_->cleaning().waiting().Expects(0));
  EXPECT_EQ(store_->Put("another", "value").code, Code::kOk);
}

// Copies may need more segments than their originals. So the cleaner must not use its last free region for copies that
// do not empty another region.
TEST_F(CleaningTest, DeletesMakeRoomForLargeValuesToo) {
  for (uint64_t seed = 1; seed <= 40 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    MakeStore(Wish(31));
    Random random(seed);
    const uint64_t keys = store_->versions().log().regions().bytes_total() / 2200;
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

// --- Slots

// All 128 slots of a head may have regions, each partly live. To clean one, the cleaner needs another slot.
TEST_F(CleaningTest, AHeadWithAllItsSlotsInUseIsCleaned) {
  MakeStore(Wish(150, 4096));
  ASSERT_EQ(store_->geometry().heads_per_shard, 2U);
  std::vector<std::string> keys;
  for (uint64_t i = 0; keys.size() < 640; ++i) {
    if (store_->geometry().HeadOf(HashKey(Key(i))) == 0) keys.push_back(Key(i));
  }
  // About half of the bytes in the slots are live.
  for (int i = 0; i < 12000 && !HasFailure(); ++i) Put(keys[random_.Uniform(keys.size())]);
  ExpectAll();
}

// The full head does not keep other heads from being cleaned.
TEST_F(CleaningTest, HeadWithAllSlotsLiveDoesNotStopOtherHeads) {
  MakeStore(Wish(150, 4096));
  ASSERT_EQ(store_->geometry().heads_per_shard, 2U);
  const auto head_of = [&](const std::string& key) { return store_->geometry().HeadOf(HashKey(key)); };
  std::string full_key;  // the key that has no room
  for (uint64_t i = 0;; ++i) {
    if (head_of(Key(i)) != 0) continue;
    full_key = Key(i);
    const Outcome outcome = store_->Put(full_key, ValueOf(i, 200));
    if (outcome.reason == Reason::kLogFull) break;
    ASSERT_EQ(outcome.code, Code::kOk);
    model_[full_key] = ValueOf(i, 200);
  }
  ASSERT_EQ(store_->versions().log().regions().slots().crowded_heads(), 1U);
  std::vector<std::string> keys;
  for (uint64_t i = 0; keys.size() < 30; ++i) {
    if (head_of(Key(i)) == 1) keys.push_back(Key(i));
  }
  for (int i = 0; i < 3000 && !HasFailure(); ++i) Put(keys[random_.Uniform(keys.size())]);
  // The cleaner needs two rounds to find out that no key expires.
  for (uint64_t slot = 0; slot < 3 * store_->geometry().index_slots; slot += 1024) store_->cleaner().Sweep();
  // A put to the full head does not wait while cleaning the other head gains room, or while values are in flight there.
  std::string idle_key;
  for (uint64_t i = 10'000; idle_key.empty(); ++i) {
    if (head_of(Key(i)) == 1) idle_key = Key(i);
  }
  ASSERT_EQ(store_->Reserve(idle_key, "never comes", 1).code(), Code::kOk);
  bool waits = store_->cleaning().waiting().Expects(0);
  uint64_t rooms = store_->cleaning().waiting().rooms();
  for (int i = 0; waits; ++i) {
    ASSERT_LT(i, 2000);
    Put(keys[random_.Uniform(keys.size())]);
    if (store_->cleaning().waiting().rooms() != rooms) waits = store_->cleaning().waiting().Expects(0);
    rooms = store_->cleaning().waiting().rooms();
  }
  ASSERT_EQ(store_->Put(full_key, ValueOf(1, 200)).reason, Reason::kLogFull);
  ExpectAll();
}

// All of the log is live, since the version before each arrived one is still needed.
TEST_F(CleaningTest, ArrivedVersionsAreSettledWhenNothingIsDead) {
  StoreOptions options;
  options.wish = Wish(6);
  options.flush = format::FlushMethod::kNone;  // no commit comes
  store_.emplace(options);
  const log::ShardLog& log = store_->versions().log();
  uint64_t keys = 0;
  for (; log.bytes_used() < log.regions().bytes_total() * 6 / 10; ++keys) Put(Key(keys), 500);
  uint64_t updated = 0;
  for (; updated < keys; ++updated) {
    const std::string value = ValueOf(updated, 501);
    const Reserved update = store_->Reserve(Key(updated), value, 1);
    if (update.outcome.reason == Reason::kLogFull) break;
    ASSERT_EQ(update.outcome.code, Code::kOk);
    store_->Land(update);
    model_[Key(updated)] = value;
  }
  ASSERT_LT(updated, keys) << "the log is not full";
  // A busy shard looks again and again, without idle moments.
  Outcome outcome = store_->Inline("another", ValueOf(1, 500));
  while (outcome.reason == Reason::kLogFull && store_->cleaning().waiting().Expects(outcome.head)) {
    const uint64_t rooms = store_->cleaning().waiting().rooms();
    for (int i = 0; i < 10'000 && store_->cleaning().waiting().rooms() == rooms; ++i) store_->CleanStep();
    outcome = store_->Inline("another", ValueOf(1, 500));
  }
  ASSERT_EQ(outcome.code, Code::kOk);
  ExpectAll();
}

TEST_F(CleaningTest, CleansPoolsWithAsManyRegionsAsSlots) {
  for (const uint64_t regions : {32, 128, 254, 256}) {
    SCOPED_TRACE(regions);
    format::GeometryWish wish = Wish(regions);
    constexpr uint64_t kSlots = 8192;
    wish.pool_size += (kSlots - wish.index_entries) * sizeof(format::IndexEntry);
    wish.index_entries = kSlots;
    MakeStore(wish);
    ASSERT_EQ(store_->geometry().regions_per_shard, regions);
    const uint64_t total = store_->versions().log().regions().bytes_total();
    const uint64_t keys = total / 2 / format::ObjectSpace(7, 500);
    while (store_->versions().log().tails().appended() < 10 * total && !HasFailure())
      Put(Key(random_.Uniform(keys)), 500);
    ExpectAll();
  }
}

}  // namespace
}  // namespace erda::server
