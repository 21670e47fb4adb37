// A shard in an ordinary file after a power cut, and its full verification. Pages of any times since the last sync
// stand side by side, and each structure may be older than the things that it describes.
#include "server/recovery/verification.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"
#include "base/test_hash.h"
#include "format/log_layout.h"
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
  // Copies the pages with these bytes from the other image.
  static void TakePages(PagePool::Image* image, const PagePool::Image& from, uint64_t begin, uint64_t end) {
    for (uint64_t page = begin / PagePool::kPage; page * PagePool::kPage < end; ++page) {
      const auto at = static_cast<ptrdiff_t>(page * PagePool::kPage / sizeof(uint64_t));
      std::copy_n(from.begin() + at, PagePool::kPage / sizeof(uint64_t), image->begin() + at);
    }
  }
  [[nodiscard]] static format::RegionWord WordOf(const PagePool::Image& image, uint32_t region) {
    return format::RegionWord(image[format::kRegionTableOffset / sizeof(uint64_t) + region]);
  }
  [[nodiscard]] uint64_t IndexEnd() const { return store_->geometry().regions_offset; }
  void DoSomething(Random& random, uint64_t keys);
  void CheckWhatIsLeft();
  // Verifies this pool, and expects that nothing was lost, and that the shard serves. The sum of the index is from
  // before the power cut, so nothing is compared with it.
  void ExpectAllAfterVerification(const PagePool::Image& image) {
    TakePool(image);
    ASSERT_TRUE(store_->Verify(&damaged_).ok());
    EXPECT_TRUE(damaged_.empty());
    EXPECT_FALSE(store_->versions().index().mender().rest_is_due());
    for (const auto& [key, values] : put_) EXPECT_EQ(store_->Get(key), *values.begin()) << key;
    Random random(1);
    CheckThatItServes(random);
  }
  void CheckThatItServes(Random& random);

  StoreOptions options_;
  PagePool* medium_ = nullptr;
  std::unique_ptr<Store> store_;
  // All values that a key ever had.
  std::map<std::string, std::set<std::string>> put_;
  // The keys that Verify calls damaged.
  std::vector<std::string> damaged_;
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
      store_->versions().growth().CountKeys(1 << 20);
      store_->versions().growth().Grow();
  }
}

// Checks that each key has one of its whole values, or is absent, or was reported as damaged.
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

// Checks that each key can be put, found and deleted, with versions that were never given out. It does so over a kill,
// a clean stop and cleaning.
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
    // The next power cut begins with the disk that this one left.
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
      // The power may be cut again during the repair, after the disk has some of its stores.
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

// One page of the region table is from the time before the log had its regions. The objects tell where the regions
// belong.
TEST_F(VerificationTest, RegionsAreFoundByTheirObjects) {
  MakePool();
  const PagePool::Image before = medium_->cached();
  for (uint64_t i = 0; i < 100; ++i) Put(KeyOf(i), 300);
  store_->Close();
  PagePool::Image image = medium_->cached();
  TakePages(&image, before, format::kRegionTableOffset, format::kRegionTableOffset + 1);
  ExpectAllAfterVerification(image);
}

// The shard's record is from the time before the index grew, and before versions were given out.
TEST_F(VerificationTest, OldShardRecordRepeatsNoVersionAndHidesNoBlock) {
  MakePool();
  const PagePool::Image before = medium_->cached();
  for (uint64_t i = 0; i < 400; ++i) {
    Put(KeyOf(i), 40);
    store_->versions().growth().CountKeys(1 << 20);
    store_->versions().growth().Grow();
  }
  ASSERT_GT(store_->versions().index().size(), 128U);
  store_->Close();
  PagePool::Image image = medium_->cached();
  TakePages(&image, before, format::kShardRecordsOffset, format::kShardRecordsOffset + 1);
  ExpectAllAfterVerification(image);
}

// A client may remember a version that was lost with its page. Its number must not mean a later version.
TEST_F(VerificationTest, LostVersionIsNeverGivenOutAgain) {
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

TEST_F(VerificationTest, IndexWithoutItsRunIsRefusedWithAHint) {
  MakePool();
  const PagePool::Image before = medium_->cached();
  for (uint64_t i = 0; i < 400; ++i) {
    Put(KeyOf(i), 40);
    store_->versions().growth().CountKeys(1 << 20);
    store_->versions().growth().Grow();
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

// A page of the index is from the time before its entry moved. The key has two entries, of which one is older.
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

// The entry has the key's tag and another home, and leads to no object. So it belongs to another key. It stays, as
// damage.
TEST_F(VerificationTest, ADamagedEntryOfAnotherKeyWithTheSameTagStays) {
  MakePool();
  Put("a", 50);
  const std::string value = store_->Get("a");
  store_->Close();
  const index::Index& index = store_->versions().index();
  index::Slot slot = 0;
  while (index.WordAt(slot) != store_->WordOf("a")) ++slot;
  const format::EntryMeta meta = index.At(slot).entry_meta();
  PagePool::Image image = medium_->cached();
  const uint64_t there = index.layout().SlotOffset(slot + 10) / sizeof(uint64_t);
  image[there] = format::EntryWord::Make(true, format::LogAddress::At(100, 4096), format::LogAddress(), true).raw();
  image[there + 1] = meta.WithDistance(3).raw();
  Store next(options_, std::make_unique<PagePool>(image, false, kBoot));
  ASSERT_TRUE(next.Verify(&damaged_).ok());
  EXPECT_EQ(next.Get("a"), value);
  EXPECT_EQ(next.recovery().moves_undone, 0U);
  EXPECT_EQ(next.recovery().damaged, 1U);
  EXPECT_FALSE(next.versions().index().WordAt(slot + 10).empty());
}

// Entries stand in slots where no get looks, and others take the slots that they need. The verification loses none of
// them without a report.
TEST_F(VerificationTest, NoMisplacedEntryIsLostWithoutAReport) {
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

// Otherwise the first generation would follow the last one, and old objects with that generation verify.
TEST_F(VerificationTest, RefusesAPoolWithoutFurtherGenerations) {
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

// The old version is no safer than the newest one: its page may be lost, too.
TEST_F(VerificationTest, AnOldVersionIsVerifiedBeforeAKeyGoesBackToIt) {
  MakePool();
  Put("a", 2500);
  const uint64_t offset = store_->OffsetOfKey("a");
  ASSERT_EQ(store_->Reserve("a", NewValue("a", 40)).code(), Code::kOk);  // its client ends
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

// A value is lost with its page. The verification reports its key, no get returns it, and a put repairs it.
TEST_F(VerificationTest, LostValueIsReportedByKeyAndRepairedByAPut) {
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

// The disk may have pages of an earlier use there, since their zeroes never reached it.
TEST_F(VerificationTest, ARegionThatIsInNoHeadIsEmptiedBeforeItIsUsed) {
  MakePool();
  Put("a", 40);
  store_->Close();
  PagePool::Image image = medium_->cached();
  const format::Geometry g = store_->geometry();
  const uint32_t region = g.regions_per_shard - 1;
  ASSERT_EQ(WordOf(image, region), format::RegionWord::Free(0));
  std::fill_n(image.begin() + static_cast<ptrdiff_t>((g.RegionOffset(region) + 5000) / sizeof(uint64_t)), 100, 0xee);
  TakePool(image);
  ASSERT_TRUE(store_->Verify(&damaged_).ok());
  const format::RegionWord word = WordOf(medium_->cached(), region);
  EXPECT_EQ(word, format::RegionWord::Emptied(word.generation()));
  store_->Clean();
  EXPECT_EQ(WordOf(medium_->cached(), region), format::RegionWord::Free(word.generation()));
  EXPECT_TRUE(IsZero(medium_->bytes().subspan(g.RegionOffset(region), g.region_size)));
}

// The verification leaves nothing that a recovery would take for damage in the log or in a move.
TEST_F(VerificationTest, CrashAfterVerificationIsRecoveredWithoutAnIndexWalk) {
  MakePool();
  Put("a", 40);
  Put("b", 40);
  ASSERT_EQ(store_->Delete("b"), Code::kOk);
  store_->Close();
  const uint64_t tombstone = store_->geometry().RegionOffset(0) + format::kTombstoneSlotOffset;
  const uint64_t move = format::ShardRecordOffset(0) + offsetof(format::ShardRecord, move);
  for (const uint64_t damaged : {tombstone, move}) {
    PagePool::Image image = medium_->cached();
    image[damaged / sizeof(uint64_t)] ^= 2;
    PagePool* next = nullptr;
    for (const bool verified : {false, true}) {
      auto pool = std::make_unique<PagePool>(image, false, kBoot);
      next = pool.get();
      Store store(options_, std::move(pool));
      if (verified) {
        store.Recover();
      } else {
        ASSERT_TRUE(store.Verify(&damaged_).ok());
      }
      EXPECT_EQ(store.recovery().index_slots == 0, verified) << damaged;
      EXPECT_EQ(store.Get("a"), *put_["a"].begin());
      image = next->cached();
    }
  }
  EXPECT_TRUE(damaged_.empty());
}

// The region table's page is newer than the shard's record, and newer than the blocks that a split was to fill.
TEST_F(VerificationTest, RunsThatHoldNothingAreFreeAgain) {
  MakePool();
  Put("a", 40);
  store_->Close();
  PagePool::Image image = medium_->cached();
  const uint32_t last = store_->geometry().regions_per_shard - 1;
  for (uint32_t run = 0; run < 2; ++run) {
    image[format::kRegionTableOffset / sizeof(uint64_t) + last - run] = format::RegionWord::OfIndex(1, run).raw();
  }
  TakePool(image);
  const Status status = store_->Verify(&damaged_);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_TRUE(damaged_.empty());
  EXPECT_EQ(store_->versions().index().shape().runs(), 0U);
  Random random(1);
  CheckThatItServes(random);
}

// Clients remember places with their generation.
TEST_F(VerificationTest, LostGenerationIsNeverGivenOutAgain) {
  MakePool();
  ASSERT_TRUE(medium_->Sync(0, medium_->size()).ok());
  for (int i = 0; i < 60; ++i) Put("a", 2500);
  uint32_t newest = 0;
  const uint32_t regions = store_->geometry().regions_per_shard;
  for (uint32_t region = 0; region < regions; ++region) {
    newest = std::max(newest, WordOf(medium_->cached(), region).generation());
  }
  ASSERT_GT(newest, 5U);
  Random random(1);
  TakePool(medium_->AfterPowerCut(random, 0));
  ASSERT_TRUE(store_->Verify(&damaged_).ok());
  for (uint32_t region = 0; region < regions; ++region) {
    EXPECT_GT(WordOf(medium_->cached(), region).generation(), newest) << region;
  }
}

// One page of the region table is older than the other. So a region claims the slot that another region has now.
TEST_F(VerificationTest, OfTwoRegionsThatClaimASlotTheOneWithMoreSegmentsStays) {
  MakePool();
  for (uint64_t i = 0; i < 20; ++i) Put(KeyOf(i), 300);
  store_->Close();
  const format::Geometry g = store_->geometry();
  constexpr uint32_t kOther = 3;
  const format::RegionWord word = WordOf(medium_->cached(), 0);
  ASSERT_TRUE(word.linked());
  for (const bool swapped : {false, true}) {
    SCOPED_TRACE(swapped ? "the stale one first" : "the stale one last");
    PagePool::Image image = medium_->cached();
    image[format::kRegionTableOffset / sizeof(uint64_t) + kOther] = word.raw();
    const auto at = [&](uint32_t region) {
      return image.begin() + static_cast<ptrdiff_t>(g.RegionOffset(region) / sizeof(uint64_t));
    };
    if (swapped) std::swap_ranges(at(0), at(1), at(kOther));
    Store store(options_, std::make_unique<PagePool>(image, false, kBoot));
    ASSERT_TRUE(store.Verify(&damaged_).ok());
    EXPECT_TRUE(damaged_.empty());
    for (const auto& [key, values] : put_) ASSERT_EQ(store.Get(key), *values.begin()) << key;
  }
}

// With first version 0, the segment would count as a segment of copies, in a region of puts.
TEST_F(VerificationTest, SegmentWithoutAHeaderGetsTheFirstVersionOfTheOneBefore) {
  MakePool();
  for (uint64_t i = 0; i < 40; ++i) Put(KeyOf(i), 300);
  store_->Close();
  PagePool::Image image = medium_->cached();
  const format::Geometry g = store_->geometry();
  const auto header_of = [&](const PagePool::Image& of, uint64_t segment) {
    return LoadAs<format::SegmentHeader>(
        std::as_bytes(std::span(of)).subspan(g.RegionOffset(0) + segment * g.segment_size));
  };
  ASSERT_GT(header_of(image, 2).first_version, header_of(image, 1).first_version);
  std::fill_n(image.begin() + static_cast<ptrdiff_t>((g.RegionOffset(0) + 2 * g.segment_size) / sizeof(uint64_t)),
              sizeof(format::SegmentHeader) / sizeof(uint64_t), 0);
  TakePool(image);
  ASSERT_TRUE(store_->Verify(&damaged_).ok());
  EXPECT_TRUE(damaged_.empty());
  EXPECT_FALSE(header_of(medium_->cached(), 2).copies());
  EXPECT_EQ(header_of(medium_->cached(), 2).first_version, header_of(image, 1).first_version);
  Random random(1);
  CheckThatItServes(random);
}

// A client writes headers with any version into its chunk, and the medium decays. Neither uses up the versions, nor
// begins them again, even if the pool is verified several times.
TEST_F(VerificationTest, NoForgedVersionMovesTheLimitOfVersions) {
  MakePool();
  Put("a", 40);
  Put("forged", 40);
  store_->Close();
  const format::Geometry g = store_->geometry();
  const uint64_t object_at = store_->OffsetOfKey("forged");
  const format::Place place{Store::kPoolSeed, g.HeadOf(HashKey("forged")), store_->WordOf("forged").new_address(),
                            WordOf(medium_->cached(), 0).generation()};
  for (const uint64_t version : {uint64_t{1} << 62, uint64_t{1} << 63, UINT64_MAX}) {
    for (const bool in_segment : {false, true}) {
      SCOPED_TRACE(std::to_string(version) + (in_segment ? " of a segment" : " of an object"));
      PagePool::Image image = medium_->cached();
      std::byte* const bytes = std::as_writable_bytes(std::span(image)).data();
      if (in_segment) {
        std::memcpy(bytes + g.RegionOffset(0) + offsetof(format::SegmentHeader, first_version), &version,
                    sizeof(version));
      } else {
        auto header = LoadAs<format::ObjectHeader>(std::span(bytes + object_at, sizeof(format::ObjectHeader)));
        header.version = version;
        header.header_crc = format::HeaderCrc(place, header, "forged");
        const std::string value = store_->Get("forged");
        const uint32_t checksum = format::ObjectChecksum(header, AsBytes(value));
        std::memcpy(bytes + object_at, &header, sizeof(header));
        std::memcpy(bytes + object_at + format::ChecksumOffset(header.label_size()), &checksum, sizeof(checksum));
      }
      uint64_t newest = newest_version_;
      for (int pass = 0; pass < 3; ++pass) {
        auto pool = std::make_unique<PagePool>(image, false, kBoot);
        PagePool* const next = pool.get();
        Store store(options_, std::move(pool));
        const Status status = store.Verify(&damaged_);
        ASSERT_TRUE(status.ok()) << status.ToString();
        EXPECT_EQ(store.Get("a"), *put_["a"].begin());
        const Outcome outcome = store.Put("b", "value");
        ASSERT_EQ(outcome.code, Code::kOk);
        EXPECT_GT(outcome.header.version, newest) << pass;
        EXPECT_LT(outcome.header.version, uint64_t{1} << 45) << pass;
        newest = outcome.header.version;
        image = next->cached();
      }
    }
  }
}

}  // namespace
}  // namespace erda::server
