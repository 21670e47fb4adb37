// The compared schemes' log, destinations and index: the moments of application, and the state after a crash.
#include "bench/scheme_storage.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.h"
#include "bench/schemes/server/extents.h"
#include "tests/format/first_blocks.h"

namespace erda::schemes {
namespace {

struct Way {
  std::string_view name;
  Scheme scheme;
  bool flushed;  // As in TestStorage.
};
void PrintTo(const Way& way, std::ostream* out) { *out << way.name; }
constexpr Way kRedo{"redo", Scheme::kRedoLogging, true};
constexpr Way kRaw{"raw", Scheme::kReadAfterWrite, true};
constexpr Way kRawCommitted{"raw_committed", Scheme::kReadAfterWrite, false};

TestStorage SmallStorage(const Way& way) { return TestStorage(way.scheme, TestStorage::Small(), way.flushed); }

class SchemeStorageTest : public testing::TestWithParam<Way> {
 protected:
  TestStorage store_ = SmallStorage(GetParam());
};

std::string Named(const testing::TestParamInfo<Way>& info) { return std::string(info.param.name); }
INSTANTIATE_TEST_SUITE_P(All, SchemeStorageTest, testing::Values(kRedo, kRaw, kRawCommitted), Named);

TEST_P(SchemeStorageTest, GetFindsEntriesInTheLogBeforeTheyAreApplied) {
  ASSERT_EQ(store_.Put("key", "first"), Admission::kTaken);
  EXPECT_EQ(store_.storage().unapplied(), 1U);
  EXPECT_EQ(store_.Get("key"), "first");
  EXPECT_TRUE(store_.storage().Find("key", HashKey("key", schemes::kHashSeed))->in_log);
  EXPECT_EQ(store_.storage().Apply(10), 1U);
  EXPECT_EQ(store_.Get("key"), "first");
  EXPECT_FALSE(store_.storage().Find("key", HashKey("key", schemes::kHashSeed))->in_log);

  ASSERT_EQ(store_.Put("key", "second"), Admission::kTaken);
  ASSERT_EQ(store_.Put("key", "third, and longer"), Admission::kTaken);
  EXPECT_EQ(store_.Get("key"), "third, and longer");
  EXPECT_EQ(store_.storage().Apply(1), 1U);
  EXPECT_EQ(store_.Get("key"), "third, and longer");
  ASSERT_EQ(store_.Delete("key"), Admission::kTaken);
  EXPECT_EQ(store_.Get("key"), std::nullopt);
  EXPECT_EQ(store_.Delete("key"), Admission::kAbsent);
  EXPECT_EQ(store_.storage().Apply(10), 2U);
  EXPECT_EQ(store_.Get("key"), std::nullopt);
  EXPECT_EQ(store_.storage().keys(), 0U);
}

TEST_P(SchemeStorageTest, AcknowledgedWritesOutliveAPowerCutBeforeTheyAreApplied) {
  ASSERT_EQ(store_.Put("kept", "value"), Admission::kTaken);
  ASSERT_EQ(store_.Put("gone", "value"), Admission::kTaken);
  ASSERT_EQ(store_.Delete("gone"), Admission::kTaken);
  store_.Open(store_.OnlyWhatIsDurable());
  EXPECT_EQ(store_.storage().recovery().entries, 3U);
  EXPECT_EQ(store_.storage().recovery().applied, 2U);
  EXPECT_EQ(store_.Get("kept"), "value");
  EXPECT_EQ(store_.Get("gone"), std::nullopt);
  store_.DieAndReopen();
  EXPECT_EQ(store_.storage().recovery().entries, 0U);
  EXPECT_EQ(store_.Get("kept"), "value");
}

// In turn, every byte of the entry is as it was before the write.
TEST_P(SchemeStorageTest, AnEntryThatIsNotWholeIsNotAppliedAfterARestart) {
  ASSERT_EQ(store_.Put("key", "old value"), Admission::kTaken);
  store_.storage().Close();
  const auto before = store_.Everything();
  store_.Open(before);
  const std::string value = "a new value";
  ASSERT_EQ(store_.Put("key", value), Admission::kTaken);
  const auto after = store_.Everything();
  const auto old_bytes = std::as_bytes(std::span(before));
  const auto new_bytes = std::as_bytes(std::span(after));
  size_t torn = 0;
  for (size_t i = 0; i < new_bytes.size(); ++i) {
    if (new_bytes[i] == old_bytes[i]) continue;
    ++torn;
    auto image = after;
    std::as_writable_bytes(std::span(image))[i] = old_bytes[i];
    store_.Open(image);
    EXPECT_EQ(store_.storage().recovery().entries, 0U) << "byte " << i;
    EXPECT_EQ(store_.Get("key"), "old value") << "byte " << i;
  }
  EXPECT_GE(torn, value.size());
  store_.Open(after);
  EXPECT_EQ(store_.Get("key"), value);
}

TEST_P(SchemeStorageTest, ATornDestinationIsMendedFromTheLog) {
  ASSERT_EQ(store_.Put("key", std::string(300, 'a')), Admission::kTaken);
  store_.storage().Close();
  ASSERT_EQ(store_.Put("key", std::string(300, 'b')), Admission::kTaken);
  ASSERT_EQ(store_.storage().Apply(1), 1U);
  // Nothing of the destination was fenced yet, so a power cut leaves any part of it.
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Random random(seed);
    TestStorage again = SmallStorage(GetParam());
    again.Open(store_.pool().AfterPowerCut(random, 0.5));
    EXPECT_EQ(again.Get("key"), std::string(300, 'b'));
    EXPECT_EQ(again.storage().recovery().applied, 1U);
  }
}

// The head of the log is stored once all entries before it are persistent at their destinations. That holds when the
// log has gone round, and when it is closed. The test cuts the power at each fence that finds the head stored.
TEST_P(SchemeStorageTest, HeadOfTheLogMovesOnlyOverPersistentEntries) {
  Random random(1);
  std::vector<CrashPool::Image> left;
  std::string acknowledged;
  std::string next(300, 'a');
  const auto compare = [&] {
    EXPECT_FALSE(left.empty());
    for (auto& image : std::exchange(left, {})) {
      TestStorage again = SmallStorage(GetParam());
      again.Open(std::move(image));
      const auto found = again.Get("key");
      ASSERT_TRUE(found == acknowledged || found == next) << (found ? found->substr(0, 20) : "nothing");
    }
  };
  ASSERT_EQ(store_.Put("key", next), Admission::kTaken);
  store_.storage().Close();  // From here on its destination is overwritten in place.
  acknowledged = next;
  store_.pool().before_fence = [&] {
    if (store_.pool().IsDurable(kLogHeadOffset, sizeof(uint64_t))) return;
    for (int i = 0; i < 20; ++i) left.push_back(store_.pool().AfterPowerCut(random, 0.5));
  };
  for (int i = 1; left.empty(); ++i) {
    ASSERT_LT(i, 1000);
    next.assign(300, static_cast<char>('a' + i % 26));
    ASSERT_EQ(store_.Put("key", next), Admission::kTaken);
    if (!left.empty()) break;
    acknowledged = next;
    ASSERT_EQ(store_.storage().Apply(1), 1U);
  }
  compare();
  acknowledged = next;
  store_.storage().Close();
  compare();
}

// --- A process dies while the machine stays up: its last stores are in the caches, and not on the medium

struct Death {};

// The head of the log is known only to the caches. A server that builds upon it would write over the head that the
// medium knows.
TEST_P(SchemeStorageTest, AHeadOfTheLogInTheCachesAloneIsMadePersistent) {
  ASSERT_EQ(store_.Put("first", std::string(4000, 'f')), Admission::kTaken);
  store_.pool().before_fence = [this] {
    if (!store_.pool().IsDurable(kLogHeadOffset, sizeof(uint64_t))) throw Death();
  };
  EXPECT_THROW(store_.storage().Close(), Death);
  store_.Open(store_.pool().AfterProcessEnd([] { return false; }));
  EXPECT_EQ(store_.storage().recovery().entries, 0U);
  std::string last;
  for (int i = 0;; ++i) {
    const std::string value = "value " + std::to_string(i) + std::string(1000, '.');
    if (store_.Put("key", value) != Admission::kTaken) break;  // All of the log is in use.
    last = value;
  }
  store_.Open(store_.OnlyWhatIsDurable());
  EXPECT_EQ(store_.Get("key"), last);
  EXPECT_EQ(store_.Get("first"), std::string(4000, 'f'));
}

// The entry was not acknowledged. It is applied all the same, and must not leave a torn destination.
TEST_P(SchemeStorageTest, AnEntryInTheCachesAloneIsMadePersistentBeforeItIsApplied) {
  const std::string old_value(300, 'a');
  const std::string new_value(300, 'b');
  ASSERT_EQ(store_.Put("key", old_value), Admission::kTaken);
  store_.storage().Close();
  if (GetParam().scheme == Scheme::kRedoLogging) {
    ASSERT_EQ(store_.Append("key", new_value), Admission::kTaken);
  } else {
    uint64_t position = 0;
    ASSERT_EQ(store_.Reserve("key", new_value, &position), Admission::kTaken);
    store_.Write(position, "key", new_value, SIZE_MAX);
  }
  Random random(1);
  std::vector<CrashPool::Image> left;
  store_.Open(store_.pool().AfterProcessEnd([] { return false; }), [&] {
    for (int i = 0; i < 20; ++i) left.push_back(store_.pool().AfterPowerCut(random, 0.5));
  });
  EXPECT_EQ(store_.Get("key"), new_value);
  EXPECT_FALSE(left.empty());
  for (auto& image : left) {
    TestStorage again = SmallStorage(GetParam());
    again.Open(std::move(image));
    const auto found = again.Get("key");
    ASSERT_TRUE(found == old_value || found == new_value) << found.value_or("nothing");
  }
}

TEST_P(SchemeStorageTest, ASuperblockInTheCachesAloneIsMadePersistent) {
  const PoolSettings settings = TestStorage::Small();
  auto blank = std::make_unique<CrashPool>(settings.pool.size);
  CrashPool* const pool = blank.get();
  std::optional<CrashPool::Images> images;
  pool->before_fence = [&] {
    if (pool->IsDurable(0, sizeof(Superblock))) return;
    images = pool->AfterProcessEnd([] { return false; });
    throw Death();
  };
  EXPECT_THROW((void)SchemePool::Take(std::move(blank), GetParam().scheme, settings), Death);
  ASSERT_TRUE(images);
  store_.Open(*std::move(images));
  ASSERT_EQ(store_.Put("key", "value"), Admission::kTaken);
  store_.Open(store_.OnlyWhatIsDurable());
  EXPECT_EQ(store_.Get("key"), "value");
}

// Zeroes in place of the superblock, and any bytes after it.
TEST_P(SchemeStorageTest, ADeviceBecomesAPoolOnceItsIndexIsEmpty) {
  const PoolSettings settings = TestStorage::Small();
  CrashPool::Image before(settings.pool.size / sizeof(uint64_t), 0x1234567812345678);
  std::fill_n(before.begin(), kIndexOffset / sizeof(uint64_t), 0);
  auto device = std::make_unique<CrashPool>(before);
  CrashPool* const pool = device.get();
  Random random(1);
  std::vector<CrashPool::Image> left;
  pool->before_fence = [&] {
    for (int i = 0; i < 20; ++i) left.push_back(pool->AfterPowerCut(random, 0.5));
  };
  const auto made = SchemePool::Take(std::move(device), GetParam().scheme, settings);
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  left.push_back(pool->AfterPowerCut([] { return false; }));
  for (auto& image : left) {
    auto opened = SchemePool::Take(std::make_unique<CrashPool>(std::move(image)), GetParam().scheme, settings);
    if (opened.status().code() == Code::kCorruption) continue;  // Its superblock is torn.
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    const auto storage = Storage::Open(*std::move(opened));
    ASSERT_TRUE(storage.ok()) << storage.status().ToString();
    EXPECT_EQ((*storage)->keys(), 0U);
  }
}

// With a matching checksum.
TEST_P(SchemeStorageTest, ImpossibleSuperblockIsRefused) {
  const auto good = LoadAs<Superblock>(store_.pool().view().bytes);
  const auto open = [&](void (*spoil)(Superblock&)) {
    auto image = store_.Everything();
    Superblock bad = good;
    spoil(bad);
    bad.crc = 0;
    bad.crc = Crc32c(0, BytesOf(bad));
    std::memcpy(image.data(), &bad, sizeof(bad));
    return SchemePool::Take(std::make_unique<CrashPool>(std::move(image)), GetParam().scheme, TestStorage::Small())
        .status()
        .code();
  };
  EXPECT_EQ(open([](Superblock&) {}), Code::kOk);
  EXPECT_EQ(open([](Superblock& bad) { bad.index_slots = 0; }), Code::kCorruption);
  EXPECT_EQ(open([](Superblock& bad) { bad.index_slots = uint64_t{1} << 60; }), Code::kCorruption);
  EXPECT_EQ(open([](Superblock& bad) { bad.index_slots = (1 << 20) / 16; }), Code::kCorruption);
  EXPECT_EQ(open([](Superblock& bad) { bad.log_bytes = 0; }), Code::kCorruption);
  EXPECT_EQ(open([](Superblock& bad) { bad.log_bytes += 64; }), Code::kCorruption);
  EXPECT_EQ(open([](Superblock& bad) { bad.log_bytes = ~uint64_t{4095}; }), Code::kCorruption);
}

TEST_P(SchemeStorageTest, LogWrapsAroundAndOldEntriesAreNotAppliedAgain) {
  const uint64_t log_bytes = TestStorage::Small().log_bytes;
  std::map<std::string, std::string> expected;
  uint64_t written = 0;
  for (uint64_t i = 0; written < 5 * log_bytes; ++i) {
    const std::string key = "key" + std::to_string(i % 37);
    const std::string value(i * 131 % 3000, static_cast<char>('a' + i % 26));
    Admission admission = store_.Put(key, value);
    if (admission == Admission::kWait) {
      ASSERT_GT(store_.storage().Apply(i % 5 + 1), 0U);
      admission = store_.Put(key, value);
    }
    while (admission == Admission::kWait && store_.storage().Apply(1) > 0) admission = store_.Put(key, value);
    ASSERT_EQ(admission, Admission::kTaken);
    expected[key] = value;
    written += value.size();
    if (i % 50 == 49) store_.DieAndReopen();
  }
  for (const auto& [key, value] : expected) EXPECT_EQ(store_.Get(key), value);
  store_.Open(store_.OnlyWhatIsDurable());
  for (const auto& [key, value] : expected) EXPECT_EQ(store_.Get(key), value);
}

TEST_P(SchemeStorageTest, APoolThatIsFullRefusesPutsAndTakesThemAgainAfterDeletes) {
  std::vector<std::string> keys;
  const std::string value(4000, 'v');
  Admission admission = Admission::kTaken;
  while (admission != Admission::kFull) {
    keys.push_back("key" + std::to_string(keys.size()));
    admission = store_.Put(keys.back(), value);
    if (admission == Admission::kWait) admission = Admission::kTaken;
    while (store_.storage().Apply(10) > 0) {
    }
    ASSERT_LT(keys.size(), 1000U);
  }
  keys.pop_back();
  for (const std::string& key : keys) ASSERT_EQ(store_.Get(key), value);
  store_.DieAndReopen();
  EXPECT_EQ(store_.Put("one more", value), Admission::kFull);
  EXPECT_EQ(store_.Put(keys[0], std::string(4000, 'w')), Admission::kTaken);  // In place.
  ASSERT_EQ(store_.Delete(keys[1]), Admission::kTaken);
  while (store_.storage().Apply(10) > 0) {
  }
  EXPECT_EQ(store_.Put("one more", value), Admission::kTaken);
}

TEST_P(SchemeStorageTest, ManyKeysAreRefusedBeforeTheIndexHasNoSlotForThem) {
  const uint64_t slots = TestStorage::Small().index_entries;
  uint64_t keys = 0;
  for (;; ++keys) {
    ASSERT_LT(keys, slots);
    const Admission admission = store_.Put("key" + std::to_string(keys), "v");
    if (admission == Admission::kFull) break;
    ASSERT_EQ(admission, Admission::kTaken);
    if (keys % 7 == 0) store_.storage().Apply(7);
  }
  EXPECT_EQ(keys, slots - slots / 5);
  while (store_.storage().Apply(10) > 0) {
  }
  EXPECT_EQ(store_.storage().unapplied(), 0U);
  EXPECT_EQ(store_.storage().keys(), keys);
  for (uint64_t i = 0; i < keys; ++i) EXPECT_EQ(store_.Get("key" + std::to_string(i)), "v");
}

// Keys have homes so near each other that their entries move. The test cuts the power at each fence of a move.
TEST_P(SchemeStorageTest, IndexEntryWhoseMoveWasCutOffIsInOneSlot) {
  constexpr uint64_t kMoveOffset = format::kShardRecordsOffset + offsetof(format::ShardRecord, move);
  constexpr int kFencesOfAMove = 4;
  const format::Geometry& geometry = store_.storage().scheme_pool().geometry();
  std::vector<std::string> keys;
  std::vector<CrashPool::Image> left;
  uint64_t last_move = 0;
  int fences = 0;
  store_.pool().before_fence = [&] {
    const auto move = LoadAs<uint64_t>(store_.pool().view().bytes.subspan(kMoveOffset));
    if (std::exchange(last_move, move) != move) fences = kFencesOfAMove;
    if (fences-- > 0) left.insert(left.end(), {store_.Everything(), store_.OnlyWhatIsDurable()});
  };
  for (uint64_t i = 0; left.size() < 40; ++i) {
    ASSERT_LT(keys.size(), 100U);
    const std::string key = "key" + std::to_string(i);
    const uint64_t home = format::FirstHome(geometry, HashKey(key, schemes::kHashSeed));
    if (home < 100 || home >= 130) continue;
    ASSERT_EQ(store_.Put(key, "v"), Admission::kTaken);
    store_.storage().Apply(1);
    if (left.empty()) keys.push_back(key);
  }
  for (auto& image : left) {
    TestStorage again = SmallStorage(GetParam());
    again.Open(std::move(image));
    if (HasFailure()) return;
    for (const std::string& key : keys) EXPECT_EQ(again.Get(key), "v");
  }
}

TEST(ReadAfterWriteStorageTest, EntryCountsOnceItIsWhole) {
  TestStorage store(Scheme::kReadAfterWrite, TestStorage::Small());
  ASSERT_EQ(store.Put("key", "old"), Admission::kTaken);
  uint64_t position = 0;
  ASSERT_EQ(store.Reserve("key", "new", &position), Admission::kTaken);
  ASSERT_EQ(store.Put("other", "value"), Admission::kTaken);
  const size_t size = store.Entry(position, "key", "new").size();
  for (size_t n = 0; n < size; ++n) {
    store.Write(position, "key", "new", n);
    EXPECT_EQ(store.Get("key"), "old") << n << " bytes";
    store.storage().Apply(10);
    EXPECT_EQ(store.storage().unapplied(), 2U);  // It delays the one after it.
  }
  EXPECT_EQ(store.Get("other"), "value");
  EXPECT_FALSE(store.storage().Commit(position, TestStorage::kClient));
  store.Write(position, "key", "new", size);
  EXPECT_FALSE(store.storage().Commit(position, TestStorage::kClient + 1));
  EXPECT_TRUE(store.storage().Commit(position, TestStorage::kClient));
  EXPECT_EQ(store.Get("key"), "new");
  EXPECT_EQ(store.storage().Apply(10), 2U);
  EXPECT_TRUE(store.storage().Commit(position, TestStorage::kClient));  // Applied since.
  EXPECT_FALSE(store.storage().Commit(position + (1 << 20), TestStorage::kClient));
}

TEST(ReadAfterWriteStorageTest, UnfinishedEntryOfAGoneClientIsDropped) {
  TestStorage store(Scheme::kReadAfterWrite, TestStorage::Small());
  uint64_t whole = 0;
  uint64_t half = 0;
  ASSERT_EQ(store.Reserve("half", "value", &half), Admission::kTaken);
  ASSERT_EQ(store.Reserve("whole", "value", &whole), Admission::kTaken);
  ASSERT_EQ(store.Put("behind", "value"), Admission::kTaken);
  store.Write(half, "half", "value", 20);
  store.Write(whole, "whole", "value", SIZE_MAX);
  EXPECT_EQ(store.storage().Apply(10), 0U);
  store.storage().Abandon(TestStorage::kClient);
  EXPECT_EQ(store.storage().Apply(10), 3U);
  EXPECT_EQ(store.Get("half"), std::nullopt);
  EXPECT_EQ(store.Get("whole"), "value");
  EXPECT_EQ(store.Get("behind"), "value");
}

TEST(ReadAfterWriteStorageTest, RecoveryFindsEntriesAfterAnIncompleteOne) {
  TestStorage store(Scheme::kReadAfterWrite, TestStorage::Small());
  uint64_t half = 0;
  ASSERT_EQ(store.Reserve("half", std::string(500, 'h'), &half), Admission::kTaken);
  store.Write(half, "half", std::string(500, 'h'), 300);
  ASSERT_EQ(store.Put("behind", "value"), Admission::kTaken);
  store.Open(store.OnlyWhatIsDurable());
  EXPECT_EQ(store.Get("behind"), "value");
  EXPECT_EQ(store.Get("half"), std::nullopt);
}

// The entry is found whole before its commit has come. A power cut may tear its destination only if the entry is in the
// log.
TEST(ReadAfterWriteStorageTest, AnEntryIsPersistentBeforeItIsApplied) {
  const std::string old_value(300, 'a');
  const std::string new_value(300, 'b');
  TestStorage store = SmallStorage(kRawCommitted);
  ASSERT_EQ(store.Put("key", old_value), Admission::kTaken);
  store.storage().Close();
  uint64_t position = 0;
  ASSERT_EQ(store.Reserve("key", new_value, &position), Admission::kTaken);
  store.Write(position, "key", new_value, SIZE_MAX);
  ASSERT_EQ(store.storage().Apply(1), 1U);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Random random(seed);
    TestStorage again = SmallStorage(kRawCommitted);
    again.Open(store.pool().AfterPowerCut(random, 0.5));
    EXPECT_EQ(again.Get("key"), new_value);
  }
}

// The index knows the destination by the reservation. If none was taken, there is no place to write to.
TEST(ReadAfterWriteStorageTest, AnEntryOfAnotherKeyThanItWasReservedForDoesNoHarm) {
  TestStorage store(Scheme::kReadAfterWrite, TestStorage::Small());
  ASSERT_EQ(store.Put("key", "old value"), Admission::kTaken);
  store.storage().Close();
  uint64_t position = 0;
  ASSERT_EQ(store.Reserve("key", "new value", &position), Admission::kTaken);  // In place.
  store.Write(position, "yek", "new value", SIZE_MAX);
  EXPECT_EQ(store.storage().Apply(10), 1U);
  store.DieAndReopen();
  EXPECT_EQ(store.Get("key"), "old value");
}

// Where a Read flushes nothing, only the server's flushes count.
TEST(ReadAfterWriteStorageTest, GetMakesTheEntryPersistent) {
  TestStorage store(Scheme::kReadAfterWrite, TestStorage::Small());
  uint64_t position = 0;
  ASSERT_EQ(store.storage().Reserve(TestStorage::SizesOf("key", "value"), HashKey("key", schemes::kHashSeed), "key", 0,
                                    false, &position),
            Admission::kTaken);
  const std::string entry = store.Entry(position, "key", "value");
  std::memcpy(store.pool().view().bytes.data() + store.OffsetOf(position), entry.data(), entry.size());
  EXPECT_FALSE(store.pool().IsDurable(store.OffsetOf(position), entry.size()));
  EXPECT_EQ(store.Get("key"), "value");
  EXPECT_TRUE(store.pool().IsDurable(store.OffsetOf(position), entry.size()));
}

// Random writes, applied from time to time. At any fence the power is cut or the process dies, also while the log is
// applied again. Acknowledged writes survive; of any other write, all or nothing does. The index leaks no slot, and no
// destination is lost.
struct PowerCut {};

class CrashRun {
 public:
  CrashRun(const Way& way, uint64_t seed) : way_(way), random_(seed), store_(SmallStorage(way)) {}

  void Go(int steps) {
    Arm();
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
      try {
        Step();
      } catch (const PowerCut&) {
        Recover();
      }
    }
    Compare();
    store_.pool().before_fence = nullptr;
    store_.storage().Abandon(TestStorage::kClient);
    store_.storage().Close();
    const uint64_t free_bytes = store_.storage().free_bytes();
    store_.DieAndReopen();
    EXPECT_EQ(store_.storage().free_bytes(), free_bytes);
  }
  [[nodiscard]] int cuts() const { return cuts_; }

 private:
  void Arm() {
    store_.pool().before_fence = [this] { CutSometimes(); };
  }
  void CutSometimes() {
    if (random_.Chance(0.02)) Cut();
  }
  void Cut() {
    constexpr std::array<double, 3> kKept = {0, 0.5, 1};
    const double kept = kKept.at(random_.Uniform(kKept.size()));
    if (random_.Chance(0.3)) {
      left_ = store_.pool().AfterProcessEnd([&] { return random_.Chance(kept); });
    } else {
      left_.cached = store_.pool().AfterPowerCut(random_, kept);
      left_.durable = left_.cached;
    }
    ++cuts_;
    throw PowerCut();
  }

  void Step() {
    const std::string key = "key" + std::to_string(random_.Uniform(40));
    const uint64_t draw = random_.Uniform(100);
    if (draw < 60) {
      const std::string value(random_.Uniform(600), static_cast<char>('a' + random_.Uniform(26)));
      Write(key, value);
    } else if (draw < 75) {
      Write(key, std::nullopt);
    } else if (draw < 80 && way_.scheme == Scheme::kReadAfterWrite) {
      if (half_) {
        EndHalf();
      } else {
        BeginHalf();
      }
    } else if (draw < 95) {
      store_.storage().Apply(random_.Uniform(8));
    } else if (draw < 97) {
      store_.storage().Close();
    } else {
      Cut();
    }
  }

  void Write(const std::string& key, const std::optional<std::string>& value) {
    if (may_be_[key].empty()) may_be_[key].insert(std::nullopt);
    may_be_[key].insert(value);
    const Admission admission = value ? store_.Put(key, *value) : store_.Delete(key);
    if (admission == Admission::kTaken) {
      may_be_[key] = {value};
    } else {
      EXPECT_NE(admission, Admission::kFull);
      if (admission == Admission::kAbsent) {
        EXPECT_TRUE(may_be_[key].contains(std::nullopt));
      }
      may_be_[key] = {store_.Get(key)};
      if (admission == Admission::kWait) store_.storage().Apply(SIZE_MAX);
    }
  }

  // Begins an entry of which only a part arrives. No other write has its key.
  void BeginHalf() {
    Half half{0, std::string(random_.Uniform(600), static_cast<char>('a' + random_.Uniform(26)))};
    if (store_.Reserve(kHalf, half.value, &half.position) != Admission::kTaken) return;
    const size_t size = store_.Entry(half.position, kHalf, half.value).size();
    store_.Write(half.position, kHalf, half.value, random_.Uniform(size));
    half_ = half;
    // An earlier lap may have left the rest of it.
    if (may_be_[kHalf].empty()) may_be_[kHalf].insert(std::nullopt);
    may_be_[kHalf].insert(half.value);
  }
  // The rest of the entry arrives, or its client is gone.
  void EndHalf() {
    const Half half = *std::exchange(half_, std::nullopt);
    if (random_.Chance(0.3)) return store_.storage().Abandon(TestStorage::kClient);
    store_.Finish(half.position, kHalf, half.value);
    may_be_[kHalf] = {half.value};
  }

  void Recover() {
    half_.reset();
    for (bool open = false; !open;) {
      try {
        store_.Open(std::move(left_), [this] { CutSometimes(); });
        open = true;
      } catch (const PowerCut&) {
      }
    }
    Compare();
    EXPECT_EQ(store_.storage().keys(), std::count_if(may_be_.begin(), may_be_.end(),
                                                     [](const auto& one) { return one.second.begin()->has_value(); }));
  }

  void Compare() {
    for (auto& [key, values] : may_be_) {
      const auto found = store_.Get(key);
      EXPECT_TRUE(values.contains(found))
          << way_.name << ", " << key << ": " << (found ? found->substr(0, 20) : "nothing");
      values = {found};
    }
  }

  static constexpr const char* kHalf = "half";
  struct Half {
    uint64_t position;
    std::string value;
  };

  const Way way_;
  Random random_;
  TestStorage store_;
  std::map<std::string, std::set<std::optional<std::string>>> may_be_;
  std::optional<Half> half_;
  CrashPool::Images left_;  // Left by the last power cut or death.
  int cuts_ = 0;
};

TEST_P(SchemeStorageTest, NothingAcknowledgedIsLostByPowerCuts) {
  int cuts = 0;
  for (uint64_t seed = 1; seed <= 10 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    CrashRun run(GetParam(), seed);
    run.Go(1500);
    cuts += run.cuts();
  }
  EXPECT_GT(cuts, 200);
}

TEST(ExtentsTest, FreedNeighboursAreJoined) {
  Extents extents;
  extents.Add(1000, 300);
  EXPECT_EQ(extents.Take(100), 1000U);
  EXPECT_EQ(extents.Take(100), 1100U);
  EXPECT_EQ(extents.Take(101), std::nullopt);
  extents.Add(1000, 100);
  EXPECT_EQ(extents.largest(), 100U);
  extents.Add(1100, 100);
  EXPECT_EQ(extents.largest(), 300U);
  EXPECT_EQ(extents.free_bytes(), 300U);
  EXPECT_EQ(extents.Take(300), 1000U);
  EXPECT_EQ(extents.Take(1), std::nullopt);
}

}  // namespace
}  // namespace erda::schemes
