// More keys of one place than a neighbourhood has slots, in a shard that crashes (format/reach.h; docs/protocol.md,
// I15).
#include "format/reach.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "format/pool_index.h"
#include "inspect/salvage.h"
#include "server/machine.h"
#include "server/page_pool.h"
#include "server/whole_pool.h"

namespace erda::server {
namespace {

using format::EntryMeta;
using format::kNeighbourhood;
using format::Reaches;
using format::Reason;

// Blocks of 128 slots, in regions with two blocks. Before the index has its usual size, no split parts keys that share
// four low bits.
StoreOptions SmallRegions() {
  StoreOptions options;
  options.wish = {98304 + 40 * 4096, 1, 4096, 4096, 128};
  return options;
}

class ReachTest : public testing::Test {
 protected:
  static constexpr uint64_t kHome = 20;
  static constexpr uint64_t kBlockSlots = 128;
  static constexpr int kNear = kNeighbourhood;

  // Returns keys of one home and one class, whose hashes share the low four bits.
  static const std::string& Crowd(int i) {
    static std::vector<std::string> keys;
    static int number = 0;
    while (std::ssize(keys) <= i) {
      std::string key = "crowd" + std::to_string(number++);
      const uint64_t hash = HashKey(key);
      const bool at_home = Spread64(hash, kBlockSlots - kNeighbourhood + 1) == kHome;
      if (at_home && hash % 16 == 3 && Reaches::ClassOf(hash) == 5) keys.push_back(std::move(key));
    }
    return keys.at(static_cast<size_t>(i));
  }
  static std::string Value(int i) { return "v" + std::to_string(i); }
  static void PutSome(Store& store, int from, int to) {
    for (int i = from; i < to; ++i) ASSERT_EQ(store.Inline(Crowd(i), Value(i)).code, Code::kOk) << i;
  }
  static void ExpectThere(Store& store, int keys) {
    for (int i = 0; i < keys; ++i) ASSERT_EQ(store.Get(Crowd(i)), Value(i)) << i;
    for (int i = keys; i < keys + 5; ++i) ASSERT_EQ(store.Get(Crowd(i)), kAbsent) << i;
    ASSERT_EQ(store.Violation(), "");
    ASSERT_EQ(store.Keys(), static_cast<uint64_t>(keys));
  }
  static uint32_t Exponent(Store& store) {
    return store.versions().index().layout().reaches().Exponent(HashKey(Crowd(0)));
  }
  static uint64_t RecordOffset() { return format::ShardRecordOffset(0) + offsetof(format::ShardRecord, reaches); }
};

TEST_F(ReachTest, CollidingKeysFillTheirBlockAndAreFound) {
  Store store(SmallRegions());
  PutSome(store, 0, kNear);
  EXPECT_EQ(Exponent(store), 0U);
  PutSome(store, kNear, kBlockSlots);
  EXPECT_EQ(Exponent(store), 1U);
  ExpectThere(store, kBlockSlots);
  EXPECT_EQ(store.Inline(Crowd(kBlockSlots), "v").reason, Reason::kIndexFull) << "the block is full";
  store.CloseAndReopen();
  EXPECT_EQ(FindUnrest(store.Bytes()), "");
  ExpectThere(store, kBlockSlots);
  for (int i = 0; i < static_cast<int>(kBlockSlots); ++i) {
    ASSERT_EQ(store.Inline(Crowd(i), "again").code, Code::kOk) << i;
    ASSERT_EQ(store.Get(Crowd(i)), "again") << i;
    ASSERT_EQ(store.Delete(Crowd(i)), Code::kOk) << i;
    ASSERT_EQ(store.Get(Crowd(i)), kAbsent) << i;
  }
  EXPECT_EQ(store.versions().index().census().used(), 0U);
}

TEST_F(ReachTest, SplitTakesFarEntries) {
  Store store(SmallRegions());
  constexpr int kKeys = 80;
  PutSome(store, 0, kKeys);
  ASSERT_EQ(Exponent(store), 1U);
  for (int i = 0; i < 5000 && store.versions().index().layout().blocks() < 28; ++i) {
    // While their block is full, other keys are refused.
    (void)store.Inline("key" + std::to_string(i), "v");
    store.versions().growth().Grow(1);
  }
  ASSERT_GE(store.versions().index().layout().blocks(), 20U) << "they are parted";
  for (int i = 0; i < kKeys; ++i) ASSERT_EQ(store.Get(Crowd(i)), Value(i)) << i;
  EXPECT_EQ(store.Violation(), "");
  store.CloseAndReopen();
  for (int i = 0; i < kKeys; ++i) ASSERT_EQ(store.Get(Crowd(i)), Value(i)) << i;
  EXPECT_EQ(FindUnrest(store.Bytes()), "");
}

// The power is cut at each fence of the put that raises the window, with any loss.
TEST_F(ReachTest, ACutAtAnyPointOfARaiseLosesNothing) {
  uint64_t images = 0;
  for (size_t fence = 0; !HasFailure(); ++fence) {
    SCOPED_TRACE("fence " + std::to_string(fence));
    Machine machine(SmallRegions());
    PutSome(machine.store, 0, kNear);
    machine.pool->EverythingIsDurable();
    const bool ended = machine.RunUpTo(fence, [&] { PutSome(machine.store, kNear, kNear + 1); });
    if (ended) {
      ASSERT_EQ(Exponent(machine.store), 1U);
    }
    Choices choices(*machine.pool, fence);
    for (size_t i = 0; i < choices.size() && !HasFailure(); ++i, ++images) {
      Machine next(SmallRegions(), choices.At(i));
      ASSERT_EQ(FindUnrest(next.store.Bytes()), "");
      const bool there = next.store.Get(Crowd(kNear)) != kAbsent;
      ASSERT_TRUE(there || !ended);
      ExpectThere(next.store, kNear + (there ? 1 : 0));
      // The shard takes more keys.
      PutSome(next.store, kNear, kNear + 10);
      ExpectThere(next.store, kNear + 10);
      const auto report = inspect::InspectPool(WholePool(next.store.Bytes(), false), {}).value();
      ASSERT_EQ(report.damage_count, 0U) << report.damage.front().what;
    }
    if (ended) break;
  }
  EXPECT_GE(images, 10U);
}

// The process dies, and the machine stays up. Then the power is cut.
TEST_F(ReachTest, AProcessThatDiesInARaiseAndAPowerCutAfterThatLoseNothing) {
  for (size_t fence = 0; !HasFailure(); ++fence) {
    SCOPED_TRACE("fence " + std::to_string(fence));
    Machine machine(SmallRegions());
    PutSome(machine.store, 0, kNear);
    machine.pool->EverythingIsDurable();
    const bool ended = machine.RunUpTo(fence, [&] { PutSome(machine.store, kNear, kNear + 1); });
    machine.pool->ProcessDies();
    machine.store.Recover();
    PutSome(machine.store, kNear, kNear + 3);
    for (const double chance : {0.0, 0.5, 1.0}) {
      Random random(fence);
      Machine next(SmallRegions(), machine.pool->AfterPowerCut(random, chance));
      ExpectThere(next.store, kNear + 3);
    }
    if (ended) break;
  }
}

// Recovery decides versions in flight of far entries without a look through the index.
TEST_F(ReachTest, RecoveryDecidesFarEntries) {
  Store store(SmallRegions());
  PutSome(store, 0, kNear + 1);
  ASSERT_EQ(store.Reserve(Crowd(kNear), "never comes").code(), Code::kOk);
  ASSERT_EQ(store.Reserve(Crowd(kNear + 1), "nor does this").code(), Code::kOk);
  const Reserved arrived = store.Reserve(Crowd(kNear + 2), Value(kNear + 2));
  store.Land(arrived);
  const format::PoolIndex index(store.Bytes().bytes, store.geometry(), 0);
  int far = 0;
  for (uint64_t slot = 0; slot < index.slots(); ++slot) {
    const format::IndexEntry entry = index.At(slot);
    far += entry.word != 0 && entry.entry_meta().distance() == EntryMeta::kFar ? 1 : 0;
  }
  ASSERT_EQ(far, 3);
  store.Recover();
  EXPECT_EQ(store.recovery().index_slots, 0U) << "it need not look at all";
  EXPECT_EQ(store.recovery().taken_back, 1U);
  EXPECT_EQ(store.recovery().dropped, 1U);
  EXPECT_EQ(store.recovery().settled, 1U);
  EXPECT_EQ(FindUnrest(store.Bytes()), "");
  EXPECT_EQ(store.Get(Crowd(kNear)), Value(kNear));
  EXPECT_EQ(store.Get(Crowd(kNear + 1)), kAbsent);
  EXPECT_EQ(store.Get(Crowd(kNear + 2)), Value(kNear + 2));
}

TEST_F(ReachTest, DamagedReachRecordCostsLooksAndNoKey) {
  Machine machine(SmallRegions());
  PutSome(machine.store, 0, 100);
  for (const bool closed : {false, true}) {
    if (closed) machine.store.Close();
    Random random(1);
    CrashPool::Image image = machine.pool->AfterPowerCut(random, 1.0);
    image[RecordOffset() / sizeof(uint64_t)] ^= uint64_t{1} << 20;
    Machine next(SmallRegions(), image, closed ? TakeUp::kOpen : TakeUp::kRecover);
    EXPECT_EQ(next.store.versions().index().layout().reaches(), Reaches::Farthest());
    ExpectThere(next.store, 100);
    PutSome(next.store, 100, 110);
    next.store.CloseAndReopen();
    EXPECT_EQ(next.store.versions().index().layout().reaches(), Reaches::Farthest());
    ExpectThere(next.store, 110);
    EXPECT_EQ(inspect::InspectPool(WholePool(next.store.Bytes(), false), {}).value().damage_count, 0U)
        << "it is mended";
  }
}

// Puts share their fences. One of them gets a slot far from its home, which is the first choice of another one.
TEST_F(ReachTest, PutsOfOneBatchDoNotTakeOneSlot) {
  StoreOptions options;
  // A block has 1024 slots, so that homes may be more than 64 slots apart.
  options.wish = {4 << 20, 1, 32768, 8192, 1024};
  Store store(options);
  index::Index& index = store.versions().part().index();
  constexpr uint64_t kHigh = uint64_t{0x5123} << 48;
  const auto put = [&](const std::string& key, uint64_t hash) {
    return store.versions().puts().PutInline(key, hash, AsBytes("v"), Ack::kPersisted).code;
  };
  for (uint64_t i = 0; i <= kNeighbourhood; ++i) {
    ASSERT_EQ(put("crowd" + std::to_string(i), kHigh | i << 32), Code::kOk);
    (void)store.versions().PublishPuts();
  }
  const index::Slot next = index.layout().HomeOf(kHigh) + kNeighbourhood + 1;  // of the window of 128
  uint64_t other = kHigh;
  while (index.layout().HomeOf(other) < next) other += uint64_t{1} << 44;
  ASSERT_EQ(index.free_slots().FindRoom(other), next);
  ASSERT_EQ(put("crowd", kHigh | uint64_t{1000} << 32), Code::kOk);
  ASSERT_EQ(put("other", other), Code::kOk);
  (void)store.versions().PublishPuts();
  uint64_t used = 0;
  for (index::Slot slot = 0; slot < index.size(); ++slot) used += index.WordAt(slot).empty() ? 0 : 1;
  EXPECT_EQ(used, kNeighbourhood + 3U);
  EXPECT_EQ(store.Violation(), "");
}

// As for a key near its home, the damage stays visible until the put is done.
TEST_F(ReachTest, UnfinishedPutDoesNotHideTheDamageOfAFarKey) {
  Machine machine(SmallRegions());
  Store& store = machine.store;
  PutSome(store, 0, kNear + 1);
  const auto bytes = machine.pool->view().bytes;
  bytes[store.OffsetOfKey(Crowd(kNear)) + offsetof(format::ObjectHeader, key_hash)] ^= std::byte{1};
  ASSERT_EQ(store.Get(Crowd(kNear)), kDamaged);
  const Reserved reserved = store.Reserve(Crowd(kNear), "new");
  ASSERT_EQ(reserved.code(), Code::kOk);
  EXPECT_EQ(store.Get(Crowd(kNear)), kDamaged);
  store.EndSession(0);
  EXPECT_EQ(store.Get(Crowd(kNear)), kDamaged);
  EXPECT_EQ(store.Inline(Crowd(kNear), "new").code, Code::kOk);
  EXPECT_EQ(store.Get(Crowd(kNear)), "new");
  EXPECT_EQ(store.Violation(), "");
}

TEST_F(ReachTest, InspectionReportsTheGrowthOfWindows) {
  Store store(SmallRegions());
  PutSome(store, 0, kNear);
  auto report = inspect::InspectPool(WholePool(store.Bytes(), false), {}).value();
  EXPECT_EQ(report.shards[0].window_slots, uint64_t{kNear});
  EXPECT_EQ(report.shards[0].windows_grown, 0U);
  PutSome(store, kNear, kNear + 1);
  report = inspect::InspectPool(WholePool(store.Bytes(), false), {}).value();
  EXPECT_EQ(report.shards[0].window_slots, kBlockSlots);
  EXPECT_EQ(report.shards[0].windows_grown, 1U);
}

TEST_F(ReachTest, SalvageFindsTheValuesOfFarEntries) {
  Store store(SmallRegions());
  PutSome(store, 0, 100);
  const auto report = inspect::Salvage(WholePool(store.Bytes(), false), {}, [](const auto&) { return Status(); });
  ASSERT_TRUE(report.ok()) << report.status().ToString();
  EXPECT_EQ(report->named, 100U);
  EXPECT_EQ(report->unnamed, 0U);
}

// --- After a power cut, on an ordinary file

class ReachVerificationTest : public ReachTest {
 protected:
  ReachVerificationTest() {
    options_ = SmallRegions();
    options_.flush = format::FlushMethod::kNone;
    options_.take_up = TakeUp::kNotYet;
    TakePool(PagePool::Image(options_.wish.pool_size / sizeof(uint64_t)));
    store_->Open();
  }
  void TakePool(PagePool::Image image) {
    auto pool = std::make_unique<PagePool>(std::move(image), false, kBoot);
    medium_ = pool.get();
    store_ = std::make_unique<Store>(options_, std::move(pool));
  }

  StoreOptions options_;
  PagePool* medium_ = nullptr;
  std::unique_ptr<Store> store_;
  std::vector<std::string> damaged_;
};

TEST_F(ReachVerificationTest, RecordOlderThanItsEntriesIsRaised) {
  PutSome(*store_, 0, 100);
  PagePool::Image image = medium_->cached();
  ASSERT_NE(image[RecordOffset() / sizeof(uint64_t)], 0U);
  image[RecordOffset() / sizeof(uint64_t)] = 0;
  TakePool(image);
  ASSERT_TRUE(store_->Verify(&damaged_).ok());
  EXPECT_EQ(damaged_, std::vector<std::string>{});
  EXPECT_EQ(Exponent(*store_), 1U);
  EXPECT_EQ(store_->recovery().moves_undone, 0U) << "each stands in its place";
  ExpectThere(*store_, 100);
  EXPECT_EQ(FindUnrest(store_->Bytes()), "");
}

// A page of the index is from the time before its key was deleted. The key was put again, in another slot of its
// window.
TEST_F(ReachVerificationTest, OfTwoEntriesOfAKeyInItsWindowTheNewerOneStays) {
  PutSome(*store_, 0, 100);
  const format::PoolIndex index(store_->Bytes().bytes, store_->geometry(), 0);
  uint64_t slot = 0;
  while (index.At(slot).entry_word() != store_->WordOf(Crowd(99))) ++slot;
  const format::IndexEntry old = index.At(slot);
  ASSERT_EQ(old.entry_meta().distance(), EntryMeta::kFar);
  ASSERT_EQ(store_->Delete(Crowd(99)), Code::kOk);
  ASSERT_EQ(store_->Delete(Crowd(3)), Code::kOk);
  ASSERT_EQ(store_->Inline(Crowd(99), "newer").code, Code::kOk);  // near its home
  PagePool::Image image = medium_->cached();
  ASSERT_EQ(index.At(slot).word, 0U);
  image[index.OffsetOf(slot) / sizeof(uint64_t)] = old.word;
  image[index.OffsetOf(slot) / sizeof(uint64_t) + 1] = old.meta;
  TakePool(image);
  ASSERT_TRUE(store_->Verify(&damaged_).ok());
  EXPECT_EQ(store_->recovery().moves_undone, 1U);
  EXPECT_EQ(store_->Get(Crowd(99)), "newer");
  EXPECT_EQ(FindUnrest(store_->Bytes()), "");
}

// A misplaced entry gets another slot of its window, also if its neighbourhood is full.
TEST_F(ReachVerificationTest, MisplacedEntryIsMovedIntoItsWindow) {
  PutSome(*store_, 0, kNear + 1);
  const format::PoolIndex index(store_->Bytes().bytes, store_->geometry(), 0);
  uint64_t slot = 0;
  while (index.At(slot).entry_word() != store_->WordOf(Crowd(kNear))) ++slot;
  const uint64_t other_block = index.layout().BlockWith(slot) == 0 ? 1 : 0;
  PagePool::Image image = medium_->cached();
  const auto word = [&](uint64_t at) -> uint64_t& { return image[index.OffsetOf(at) / sizeof(uint64_t)]; };
  for (const uint64_t astray : {index.layout().FirstOf(other_block) + 7, index.layout().FirstOf(other_block) + 9}) {
    word(astray) = word(slot);
    *(&word(astray) + 1) = *(&word(slot) + 1);
  }
  word(slot) = 0;
  image[RecordOffset() / sizeof(uint64_t)] = 0;
  TakePool(image);
  ASSERT_TRUE(store_->Verify(&damaged_).ok());
  EXPECT_EQ(damaged_, std::vector<std::string>{});
  EXPECT_EQ(store_->recovery().moves_undone, 2U) << "one of the two copies stays";
  EXPECT_EQ(Exponent(*store_), 1U);
  ExpectThere(*store_, kNear + 1);
  EXPECT_EQ(FindUnrest(store_->Bytes()), "");
}

}  // namespace
}  // namespace erda::server
