// The end of a session: whole versions that it left are settled, and the others are taken back.
#include <gtest/gtest.h>

#include <algorithm>

#include "server/crash_pool.h"
#include "server/store.h"

namespace erda::server {
namespace {

using format::FlushMethod;

class TakeBackTest : public testing::TestWithParam<FlushMethod> {
 protected:
  static StoreOptions Options() {
    StoreOptions options;
    options.flush = GetParam();
    return options;
  }
  Store store_{Options()};
};
INSTANTIATE_TEST_SUITE_P(Flush, TakeBackTest, EveryFlushMethod(), FlushMethodName);

TEST_P(TakeBackTest, WholeVersionIsNotTakenBack) {
  const Reserved reserved = store_.Reserve("k", "v1", 1);
  store_.Land(reserved);
  store_.EndSession(1);
  EXPECT_EQ(store_.Get("k"), "v1");
  EXPECT_TRUE(store_.WordOf("k").settled());
  EXPECT_EQ(store_.versions().in_flight(), 0U);
}

TEST_P(TakeBackTest, TakingBackReturnsToTheOldVersion) {
  const Outcome first = store_.Inline("k", "v1");
  store_.LandPart(store_.Reserve("k", "v2", 1), 3);
  store_.EndSession(1);
  EXPECT_EQ(store_.Get("k"), "v1");
  EXPECT_EQ(store_.WordOf("k").new_address(), first.address);
  EXPECT_TRUE(store_.WordOf("k").settled());
  EXPECT_TRUE(store_.WordOf("k").old_address().none());
}

TEST_P(TakeBackTest, TakingBackStopsAtAWholeVersionInBetween) {
  store_.Inline("k", "v1");
  const Reserved second = store_.Reserve("k", "v2", 2);
  store_.Reserve("k", "v3", 1);
  store_.Land(second);
  store_.EndSession(1);
  EXPECT_EQ(store_.Get("k"), "v2");
  EXPECT_EQ(store_.WordOf("k").new_address(), second.outcome.address);
  EXPECT_TRUE(store_.WordOf("k").settled());
}

// Skipping that version would lose a put that its writer is about to acknowledge.
TEST_P(TakeBackTest, TakingBackStopsAtAVersionThatMayStillArrive) {
  const Outcome first = store_.Inline("k", "v1");
  const Reserved second = store_.Reserve("k", "v2", 2, Ack::kPlaced);
  store_.Reserve("k", "v3", 1, Ack::kPlaced);
  store_.EndSession(1);
  EXPECT_EQ(store_.Get("k"), "v1");
  EXPECT_EQ(store_.WordOf("k").new_address(), second.outcome.address);
  EXPECT_EQ(store_.WordOf("k").old_address(), first.address);
  EXPECT_FALSE(store_.WordOf("k").settled());
  store_.Land(second);
  EXPECT_EQ(store_.Get("k"), "v2");
  store_.EndSession(2);
  EXPECT_EQ(store_.Get("k"), "v2");
}

TEST_P(TakeBackTest, TakingBackPassesDeadVersionsToOneThatMayStillArrive) {
  const Reserved first = store_.Reserve("k", "v1", 1, Ack::kPlaced);
  store_.Reserve("k", "v2", 2);
  store_.Reserve("k", "v3", 3);
  store_.EndSession(2);
  store_.EndSession(3);
  EXPECT_EQ(store_.WordOf("k").new_address(), first.outcome.address);
  store_.Land(first);
  EXPECT_EQ(store_.Get("k"), "v1");
}

TEST_P(TakeBackTest, TakingBackTheOnlyVersionFreesTheEntry) {
  store_.Reserve("k", "v1", 1);
  EXPECT_EQ(store_.versions().index().census().used(), 1U);
  store_.EndSession(1);
  EXPECT_EQ(store_.versions().index().census().used(), 0U);
  EXPECT_EQ(store_.Get("k"), kAbsent);
  store_.Inline("k", "v2");
  EXPECT_EQ(store_.Get("k"), "v2");
}

TEST_P(TakeBackTest, EndOfASessionTakesBackAllItsVersions) {
  store_.Inline("a", "a1");
  store_.Reserve("a", "a2", 1);
  store_.Land(store_.Reserve("b", "b1", 1));
  store_.Reserve("c", "c1", 1);
  store_.Land(store_.Reserve("d", "d1", 2, Ack::kPlaced));
  store_.EndSession(1);
  EXPECT_EQ(store_.Get("a"), "a1");
  EXPECT_EQ(store_.Get("b"), "b1");
  EXPECT_EQ(store_.Get("c"), kAbsent);
  EXPECT_EQ(store_.Get("d"), "d1");
  EXPECT_EQ(store_.versions().in_flight(), 1U);
  EXPECT_EQ(store_.versions().index().census().used(), 3U);
}

TEST_P(TakeBackTest, TakesBackVersionsOfOneSessionInAnyOrder) {
  // The newest version is dead and the one before it is whole, or the other way round.
  for (const bool newest_arrives : {false, true}) {
    const std::string key = newest_arrives ? "a" : "b";
    const Reserved first = store_.Reserve(key, "v1", 1);
    const Reserved second = store_.Reserve(key, "v2", 1);
    store_.Land(newest_arrives ? second : first);
    store_.EndSession(1);
    EXPECT_EQ(store_.Get(key), newest_arrives ? "v2" : "v1");
    EXPECT_TRUE(store_.WordOf(key).settled());
  }
}

TEST_P(TakeBackTest, EveryOrderOfDeathsLeavesTheSame) {
  std::vector<SessionId> order = {1, 2, 3, 4};
  int number = 0;
  do {
    const std::string key = "key" + std::to_string(number++);
    store_.Inline(key, "v0");
    std::vector<Reserved> reserved;
    for (SessionId session = 1; session <= 4; ++session) {
      reserved.push_back(store_.Reserve(key, "v" + std::to_string(session), session, Ack::kPlaced));
    }
    store_.Land(reserved[1]);
    for (const SessionId session : order) {
      store_.EndSession(session);
      EXPECT_EQ(store_.Get(key), "v2");
      EXPECT_EQ(store_.Violation(), "");
    }
    EXPECT_TRUE(store_.WordOf(key).settled());
    EXPECT_EQ(store_.WordOf(key).new_address(), reserved[1].outcome.address);
    EXPECT_EQ(store_.Delete(key), Code::kOk);
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_EQ(number, 24);
  EXPECT_EQ(store_.versions().in_flight(), 0U);
}

TEST_P(TakeBackTest, ADeadOlderVersionChangesNothing) {
  store_.Reserve("k", "v1", 1);
  const Reserved second = store_.Reserve("k", "v2", 2, Ack::kPlaced);
  const auto word = store_.WordOf("k");
  store_.EndSession(1);
  EXPECT_EQ(store_.WordOf("k"), word);
  store_.Land(second);
  EXPECT_EQ(store_.Get("k"), "v2");
}

TEST_P(TakeBackTest, UnknownOrEmptySessionMayEnd) {
  store_.EndSession(0);
  store_.EndSession(500);
  store_.Land(store_.Reserve("k", "v1", 2));
  store_.EndSession(2);
  store_.EndSession(2);
  EXPECT_EQ(store_.Get("k"), "v1");
}

TEST_P(TakeBackTest, TheNumberOfAnEndedSessionIsUsedAgain) {
  store_.Reserve("k", "v1", 1);
  store_.EndSession(1);
  const Reserved reserved = store_.Reserve("k", "v2", 1, Ack::kPlaced);
  store_.Land(reserved);
  store_.EndSession(1);
  EXPECT_EQ(store_.Get("k"), "v2");
}

// The shard takes back a version to one whose writer waits for its commit. It settles that one, and the commit still
// comes.
TEST(TakeBackCommitTest, CommitMayComeAfterTakingBackSettledItsVersion) {
  Store store;
  const Reserved first = store.Reserve("k", "v1", 1);
  store.Reserve("k", "v2", 2);
  store.Land(first);
  EXPECT_EQ(store.Get("k"), kAbsent);
  store.EndSession(2);
  EXPECT_EQ(store.Get("k"), "v1");
  EXPECT_EQ(store.versions().in_flight(), 1U);
  EXPECT_EQ(store.Commit(first), Code::kOk);
  EXPECT_EQ(store.versions().in_flight(), 0U);
}

// The mark says that recovery need not look into the segment. So the shard must take back the entry first.
TEST(TakeBackCrashTest, ASegmentIsMarkedSettledOnlyAfterTheEntryIsTakenBack) {
  StoreOptions options;
  auto pool = std::make_unique<CrashPool>(options.wish.pool_size);
  CrashPool& crash = *pool;
  Store store(options, std::move(pool));
  store.Inline("k", "v1");
  const Reserved dead = store.Reserve("k", "v2", 1);
  while (store.SegmentStateOf(dead) == format::SegmentState::kOpen) store.Inline("filler", std::string(500, 'x'));
  ASSERT_EQ(store.SegmentStateOf(dead), format::SegmentState::kSealed);
  Random random(1);
  int fences = 0;
  crash.before_fence = [&] {
    ++fences;
    for (const double kept : {0.0, 0.5, 1.0}) {
      const CrashPool::Image image = crash.AfterPowerCut(random, kept);
      EXPECT_EQ(FindViolation(store.BytesOfImage(std::as_bytes(std::span(image)))), "") << "at fence " << fences;
    }
  };
  store.EndSession(1);
  crash.before_fence = nullptr;
  EXPECT_GE(fences, 2);
  EXPECT_EQ(store.SegmentStateOf(dead), format::SegmentState::kSettled);
  EXPECT_EQ(store.Get("k"), "v1");
}

}  // namespace
}  // namespace erda::server
