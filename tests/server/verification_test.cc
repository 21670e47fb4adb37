// What a power cut makes of a shard in an ordinary file, and what the full verification makes of that: pages of any
// times since the last sync stand side by side, and every structure may be older than what it speaks of.
#include "server/verification.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "server/page_pool.h"
#include "server/readers.h"
#include "server/store.h"

namespace erda::server {
namespace {

using format::FlushMethod;

class VerificationTest : public testing::Test {
 protected:
  VerificationTest() {
    options_.flush = FlushMethod::kNone;
    options_.wish = {1 << 20, 1, 16384, 4096, 128};
    options_.take_up = TakeUp::kNotYet;
  }

  void MakePool() { TakePool(PagePool::Image((1 << 20) / sizeof(uint64_t))), store_->Open(); }
  void TakePool(PagePool::Image image) {
    auto pool = std::make_unique<PagePool>(std::move(image), false, kBoot);
    medium_ = pool.get();
    store_ = std::make_unique<Store>(options_, std::move(pool));
  }
  [[nodiscard]] static std::string KeyOf(uint64_t number) { return "key" + std::to_string(number); }
  std::string NewValue(const std::string& key, uint64_t bytes) {
    std::string value = key + " value " + std::to_string(++values_) + " ";
    value.resize(std::max(value.size(), bytes), 'v');
    put_[key].insert(value);
    return value;
  }
  void Put(const std::string& key, uint64_t bytes) {
    const Outcome outcome = store_->Put(key, NewValue(key, bytes));
    ASSERT_EQ(outcome.code, Code::kOk) << key;
    newest_version_ = std::max(newest_version_, outcome.header.version);
  }
  // The pages of the image that hold these bytes, as they are in the other one.
  static void TakePages(PagePool::Image* image, const PagePool::Image& from, uint64_t begin, uint64_t end) {
    for (uint64_t page = begin / PagePool::kPage; page * PagePool::kPage < end; ++page) {
      const auto at = static_cast<ptrdiff_t>(page * PagePool::kPage / sizeof(uint64_t));
      std::copy_n(from.begin() + at, PagePool::kPage / sizeof(uint64_t), image->begin() + at);
    }
  }
  [[nodiscard]] uint64_t IndexEnd() const { return store_->geometry().regions_offset; }
  void DoSomething(Random& random, uint64_t keys);
  void CheckWhatIsLeft();
  void CheckThatItServes(Random& random);

  StoreOptions options_;
  PagePool* medium_ = nullptr;
  std::unique_ptr<Store> store_;
  std::map<std::string, std::set<std::string>> put_;  // all values that a key ever had
  std::vector<std::string> damaged_;                  // as Verify says
  uint64_t values_ = 0;
  uint64_t newest_version_ = 0;
};

void VerificationTest::DoSomething(Random& random, uint64_t keys) {
  const std::string key = KeyOf(random.Uniform(keys));
  const uint64_t bytes = random.Chance(0.1) ? random.Uniform(2500) : random.Uniform(300);
  switch (random.Uniform(20)) {
    case 0:
      (void)store_->Delete(key);
      return;
    case 1:
    case 2: {
      const Reserved reserved = store_->Reserve(key, NewValue(key, bytes));
      if (reserved.code() != Code::kOk) return;
      newest_version_ = std::max(newest_version_, reserved.version());
      if (random.Chance(0.3)) return store_->LandPart(reserved, reserved.value.size() / 2);
      store_->Land(reserved);
      if (random.Chance(0.8)) (void)store_->Sweep();
      return;
    }
    case 3:
      store_->EndSession(0);
      return;
    case 4:
      return store_->Clean();
    case 5:
      (void)store_->Delegated(key, NewValue(key, bytes));
      return;
    default:
      Put(key, bytes);
      store_->versions().CountKeys(1 << 20);
      store_->versions().Grow();
  }
}

// Each key has a whole value that it once had, or none, or damage that was told.
void VerificationTest::CheckWhatIsLeft() {
  const bool unknown = std::count(damaged_.begin(), damaged_.end(), "") > 0;
  for (const auto& [key, values] : put_) {
    const std::string got = store_->Get(key);
    if (got == kAbsent) continue;
    if (got == kDamaged) {
      ASSERT_TRUE(unknown || std::count(damaged_.begin(), damaged_.end(), key) > 0) << key << " was not told";
      continue;
    }
    ASSERT_TRUE(values.contains(got)) << key << " has " << got.substr(0, 40);
  }
  if (store_->recovery().damaged == 0) {
    ASSERT_EQ(FindViolation(store_->Bytes()), "");
    ASSERT_EQ(FindUnrest(store_->Bytes()), "");
  }
}

// Every key can be put, found and deleted, with versions that were never given out, also over a kill, a stop, cleaning.
void VerificationTest::CheckThatItServes(Random& random) {
  std::map<std::string, std::string> expected;
  const uint64_t before = newest_version_;
  for (const auto& [key, values] : put_) {
    const std::string value = key + " is new";
    const Outcome outcome = store_->Put(key, value);
    ASSERT_EQ(outcome.code, Code::kOk) << key << ", reason " << static_cast<int>(outcome.reason);
    ASSERT_GT(outcome.header.version, before) << key;
    expected[key] = value;
    if (!random.Chance(0.2)) continue;
    ASSERT_EQ(store_->Delete(key), Code::kOk) << key;
    expected[key] = kAbsent;
  }
  const auto check = [&](const std::string& when) {
    for (const auto& [key, value] : expected) ASSERT_EQ(store_->Get(key), value) << key << " " << when;
  };
  check("at once");
  store_->Clean();
  check("behind cleaning");
  TakePool(medium_->cached());
  store_->Recover();
  check("after a kill");
  store_->CloseAndReopen();
  check("after a stop");
}

TEST_F(VerificationTest, AnyMixtureOfPagesBecomesASoundShard) {
  int damaged = 0;
  int refused = 0;
  int intact = 0;
  const char* const more = std::getenv("ERDA_VERIFICATION_SEEDS");
  const uint64_t seeds = more == nullptr ? 150 : std::stoull(more);
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    put_.clear();
    newest_version_ = 0;
    bool was_damaged = false;
    MakePool();
    const uint64_t keys = 20 + random.Uniform(300);
    // What one power cut leaves behind is there in the next one.
    for (uint64_t round = random.Uniform(3); !HasFatalFailure(); --round) {
      const uint64_t steps = random.Uniform(1500);
      const double written = 0.01 * static_cast<double>(random.Uniform(10));
      for (uint64_t step = 0; step < steps; ++step) {
        DoSomething(random, keys);
        if (HasFatalFailure()) return;
        if (random.Chance(written)) medium_->WriteBackSome(random);
        if (random.Chance(0.002)) {
          ASSERT_TRUE(medium_->Sync(0, medium_->size()).ok());
        }
      }
      const double chance = random.Chance(0.2) ? 1.0 : 0.1 * static_cast<double>(random.Uniform(10));
      TakePool(medium_->AfterPowerCut(random, chance));
      damaged_.clear();
      Status status = store_->Verify(&damaged_);
      // The power may go again in the middle of the repair: some of what was stored there is written then.
      if (status.ok() && random.Chance(0.3)) {
        TakePool(medium_->AfterPowerCut(random, 0.5));
        status = store_->Verify(&damaged_);
      }
      if (!status.ok()) {
        ASSERT_EQ(status.code(), Code::kCorruption);
        ASSERT_NE(status.message().find("erda-pool salvage"), std::string_view::npos) << status.ToString();
        ++refused;
        break;
      }
      ASSERT_EQ(store_->recovery().shards_verified, 1U);
      (store_->recovery().damaged > 0 ? damaged : intact) += 1;
      if (chance == 1.0 && !was_damaged) {
        ASSERT_EQ(store_->recovery().damaged, 0U);
      }
      was_damaged |= store_->recovery().damaged > 0;
      CheckWhatIsLeft();
      if (HasFatalFailure()) return;
      if (round > 0) continue;
      CheckThatItServes(random);
      break;
    }
    if (HasFatalFailure()) return;
  }
  std::cout << damaged << " with damage, " << intact << " without, " << refused << " refused\n";
  EXPECT_GT(damaged, 20);
  EXPECT_GT(intact, 20);
  EXPECT_EQ(refused, 0);
}

// One page of the region table comes from a time before the log had its regions: the objects say where they are.
TEST_F(VerificationTest, RegionsAreFoundByTheirObjects) {
  MakePool();
  const PagePool::Image before = medium_->cached();
  for (uint64_t i = 0; i < 100; ++i) Put(KeyOf(i), 300);
  store_->Close();
  PagePool::Image image = medium_->cached();
  TakePages(&image, before, format::kRegionTableOffset, format::kRegionTableOffset + 1);
  TakePool(image);
  ASSERT_TRUE(store_->Verify(&damaged_).ok());
  EXPECT_TRUE(damaged_.empty());
  for (const auto& [key, values] : put_) EXPECT_EQ(store_->Get(key), *values.begin()) << key;
  Random random(1);
  CheckThatItServes(random);
}

// The shard's record comes from before the index grew, and before versions were given out.
TEST_F(VerificationTest, AnOldRecordGivesNoVersionAgainAndHidesNoBlock) {
  MakePool();
  const PagePool::Image before = medium_->cached();
  for (uint64_t i = 0; i < 400; ++i) {
    Put(KeyOf(i), 40);
    store_->versions().CountKeys(1 << 20);
    store_->versions().Grow();
  }
  ASSERT_GT(store_->versions().index().size(), 128U);
  store_->Close();
  PagePool::Image image = medium_->cached();
  TakePages(&image, before, format::kShardRecordsOffset, format::kShardRecordsOffset + 1);
  TakePool(image);
  ASSERT_TRUE(store_->Verify(&damaged_).ok());
  EXPECT_TRUE(damaged_.empty());
  for (const auto& [key, values] : put_) EXPECT_EQ(store_->Get(key), *values.begin()) << key;
  Random random(1);
  CheckThatItServes(random);
}

// What a client knows of a version that got lost with its page must not be true of a later one.
TEST_F(VerificationTest, AVersionThatGotLostIsNeverGivenOutAgain) {
  MakePool();
  Put("a", 40);
  ASSERT_TRUE(medium_->Sync(0, medium_->size()).ok());
  for (int i = 0; i < 50; ++i) Put("a", 40);
  Random random(1);
  TakePool(medium_->AfterPowerCut(random, 0));
  ASSERT_TRUE(store_->Verify(&damaged_).ok());
  EXPECT_TRUE(put_["a"].contains(store_->Get("a")));
  const Outcome again = store_->Put("a", "again");
  EXPECT_GT(again.header.version, newest_version_ + 1'000'000'000);
}

TEST_F(VerificationTest, AnIndexWithoutItsRunIsRefusedAndNamesWhatHelps) {
  MakePool();
  const PagePool::Image before = medium_->cached();
  for (uint64_t i = 0; i < 400; ++i) {
    Put(KeyOf(i), 40);
    store_->versions().CountKeys(1 << 20);
    store_->versions().Grow();
  }
  ASSERT_GT(store_->versions().index().size(), 128U);
  PagePool::Image image = medium_->cached();
  TakePages(&image, before, format::kRegionTableOffset, format::kRegionTableOffset + 1);
  TakePool(image);
  const Status status = store_->Verify(&damaged_);
  EXPECT_EQ(status.code(), Code::kCorruption);
  EXPECT_NE(status.message().find("erda-pool salvage"), std::string_view::npos) << status.ToString();
  EXPECT_TRUE(medium_->cached() == image) << "what is refused stays as it is";
}

// A page of the index comes from a time before its entry moved: the key has two, of which one is older.
TEST_F(VerificationTest, OfTwoEntriesOfAKeyTheNewerOneStays) {
  MakePool();
  Put("a", 40);
  const uint64_t old_word = store_->WordOf("a").raw();
  Put("a", 50);
  const std::string newest = store_->Get("a");
  store_->Close();
  const index::Index& index = store_->versions().index();
  index::Slot slot = 0;
  while (index.WordAt(slot) != store_->WordOf("a")) ++slot;
  const format::EntryMeta meta = index.At(slot).entry_meta();
  for (const uint64_t farther : {1, 5}) {
    ASSERT_LT(meta.distance() + farther, format::kNeighbourhood);
    PagePool::Image image = medium_->cached();
    const uint64_t there = index.layout().SlotOffset(slot + farther) / sizeof(uint64_t);
    image[there] = old_word | 1;
    image[there + 1] = meta.WithDistance(meta.distance() + static_cast<uint32_t>(farther)).raw();
    StoreOptions options = options_;
    Store next(options, std::make_unique<PagePool>(image, false, kBoot));
    ASSERT_TRUE(next.Verify(&damaged_).ok());
    EXPECT_EQ(next.Get("a"), newest);
    EXPECT_EQ(next.recovery().moves_undone, 1U);
    EXPECT_EQ(FindUnrest(next.Bytes()), "");
  }
}

// Entries stand where no get looks for them, and each needs room that others take: none may get lost without a word.
TEST_F(VerificationTest, NoMisplacedEntryIsLostWithoutAWord) {
  uint64_t found = 0;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    put_.clear();
    damaged_.clear();
    MakePool();
    for (uint64_t i = 0; i < 110; ++i) Put(KeyOf(i), 40);
    store_->Close();
    const index::Index& index = store_->versions().index();
    ASSERT_EQ(index.size(), 128U);
    PagePool::Image image = medium_->cached();
    const auto entry_at = [&](uint64_t slot) { return &image[index.layout().SlotOffset(slot) / sizeof(uint64_t)]; };
    for (int swaps = 0; swaps < 40; ++swaps) {
      uint64_t* const one = entry_at(random.Uniform(128));
      std::swap_ranges(one, one + 2, entry_at(random.Uniform(128)));
    }
    TakePool(image);
    ASSERT_TRUE(store_->Verify(&damaged_).ok());
    uint64_t left = 0;
    for (const auto& [key, values] : put_) {
      const std::string got = store_->Get(key);
      if (got == *values.begin()) {
        ++found;
        ++left;
      } else {
        ASSERT_EQ(std::count(damaged_.begin(), damaged_.end(), key), 1) << key << " has " << got;
      }
    }
    ASSERT_EQ(store_->recovery().damaged, damaged_.size());
    uint64_t entries = 0;
    for (index::Slot slot = 0; slot < 128; ++slot) entries += store_->versions().index().WordAt(slot).empty() ? 0 : 1;
    ASSERT_EQ(entries, left) << "one for each key";
  }
  EXPECT_GT(found, 30 * 100U);
}

// Else the last one would be followed by the first, in which there are objects that verify.
TEST_F(VerificationTest, RefusesAPoolThatHasUsedUpItsGenerations) {
  MakePool();
  Put("a", 40);
  store_->Close();
  PagePool::Image image = medium_->cached();
  const format::Geometry& geometry = store_->geometry();
  uint64_t& last = image[(format::kRegionTableOffset + (geometry.regions() - 1) * sizeof(uint64_t)) / sizeof(uint64_t)];
  const uint32_t leap = 1 << 16;
  last = format::RegionWord::Emptied(UINT32_MAX - 2 * leap).raw();
  const PagePool::Image before = image;
  TakePool(image);
  const Status status = store_->Verify(&damaged_);
  EXPECT_EQ(status.code(), Code::kCorruption);
  EXPECT_NE(status.message().find("erda-pool salvage"), std::string_view::npos) << status.ToString();
  EXPECT_TRUE(medium_->cached() == before);
  last = format::RegionWord::Emptied(UINT32_MAX - 2 * leap - 1).raw();
  TakePool(image);
  EXPECT_TRUE(store_->Verify(&damaged_).ok());
  Random random(1);
  CheckThatItServes(random);
}

// The version to go back to is no safer than the newest one: its page may be lost, too.
TEST_F(VerificationTest, AnOldVersionIsVerifiedBeforeAKeyGoesBackToIt) {
  MakePool();
  Put("a", 2500);
  const uint64_t offset = store_->OffsetOfKey("a");
  ASSERT_EQ(store_->Reserve("a", NewValue("a", 40)).code(), Code::kOk);  // and its client ends
  PagePool::Image image = medium_->cached();
  Store sound(options_, std::make_unique<PagePool>(image, false, kBoot));
  ASSERT_TRUE(sound.Verify(&damaged_).ok());
  EXPECT_TRUE(put_["a"].contains(sound.Get("a")));
  EXPECT_EQ(sound.recovery().taken_back, 1U);
  std::fill_n(image.begin() + static_cast<ptrdiff_t>((offset + 2000) / sizeof(uint64_t)), 8, 0);
  TakePool(image);
  ASSERT_TRUE(store_->Verify(&damaged_).ok());
  EXPECT_EQ(damaged_, std::vector<std::string>{"a"});
  EXPECT_EQ(store_->Get("a"), kDamaged);
}

// A value whose page got lost is told by its key, is never given, and a put repairs it.
TEST_F(VerificationTest, ALostValueIsToldByItsKeyAndRepairedByAPut) {
  MakePool();
  Put("a", 40);
  Put("b", 2500);
  const uint64_t offset = store_->OffsetOfKey("b");
  store_->Close();
  PagePool::Image image = medium_->cached();
  std::fill_n(image.begin() + static_cast<ptrdiff_t>((offset + 2000) / sizeof(uint64_t)), 8, 0);
  TakePool(image);
  ASSERT_TRUE(store_->Verify(&damaged_).ok());
  EXPECT_EQ(damaged_, std::vector<std::string>{"b"});
  EXPECT_EQ(store_->recovery().damaged, 1U);
  EXPECT_EQ(store_->Get("b"), kDamaged);
  EXPECT_EQ(store_->Get("a"), *put_["a"].begin());
  ASSERT_EQ(store_->Put("b", "again").code, Code::kOk);
  EXPECT_EQ(store_->Get("b"), "again");
}

}  // namespace
}  // namespace erda::server
