// Random requests of several sessions to few keys, with values that land whole, torn or never, deaths, clean closes,
// full logs, and a look at what a power cut would leave at any fence. Everything is compared to the reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <utility>
#include <vector>

#include "server/crash_pool.h"
#include "server/reference.h"
#include "server/store.h"

namespace erda::server {
namespace {

using format::FlushMethod;

constexpr int kSteps = 20'000;
constexpr uint64_t kKeys = 6;
constexpr SessionId kSessions = 4;

class RandomRun {
 public:
  // The sessions have these methods in turn.
  RandomRun(std::vector<FlushMethod> flushes, uint64_t seed) : flushes_(std::move(flushes)), random_(seed) {
    NewPool();
  }

  void Go() {
    for (step_ = 0; step_ < kSteps && !testing::Test::HasFailure(); ++step_) {
      Step();
      Compare();
    }
    if (testing::Test::HasFailure()) ADD_FAILURE() << "at step " << step_;
    EXPECT_GT(pools_, 2) << "the log was never full";
    EXPECT_GT(cuts_, kSteps / 10);
    EXPECT_GT(moves_, 0U) << "no entry ever moved";
    const bool reads = std::find(flushes_.begin(), flushes_.end(), FlushMethod::kReadAfterWrite) != flushes_.end();
    EXPECT_EQ(reads_back_ > kSteps / 100, reads);
  }

 private:
  struct Put {
    Reserved reserved;
    Reference::Handle handle;
  };

  void NewPool() {
    ++pools_;
    if (store_) moves_ += store_->displacements();
    StoreOptions options;
    options.flush = flushes_.front();
    // Sometimes of several heads, sometimes with room for many versions in a segment.
    options.wish = random_.Chance(0.5) ? format::GeometryWish{229376, 1, 16384, 4096, 128}
                                       : format::GeometryWish{98304 + 40 * 4096, 1, 4096, 4096, 128};
    auto pool = std::make_unique<CrashPool>(options.wish.pool_size);
    pool_ = pool.get();
    store_ = std::make_unique<Store>(options, std::move(pool));
    reference_ = std::make_unique<Reference>(flushes_.front());
    for (SessionId session = 0; session < kSessions; ++session) {
      store_->SetFlush(session, flushes_[session % flushes_.size()]);
      reference_->SetFlush(session, flushes_[session % flushes_.size()]);
    }
    puts_.clear();
    refused_ = 0;
    // Sometimes the index is nearly full, so that entries move when a key comes back.
    fillers_ = random_.Chance(0.5) ? 100 + random_.Uniform(20) : 0;
    for (uint64_t i = 0; i < fillers_; ++i) ASSERT_EQ(store_->Inline(Filler(i), Filler(i)).code, Code::kOk);
    pool_->before_fence = [this] {
      if (random_.Chance(0.1)) LookAfterPowerCut();
    };
  }

  std::string RandomKey() { return "key" + std::to_string(random_.Uniform(kKeys)); }
  static std::string Filler(uint64_t i) { return "filler" + std::to_string(i); }
  std::string NewValue() { return std::to_string(++values_) + std::string(random_.Uniform(120), '.'); }
  Ack RandomAck() { return random_.Chance(0.5) ? Ack::kPlaced : Ack::kPersisted; }
  Put* RandomPut() { return puts_.empty() ? nullptr : &puts_[random_.Uniform(puts_.size())]; }

  // During the request the old state or the new one may be found; the reference has the old one until it is done.
  void During(const std::string& key, const std::string& value, Ack ack) {
    pending_key_ = key;
    pending_value_ = value;
    pending_ack_ = ack;
  }
  void Done() { pending_key_.clear(); }

  void Step() {
    const uint64_t dice = random_.Uniform(100);
    if (dice < 15) {
      InlinePut();
    } else if (dice < 40) {
      ReservePut();
    } else if (dice < 60) {
      LandPut();
    } else if (dice < 75) {
      EndPut();
    } else if (dice < 85) {
      DeleteKey();
    } else if (dice < 90) {
      store_->Sweep();
      reference_->Sweep();
    } else if (dice < 95) {
      EndSession(static_cast<SessionId>(random_.Uniform(kSessions)));
    } else if (dice < 98) {
      store_->Report(RandomKey());
      // It settles what is whole, as a put of the key would: not a change that a get sees under the rules of kNone.
      // The reference knows no reports, so that what they settle is settled there by a sweep.
      store_->Sweep();
      reference_->Sweep();
    } else if (dice == 98) {
      for (SessionId session = 0; session < kSessions; ++session) EndSession(session);
      moves_ += store_->displacements();
      store_->CloseAndReopen();
    } else if (refused_ > 20) {
      NewPool();
    }
  }

  void InlinePut() {
    const std::string key = RandomKey();
    const std::string value = NewValue();
    const Ack ack = RandomAck();
    During(key, value, ack);
    const Outcome outcome = store_->Inline(key, value, ack);
    Done();
    if (Refused(outcome)) return;
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
    EXPECT_TRUE(outcome.reason == format::Reason::kLogFull ||
                (outcome.reason == format::Reason::kIndexFull && fillers_ > 0));
    ++refused_;
    return true;
  }

  void LandPut() {
    Put* put = RandomPut();
    if (put == nullptr || put->handle->whole || !put->handle->live) return;
    if (random_.Chance(0.3)) {
      // All but the last byte at most.
      return store_->LandPart(put->reserved, random_.Uniform(format::kChecksumBytes + put->reserved.value.size()));
    }
    store_->Land(put->reserved);
    reference_->Land(put->handle);
  }

  // Whatever acknowledges it: the shard's answer to the commit, or the Read behind the Write.
  void EndPut() {
    Put* put = RandomPut();
    if (put == nullptr) return;
    if (put->reserved.flushed_by_read && put->handle->whole && put->handle->live) {
      ReadBack(put->reserved);
      reference_->Flushed(put->handle);
    }
    const auto code = store_->Commit(put->reserved);
    EXPECT_EQ(code, reference_->Commit(put->handle));
    if (!put->handle->open) Forget(put);
  }

  void ReadBack(const Reserved& reserved) {
    ++reads_back_;
    pool_->ReadBack(store_->OffsetOf(reserved), format::ObjectBytes(reserved.key.size(), reserved.value.size()));
  }

  void Forget(Put* put) {
    std::swap(*put, puts_.back());
    puts_.pop_back();
  }

  void DeleteKey() {
    const std::string key = RandomKey();
    During(key, std::string(kAbsent), Ack::kPersisted);
    const Code code = store_->Delete(key);
    Done();
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
      for (const FlushMethod flush : flushes_) ASSERT_EQ(store_->Get(key, flush), value) << key;
      ASSERT_EQ(store_->GetAfterCrash(key), reference_->AfterCrash(key)) << key;
      if (random_.Chance(0.2)) See(key, value);
    }
    ASSERT_EQ(store_->Violation(), "");
    ASSERT_EQ(store_->versions().in_flight(), reference_->in_flight());
    ASSERT_EQ(store_->versions().index().used(), reference_->keys() + fillers_);
    for (uint64_t i = 0; i < fillers_; ++i) ASSERT_EQ(store_->Get(Filler(i)), Filler(i));
    if (random_.Chance(0.1)) LookAfterPowerCut();
  }

  // A reader has seen the value, and by that brought it to the medium if Reads do that.
  void See(const std::string& key, const std::string& value) {
    const Reference::Handle seen = reference_->Seen(key, value);
    const auto put = std::find_if(puts_.begin(), puts_.end(), [&](const Put& p) { return p.handle == seen; });
    if (seen && put != puts_.end() && put->reserved.flushed_by_read) ReadBack(put->reserved);
  }

  // Without a flush method there is nothing to survive a power cut: the medium is volatile, or as safe as a process is.
  void LookAfterPowerCut() {
    ++cuts_;
    if (flushes_.front() == FlushMethod::kNone) return;
    constexpr std::array kKept = {0.0, 0.1, 0.5, 0.9, 1.0};
    const CrashPool::Image image = pool_->AfterPowerCut(random_, kKept.at(random_.Uniform(kKept.size())));
    const PoolBytes bytes = store_->BytesOfImage(std::as_bytes(std::span(image)));
    EXPECT_EQ(FindViolation(bytes), "") << "after a power cut";
    for (uint64_t i = 0; i < kKeys; ++i) {
      const std::string key = "key" + std::to_string(i);
      const std::string found = ReadAfterCrash(bytes, key);
      if (key == pending_key_) {
        if (found == pending_value_) continue;
        // Who reads at this moment may see it done; then it must stay.
        if (pending_ack_ == Ack::kPersisted && pending_value_ != reference_->Get(key)) {
          EXPECT_NE(store_->Get(key), pending_value_) << key << " was seen, and is " << found << " after a power cut";
        }
      }
      EXPECT_TRUE(reference_->AfterPowerCut(key).contains(found))
          << key << " is " << found << " after a power cut; it was " << reference_->Get(key);
    }
    for (uint64_t i = 0; i < fillers_; ++i) EXPECT_EQ(ReadAfterCrash(bytes, Filler(i)), Filler(i));
  }

  const std::vector<FlushMethod> flushes_;
  Random random_;
  CrashPool* pool_ = nullptr;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Reference> reference_;
  std::vector<Put> puts_;  // not ended
  std::string pending_key_;
  std::string pending_value_;
  Ack pending_ack_ = Ack::kPlaced;
  uint64_t fillers_ = 0;
  uint64_t values_ = 0;
  int step_ = 0;
  int refused_ = 0;
  int pools_ = 0;
  int cuts_ = 0;
  int reads_back_ = 0;
  uint64_t moves_ = 0;
};

class RandomTest : public testing::TestWithParam<FlushMethod> {};
INSTANTIATE_TEST_SUITE_P(Flush, RandomTest, EveryFlushMethod(), FlushMethodName);

TEST_P(RandomTest, AgreesWithTheReferenceAfterEveryStep) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    std::cout << "seed " << seed << std::endl;
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomRun({GetParam()}, seed).Go();
    if (HasFailure()) return;
  }
}

TEST(MixedRandomTest, AgreesWithTheReferenceAfterEveryStep) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    std::cout << "seed " << seed << std::endl;
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomRun({FlushMethod::kServerFlush, FlushMethod::kReadAfterWrite}, seed).Go();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace erda::server
