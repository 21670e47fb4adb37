// The version that decides a condition, and the value that an increment adds to (docs/protocol.md, "Conditions").
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

#include "base/bytes.h"
#include "base/test_hash.h"
#include "server/store.h"

namespace erda::server {
namespace {

using format::FlushMethod;
using format::Reason;
using State = Present::State;

class ConditionTest : public testing::TestWithParam<FlushMethod> {
 protected:
  static StoreOptions Options() {
    StoreOptions options;
    options.flush = GetParam();
    return options;
  }
  Present Judge(std::string_view key) { return store_.versions().judging().Judge(key, HashKey(key)); }
  bool IsUndecided(const Present& present) {
    EXPECT_EQ(present.state, State::kUndecided);
    return store_.versions().judging().IsUndecided(present);
  }
  Outcome Increment(std::string_view key, int64_t delta) {
    const Outcome outcome = store_.versions().puts().Increment(key, HashKey(key), Judge(key), delta, Ack::kPersisted);
    (void)store_.versions().PublishPuts();
    return outcome;
  }
  [[nodiscard]] int64_t Number(std::string_view key) const {
    const std::string value = store_.Get(key);
    return value.size() == sizeof(int64_t) ? LoadAs<int64_t>(AsBytes(value)) : -1;
  }
  void ExpectThere(std::string_view key, uint64_t version) {
    const Present present = Judge(key);
    EXPECT_EQ(present.state, State::kThere);
    EXPECT_EQ(present.version, version);
  }

  Store store_{Options()};
};
INSTANTIATE_TEST_SUITE_P(Flush, ConditionTest, EveryFlushMethod(), FlushMethodName);

TEST_P(ConditionTest, SettledVersionDecidesACondition) {
  EXPECT_EQ(Judge("k").state, State::kAbsent);
  const Outcome first = store_.Inline("k", "v1");
  ExpectThere("k", first.header.version);
  const Outcome second = store_.Inline("k", "v2");
  EXPECT_GT(second.header.version, first.header.version);
  ExpectThere("k", second.header.version);
  EXPECT_EQ(store_.Delete("k"), Code::kOk);
  EXPECT_EQ(Judge("k").state, State::kAbsent);
}

TEST_P(ConditionTest, ArrivedVersionDecidesACondition) {
  store_.Inline("k", "v1");
  const Reserved second = store_.Reserve("k", "v2");
  store_.Land(second);
  ExpectThere("k", second.version());
  EXPECT_TRUE(store_.WordOf("k").settled());
  EXPECT_EQ(store_.Get("k"), "v2");
}

TEST_P(ConditionTest, InFlightVersionBlocksCondition) {
  store_.Inline("k", "v1");
  const Reserved second = store_.Reserve("k", "v2", 3);
  store_.LandPart(second, 3);
  const Present present = Judge("k");
  EXPECT_EQ(present.state, State::kUndecided);
  EXPECT_EQ(present.version, second.version());
  EXPECT_EQ(present.writer, 3U);
  EXPECT_TRUE(IsUndecided(present));
  store_.Land(second);
  EXPECT_TRUE(IsUndecided(present)) << "nobody has looked";
  EXPECT_EQ(store_.Sweep(), 1U);
  EXPECT_FALSE(IsUndecided(present));
  ExpectThere("k", second.version());
}

TEST_P(ConditionTest, EndOfTheSessionUnblocksCondition) {
  const Outcome first = store_.Inline("k", "v1");
  store_.Reserve("k", "v2", 1);
  store_.Reserve("new", "v", 1);
  const Present present = Judge("k");
  const Present fresh = Judge("new");
  EXPECT_TRUE(IsUndecided(present));
  EXPECT_TRUE(IsUndecided(fresh));
  store_.EndSession(1);
  EXPECT_FALSE(IsUndecided(present));
  EXPECT_FALSE(IsUndecided(fresh));
  ExpectThere("k", first.header.version);
  EXPECT_EQ(Judge("new").state, State::kAbsent);
}

// Of two versions in flight the newer one decides first. If it is taken back, the older one decides.
TEST_P(ConditionTest, ConditionWaitsForOneInFlightVersionAfterTheOther) {
  store_.Inline("k", "v1");
  const Reserved second = store_.Reserve("k", "v2", 1, Ack::kPlaced);
  const Reserved third = store_.Reserve("k", "v3", 2, Ack::kPlaced);
  EXPECT_EQ(Judge("k").version, third.version());
  store_.EndSession(2);
  EXPECT_EQ(Judge("k").state, State::kUndecided);
  EXPECT_EQ(Judge("k").version, second.version());
  store_.Land(second);
  ExpectThere("k", second.version());
}

// An older version in flight decides nothing, since the present version has superseded it.
TEST_P(ConditionTest, LateArrivalOfASupersededVersionDoesNotMatter) {
  const Reserved first = store_.Reserve("k", "v1", 1);
  const Outcome second = store_.Inline("k", "v2");
  ExpectThere("k", second.header.version);
  store_.Land(first);
  EXPECT_EQ(store_.Sweep(), 1U);
  ExpectThere("k", second.header.version);
}

TEST_P(ConditionTest, SupersededInFlightVersionUnblocksCondition) {
  store_.Inline("k", "v1");
  store_.Reserve("k", "v2", 1);
  const Present present = Judge("k");
  EXPECT_TRUE(IsUndecided(present));
  const Outcome third = store_.Inline("k", "v3");
  EXPECT_FALSE(IsUndecided(present)) << "though it is still on its way";
  ExpectThere("k", third.header.version);

  store_.Reserve("k", "v4", 1);
  const Present again = Judge("k");
  EXPECT_TRUE(IsUndecided(again));
  EXPECT_EQ(store_.Delete("k"), Code::kOk);
  EXPECT_FALSE(IsUndecided(again));
}

TEST_P(ConditionTest, UnpublishedPutDecidesACondition) {
  store_.PutTogether();
  const Outcome fresh = store_.Inline("k", "v1");
  ExpectThere("k", fresh.header.version);
  const Outcome again = store_.Inline("k", "v2");
  ExpectThere("k", again.header.version);
  store_.PublishTogether();
}

TEST_P(ConditionTest, AVersionStaysTheSameWhenItMovesAndInTheNextServer) {
  const Outcome put = store_.Inline("k", "v1");
  for (int i = 0; i < 600; ++i) store_.Put("other" + std::to_string(i % 3), std::string(64, 'o'));
  store_.Clean();
  ExpectThere("k", put.header.version);
  store_.CloseAndReopen();
  ExpectThere("k", put.header.version);
  EXPECT_GT(store_.Inline("k", "v2").header.version, put.header.version);
}

TEST_P(ConditionTest, IncrementAddsToThePresentValue) {
  EXPECT_EQ(Increment("n", 5).number, 5U);
  EXPECT_EQ(Increment("n", -7).number, static_cast<uint64_t>(-2));
  EXPECT_EQ(Number("n"), -2);
  EXPECT_EQ(store_.Delete("n"), Code::kOk);
  EXPECT_EQ(Increment("n", 1).number, 1U);
  EXPECT_EQ(Number("n"), 1);
  EXPECT_EQ(store_.Violation(), "");
}

TEST_P(ConditionTest, IncrementsOfOneBatchAddUp) {
  store_.PutTogether();
  for (int64_t i = 1; i <= 50; ++i) {
    const Outcome outcome = store_.versions().puts().Increment("n", HashKey("n"), Judge("n"), 1, Ack::kPersisted);
    ASSERT_EQ(outcome.number, static_cast<uint64_t>(i));
  }
  store_.PublishTogether();
  EXPECT_EQ(Number("n"), 50);
}

TEST_P(ConditionTest, FailedIncrementLeavesTheValue) {
  store_.Inline("text", "seven b");
  Outcome outcome = Increment("text", 1);
  EXPECT_EQ(outcome.code, Code::kInvalidArgument);
  EXPECT_EQ(outcome.reason, Reason::kNotANumber);
  EXPECT_EQ(store_.Get("text"), "seven b");
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(Increment("n", kMost).code, Code::kOk);
  outcome = Increment("n", 1);
  EXPECT_EQ(outcome.code, Code::kInvalidArgument);
  EXPECT_EQ(outcome.reason, Reason::kOverflow);
  EXPECT_EQ(Number("n"), kMost);
  EXPECT_EQ(Increment("n", -kMost).number, 0U);
  EXPECT_EQ(Increment("n", std::numeric_limits<int64_t>::min()).code, Code::kOk);
  EXPECT_EQ(Increment("n", -1).reason, Reason::kOverflow);
}

}  // namespace
}  // namespace erda::server
