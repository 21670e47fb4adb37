// The checker on histories whose answer is known.
#include "sim/history.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <vector>

#include "base/random.h"

namespace erda::sim {
namespace {

Record Put(uint64_t value, uint64_t begin, uint64_t end, Code code = Code::kOk) {
  return {static_cast<uint32_t>(value), 0, Action::kPut, value, begin, end, code};
}
Record Get(uint64_t value, uint64_t begin, uint64_t end) {
  const Code code = value == Record::kAbsent ? Code::kNotFound : Code::kOk;
  return {static_cast<uint32_t>(100 + begin), 0, Action::kGet, value, begin, end, code};
}
Record Delete(uint64_t begin, uint64_t end, Code code = Code::kOk) {
  return {static_cast<uint32_t>(200 + begin), 0, Action::kDelete, Record::kAbsent, begin, end, code};
}

bool Holds(std::vector<Record> records) {
  std::sort(records.begin(), records.end(), [](const Record& a, const Record& b) { return a.begin < b.begin; });
  return IsLinearizable(records);
}

TEST(LinearizabilityChecker, AcceptsOperationsOneAfterTheOther) {
  EXPECT_TRUE(Holds({}));
  EXPECT_TRUE(Holds({Get(0, 1, 2), Put(1, 3, 4), Get(1, 5, 6), Put(2, 7, 8), Get(2, 9, 10), Delete(11, 12),
                     Get(0, 13, 14), Delete(15, 16, Code::kNotFound)}));
}

TEST(LinearizabilityChecker, AcceptsEitherOrderOfOverlappingOperations) {
  EXPECT_TRUE(Holds({Put(1, 1, 5), Put(2, 2, 6), Get(1, 7, 8)}));
  EXPECT_TRUE(Holds({Put(1, 1, 5), Put(2, 2, 6), Get(2, 7, 8)}));
  EXPECT_TRUE(Holds({Put(1, 1, 2), Put(2, 3, 8), Get(1, 4, 5), Get(2, 6, 7)}));
}

TEST(LinearizabilityChecker, RefusesAStaleGet) {
  EXPECT_FALSE(Holds({Put(1, 1, 2), Put(2, 3, 4), Get(1, 5, 6)}));
  EXPECT_FALSE(Holds({Put(1, 1, 2), Get(0, 3, 4)}));
  EXPECT_FALSE(Holds({Put(1, 1, 2), Delete(3, 4), Get(1, 5, 6)}));
}

TEST(LinearizabilityChecker, RefusesAGetThatIsOlderThanAnEarlierGet) {
  EXPECT_FALSE(Holds({Put(1, 1, 2), Put(2, 3, 12), Get(2, 4, 5), Get(1, 6, 7)}));
  EXPECT_FALSE(Holds({Put(1, 1, 20), Put(2, 2, 21), Get(1, 3, 4), Get(2, 5, 6), Get(1, 7, 8)}));
}

TEST(LinearizabilityChecker, RefusesAValueBeforeItsPut) {
  EXPECT_FALSE(Holds({Get(1, 1, 2), Put(1, 3, 4)}));
  EXPECT_FALSE(Holds({Put(1, 1, 2), Get(9, 3, 4)}));
}

TEST(LinearizabilityChecker, LetsAnUnknownPutTakeEffectLateOrNever) {
  const Record unknown = Put(2, 3, 4, Code::kUnavailable);
  EXPECT_TRUE(Holds({Put(1, 1, 2), unknown, Get(1, 5, 6)}));
  EXPECT_TRUE(Holds({Put(1, 1, 2), unknown, Get(1, 5, 6), Get(2, 7, 8)}));
  EXPECT_FALSE(Holds({Put(1, 1, 2), unknown, Get(2, 5, 6), Get(1, 7, 8)}));
  EXPECT_FALSE(Holds({Get(2, 1, 2), unknown})) << "not before it began";
}

TEST(LinearizabilityChecker, LetsAnUnknownDeleteTakeEffectLateOrNever) {
  const Record unknown = Delete(3, 4, Code::kTimeout);
  EXPECT_TRUE(Holds({Put(1, 1, 2), unknown, Get(1, 5, 6), Get(0, 7, 8)}));
  EXPECT_FALSE(Holds({Put(1, 1, 2), unknown, Get(0, 5, 6), Get(1, 7, 8)}));
}

TEST(LinearizabilityChecker, RefusesAnEffectOfARefusedPut) {
  EXPECT_TRUE(Holds({Put(1, 1, 2, Code::kResourceExhausted), Get(0, 3, 4)}));
  EXPECT_FALSE(Holds({Put(1, 1, 2, Code::kResourceExhausted), Get(1, 3, 4)}));
}

TEST(LinearizabilityChecker, ChecksTheOutcomeOfADelete) {
  EXPECT_FALSE(Holds({Delete(1, 2)})) << "there was nothing";
  EXPECT_FALSE(Holds({Put(1, 1, 2), Delete(3, 4, Code::kNotFound)}));
  EXPECT_TRUE(Holds({Put(1, 1, 5), Delete(2, 3, Code::kNotFound), Delete(6, 7)}));
  EXPECT_FALSE(Holds({Put(1, 1, 2), Delete(3, 5), Delete(4, 6)})) << "one value, deleted twice";
}

TEST(LinearizabilityChecker, KeepsTheOrderOfOneClientsOperations) {
  std::vector<Record> records = {Put(1, 1, 5), Put(2, 2, 6), Get(1, 7, 8)};
  EXPECT_TRUE(Holds(records));
  records[1].client = records[0].client;
  EXPECT_FALSE(Holds(records)) << "2 was put after 1";
}

Record If(uint64_t expects, Record record) {
  record.expects = expects;
  return record;
}

Record By(uint32_t client, Record record) {
  record.client = client;
  return record;
}

TEST(LinearizabilityChecker, PutsOfOneClientMayOverlapInTheirOrder) {
  const Record first = By(1, Put(1, 1, 7));
  const Record second = By(1, Put(2, 2, 8));
  EXPECT_TRUE(Holds({first, second, Get(1, 3, 4), Get(2, 5, 6)})) << "both before the first one has ended";
  EXPECT_FALSE(Holds({first, second, Get(2, 3, 4), Get(1, 5, 6)}));
  EXPECT_FALSE(Holds({first, By(1, Put(2, 2, 3)), Get(1, 4, 5)})) << "the second one has ended";
  EXPECT_TRUE(Holds({By(1, Put(1, 1, 7, Code::kUnavailable)), second, Get(2, 3, 4), Get(1, 5, 6)}));
  const Record third = By(1, Put(3, 3, 9));
  EXPECT_FALSE(Holds({first, By(1, Put(2, 2, 8, Code::kUnavailable)), third, Get(3, 4, 5), Get(1, 10, 11)}));
}

TEST(LinearizabilityChecker, OtherOperationsOfOneClientDoNotOverlap) {
  const Record put = By(1, Put(1, 1, 6));
  EXPECT_FALSE(Holds({put, By(1, Get(0, 2, 7))}));
  EXPECT_FALSE(Holds({put, By(1, If(1, Put(2, 2, 7))), Get(2, 3, 4)})) << "the condition holds when the put has ended";
  EXPECT_TRUE(Holds({put, By(2, If(1, Put(2, 2, 7))), Get(2, 3, 4)}));
  EXPECT_FALSE(Holds({put, By(1, Delete(2, 7)), Get(1, 3, 4), Get(0, 5, 5), By(1, Put(2, 8, 9))}));
}

// One copy does one operation at a time, with an interval around each point: always linearizable. With one get of a
// value that was overwritten before the get began: never.
TEST(LinearizabilityChecker, DistinguishesRandomHistoriesFromForgedOnes) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    const uint64_t count = 10 + random.Uniform(60);
    std::vector<Record> records;
    uint64_t value = Record::kAbsent;
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t point = 1000 + i * 10;
      const uint64_t begin = point - random.Uniform(6) * 10 - 3 - i % 3;
      const uint64_t end = point + random.Uniform(6) * 10 + 3 + i % 3;
      if (random.Chance(0.5)) {
        records.push_back(Get(value, begin, end));
      } else if (random.Chance(0.7)) {
        value = i + 1;
        records.push_back(Put(value, begin, end, random.Chance(0.1) ? Code::kUnavailable : Code::kOk));
      } else {
        records.push_back(Delete(begin, end, value == Record::kAbsent ? Code::kNotFound : Code::kOk));
        value = Record::kAbsent;
      }
      records.back().client = static_cast<uint32_t>(i);  // different clients, so that their begins may be in any order
    }
    ASSERT_TRUE(Holds(records)) << "seed " << seed;

    const uint64_t after = 1000 + (count + 100) * 10;
    records.push_back(Put(count + 1, after, after + 1));
    records.push_back(Put(count + 2, after + 2, after + 3));
    records.push_back(Get(count + 1, after + 4, after + 5));
    ASSERT_FALSE(Holds(records)) << "seed " << seed;
  }
}

Record Placed(Record record) {
  record.placed = true;
  return record;
}
Record Cut(uint64_t at) { return {Record::kNature, Record::kAllKeys, Action::kCut, 0, at, at + 1, Code::kOk}; }

TEST(LinearizabilityChecker, LetsACutUndoPlacedPuts) {
  const Record first = Put(1, 1, 2);
  const Record second = Placed(Put(2, 3, 4));
  const Record third = Placed(Put(3, 5, 6));
  for (const uint64_t left : {1, 2, 3}) {
    EXPECT_TRUE(Holds({first, second, third, Get(3, 7, 8), Cut(9), Get(left, 11, 12), Get(left, 13, 14)}));
    EXPECT_FALSE(Holds({first, second, third, Get(3, 7, 8), Cut(9), Get(left, 11, 12), Get(left % 3 + 1, 13, 14)}));
  }
  EXPECT_FALSE(Holds({first, second, third, Get(2, 7, 8), Cut(9)})) << "nothing is undone before the cut";
  EXPECT_FALSE(Holds({first, second, third, Cut(9), Get(0, 11, 12)})) << "what was persisted stays";
  EXPECT_TRUE(Holds({second, Cut(9), Get(0, 11, 12)}));
}

TEST(LinearizabilityChecker, LetsACutUndoNoPersistedPut) {
  EXPECT_FALSE(Holds({Put(1, 1, 2), Put(2, 3, 4), Cut(5), Get(1, 7, 8)}));
  EXPECT_FALSE(Holds({Put(1, 1, 2), Placed(Put(2, 3, 4)), Put(3, 5, 6), Cut(7), Get(2, 9, 10)}));
  EXPECT_FALSE(Holds({Put(1, 1, 2), Put(2, 3, 4, Code::kUnavailable), Get(2, 5, 6), Cut(7), Get(1, 9, 10)}))
      << "somebody has seen it";
  EXPECT_TRUE(Holds({Put(1, 1, 2), Put(2, 3, 4, Code::kUnavailable), Cut(7), Get(1, 9, 10)}));
  EXPECT_FALSE(Holds({Placed(Put(1, 1, 2)), Delete(3, 4), Cut(5), Get(1, 7, 8)}));
}

TEST(LinearizabilityChecker, RefusesAGoodGetOfADamagedValueBeforeItsRepair) {
  const Record damage = Put(Record::kDamaged, 3, 4);
  Record found = Get(0, 5, 6);
  found.code = Code::kCorruption;
  EXPECT_TRUE(Holds({Put(1, 1, 2), damage, found, Put(2, 7, 8), Get(2, 9, 10)}));
  EXPECT_FALSE(Holds({Put(1, 1, 2), damage, Get(1, 5, 6)}));
  EXPECT_FALSE(Holds({Put(1, 1, 2), found})) << "nothing was damaged";
}

TEST(LinearizabilityChecker, ChecksEachCondition) {
  EXPECT_TRUE(Holds({If(0, Put(1, 1, 2)), If(1, Put(2, 3, 4)), Get(2, 5, 6), If(2, Delete(7, 8)), Get(0, 9, 10)}));
  EXPECT_FALSE(Holds({Put(1, 1, 2), If(0, Put(2, 3, 4))})) << "it was not absent";
  EXPECT_FALSE(Holds({Put(1, 1, 2), Put(2, 3, 4), If(1, Put(3, 5, 6))})) << "it was another value";
  EXPECT_FALSE(Holds({Put(1, 1, 2), If(0, Delete(3, 4))}));
  EXPECT_TRUE(Holds({Put(1, 1, 9), Put(2, 2, 10), If(1, Put(3, 3, 11)), Get(2, 12, 13)})) << "one, three, two";
  EXPECT_FALSE(Holds({Put(1, 1, 2), If(1, Put(2, 3, 7)), If(1, Put(3, 4, 8))})) << "both for one value";
}

TEST(LinearizabilityChecker, ChecksEachConflict) {
  const Record conflict = If(1, Put(2, 5, 6, Code::kConflict));
  EXPECT_FALSE(Holds({Put(1, 1, 2), conflict})) << "there was no reason";
  EXPECT_TRUE(Holds({Put(1, 1, 2), Put(3, 3, 4), conflict, Get(3, 7, 8)}));
  EXPECT_TRUE(Holds({Put(1, 1, 2), Delete(3, 4), conflict, Get(0, 7, 8)}));
  EXPECT_FALSE(Holds({Put(1, 1, 2), Put(3, 3, 4), conflict, Get(2, 7, 8)})) << "it took no effect";
  EXPECT_TRUE(Holds({Put(1, 1, 2), Put(3, 3, 4, Code::kTimeout), conflict, Put(4, 7, 8)})) << "one that nobody saw";
  EXPECT_TRUE(Holds({Put(1, 1, 2), Delete(3, 4, Code::kTimeout), conflict, Put(4, 7, 8)}));
  EXPECT_FALSE(Holds({Put(1, 1, 2), Put(3, 7, 8, Code::kTimeout), conflict})) << "it came later";
  EXPECT_TRUE(Holds({If(0, Put(2, 1, 4, Code::kConflict)), Put(1, 2, 3)}));
}

TEST(LinearizabilityChecker, LetsAnUnknownConditionHoldOrNot) {
  const Record unknown = If(1, Put(2, 3, 4, Code::kUnavailable));
  EXPECT_TRUE(Holds({Put(1, 1, 2), unknown, Get(1, 5, 6)}));
  EXPECT_TRUE(Holds({Put(1, 1, 2), unknown, Get(2, 5, 6)}));
  EXPECT_FALSE(Holds({Put(1, 1, 2), Put(3, 5, 6), Get(3, 7, 8), unknown, Get(2, 9, 10)})) << "1 does not come again";
}

// The first of two uncertain deletes could come at any time, the other one only now. Only the other one helps here.
TEST(LinearizabilityChecker, TriesActsThatCanComeAtAnyTimeLast) {
  EXPECT_TRUE(Holds({Put(1, 1, 2), Delete(3, 6, Code::kTimeout), If(1, Delete(4, 5, Code::kUnavailable)),
                     If(0, Put(2, 7, 8)), Get(0, 9, 10)}));
}

// The checker does not try unseen puts one by one, neither with a condition nor without. Trying them would take seventy
// times as long.
TEST(LinearizabilityChecker, SoonFindsAnOrderAmongManyUnknownConditions) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Random random(seed);
    std::vector<Record> records;
    uint64_t value = Record::kAbsent;
    for (uint64_t i = 0; i < 300; ++i) {
      const uint64_t point = 1000 + i * 10;
      const uint64_t begin = point - random.Uniform(9) * 10 - 3;
      const uint64_t end = point + random.Uniform(9) * 10 + 3;
      const bool unknown = random.Chance(0.6);
      const bool lost = unknown && random.Chance(0.5);
      const uint64_t dice = random.Uniform(10);
      if (dice < 2) {
        records.push_back(Get(value, begin, end));
      } else if (dice < 4) {
        records.push_back(If(i + 1, Put(i + 1000, begin, end, Code::kConflict)));
      } else if (dice < 6 && value != Record::kAbsent) {
        records.push_back(Delete(begin, end, unknown ? Code::kTimeout : Code::kOk));
        if (dice == 4) records.back().expects = value;
        if (!lost) value = Record::kAbsent;
      } else {
        records.push_back(Put(i + 1, begin, end, unknown ? Code::kUnavailable : Code::kOk));
        if (dice < 9) records.back().expects = value;
        if (!lost) value = i + 1;
      }
      records.back().client = static_cast<uint32_t>(i);
    }
    ASSERT_TRUE(Holds(records)) << "seed " << seed;
  }
}

Record Expire(uint64_t value, uint64_t begin, uint64_t end) {
  const Code code = end == Record::kNever ? Code::kUnavailable : Code::kOk;
  return {Record::kNature, 0, Action::kExpire, value, begin, end, code};
}

TEST(LinearizabilityChecker, ValueIsPresentUntilItExpires) {
  EXPECT_TRUE(Holds({Put(1, 1, 2), Get(1, 3, 4), Expire(1, 5, 8), Get(1, 6, 7), Get(0, 9, 10)}));
  EXPECT_TRUE(Holds({Put(1, 1, 2), Expire(1, 5, 8), Get(0, 6, 7), Delete(9, 10, Code::kNotFound)}));
  EXPECT_FALSE(Holds({Put(1, 1, 2), Get(0, 3, 4), Expire(1, 5, 8)})) << "too early";
  EXPECT_FALSE(Holds({Put(1, 1, 2), Expire(1, 3, 4), Get(1, 5, 6)})) << "too late";
  EXPECT_FALSE(Holds({Put(1, 1, 2), Expire(1, 3, 10), Get(0, 4, 5), Get(1, 6, 7)})) << "and back";
  EXPECT_TRUE(Holds({Put(1, 1, 2), Expire(1, 3, Record::kNever), Get(0, 4, 5)}));
  EXPECT_FALSE(Holds({Put(1, 1, 2), Expire(1, 3, Record::kNever), Get(0, 4, 5), Get(1, 6, 7)}));
}

// Regression: of several puts that may have taken effect and that no get read, the checker tried only one.
TEST(LinearizabilityChecker, TriesEachUnknownPutThatCanExpire) {
  EXPECT_TRUE(Holds({If(0, Put(1, 1, 2, Code::kUnavailable)), If(0, Put(2, 3, 4, Code::kUnavailable)),
                     If(0, Put(3, 5, 6, Code::kConflict)), Expire(2, 7, Record::kNever), Get(0, 9, 10)}));
  EXPECT_FALSE(Holds({If(0, Put(1, 1, 2, Code::kUnavailable)), If(0, Put(2, 3, 4, Code::kUnavailable)),
                      If(0, Put(3, 5, 6, Code::kConflict)), Get(0, 9, 10)}));
}

// Regression: the checker put off a put with a condition until the value that it needs had expired.
TEST(LinearizabilityChecker, TriesAConditionBeforeItsValueExpires) {
  EXPECT_TRUE(Holds({Put(1, 1, 2), If(1, Put(2, 3, 5, Code::kUnavailable)), Expire(1, 4, 6),
                     If(0, Put(3, 7, 8, Code::kConflict)), Expire(2, 9, Record::kNever)}));
  EXPECT_FALSE(Holds({Put(1, 1, 2), If(1, Put(2, 7, 8, Code::kUnavailable)), Expire(1, 4, 6),
                      If(0, Put(3, 9, 10, Code::kConflict)), Expire(2, 11, Record::kNever)}))
      << "the put began too late";
}

TEST(LinearizabilityChecker, ExpiryHidesNoOtherVersion) {
  EXPECT_TRUE(Holds({Put(1, 1, 2), Put(2, 3, 4), Expire(1, 5, 6), Get(2, 7, 8)}));
  EXPECT_FALSE(Holds({Put(1, 1, 2), Put(2, 3, 4), Expire(1, 5, 6), Get(0, 7, 8)}));
  EXPECT_FALSE(Holds({Put(1, 1, 2), Put(2, 3, 4), Expire(2, 5, 6), Get(1, 7, 8)})) << "nothing older comes back";
  EXPECT_TRUE(Holds({Put(1, 1, 2), Expire(1, 3, 4), If(0, Put(2, 5, 6)), Get(2, 7, 8)}));
  EXPECT_FALSE(Holds({Put(1, 1, 2), Expire(1, 3, 4), If(1, Put(2, 5, 6))}));
}

TEST(LinearizabilityChecker, VersionThatAPowerCutBringsBackHasStillExpired) {
  const auto placed = [](Record put) {
    put.placed = true;
    return put;
  };
  const Record cut{Record::kNature, Record::kAllKeys, Action::kCut, 0, 7, 8, Code::kOk};
  EXPECT_TRUE(Holds({Put(1, 1, 2), placed(Put(2, 3, 4)), Expire(1, 5, 6), cut, Get(0, 9, 10)}));
  EXPECT_TRUE(Holds({Put(1, 1, 2), placed(Put(2, 3, 4)), Expire(1, 5, 6), cut, Get(2, 9, 10)}));
  EXPECT_FALSE(Holds({Put(1, 1, 2), placed(Put(2, 3, 4)), Expire(1, 5, 6), cut, Get(1, 9, 10)}));
  EXPECT_TRUE(Holds({Put(1, 1, 2), placed(Put(2, 3, 4)), Expire(1, 5, 12), cut, Get(1, 9, 10), Get(0, 13, 14)}));
}

// Returns true if the record is a put, and an earlier put of its client must come before.
bool MustFollow(const std::vector<Record>& records, const std::vector<bool>& done, const Record& record) {
  if (record.action != Action::kPut) return false;
  for (size_t i = 0; i < records.size(); ++i) {
    const bool is_left = !done[i] && records[i].action == Action::kPut && records[i].code == Code::kOk;
    if (is_left && records[i].client == record.client && records[i].begin < record.begin) return true;
  }
  return false;
}

// Tries every order, without a shortcut.
bool HoldsInSomeOrder(const std::vector<Record>& records, std::vector<bool>& done, uint64_t value) {
  uint64_t horizon = Record::kNever;
  bool left = false;
  for (size_t i = 0; i < records.size(); ++i) {
    const bool must =
        records[i].code == Code::kOk || records[i].code == Code::kNotFound || records[i].code == Code::kConflict;
    if (done[i] || !must) continue;
    left = true;
    horizon = std::min(horizon, records[i].end);
  }
  if (!left) return true;
  const auto is_done = [&](Action action, uint64_t of) {
    for (size_t i = 0; i < records.size(); ++i) {
      if (done[i] && records[i].action == action && records[i].value == of) return true;
    }
    return false;
  };
  const uint64_t present = is_done(Action::kExpire, value) ? Record::kAbsent : value;
  for (size_t i = 0; i < records.size(); ++i) {
    const Record& r = records[i];
    if (done[i] || r.begin > horizon || MustFollow(records, done, r)) continue;
    uint64_t then = value;
    if (r.action == Action::kExpire) {
      if (!is_done(Action::kPut, r.value)) continue;
    } else if (r.code == Code::kConflict) {
      if (r.expects == present) continue;
    } else {
      if (r.expects && r.expects != present) continue;
      if (r.action == Action::kGet && r.value != present) continue;
      if (r.action == Action::kPut) then = r.value;
      if (r.action == Action::kDelete) {
        if (r.code == Code::kOk && present == Record::kAbsent) continue;
        if (r.code == Code::kNotFound && present != Record::kAbsent) continue;
        then = Record::kAbsent;
      }
    }
    done[i] = true;
    if (HoldsInSomeOrder(records, done, then)) return true;
    done[i] = false;
  }
  return false;
}

TEST(LinearizabilityChecker, AgreesWithTryingEveryOrder) {
  std::array<uint64_t, 2> answers{};
  uint64_t expiries = 0;
  for (uint64_t seed = 1; seed <= 20'000; ++seed) {
    Random random(seed);
    const uint64_t count = 3 + random.Uniform(5);
    std::vector<uint64_t> times(2 * count);
    std::iota(times.begin(), times.end(), 1);
    for (size_t i = times.size(); i > 1; --i) {  // swaps near neighbours, so that not everything overlaps
      const size_t k = i - 1;
      std::swap(times[k], times[k - random.Uniform(std::min<size_t>(k + 1, 5))]);
    }
    std::vector<Record> records;
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t begin = 3 * std::min(times[2 * i], times[2 * i + 1]);
      const uint64_t end = 3 * std::max(times[2 * i], times[2 * i + 1]);
      const uint64_t dice = random.Uniform(10);
      const uint64_t some = random.Uniform(count + 1);
      constexpr Code kCodes[] = {Code::kOk, Code::kOk, Code::kUnavailable, Code::kConflict};
      const Code code = kCodes[random.Uniform(std::size(kCodes))];
      if (dice < 3) {
        records.push_back(Get(some, begin, end));
      } else if (dice < 5) {
        records.push_back(Put(i + 1, begin, end, code == Code::kConflict ? Code::kOk : code));
      } else if (dice < 8) {
        records.push_back(If(some, Put(i + 1, begin, end, code)));
      } else if (dice == 8) {
        records.push_back(Delete(begin, end, code == Code::kConflict ? Code::kNotFound : code));
      } else {
        records.push_back(If(std::max<uint64_t>(some, 1), Delete(begin, end, code)));
      }
      const bool is_plain = records.back().action == Action::kPut && !records.back().expects;
      records.back().client = static_cast<uint32_t>(is_plain ? 1000 + random.Uniform(2) : i);
      const Record last = records.back();
      if (last.action != Action::kPut || last.code == Code::kConflict || !random.Chance(0.4)) continue;
      const uint64_t from = random.Between(begin / 3, 2 * count);
      const bool ends = last.code == Code::kOk && random.Chance(0.7);
      const uint64_t to = 3 * random.Between(std::max(from, end / 3), 2 * count) + 2;
      records.push_back(Expire(last.value, 3 * from + 1, ends ? to : Record::kNever));
      ++expiries;
    }
    std::vector<bool> done(records.size());
    const bool holds = HoldsInSomeOrder(records, done, Record::kAbsent);
    std::string text;
    for (const Record& record : records) text += "\n" + ToText(record);
    ASSERT_EQ(Holds(records), holds) << "seed " << seed << text;
    ++answers[holds ? 1 : 0];
  }
  EXPECT_GT(answers[0], 1000U);
  EXPECT_GT(answers[1], 1000U);
  EXPECT_GT(expiries, 10'000U);
}

TEST(Counts, CountsOfHistoriesAddUp) {
  const std::vector<Count> counts = {{1, 2, 1, Code::kOk},
                                     {3, 6, 3, Code::kOk},
                                     {4, 5, 2, Code::kOk},
                                     {7, 8, 0, Code::kTimeout},
                                     {9, 10, 0, Code::kResourceExhausted}};
  EXPECT_EQ(CountsViolation(counts, 3), "");
  EXPECT_EQ(CountsViolation(counts, 4), "");
  EXPECT_NE(CountsViolation(counts, 2), "");
  EXPECT_NE(CountsViolation(counts, 5), "") << "what was refused does not count";
  std::vector<Count> twice = counts;
  twice[1].sum = 2;
  EXPECT_NE(CountsViolation(twice, 3), "");
  std::vector<Count> backwards = counts;
  std::swap(backwards[0].sum, backwards[1].sum);
  EXPECT_NE(CountsViolation(backwards, 3), "") << "an earlier one came to more";
}

TEST(LinearizabilityChecker, ShowsFewRecordsOfMany) {
  History history;
  for (uint64_t value = 1; value <= 50; ++value) {
    history.End(history.Begin(1, 7, Action::kPut, value), Code::kOk);
    history.End(history.Begin(2, 7, Action::kGet), Code::kOk, value == 30 ? 20 : value);
  }
  EXPECT_EQ(Shrink(history.OfKey(7)).size(), 3U) << "a put, another one after it, and the get of the first";
  EXPECT_NE(history.Violation().find("3 of its 100 records"), std::string::npos) << history.Violation();
}

}  // namespace
}  // namespace erda::sim
