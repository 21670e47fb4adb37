// Random requests, with crashes in the middle: power cuts, deaths of the server's process, and more of both during
// recovery. After each crash the test compares the pool with the reference, and goes on with it. In some runs the pool
// is so small that the cleaner always works.
#include <gtest/gtest.h>

#include <array>
#include <iostream>
#include <set>

#include "server/random_requests.h"
#include "server/whole_pool.h"

namespace erda::server {
namespace {

using format::FlushMethod;

constexpr int kSteps = 6'000;
#ifdef ERDA_SANITIZED
constexpr uint64_t kRecoverySeeds = 8;
#else
constexpr uint64_t kRecoverySeeds = 16;
#endif

struct Totals {
  RecoveryReport found;
  int crashes = 0;
  int power_cuts = 0;
  int cut_recoveries = 0;
  int late_writes = 0;
  int pools = 0;
  int scans = 0;  // recoveries that had to look through the index
  int crashes_of_cleaning = 0;
  int crashes_of_growth = 0;
  uint64_t regions_cleaned = 0;
};

class CrashRun : private RandomRequests {
 public:
  // Go begins the run.
  CrashRun(std::vector<FlushMethod> flushes, bool cleaning, uint64_t seed, Totals* totals)
      : RandomRequests(std::move(flushes), seed), cleaning_(cleaning), totals_(*totals) {}

  void Go() {
    NewPool();
    for (step_ = 0; step_ < kSteps && !testing::Test::HasFailure(); ++step_) {
      try {
        Step();
        if (cleaning_) CleanSome();
        if (random_.Chance(0.01)) throw Crash();
        Compare();
      } catch (const Crash&) {
        AfterCrash();
      }
      pending_key_.clear();
    }
    if (testing::Test::HasFailure()) ADD_FAILURE() << "at step " << step_;
  }

 private:
  void NewPool() override {
    ++totals_.pools;
    if (cleaning_) {
      Begin(random_.Chance(0.5) ? format::GeometryWish{98304 + 12 * 4096, 1, 4096, 4096, 128}
                                : format::GeometryWish{98304 + 8 * 8192, 1, 8192, 4096, 128},
            random_.Uniform(100));
      return ExpectCrashes(0.01);
    }
    // Sometimes the index is nearly full, so that entries move when a key comes back.
    Begin(random_.Chance(0.5) ? format::GeometryWish{98304 + 20 * 4096, 1, 4096, 4096, 128}
                              : format::GeometryWish{229376, 1, 16384, 4096, 128},
          random_.Chance(0.6) ? 105 + random_.Uniform(17) : 0);
    ExpectCrashes(0.01);
  }
  // The cleaner and the shard work at any pace.
  void CleanSome() {
    cleans_ = true;
    const uint64_t settled = store_->counter(format::Counter::kSettled);
    for (uint64_t steps = random_.Uniform(4); steps > 0; --steps) {
      const uint64_t cleaned = store_->counter(format::Counter::kCleanRegions);
      if (random_.Chance(0.5)) {
        store_->cleaner().Step();
      } else {
        store_->cleaning().Step();
      }
      totals_.regions_cleaned += store_->counter(format::Counter::kCleanRegions) - cleaned;
    }
    if (random_.Chance(0.05)) store_->cleaning().waiting().Expects(0);
    cleans_ = false;
    if (store_->counter(format::Counter::kSettled) == settled) return;
    // The shard looks at regions that wait for reservations. The reference settles all or none.
    store_->Sweep();
    reference_->Sweep();
  }
  void ExpectCrashes(double chance) {
    pool_->before_fence = [this, chance] {
      const bool moving = store_->displacements() % 2 != 0 || growing_;
      if (random_.Chance(moving ? 0.2 : cleans_ ? 3 * chance : chance)) throw Crash();
    };
  }

  void Compare() {
    for (uint64_t i = 0; i < kKeys; ++i) {
      const std::string key = Key(i);
      const std::string value = store_->Get(key);
      ASSERT_EQ(value, reference_->Get(key)) << key;
      if (random_.Chance(0.2)) See(key, value);
    }
    ASSERT_EQ(store_->Violation(), "");
    // After a crash the shard counts the keys in small steps, while they change.
    if (random_.Chance(0.2)) store_->CountKeys(random_.Between(1, 30));
    if (store_->versions().index().census().is_complete()) {
      ASSERT_EQ(store_->versions().index().census().used(), reference_->keys() + fillers_);
    }
  }

  // --- Crashes

  // Returns the values that a key may have.
  std::set<std::string> Allowed(const std::string& key, bool power_cut) const {
    std::set<std::string> allowed;
    if (power_cut) allowed = reference_->AfterPowerCut(key);
    if (!power_cut) allowed.insert(reference_->AfterCrash(key));
    if (key == pending_key_) allowed.insert(pending_value_);
    return allowed;
  }

  void AfterCrash() {
    ++totals_.crashes;
    totals_.crashes_of_cleaning += cleans_ ? 1 : 0;
    totals_.crashes_of_growth += growing_ ? 1 : 0;
    cleans_ = growing_ = false;
    const uint64_t bytes_used = store_->LogBytesUsed();
    bool power_cut = false;
    std::map<std::string, std::string> expected;
    for (bool recovered = false; !recovered;) {
      // Without a flush method, a power cut leaves nothing.
      if (flushes_.front() != FlushMethod::kNone && random_.Chance(0.6)) {
        constexpr std::array kKept = {0.0, 0.1, 0.5, 0.9, 1.0};
        ++totals_.power_cuts;
        power_cut = true;
        MakeStore(std::make_unique<CrashPool>(pool_->AfterPowerCut(random_, kKept.at(random_.Uniform(kKept.size())))),
                  TakeUp::kNotYet);
      } else {
        pool_->ProcessDies();
      }
      for (uint64_t i = 0; i < kKeys; ++i) {
        const std::string key = Key(i);
        expected[key] = store_->GetAfterCrash(key);
      }
      const inspect::PoolReport inspected = Inspect(false);
      if (random_.Chance(0.5)) ExpectCrashes(0.1);
      try {
        store_->Recover();
        recovered = true;
        ExpectFound(inspected.shards.front(), store_->recovery());
      } catch (const Crash&) {
        ++totals_.cut_recoveries;
      }
    }
    pool_->before_fence = nullptr;
    Count(store_->recovery());

    EXPECT_EQ(store_->Violation(), "");
    EXPECT_EQ(FindUnrest(store_->Bytes()), "");
    EXPECT_EQ(Inspect(false).shards.front().unsettled(), 0U);
    // An emptied region may not be empty any more.
    const uint64_t more = format::FirstObjectOffset(0) + (cleaning_ ? store_->geometry().region_size : 0);
    EXPECT_LE(store_->LogBytesUsed(), bytes_used + more);
    for (uint64_t i = 0; i < fillers_; ++i) ASSERT_EQ(store_->Get(Filler(i)), Filler(i));
    uint64_t keys = fillers_;
    auto after = MakeReference();
    for (const auto& [key, value] : expected) {
      EXPECT_EQ(store_->Get(key), value) << key;
      EXPECT_TRUE(Allowed(key, power_cut).contains(value)) << key << " is " << value;
      if (value == kAbsent) continue;
      ++keys;
      after->Inline(key, value, Ack::kPersisted);
    }
    if (random_.Chance(0.5)) {
      EXPECT_EQ(store_->Keys(), keys);
    }
    EXPECT_EQ(store_->versions().in_flight(), 0U);
    if (!power_cut) LandLate();
    for (const auto& [key, value] : expected) EXPECT_EQ(store_->Get(key), value) << key << " after a late write";
    puts_.clear();
    reference_ = std::move(after);
    ExpectCrashes(0.01);
  }

  // erda-inspect sees no damage after a crash. It finds the same versions in flight as recovery.
  inspect::PoolReport Inspect(bool clean) const {
    const auto bytes = WholePool(store_->Bytes(), clean);
    auto report = inspect::InspectPool(bytes, {.verify = true}).value();
    for (const inspect::Damage& damage : report.damage) ADD_FAILURE() << damage.what << " " << damage.key.value_or("");
    return report;
  }
  static void ExpectFound(const inspect::ShardReport& inspected, const RecoveryReport& recovered) {
    EXPECT_EQ(inspected.whole, recovered.settled);
    EXPECT_EQ(inspected.not_whole, recovered.taken_back + recovered.dropped);
    EXPECT_EQ(inspected.tombstones, recovered.deletes_finished);
    EXPECT_EQ(inspected.move && inspected.move->under_way ? 1U : 0U, recovered.moves_undone);
    EXPECT_EQ(inspected.regions_unopened, recovered.regions_unlinked);
  }

  // Writers that outlive the server may still write into their reservations.
  void LandLate() {
    for (const Put& put : puts_) {
      if (put.handle->whole || random_.Chance(0.5)) continue;
      store_->Land(put.reserved);
      ++totals_.late_writes;
    }
  }

  void Count(const RecoveryReport& report) {
    EXPECT_EQ(report.unsettled,
              report.settled + report.taken_back + report.dropped + report.deletes_finished + report.damaged);
    EXPECT_EQ(report.damaged, 0U);
    totals_.found += report;
    totals_.scans += report.index_slots != 0 ? 1 : 0;
  }

  const bool cleaning_;
  Totals& totals_;
  bool cleans_ = false;  // true while CleanSome runs
  int step_ = 0;
};

void RunAll(const std::vector<FlushMethod>& flushes, bool cleaning = false) {
  Totals totals;
  for (uint64_t seed = 1; seed <= kRecoverySeeds; ++seed) {
    std::cout << "seed " << seed << std::endl;
    SCOPED_TRACE("seed " + std::to_string(seed));
    CrashRun(flushes, cleaning, seed, &totals).Go();
    if (testing::Test::HasFailure()) return;
  }
  std::cout << totals.crashes << " crashes, " << totals.power_cuts << " power cuts, " << totals.cut_recoveries
            << " in recoveries, " << totals.scans << " scans, " << totals.late_writes << " late writes; "
            << totals.found.settled << " settled, " << totals.found.taken_back << " taken back, "
            << totals.found.dropped << " dropped, " << totals.found.deletes_finished << " deletes, "
            << totals.found.moves_undone << " moves, " << totals.found.regions_unlinked << " regions; "
            << totals.regions_cleaned << " cleaned, " << totals.crashes_of_cleaning << " crashes of that, "
            << totals.crashes_of_growth << " of growth" << std::endl;
  // Checks that the runs met the difficult cases.
  EXPECT_GT(totals.crashes, 1000);
  EXPECT_GT(totals.cut_recoveries, 100);
  EXPECT_TRUE(cleaning || totals.pools > 12);
  EXPECT_LT(totals.scans, totals.crashes / 2);
  EXPECT_GT(totals.late_writes, 100);
  EXPECT_GT(totals.found.settled, 100U);
  EXPECT_GT(totals.found.taken_back, 100U);
  EXPECT_GT(totals.found.dropped, 100U);
  EXPECT_GT(totals.found.deletes_finished, 5U);
  EXPECT_TRUE(cleaning || totals.found.moves_undone > 5);
  EXPECT_GT(totals.found.regions_unlinked, 2U);
  EXPECT_TRUE(cleaning || totals.crashes_of_growth > 5);
  if (!cleaning) return;
  EXPECT_GT(totals.regions_cleaned, 500U);
  EXPECT_GT(totals.crashes_of_cleaning, 50);
}

TEST(RecoveryRandomTest, RecoversWithoutFlushes) { RunAll({FlushMethod::kNone}); }
TEST(RecoveryRandomTest, RecoversWithServerFlush) { RunAll({FlushMethod::kServerFlush}); }
TEST(RecoveryRandomTest, RecoversWithReadAfterWrite) { RunAll({FlushMethod::kReadAfterWrite}); }
TEST(RecoveryRandomTest, RecoversWithSessionsOfBothFlushMethods) {
  RunAll({FlushMethod::kServerFlush, FlushMethod::kReadAfterWrite});
}
TEST(RecoveryRandomTest, RecoversFromCleaningWithoutFlushes) { RunAll({FlushMethod::kNone}, true); }
TEST(RecoveryRandomTest, RecoversFromCleaningWithSessionsOfBothFlushMethods) {
  RunAll({FlushMethod::kServerFlush, FlushMethod::kReadAfterWrite}, true);
}

}  // namespace
}  // namespace erda::server
