// (I12) A version that was an entry's new one says so when the entry has gone on. Clients that remember its location
// rely on that.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/test_hash.h"
#include "server/store.h"

namespace erda::server {
namespace {

using format::FlushMethod;
using format::LogAddress;
using format::ObjectState;
using format::ObjectView;

class LeftTest : public testing::Test {
 protected:
  [[nodiscard]] ObjectView ViewAt(LogAddress address) { return store_.versions().log().InspectHeader(0, address); }
  [[nodiscard]] bool Left(LogAddress address) {
    const ObjectView view = ViewAt(address);
    EXPECT_NE(view.state, ObjectState::kNothing);
    return view.header.left();
  }
  Store store_;
};

TEST_F(LeftTest, UpdateAndDeleteMarkTheVersionBeforeAsLeft) {
  const Outcome first = store_.Inline("k", "v1");
  EXPECT_FALSE(Left(first.address));
  const Outcome second = store_.Inline("k", "v2");
  EXPECT_TRUE(Left(first.address));
  EXPECT_FALSE(Left(second.address));
  const Reserved third = store_.Reserve("k", "v3");
  EXPECT_TRUE(Left(second.address)) << "before it is known whether the third arrives";
  ASSERT_TRUE(store_.Finish(third));
  EXPECT_FALSE(Left(third.outcome.address));
  EXPECT_EQ(store_.Delete("k"), Code::kOk);
  EXPECT_TRUE(Left(third.outcome.address));
}

// A client that came through the entry may have taken the unsettled version for the newest, too.
TEST_F(LeftTest, UnsettledVersionIsLeftToo) {
  const Reserved placed = store_.Reserve("k", "v1", 0, Ack::kPlaced);
  const Outcome next = store_.Inline("k", "v2");
  EXPECT_TRUE(Left(placed.outcome.address));
  EXPECT_FALSE(Left(next.address));
}

TEST_F(LeftTest, RestoredVersionStaysLeft) {
  const Outcome first = store_.Inline("k", "v1");
  (void)store_.Reserve("k", "v2", 1);
  store_.EndSession(1);
  EXPECT_EQ(store_.Get("k"), "v1");
  EXPECT_EQ(store_.WordOf("k").new_address(), first.address);
  EXPECT_TRUE(Left(first.address)) << "it may have been seen, and found older than what came";
}

TEST_F(LeftTest, TheBytesOfAnotherKeyAreNotTouched) {
  store_.Inline("k", "v1");
  const Outcome other = store_.Inline("other", "v1");
  store_.Inline("k", "v2");
  store_.Inline("k", "v3");
  EXPECT_FALSE(Left(other.address));
}

// A damaged entry may lead into the middle of another client's value.
TEST_F(LeftTest, DamagedVersionIsNotWrittenTo) {
  const Outcome first = store_.Inline("k", "v1");
  const uint64_t at = store_.versions().log().OffsetOf(0, first.address);
  const auto bytes = store_.pool().view().bytes.subspan(at, 48);
  bytes[25] ^= std::byte{1};  // of the key's hash
  const std::vector<std::byte> before(bytes.begin(), bytes.end());
  store_.Inline("k", "v2");
  EXPECT_TRUE(std::equal(before.begin(), before.end(), bytes.begin()));
}

// The medium flips a bit of the entry after a put has found it. The log then goes by the word as it stands, and not by
// what the put knows.
TEST_F(LeftTest, AnEntryThatChangedSinceThePutFoundItIsLookedAtAgain) {
  const Outcome first = store_.Inline("k", "v1");
  const index::Index& index = store_.versions().index();
  const auto slot = index.Find(HashKey("k"), [](index::Slot, const format::IndexEntry&) { return true; });
  ASSERT_TRUE(slot);
  store_.PutTogether();
  const Outcome second = store_.Inline("k", "v2");
  store_.pool().view().bytes[index.layout().SlotOffset(*slot) + 6] ^= std::byte{1};
  ASSERT_NE(index.WordAt(*slot).new_address(), first.address);
  store_.PublishTogether();
  EXPECT_EQ(index.WordAt(*slot).new_address(), second.address);
  EXPECT_FALSE(Left(first.address));
  EXPECT_EQ(store_.Get("k"), "v2");
}

// Entries change in all ways, in any order. Each version that was an entry's new one says that it was left, or is still
// the new one.
TEST(LeftRandomTest, VersionThatIsNotLeftIsTheNewest) {
  constexpr uint64_t kKeys = 40;  // four of them are written often
  uint64_t moves = 0;
  uint64_t reused = 0;
  uint64_t unmarked = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    StoreOptions options;
    options.flush = static_cast<FlushMethod>(random.Uniform(3));
    Store store(options);
    // By key: address, and generation of its region.
    std::map<std::string, std::vector<std::pair<LogAddress, uint32_t>>> named;
    std::vector<Reserved> flying;
    for (int step = 0; step < 1500; ++step) {
      const std::string key = "key" + std::to_string(random.Uniform(random.Chance(0.6) ? 4 : kKeys));
      const std::string value(random.Uniform(600), 'v');
      const auto session = static_cast<SessionId>(random.Uniform(3));
      const uint64_t dice = random.Uniform(100);
      if (dice < 42) {
        (void)store.Put(key, value);
      } else if (dice < 50) {
        Reserved reserved = store.Reserve(key, value, session, random.Chance(0.5) ? Ack::kPlaced : Ack::kPersisted);
        if (reserved.code() == Code::kOk) flying.push_back(std::move(reserved));
      } else if (dice < 70 && !flying.empty()) {
        Reserved& reserved = flying[random.Uniform(flying.size())];
        store.Land(reserved);
        if (random.Chance(0.7)) (void)store.Commit(reserved);
        std::swap(reserved, flying.back());
        flying.pop_back();
      } else if (dice < 75) {
        (void)store.Delete(key);
      } else if (dice < 80) {
        store.Sweep(2);
      } else if (dice < 83) {
        store.EndSession(session);
        std::erase_if(flying, [&](const Reserved& reserved) { return reserved.session == session; });
      } else if (dice < 86) {
        store.Report(key);
      } else {
        for (int i = 0; i < 20; ++i) store.CleanStep();
      }
      const log::ShardLog& log = store.versions().log();
      for (uint64_t i = 0; i < kKeys; ++i) {
        const std::string name = "key" + std::to_string(i);
        const LogAddress now = store.WordOf(name).new_address();
        auto& of_key = named[name];
        for (const auto& [address, generation] : of_key) {
          const bool same_use = log.PlaceOf(0, address).generation == generation;
          const ObjectView view = log.InspectHeader(0, address);
          reused += same_use ? 0 : 1;
          if (!same_use || view.state == ObjectState::kNothing || view.key != name || view.header.left()) continue;
          ++unmarked;
          ASSERT_EQ(address, now) << name << ", step " << step;
        }
        const ObjectView view = log.InspectHeader(0, now);
        const bool value_there = view.state != ObjectState::kNothing && view.header.is_value();
        const std::pair here(now, log.PlaceOf(0, now).generation);
        if (value_there && (of_key.empty() || of_key.back() != here)) of_key.push_back(here);
      }
    }
    moves += store.counter(format::Counter::kCleanMoves);
  }
  EXPECT_GT(moves, 100U);
  EXPECT_GT(reused, 1000U);
  EXPECT_GT(unmarked, 1000U);
}

}  // namespace
}  // namespace erda::server
