// The index grows while keys come: blocks are split, and take regions of the log (format/index_layout.h).
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "format/pool_index.h"
#include "server/machine.h"
#include "server/whole_pool.h"

namespace erda::server {
namespace {

using format::Counter;
using format::Reason;

// An index of one block of 128 slots, in regions with two blocks.
StoreOptions Small(uint32_t regions = 40) {
  StoreOptions options;
  options.wish = {98304 + regions * 4096, 1, 4096, 4096, 128};
  return options;
}

class GrowthTest : public testing::Test {
 protected:
  static std::string Key(int i) { return "key" + std::to_string(i); }
  static std::string Value(int i) { return "v" + std::to_string(i); }
  static void PutSome(Store& store, int from, int to) {
    for (int i = from; i < to; ++i) ASSERT_EQ(store.Inline(Key(i), Value(i)).code, Code::kOk) << i;
  }
  static void ExpectThere(Store& store, int keys) {
    for (int i = 0; i < keys; ++i) ASSERT_EQ(store.Get(Key(i)), Value(i)) << i;
    for (int i = keys; i < keys + 20; ++i) ASSERT_EQ(store.Get(Key(i)), kAbsent) << i;
    ASSERT_EQ(store.Violation(), "");
    ASSERT_EQ(store.Keys(), static_cast<uint64_t>(keys));
  }
  // Expects that each slot holds the entry that the index has stored there.
  static void ExpectNoFlips(Store& store) {
    const index::Index& index = store.versions().index();
    for (index::Slot slot = 0; slot < index.size(); ++slot) ASSERT_TRUE(index.mender().Fits(slot)) << slot;
  }
  static uint64_t Blocks(Store& store) { return store.versions().index().layout().blocks(); }
  // Grows until the index has this number of blocks.
  static void GrowTo(Store& store, uint64_t blocks) {
    (void)store.Keys();  // counts the keys
    for (int i = 0; i < 100 && Blocks(store) < blocks; ++i) store.versions().growth().Grow(1);
    ASSERT_EQ(Blocks(store), blocks);
  }
  static uint64_t RecordOffset() { return format::ShardRecordOffset(0) + offsetof(format::ShardRecord, blocks); }
};

TEST_F(GrowthTest, KeysAreTakenUntilTheLogIsFull) {
  Store store(Small());
  int keys = 0;
  Outcome last;
  for (;; ++keys) {
    last = store.Inline(Key(keys), Value(keys));
    store.versions().growth().Grow(1);
    if (last.code != Code::kOk) break;
  }
  EXPECT_EQ(last.reason, Reason::kLogFull);
  EXPECT_EQ(store.versions().log().regions().free_regions(), 1U) << "the cleaner's";
  EXPECT_GT(keys, 1500);
  EXPECT_GT(store.versions().index().size(), 16U * 128);
  EXPECT_EQ(store.counter(Counter::kIndexSlots), store.versions().index().size());
  EXPECT_EQ(store.versions().index().census().used(), static_cast<uint64_t>(keys));
  ExpectThere(store, keys);
  store.CloseAndReopen();
  ExpectThere(store, keys);
  EXPECT_EQ(store.versions().index().census().used(), static_cast<uint64_t>(keys));
  for (int i = 0; i < keys; ++i) ASSERT_EQ(store.Delete(Key(i)), Code::kOk) << i;
  EXPECT_EQ(store.versions().index().census().used(), 0U);
}

// A put needs room for its key at once, even if nothing else grows the index.
TEST_F(GrowthTest, PutWithoutASlotMakesTheIndexGrow) {
  Store store(Small());
  PutSome(store, 0, 1000);
  EXPECT_GE(store.versions().index().size(), 1000U);
  ExpectThere(store, 1000);
}

// At a load of 75 % of the unsplit blocks all of them are split, and below 65 % none is.
TEST_F(GrowthTest, IndexGrowsAtThePaceOfItsKeys) {
  StoreOptions options;
  options.wish = {4 << 20, 1, 32768, 8192, 1024};  // a block of 1024 slots; a run has two
  Store store(options);
  for (int i = 0; i < 20'000; ++i) {
    ASSERT_EQ(store.Inline(Key(i), "v").code, Code::kOk) << i;
    const uint64_t before = Blocks(store);
    store.versions().growth().Grow(1);
    const uint64_t blocks = Blocks(store);
    ASSERT_LE(blocks - before, 1U) << i;
    const auto full = static_cast<double>(std::bit_floor(blocks) * 1024);
    const double load = (i + 1) / full;  // of the unsplit blocks
    const double split = (static_cast<double>(blocks) * 1024 - full) / full;
    const double a_block = 1.01 * 1024 / full;
    ASSERT_GE(split, (load - 0.65) / 0.10 - a_block) << i << " keys, " << blocks << " blocks";
    ASSERT_LE(split, std::max(0.0, (load - 0.65) / 0.10) + a_block) << i << " keys, " << blocks << " blocks";
  }
  EXPECT_GE(Blocks(store), 20U);
}

TEST_F(GrowthTest, ACutAtAnyPointOfAStepLosesNothing) {
  uint64_t images = 0;
  for (const uint64_t blocks : {1U, 2U, 3U, 4U, 6U, 7U}) {
    // The first splits begin with 84 keys, the next ones with 167 and 333.
    const int keys = blocks < 2 ? 90 : blocks < 4 ? 180 : 380;
    for (size_t fence = 0; !HasFailure(); ++fence) {
      SCOPED_TRACE(std::to_string(blocks) + " blocks, fence " + std::to_string(fence));
      Machine machine(Small());
      PutSome(machine.store, 0, keys);
      GrowTo(machine.store, blocks);
      machine.pool->EverythingIsDurable();
      const bool ended = machine.RunUpTo(fence, [&] { GrowTo(machine.store, blocks + 1); });
      Choices choices(*machine.pool, fence);
      for (size_t i = 0; i < choices.size() && !HasFailure(); ++i, ++images) {
        const CrashPool::Image image = choices.At(i);
        Machine next(Small(), image);
        ASSERT_EQ(next.store.Violation(), "");
        ASSERT_EQ(FindUnrest(next.store.Bytes()), "");
        ASSERT_GE(Blocks(next.store), ended ? blocks + 1 : blocks) << "a finished growth is kept";
        ASSERT_LE(Blocks(next.store), blocks + 1);
        ExpectThere(next.store, keys);
        // The index grows on.
        GrowTo(next.store, blocks + 1);
        PutSome(next.store, keys, keys + 50);
        ExpectThere(next.store, keys + 50);
        ExpectNoFlips(next.store);
        next.store.CloseAndReopen();
        ExpectThere(next.store, keys + 50);
      }
      if (ended) break;
    }
  }
  EXPECT_GE(images, 500U);
}

TEST_F(GrowthTest, ACutInTheMiddleOfTheRecoveryLosesNothing) {
  constexpr int kKeys = 180;
  for (size_t fence = 0; !HasFailure(); ++fence) {
    Machine machine(Small());
    PutSome(machine.store, 0, kKeys);
    GrowTo(machine.store, 3);
    machine.pool->EverythingIsDurable();
    const bool ended = machine.RunUpTo(fence, [&] { GrowTo(machine.store, 4); });
    Choices choices(*machine.pool, fence);
    for (size_t i = 0; i < std::min<size_t>(choices.size(), 10); ++i) {
      const CrashPool::Image image = choices.At(i);
      for (size_t second = 0; !HasFailure(); ++second) {
        SCOPED_TRACE("fence " + std::to_string(fence) + ", choice " + std::to_string(i) + ", then fence " +
                     std::to_string(second));
        Machine recovering(Small(), image, TakeUp::kNotYet);
        const bool recovered = recovering.RunUpTo(second, [&] { recovering.store.Recover(); });
        Choices again(*recovering.pool, second);
        for (size_t k = 0; k < std::min<size_t>(again.size(), 5); ++k) {
          Machine next(Small(), again.At(k));
          ExpectThere(next.store, kKeys);
          GrowTo(next.store, 4);
          ExpectThere(next.store, kKeys);
        }
        if (recovered) break;
      }
    }
    if (ended) break;
  }
}

// The process ends, and the machine stays up. The next server relies on stores that are only in the caches.
TEST_F(GrowthTest, AProcessThatEndsInTheMiddleAndAPowerCutAfterThatLoseNothing) {
  constexpr int kKeys = 180;
  for (const bool kept : {false, true}) {
    for (size_t fence = 0; !HasFailure(); ++fence) {
      SCOPED_TRACE("fence " + std::to_string(fence) + (kept ? ", unfenced flushes are kept" : ""));
      Machine machine(Small());
      PutSome(machine.store, 0, kKeys);
      GrowTo(machine.store, 2);
      machine.pool->EverythingIsDurable();
      const bool ended = machine.RunUpTo(fence, [&] { GrowTo(machine.store, 3); });
      auto pool =
          std::make_unique<CrashPool>(machine.pool->AfterProcessEnd([&] { return kept; }), nvm::Durability::kPowerSafe);
      CrashPool* const cached = pool.get();
      StoreOptions options = Small();
      options.take_up = TakeUp::kRecover;
      Store store(options, std::move(pool));
      ExpectThere(store, kKeys);
      const uint64_t blocks = Blocks(store);
      PutSome(store, kKeys, kKeys + 20);
      for (const double chance : {0.0, 0.5, 1.0}) {
        Random random(fence);
        Machine next(Small(), cached->AfterPowerCut(random, chance));
        ExpectThere(next.store, kKeys + 20);
        EXPECT_GE(Blocks(next.store), blocks);
      }
      if (ended) break;
    }
  }
}

// The random tests found this: recovery freed the old block while the number of blocks was only in the caches.
TEST_F(GrowthTest, RecoveryFreesEntriesOnlyAfterTheirNewBlockIsPersistent) {
  constexpr int kKeys = 180;
  for (size_t fence = 0; !HasFailure(); ++fence) {
    bool ended = false;
    for (size_t second = 0; !HasFailure(); ++second) {
      SCOPED_TRACE("fence " + std::to_string(fence) + ", then fence " + std::to_string(second));
      Machine machine(Small());
      PutSome(machine.store, 0, kKeys);
      GrowTo(machine.store, 2);
      machine.pool->EverythingIsDurable();
      ended = machine.RunUpTo(fence, [&] { GrowTo(machine.store, 3); });
      machine.pool->ProcessDies();
      const bool recovered = machine.RunUpTo(second, [&] { machine.store.Recover(); });
      Choices choices(*machine.pool, second);
      for (size_t i = 0; i < choices.size(); ++i) {
        Machine next(Small(), choices.At(i));
        ExpectThere(next.store, kKeys);
      }
      if (recovered) break;
    }
    if (ended) break;
  }
}

// The simulator found this, in one run of 1,400: another key took a slot that a split had freed. A power cut then
// brought the slot's earlier word back, beside the new key's meta.
TEST_F(GrowthTest, SlotFreedByASplitStaysFree) {
  constexpr int kKeys = 90;
  for (size_t fence = 0; !HasFailure(); ++fence) {
    bool ended = false;
    for (int seed = 0; seed < 10; ++seed) {
      Machine machine(Small());
      PutSome(machine.store, 0, kKeys);
      machine.pool->EverythingIsDurable();
      GrowTo(machine.store, 2);
      ended = machine.RunUpTo(fence, [&] { PutSome(machine.store, kKeys + seed, kKeys + seed + 1); });
      Choices choices(*machine.pool, static_cast<uint64_t>(seed));
      for (size_t i = 0; i < choices.size(); ++i) {
        SCOPED_TRACE("fence " + std::to_string(fence) + ", seed " + std::to_string(seed) + ", choice " +
                     std::to_string(i));
        Machine next(Small(), choices.At(i));
        ASSERT_EQ(next.store.Violation(), "");
        for (int key = 0; key < kKeys; ++key) ASSERT_EQ(next.store.Get(Key(key)), Value(key)) << key;
        const auto report = inspect::InspectPool(WholePool(next.store.Bytes(), false), {}).value();
        ASSERT_EQ(report.damage_count, 0U) << report.damage.front().what;
      }
    }
    if (ended) break;
  }
}

TEST_F(GrowthTest, KeysComeGoAndMoveInAnIndexThatGrows) {
  Store store(Small());
  PutSome(store, 0, 600);
  GrowTo(store, std::max<uint64_t>(Blocks(store), 7));
  for (int i = 0; i < 600; i += 2) ASSERT_EQ(store.Delete(Key(i)), Code::kOk);
  for (int i = 0; i < 600; ++i) ASSERT_EQ(store.Get(Key(i)), i % 2 == 0 ? std::string(kAbsent) : Value(i)) << i;
  PutSome(store, 0, 600);
  const Reserved reserved = store.Reserve("reserved", "value", 1);
  PutSome(store, 600, 900);
  store.versions().growth().Grow(1);
  EXPECT_TRUE(store.Finish(reserved));
  EXPECT_EQ(store.Get("reserved"), "value");
  EXPECT_EQ(store.Delete("reserved"), Code::kOk);
  ExpectThere(store, 900);
  ExpectNoFlips(store);
}

// Entries move to new blocks while their regions are cleaned. The cleaner looks for each in its present block.
TEST_F(GrowthTest, CleanerFindsEntriesThatMovedToANewBlock) {
  Store store(Small(60));
  PutSome(store, 0, 80);
  store.Clean();
  for (int round = 0; round < 40; ++round) {
    for (int i = 0; i < 20; ++i) {
      ASSERT_EQ(store.Put("changes", std::string(300, 'x')).code, Code::kOk);
      store.CleanStep();
    }
    PutSome(store, 80 + 20 * round, 100 + 20 * round);
    store.versions().growth().Grow(1);
    store.cleaning().Ask();
    for (int i = 0; i < 50; ++i) store.CleanStep();
  }
  store.cleaning().Ask();
  store.Clean();
  EXPECT_GT(store.counter(Counter::kCleanRegions), 20U);
  EXPECT_GT(Blocks(store), 8U);
  for (int i = 0; i < 880; ++i) ASSERT_EQ(store.Get(Key(i)), Value(i)) << i;
  EXPECT_EQ(store.Violation(), "");
}

// Before the count, the number of keys is unknown.
TEST_F(GrowthTest, IndexGrowsOnlyAfterTheKeysAreCounted) {
  Machine machine(Small());
  PutSome(machine.store, 0, 100);
  Random random(1);
  Machine next(Small(), machine.pool->AfterPowerCut(random, 1.0));
  for (int i = 0; !next.store.versions().index().census().is_complete(); ++i) {
    ASSERT_LT(i, 10);
    ASSERT_EQ(Blocks(next.store), 1U);
    next.store.versions().growth().Grow(1);
  }
  EXPECT_EQ(next.store.Keys(), 100U);
  GrowTo(next.store, 2);
  ExpectThere(next.store, 100);
}

// A put that needs room makes the shard count the keys.
TEST_F(GrowthTest, PutWithoutASlotCountsTheKeysFirst) {
  Machine machine(Small());
  PutSome(machine.store, 0, 120);
  ASSERT_EQ(Blocks(machine.store), 1U);
  Random random(1);
  Machine next(Small(), machine.pool->AfterPowerCut(random, 1.0));
  for (int i = 120; i < 140; ++i) ASSERT_EQ(next.store.Inline(Key(i), Value(i)).code, Code::kOk);
  EXPECT_GT(Blocks(next.store), 1U);
  ExpectThere(next.store, 140);
}

// An index that needs a region of a full log waits for cleaning, as a put does that finds the log full.
TEST_F(GrowthTest, AnIndexThatNeedsARegionWaitsForCleaning) {
  Store store(Small(16));
  for (int i = 0; store.versions().log().regions().free_regions() > 1; ++i) {
    ASSERT_EQ(store.Inline("changes", std::string(1000, 'x')).code, Code::kOk) << i;
  }
  int keys = 0;
  while (Blocks(store) == 1) {
    ASSERT_EQ(store.Put(Key(keys), Value(keys)).code, Code::kOk) << keys;
    ASSERT_LT(++keys, 200);
  }
  EXPECT_GT(store.counter(Counter::kCleanRegions), 0U);
  for (int i = 0; i < keys; ++i) ASSERT_EQ(store.Get(Key(i)), Value(i)) << i;
}

// The shard looks for growth when the number of keys has changed. It also looks again if growth was due and failed.
TEST_F(GrowthTest, ARunThatFoundNoRegionIsAddedWhenOneIsFree) {
  Store store(Small(16));
  constexpr int kKeys = 80;  // more than 60 % of the slots and less than 65 %
  PutSome(store, 0, kKeys - 1);
  (void)store.Keys();
  for (int i = 0; store.versions().log().regions().free_regions() > 1; ++i) {
    ASSERT_EQ(store.Inline("changes", std::string(1000, 'x')).code, Code::kOk) << i;
  }
  const auto runs = [&] { return store.versions().log().regions().runs().size(); };
  store.versions().growth().Grow(1);
  ASSERT_EQ(runs(), 0U);
  store.Clean();
  ASSERT_GT(store.versions().log().regions().free_regions(), 1U);
  ASSERT_EQ(store.versions().index().census().used(), static_cast<uint64_t>(kKeys));
  ASSERT_EQ(runs(), 0U);
  store.versions().growth().Grow(1);
  EXPECT_EQ(runs(), 1U);
}

// A review found this: if a run was one block, the shard linked one run more than a pool may have.
TEST_F(GrowthTest, APoolOpensAgainAfterEachStep) {
  for (const uint64_t run_blocks : {1U, 2U, 4U, 8U}) {
    StoreOptions options;
    const uint64_t region = run_blocks * 1024 * 16;
    options.wish = {98304 + 40 * region, 1, region, 4096, 1024};
    Store store(options);
    ASSERT_EQ(store.geometry().block_slots(), 1024U);
    ASSERT_EQ(store.geometry().run_slots(), run_blocks * 1024);
    int keys = 0;
    for (size_t runs = 0; Blocks(store) < 12 && !HasFailure();) {
      const uint64_t blocks = Blocks(store);
      ASSERT_EQ(store.Inline(Key(keys++), "v").code, Code::kOk);
      store.versions().growth().Grow(1);
      if (Blocks(store) == blocks && store.versions().log().regions().runs().size() == runs) continue;
      runs = store.versions().log().regions().runs().size();
      SCOPED_TRACE(std::to_string(run_blocks) + " blocks to a run, " + std::to_string(Blocks(store)) + " blocks, " +
                   std::to_string(runs) + " runs");
      ASSERT_EQ(inspect::InspectPool(WholePool(store.Bytes(), false), {}).value().damage_count, 0U);
      store.CloseAndReopen();
      ASSERT_EQ(inspect::InspectPool(WholePool(store.Bytes(), true), {}).value().damage_count, 0U);
      ASSERT_EQ(store.Keys(), static_cast<uint64_t>(keys));
    }
  }
}

// After a start the shard takes keys while it counts, and grows before a put must wait for the rest of the count.
TEST_F(GrowthTest, CountOfKeysEndsBeforeTheIndexIsFull) {
  StoreOptions options;
  options.wish = {16 << 20, 1, 65536, 16384, 16384};
  Store store(options);
  PutSome(store, 0, 10'000);
  store.CloseAndReopen();
  int i = 10'000;
  while (!store.versions().index().census().is_complete()) {
    ASSERT_EQ(store.Inline(Key(i), Value(i)).code, Code::kOk);
    if (++i % 64 == 0) store.versions().growth().Grow(1);
  }
  EXPECT_LT(i, 11'500);
}

// --- Damage

TEST_F(GrowthTest, ImpossibleRecordOrRegionTableIsRefused) {
  Store store(Small());
  PutSome(store, 0, 380);
  GrowTo(store, 7);
  store.Close();
  const std::span<std::byte> bytes = store.pool().view().bytes;
  const auto refused = [&](uint64_t offset, uint64_t word, std::string_view what) {
    const auto before = LoadAs<uint64_t>(bytes.subspan(offset));
    std::memcpy(bytes.data() + offset, &word, sizeof(word));
    nvm::Writer nvm(store.pool());
    std::vector<uint64_t> control(format::ControlBytes(store.geometry()) / sizeof(uint64_t));
    const auto control_bytes = std::as_writable_bytes(std::span(control));
    const Status open = Versions(nvm, store.geometry(), Store::kPoolSeed, 0, control_bytes, {}).part().Open();
    EXPECT_EQ(open.code(), Code::kCorruption) << what;
    const Status look = Versions(nvm, store.geometry(), Store::kPoolSeed, 0, control_bytes, {}).part().Look();
    EXPECT_EQ(look.code(), Code::kCorruption) << what;
    const auto report = inspect::InspectPool(WholePool(store.Bytes(), true), {}).value();
    EXPECT_GT(report.damage_count, 0U) << what;
    std::memcpy(bytes.data() + offset, &before, sizeof(before));
  };
  const auto record = LoadAs<uint64_t>(bytes.subspan(RecordOffset()));
  ASSERT_EQ(format::CheckedWord(record).number(), 7U);
  for (int bit = 0; bit < 64; ++bit) refused(RecordOffset(), record ^ (uint64_t{1} << bit), "a flipped bit");
  refused(RecordOffset(), 0, "no blocks");
  for (const uint64_t blocks : {uint64_t{2}, uint64_t{100}, uint64_t{1} << 20, uint64_t{1} << 47}) {
    refused(RecordOffset(), format::CheckedWord::Of(blocks).raw(), "other blocks");
  }
  for (const uint32_t region : store.versions().log().regions().runs()) {
    const uint64_t at = format::kRegionTableOffset + region * sizeof(uint64_t);
    const format::RegionWord word(LoadAs<uint64_t>(bytes.subspan(at)));
    if (word.run() < 2) refused(at, format::RegionWord::Free(word.generation()).raw(), "a run is missing");
    refused(at, format::RegionWord::OfIndex(word.generation(), 1000).raw(), "a run that cannot be");
    refused(at, word.raw() ^ 256, "a flipped bit");
  }
  const uint32_t first = store.versions().log().regions().runs()[0];
  const uint64_t second_at = format::kRegionTableOffset + store.versions().log().regions().runs()[1] * sizeof(uint64_t);
  const format::RegionWord word(LoadAs<uint64_t>(bytes.subspan(format::kRegionTableOffset + first * sizeof(uint64_t))));
  refused(second_at, word.raw(), "a run that is there twice");
  store.Open();
  ExpectThere(store, 380);
}

// --- Inspection

TEST_F(GrowthTest, InspectionReportsTheGrowthOfTheIndex) {
  Machine machine(Small());
  PutSome(machine.store, 0, 180);
  GrowTo(machine.store, 2);
  machine.pool->EverythingIsDurable();
  // The number of blocks is stored, and no entry has moved yet. The run that it needs is linked.
  ASSERT_FALSE(machine.RunUpTo(2, [&] { GrowTo(machine.store, 3); }));
  Machine cut(Small(), machine.pool->AfterPowerCut([] { return true; }), TakeUp::kNotYet);
  const auto report = inspect::InspectPool(WholePool(cut.store.Bytes(), false), {.verify = true}).value();
  EXPECT_EQ(report.damage_count, 0U) << report.damage.front().what;
  EXPECT_EQ(report.shards[0].index_blocks, 3U);
  EXPECT_EQ(report.shards[0].index_slots, 3U * 128);
  EXPECT_EQ(report.shards[0].keys, 180U);
  EXPECT_GT(report.shards[0].left_over, 10U);
  EXPECT_GT(report.shards[0].regions_index, 0U);
  // In a pool that was closed, these left-over entries are damage.
  const auto closed = inspect::InspectPool(WholePool(cut.store.Bytes(), true), {}).value();
  EXPECT_GT(closed.damage_count, 0U);
}

// Otherwise a power cut brings the entries back, where another key's meta may stand or the index has grown on.
TEST_F(GrowthTest, EntriesThatRecoveryFreesArePersistentlyFree) {
  int left_over = 0;
  for (size_t fence = 0; !HasFailure(); ++fence) {
    SCOPED_TRACE("fence " + std::to_string(fence));
    Machine machine(Small());
    PutSome(machine.store, 0, 180);
    GrowTo(machine.store, 2);
    machine.pool->EverythingIsDurable();
    const bool ended = machine.RunUpTo(fence, [&] { GrowTo(machine.store, 3); });
    machine.pool->ProcessDies();
    machine.store.Recover();
    const auto& layout = machine.store.versions().index().layout();
    for (uint64_t block = 0; block < layout.blocks(); ++block) {
      const uint64_t at = layout.SlotOffset(layout.FirstOf(block));
      const uint64_t size = machine.store.geometry().block_slots() * sizeof(format::IndexEntry);
      EXPECT_TRUE(machine.pool->IsDurable(at, size)) << block;
    }
    left_over += Blocks(machine.store) == 3 && !ended ? 1 : 0;
    if (ended) break;
  }
  EXPECT_GT(left_over, 0);
}

}  // namespace
}  // namespace erda::server
