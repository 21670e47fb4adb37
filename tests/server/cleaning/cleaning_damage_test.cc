// Cleaning beside damage, scrubbing, and copies that an earlier cleaner left.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/test_hash.h"
#include "format/log_layout.h"
#include "server/cleaning/cleaning_fixture.h"
#include "server/crash_pool.h"

namespace erda::server {
namespace {

using format::Counter;
using format::HeadSlot;
using format::LogAddress;
using format::RegionWord;

// --- Damage

TEST_F(CleaningTest, MovedDamagedValueStaysDamaged) {
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

// The cleaner derives the checksum of a long value's copy from the one that it has verified.
TEST_F(CleaningTest, MovedLongValuesStayWholeOrDamaged) {
  constexpr uint64_t kRegion = 256 << 10;
  MakeStore({98304 + 36864 + 12 * kRegion, 1, kRegion, 64 << 10, 2048});
  const std::vector<size_t> sizes = {4095, 4096, 4097, 5000, 8192, 16384, 20001, 60000};
  std::map<std::string, LogAddress> originals;
  for (const size_t size : sizes) {
    for (const char* kind : {"whole", "damaged"}) {
      const std::string key = kind + std::to_string(size);
      Put(key, size);
      originals[key] = store_->WordOf(key).new_address();
    }
    DamageValue("damaged" + std::to_string(size));
    model_.erase("damaged" + std::to_string(size));
    Put("dead", 16000);
  }
  for (int i = 0; i < 20; ++i) Put("dead", 16000);  // now the originals are in regions that are full
  store_->cleaning().Ask();
  store_->Clean();
  for (const auto& [key, address] : originals) EXPECT_NE(store_->WordOf(key).new_address(), address) << key;
  for (const auto& [key, value] : model_) EXPECT_EQ(store_->Get(key), value) << key;
  for (const size_t size : sizes) {
    const std::string key = "damaged" + std::to_string(size);
    EXPECT_EQ(store_->Get(key), kDamaged);
    Put(key, size);
  }
  ExpectAll();
}

// The key of a damaged header is not known, so the cleaner cannot move it. The shard sets the entry aside: it names a
// place without an object, and the region gets another use.
TEST_F(CleaningTest, DamagedHeaderIsSetAsideAndStaysDamageUntilTheNextPut) {
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
  Churn(40);  // the shard sets it aside again, with the region that the entry now leads to
  EXPECT_EQ(store_->Get("damaged"), kDamaged);
  Put("damaged");
  Churn(40);
  ExpectAll();
}

// The cleaner moves objects after damage and after a damaged segment header as all others.
TEST_F(CleaningTest, VersionsAfterDamageAreMoved) {
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
  // Looks at each entry at least once, and tells the damage.
  void Scrub(int rounds = 40) {
    for (int i = 0; i < rounds; ++i) {
      store_->cleaner().Scrub(8192);
      store_->Clean();
    }
  }
  std::vector<std::string> told_;
};

TEST_F(ScrubTest, WholeValuesAreNotReported) {
  store_->Reserve(Key(1), "in flight", 1);
  store_->Delete(Key(2));
  Scrub();
  EXPECT_TRUE(told_.empty());
  EXPECT_GT(store_->counter(Counter::kScrubBytes), 2 * 49 * 200U);
  EXPECT_EQ(store_->counter(Counter::kDamagedKeys), 0U);
}

TEST_F(ScrubTest, DamageIsReportedWithItsKey) {
  DamageValue(Key(3));
  DamageHeader(Key(4), offsetof(format::ObjectHeader, version));
  Scrub();
  ASSERT_GE(told_.size(), 4U);  // the scrubber comes round twice or more
  EXPECT_EQ(std::set<std::string>(told_.begin(), told_.end()), (std::set<std::string>{Key(3), Key(4)}));
  EXPECT_EQ(store_->counter(Counter::kDamagedKeys), told_.size());
}

TEST_F(ScrubTest, DamageOfAnUnknownKeyIsReportedWithoutAKey) {
  DamageHeader(Key(3), sizeof(format::ObjectHeader));  // the key itself
  DamageHeader(Key(4), offsetof(format::ObjectHeader, key_size) + 1);
  Scrub();
  ASSERT_FALSE(told_.empty());
  EXPECT_EQ(std::set<std::string>(told_.begin(), told_.end()), (std::set<std::string>{""}));
}

TEST_F(ScrubTest, RepairedKeyIsNotReported) {
  DamageValue(Key(3));
  for (int i = 0; i < 40; ++i) store_->cleaner().Scrub(8192);  // proposed, and not told
  Put(Key(3));
  Scrub();
  EXPECT_TRUE(told_.empty());
}

TEST_F(ScrubTest, DamagedKeyIsThatOfThePresentEntry) {
  const auto slot_of = [&](const std::string& key) {
    return *store_->versions().index().Find(HashKey(key), [](index::Slot, const format::IndexEntry&) { return true; });
  };
  const index::Slot slot = slot_of(Key(3));
  const LogAddress address = store_->WordOf(Key(3)).new_address();
  EXPECT_EQ(store_->versions().moving().DamagedKey(slot, 0, address), std::nullopt);
  DamageValue(Key(3));
  EXPECT_EQ(store_->versions().moving().DamagedKey(slot, 0, address), Key(3));
  EXPECT_EQ(store_->versions().moving().DamagedKey(slot, 1, address), std::nullopt);
  EXPECT_EQ(store_->versions().moving().DamagedKey(slot, 0, store_->WordOf(Key(4)).new_address()), std::nullopt);
  EXPECT_EQ(store_->versions().moving().DamagedKey(slot_of(Key(4)), 0, address), std::nullopt);
}

// --- Copies of an earlier server

TEST_F(CleaningTest, BytesAfterTheLastCopyOfAnEarlierCleanerAreOverwritten) {
  for (const bool crash : {true, false}) {
    Churn(10);
    const auto copies = store_->versions().log().copies().Open(0);
    ASSERT_TRUE(copies);
    const uint64_t segment = store_->geometry().RegionOffset(copies->region) + copies->segment * 4096;
    uint64_t end = format::FirstObjectOffset(copies->segment);
    for (const auto& [key, value] : model_) {
      const LogAddress address = store_->WordOf(key).new_address();
      if (address.slot() != copies->slot || address.offset_in_slot() / 4096 != copies->segment) continue;
      end = std::max(end, address.offset_in_slot() % 4096 + format::ObjectSpace(key.size(), value.size()));
    }
    ASSERT_LT(end, 4096U);
    std::memset(store_->pool().view().bytes.data() + segment + end, 0x7e, 4096 - end);
    crash ? store_->Recover() : store_->CloseAndReopen();
    EXPECT_EQ(store_->versions().log().copies().Open(0), copies);
    Churn(1);
    while (store_->versions().log().copies().Open(0) == copies && !HasFailure()) {
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

// The length of a damaged copy is unknown. So the cleaner writes nothing after it, or in its place.
TEST_F(CleaningTest, DamagedLastCopyIsNotOverwritten) {
  for (const bool crash : {true, false}) {
    SCOPED_TRACE(crash);
    MakeStore(Wish(12));
    uint64_t last = 0;
    std::string key;
    for (int i = 0; last < 2000 || last > 3000; ++i) {  // the segment has room after the last copy
      ASSERT_LT(i, 100);
      Churn(1);
      const auto copies = store_->versions().log().copies().Open(0);
      last = 0;
      if (!copies) continue;
      for (const auto& [k, value] : model_) {
        const LogAddress address = store_->WordOf(k).new_address();
        if (address.slot() != copies->slot || address.offset_in_slot() / 4096 != copies->segment) continue;
        if (address.offset_in_slot() % 4096 < last) continue;
        last = address.offset_in_slot() % 4096;
        key = k;
      }
    }
    DamageHeader(key, offsetof(format::ObjectHeader, value_size));
    const std::span<const std::byte> there(BytesAt(store_->WordOf(key).new_address()), 200);
    const std::vector<std::byte> damaged(there.begin(), there.end());
    crash ? store_->Recover() : store_->CloseAndReopen();
    model_.erase(key);
    Put("other");  // counts the keys
    const uint64_t copied = store_->counter(Counter::kCleanBytesCopied);
    store_->cleaning().Ask();
    while (store_->counter(Counter::kCleanBytesCopied) == copied) ASSERT_TRUE(store_->CleanStep());
    EXPECT_TRUE(std::equal(there.begin(), there.end(), damaged.begin()));
    store_->Clean();
    EXPECT_EQ(store_->Get(key), kDamaged);
    for (const auto& [k, value] : model_) ASSERT_EQ(store_->Get(k), value) << k;
  }
}

// The shard dies with copies that were not proposed, with proposals that were not applied, and with moves that are only
// in the caches. Then the power is cut.
TEST(CleaningCrashTest, CrashesLoseNothingAtAnyStageOfProposals) {
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

// A get through an older entry must never find zeroes in place of its version.
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
      EXPECT_TRUE(pool.IsDurable(geometry.FirstSlotOffset(0, 0), index_bytes));
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

}  // namespace
}  // namespace erda::server
