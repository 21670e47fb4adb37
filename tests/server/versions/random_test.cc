// Random requests, and a look at the pool after a power cut at any fence. The test compares all with the reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <utility>
#include <vector>

#include "server/random_requests.h"

namespace erda::server {
namespace {

using format::FlushMethod;

constexpr int kRequests = 20'000;
#ifdef ERDA_SANITIZED
constexpr uint64_t kSeeds = 1;
#else
constexpr uint64_t kSeeds = 5;
#endif

class RandomRun : private RandomRequests {
 public:
  // Go begins the run.
  RandomRun(std::vector<FlushMethod> flushes, uint64_t seed) : RandomRequests(std::move(flushes), seed) {}

  void Go() {
    NewPool();
    for (step_ = 0; step_ < kRequests && !testing::Test::HasFailure(); ++step_) {
      Step();
      Compare();
    }
    if (testing::Test::HasFailure()) ADD_FAILURE() << "at step " << step_;
    EXPECT_GT(pools_, 2) << "the log was never full";
    EXPECT_GT(cuts_, kRequests / 10);
    EXPECT_GT(moves(), 0U) << "no entry ever moved";
    const bool reads = std::find(flushes_.begin(), flushes_.end(), FlushMethod::kReadAfterWrite) != flushes_.end();
    EXPECT_EQ(reads_back_ > kRequests / 100, reads);
  }

 private:
  void NewPool() override {
    // Some stores have several heads, some have room for many versions in a segment. In some the index is nearly full.
    Begin(random_.Chance(0.5) ? format::GeometryWish{229376, 1, 16384, 4096, 128}
                              : format::GeometryWish{98304 + 40 * 4096, 1, 4096, 4096, 128, 30},
          random_.Chance(0.5) ? 100 + random_.Uniform(20) : 0);
    pool_->before_fence = [this] {
      if (random_.Chance(0.1)) LookAfterPowerCut();
    };
  }

  void Compare() {
    for (uint64_t i = 0; i < kKeys; ++i) {
      const std::string key = Key(i);
      const std::string value = store_->Get(key);
      ASSERT_EQ(value, reference_->Get(key)) << key;
      for (const FlushMethod flush : flushes_) ASSERT_EQ(store_->Get(key, flush), value) << key;
      ASSERT_EQ(store_->GetAfterCrash(key), reference_->AfterCrash(key)) << key;
      if (random_.Chance(0.2)) See(key, value);
    }
    ASSERT_EQ(store_->Violation(), "");
    ASSERT_EQ(store_->versions().in_flight(), reference_->in_flight());
    ASSERT_EQ(store_->versions().index().census().used(), reference_->keys() + fillers_);
    for (uint64_t i = 0; i < fillers_; ++i) ASSERT_EQ(store_->Get(Filler(i)), Filler(i));
    if (random_.Chance(0.1)) LookAfterPowerCut();
  }

  // Without a flush method, a power cut leaves nothing: the medium is volatile, or only process-safe.
  void LookAfterPowerCut() {
    ++cuts_;
    if (flushes_.front() == FlushMethod::kNone) return;
    constexpr std::array kKept = {0.0, 0.1, 0.5, 0.9, 1.0};
    const CrashPool::Image image = pool_->AfterPowerCut(random_, kKept.at(random_.Uniform(kKept.size())));
    const PoolBytes bytes = store_->BytesOfImage(std::as_bytes(std::span(image)));
    EXPECT_EQ(FindViolation(bytes), "") << "after a power cut";
    for (uint64_t i = 0; i < kKeys; ++i) {
      const std::string key = Key(i);
      const std::string found = ReadAfterCrash(bytes, key);
      if (key == pending_key_) {
        if (found == pending_value_) continue;
        // A reader at this moment may see the request done. Then its value must stay.
        if (pending_ack_ == Ack::kPersisted && pending_value_ != reference_->Get(key)) {
          EXPECT_NE(store_->Get(key), pending_value_) << key << " was seen, and is " << found << " after a power cut";
        }
      }
      EXPECT_TRUE(reference_->AfterPowerCut(key).contains(found))
          << key << " is " << found << " after a power cut; it was " << reference_->Get(key);
    }
    for (uint64_t i = 0; i < fillers_; ++i) EXPECT_EQ(ReadAfterCrash(bytes, Filler(i)), Filler(i));
  }

  int step_ = 0;
  int cuts_ = 0;
};

class RandomTest : public testing::TestWithParam<FlushMethod> {};
INSTANTIATE_TEST_SUITE_P(Flush, RandomTest, EveryFlushMethod(), FlushMethodName);

TEST_P(RandomTest, AgreesWithTheReferenceAfterEveryStep) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    std::cout << "seed " << seed << std::endl;
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomRun({GetParam()}, seed).Go();
    if (HasFailure()) return;
  }
}

TEST(MixedRandomTest, AgreesWithTheReferenceAfterEveryStep) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    std::cout << "seed " << seed << std::endl;
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomRun({FlushMethod::kServerFlush, FlushMethod::kReadAfterWrite}, seed).Go();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace erda::server
