// Random requests, and crashes in the middle of them: power cuts, deaths of the server's process alone, and more of
// both while the pool is being recovered. After each the pool is compared to the reference, and is worked on with.
#include <gtest/gtest.h>

#include <array>
#include <iostream>
#include <set>

#include "server/crash_pool.h"
#include "server/reference.h"
#include "server/store.h"

namespace erda::server {
namespace {

using format::FlushMethod;

constexpr int kSteps = 6'000;
constexpr uint64_t kKeys = 6;
constexpr SessionId kSessions = 4;

// Thrown out of a fence.
struct Crash {};

struct Totals {
  RecoveryReport found;
  int crashes = 0;
  int power_cuts = 0;
  int cut_recoveries = 0;
  int late_writes = 0;
  int pools = 0;
};

class CrashRun {
 public:
  CrashRun(FlushMethod flush, uint64_t seed, Totals* totals) : flush_(flush), random_(seed), totals_(*totals) {
    NewPool();
  }

  void Go() {
    for (step_ = 0; step_ < kSteps && !testing::Test::HasFailure(); ++step_) {
      try {
        Step();
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
  struct Put {
    Reserved reserved;
    Reference::Handle handle;
  };

  void NewPool() {
    ++totals_.pools;
    options_.flush = flush_;
    options_.take_up = TakeUp::kOpen;
    options_.wish = random_.Chance(0.5) ? format::GeometryWish{98304 + 20 * 4096, 1, 4096, 4096, 128}
                                        : format::GeometryWish{229376, 1, 16384, 4096, 128};
    MakeStore(std::make_unique<CrashPool>(options_.wish.pool_size));
    reference_ = std::make_unique<Reference>(flush_);
    puts_.clear();
    refused_ = 0;
    // Sometimes the index is nearly full, so that entries move when a key comes back.
    fillers_ = random_.Chance(0.6) ? 105 + random_.Uniform(17) : 0;
    for (uint64_t i = 0; i < fillers_; ++i) ASSERT_EQ(store_->Inline(Filler(i), Filler(i)).code, Code::kOk);
    ExpectCrashes(0.01);
  }
  void MakeStore(std::unique_ptr<CrashPool> pool) {
    pool_ = pool.get();
    store_ = std::make_unique<Store>(options_, std::move(pool));
  }
  void ExpectCrashes(double chance) {
    pool_->before_fence = [this, chance] {
      const bool moving = store_->displacements() % 2 != 0;
      if (random_.Chance(moving ? 0.2 : chance)) throw Crash();
    };
  }

  std::string RandomKey() { return "key" + std::to_string(random_.Uniform(kKeys)); }
  static std::string Filler(uint64_t i) { return "filler" + std::to_string(i); }
  // Bytes of its own: what another value left at its place must not make a part of it whole.
  std::string NewValue() {
    std::string value = std::to_string(++values_);
    for (uint64_t left = random_.Uniform(120); left > 0; --left) value += static_cast<char>(random_.Between('a', 'z'));
    return value;
  }
  Ack RandomAck() { return random_.Chance(0.5) ? Ack::kPlaced : Ack::kPersisted; }
  Put* RandomPut() { return puts_.empty() ? nullptr : &puts_[random_.Uniform(puts_.size())]; }

  void Step() {
    const uint64_t dice = random_.Uniform(100);
    if (dice < 20) {
      InlinePut();
    } else if (dice < 45) {
      ReservePut();
    } else if (dice < 60) {
      LandPut();
    } else if (dice < 75) {
      CommitPut();
    } else if (dice < 88) {
      DeleteKey();
    } else if (dice < 92) {
      store_->Sweep();
      reference_->Sweep();
    } else if (dice < 97) {
      EndSession(static_cast<SessionId>(random_.Uniform(kSessions)));
    } else if (dice < 99) {
      for (SessionId session = 0; session < kSessions; ++session) EndSession(session);
      store_->CloseAndReopen();
    } else if (refused_ > 10) {
      NewPool();
    }
  }

  void InlinePut() {
    const std::string key = RandomKey();
    const std::string value = NewValue();
    const Ack ack = RandomAck();
    pending_key_ = key;
    pending_value_ = value;
    if (Refused(store_->Inline(key, value, ack))) return;
    reference_->Inline(key, value, ack);
  }

  void ReservePut() {
    const std::string key = RandomKey();
    const std::string value = NewValue();
    const Ack ack = RandomAck();
    const auto session = static_cast<SessionId>(random_.Uniform(kSessions));
    const Reserved reserved = store_->Reserve(key, value, session, ack);
    if (Refused(reserved.outcome)) return;
    puts_.push_back({reserved, reference_->Reserve(key, value, ack, session)});
  }

  bool Refused(const Outcome& outcome) {
    if (outcome.code == Code::kOk) return false;
    EXPECT_EQ(outcome.code, Code::kResourceExhausted);
    ++refused_;
    return true;
  }

  void LandPut() {
    Put* put = RandomPut();
    if (put == nullptr || put->handle->whole) return;
    if (random_.Chance(0.3)) {
      // All but the last byte at most.
      return store_->LandPart(put->reserved, random_.Uniform(format::kChecksumBytes + put->reserved.value.size()));
    }
    store_->Land(put->reserved);
    reference_->Land(put->handle);
  }

  void CommitPut() {
    Put* put = RandomPut();
    if (put == nullptr) return;
    const auto code = store_->Commit(put->reserved);
    EXPECT_EQ(code, reference_->Commit(put->handle));
    if (put->handle->open) return;
    std::swap(*put, puts_.back());
    puts_.pop_back();
  }

  void DeleteKey() {
    const std::string key = RandomKey();
    pending_key_ = key;
    pending_value_ = kAbsent;
    const Code code = store_->Delete(key);
    EXPECT_EQ(code, reference_->Delete(key));
  }

  void EndSession(SessionId session) {
    store_->EndSession(session);
    reference_->EndSession(session);
    std::erase_if(puts_, [&](const Put& put) { return put.reserved.session == session; });
  }

  void Compare() {
    for (uint64_t i = 0; i < kKeys; ++i) {
      const std::string key = "key" + std::to_string(i);
      const std::string value = store_->Get(key);
      ASSERT_EQ(value, reference_->Get(key)) << key;
      if (random_.Chance(0.2)) reference_->Seen(key, value);
    }
    ASSERT_EQ(store_->Violation(), "");
    ASSERT_EQ(store_->versions().index().used(), reference_->keys() + fillers_);
  }

  // --- Crashes

  // What may be found of a key.
  std::set<std::string> Allowed(const std::string& key, bool power_cut) const {
    std::set<std::string> allowed;
    if (power_cut) allowed = reference_->AfterPowerCut(key);
    if (!power_cut) allowed.insert(reference_->AfterCrash(key));
    if (key == pending_key_) allowed.insert(pending_value_);
    return allowed;
  }

  void AfterCrash() {
    ++totals_.crashes;
    const uint64_t bytes_used = store_->LogBytesUsed();
    bool power_cut = false;
    std::map<std::string, std::string> expected;
    for (bool recovered = false; !recovered;) {
      // Without a flush method there is nothing to survive a power cut.
      if (flush_ == FlushMethod::kServerFlush && random_.Chance(0.6)) {
        constexpr std::array kKept = {0.0, 0.1, 0.5, 0.9, 1.0};
        ++totals_.power_cuts;
        power_cut = true;
        options_.take_up = TakeUp::kNotYet;
        MakeStore(std::make_unique<CrashPool>(pool_->AfterPowerCut(random_, kKept.at(random_.Uniform(kKept.size())))));
      } else {
        pool_->ProcessDies();
      }
      for (uint64_t i = 0; i < kKeys; ++i) {
        const std::string key = "key" + std::to_string(i);
        expected[key] = store_->GetAfterCrash(key);
      }
      if (random_.Chance(0.5)) ExpectCrashes(0.1);
      try {
        store_->Recover();
        recovered = true;
      } catch (const Crash&) {
        ++totals_.cut_recoveries;
      }
    }
    pool_->before_fence = nullptr;
    Count(store_->recovery());

    EXPECT_EQ(store_->Violation(), "");
    EXPECT_EQ(FindUnrest(store_->Bytes()), "");
    EXPECT_LE(store_->LogBytesUsed(), bytes_used + format::FirstObjectOffset(0));
    for (uint64_t i = 0; i < fillers_; ++i) ASSERT_EQ(store_->Get(Filler(i)), Filler(i));
    uint64_t keys = fillers_;
    auto after = std::make_unique<Reference>(flush_);
    for (const auto& [key, value] : expected) {
      EXPECT_EQ(store_->Get(key), value) << key;
      EXPECT_TRUE(Allowed(key, power_cut).contains(value)) << key << " is " << value;
      if (value == kAbsent) continue;
      ++keys;
      after->Inline(key, value, Ack::kPersisted);
    }
    EXPECT_EQ(store_->versions().index().used(), keys);
    EXPECT_EQ(store_->versions().in_flight(), 0U);
    if (!power_cut) LandLate();
    for (const auto& [key, value] : expected) EXPECT_EQ(store_->Get(key), value) << key << " after a late write";
    puts_.clear();
    reference_ = std::move(after);
    ExpectCrashes(0.01);
  }

  // Writers that outlive the server may still write where they had reserved.
  void LandLate() {
    for (const Put& put : puts_) {
      if (random_.Chance(0.5)) continue;
      store_->Land(put.reserved);
      ++totals_.late_writes;
    }
  }

  void Count(const RecoveryReport& report) {
    EXPECT_EQ(report.unsettled,
              report.settled + report.taken_back + report.dropped + report.deletes_finished + report.damaged);
    EXPECT_EQ(report.damaged, 0U);
    EXPECT_EQ(report.keys, store_->versions().index().used());
    RecoveryReport& sum = totals_.found;
    sum.settled += report.settled;
    sum.taken_back += report.taken_back;
    sum.dropped += report.dropped;
    sum.deletes_finished += report.deletes_finished;
    sum.moves_undone += report.moves_undone;
    sum.regions_unlinked += report.regions_unlinked;
  }

  const FlushMethod flush_;
  Random random_;
  Totals& totals_;
  StoreOptions options_;
  CrashPool* pool_ = nullptr;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Reference> reference_;
  std::vector<Put> puts_;  // not ended
  std::string pending_key_;
  std::string pending_value_;
  uint64_t fillers_ = 0;
  uint64_t values_ = 0;
  int step_ = 0;
  int refused_ = 0;
};

class RecoveryRandomTest : public testing::TestWithParam<FlushMethod> {};
INSTANTIATE_TEST_SUITE_P(Flush, RecoveryRandomTest, testing::Values(FlushMethod::kNone, FlushMethod::kServerFlush),
                         FlushMethodName);

TEST_P(RecoveryRandomTest, EveryCrashLeavesWhatTheReferenceAllows) {
  Totals totals;
  for (uint64_t seed = 1; seed <= 16; ++seed) {
    std::cout << "seed " << seed << std::endl;
    SCOPED_TRACE("seed " + std::to_string(seed));
    CrashRun(GetParam(), seed, &totals).Go();
    if (HasFailure()) return;
  }
  std::cout << totals.crashes << " crashes, " << totals.power_cuts << " power cuts, " << totals.cut_recoveries
            << " in recoveries, " << totals.late_writes << " late writes; " << totals.found.settled << " settled, "
            << totals.found.taken_back << " taken back, " << totals.found.dropped << " dropped, "
            << totals.found.deletes_finished << " deletes, " << totals.found.moves_undone << " moves, "
            << totals.found.regions_unlinked << " regions" << std::endl;
  // That the runs have been where it is difficult.
  EXPECT_GT(totals.crashes, 1000);
  EXPECT_GT(totals.cut_recoveries, 100);
  EXPECT_GT(totals.pools, 12);
  EXPECT_GT(totals.late_writes, 100);
  EXPECT_GT(totals.found.settled, 100U);
  EXPECT_GT(totals.found.taken_back, 100U);
  EXPECT_GT(totals.found.dropped, 100U);
  EXPECT_GT(totals.found.deletes_finished, 5U);
  EXPECT_GT(totals.found.moves_undone, 5U);
  EXPECT_GT(totals.found.regions_unlinked, 2U);
}

}  // namespace
}  // namespace erda::server
