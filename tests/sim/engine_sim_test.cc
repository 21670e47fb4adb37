// The server's shards and the clients' engines meet all faults of the simulated fabric. The seed of a failing run
// repeats it.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <array>
#include <string>

#include "sim/cluster.h"
#include "sim/runner.h"

namespace erda::sim {
namespace {

// Returns the number of runs of the first test; the other tests derive theirs. It is small, since erda-sim makes many
// runs (docs/simulation.md). ERDA_SIM_SEEDS=20000 makes more.
uint64_t Seeds() {
  const char* wanted = getenv("ERDA_SIM_SEEDS");
  return wanted == nullptr ? 120 : strtoull(wanted, nullptr, 10);
}

class EngineSimulation : public testing::Test {
 protected:
  static Outcome Run(const Plan& plan) { return RunPlan(plan); }
};

TEST_F(EngineSimulation, IsLinearizableOverAnyFaultOfTheFabric) {
  std::array<uint64_t, 10> codes{};
  uint64_t older_versions = 0;
  uint64_t second_looks = 0;
  uint64_t cache_hits = 0;
  uint64_t cache_misled = 0;
  uint64_t reconnects = 0;
  uint64_t taken_back = 0;
  uint64_t settled = 0;
  uint64_t reports = 0;
  uint64_t kills = 0;
  uint64_t restarts = 0;
  uint64_t grown = 0;
  uint64_t gets_at_once = 0;
  const uint64_t seeds = Seeds();
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    const Plan plan = Plan::OfMixed(seed);
    const Outcome outcome = Run(plan);
    ASSERT_EQ(outcome.failure, "") << plan.ToText();
    ASSERT_EQ(outcome.history.Violation(), "") << plan.ToText();
    for (size_t i = 0; i < codes.size(); ++i) codes[i] += outcome.codes[i];
    older_versions += outcome.clients.older_versions;
    second_looks += outcome.clients.second_looks;
    cache_hits += outcome.clients.cache_hits;
    cache_misled += outcome.clients.cache_misled;
    reconnects += outcome.clients.reconnects;
    taken_back += outcome.facts[Fact::kTakenBack];
    settled += outcome.settled;
    reports += outcome.facts[Fact::kReports];
    kills += outcome.facts[Fact::kKills];
    restarts += outcome.facts[Fact::kRestarts];
    grown += outcome.facts[Fact::kGrown];
    gets_at_once += outcome.facts[Fact::kGetsAtOnce];
  }
  // Checks that the runs met the difficult cases.
  EXPECT_GT(codes[static_cast<size_t>(Code::kOk)], seeds * 50);
  EXPECT_GT(codes[static_cast<size_t>(Code::kNotFound)], seeds);
  EXPECT_GT(codes[static_cast<size_t>(Code::kUnavailable)], seeds);
  EXPECT_GT(codes[static_cast<size_t>(Code::kTimeout)], 0U);
  EXPECT_GT(codes[static_cast<size_t>(Code::kResourceExhausted)], 0U);
  EXPECT_GT(older_versions, 40U);
  EXPECT_GT(second_looks, 1000U);
  EXPECT_GT(cache_hits, 1000U);
  EXPECT_GT(cache_misled, 300U);
  EXPECT_GT(reconnects, 100U);
  EXPECT_GT(taken_back, 50U);
  EXPECT_GT(settled, 1000U);
  EXPECT_GT(reports, 50U);
  EXPECT_GT(kills, 50U);
  EXPECT_GT(restarts, 20U);
  EXPECT_GT(grown, 2U);
  EXPECT_GT(gets_at_once, 20U);
}

TEST_F(EngineSimulation, IsLinearizableWhenIndexSlotsPassFromKeyToKey) {
  for (uint64_t seed = 1; seed <= Seeds() / 16; ++seed) {
    const Plan plan = Plan::OfChurn(seed);
    const Outcome outcome = Run(plan);
    ASSERT_EQ(outcome.failure, "") << plan.ToText();
    ASSERT_EQ(outcome.history.Violation(), "") << plan.ToText();
  }
}

TEST_F(EngineSimulation, IsLinearizableWhenIndexEntriesMove) {
  uint64_t refused = 0;
  for (uint64_t seed = 1; seed <= Seeds() / 24; ++seed) {
    const Plan plan = Plan::OfFullIndex(seed);
    const Outcome outcome = Run(plan);
    ASSERT_EQ(outcome.failure, "") << plan.ToText();
    ASSERT_EQ(outcome.history.Violation(), "") << plan.ToText();
    refused += outcome.codes[static_cast<size_t>(Code::kResourceExhausted)];
  }
  EXPECT_GT(refused, 20U) << "the index was full";
}

TEST_F(EngineSimulation, IsLinearizableWhenClientsGiveUp) {
  uint64_t timeouts = 0;
  for (uint64_t seed = 1; seed <= Seeds() / 4; ++seed) {
    const Plan plan = Plan::OfImpatience(seed);
    const Outcome outcome = Run(plan);
    ASSERT_EQ(outcome.failure, "") << plan.ToText();
    ASSERT_EQ(outcome.history.Violation(), "") << plan.ToText();
    timeouts += outcome.codes[static_cast<size_t>(Code::kTimeout)];
  }
  EXPECT_GT(timeouts, 200U);
}

TEST_F(EngineSimulation, IsLinearizableWhenReadersReportMissingValues) {
  uint64_t reports = 0;
  for (uint64_t seed = 1; seed <= Seeds() / 6; ++seed) {
    const Plan plan = Plan::OfReports(seed);
    const Outcome outcome = Run(plan);
    ASSERT_EQ(outcome.failure, "") << plan.ToText();
    ASSERT_EQ(outcome.history.Violation(), "") << plan.ToText();
    reports += outcome.facts[Fact::kReports];
  }
  EXPECT_GT(reports, 100U);
}

// Acknowledged and seen values stay, also if the server crashes often, and while it recovers.
TEST_F(EngineSimulation, IsLinearizableAcrossCrashesOfTheServer) {
  uint64_t crashes = 0;
  RecoveryReport recovered;
  for (uint64_t seed = 1; seed <= Seeds() / 2; ++seed) {
    const Plan plan = Plan::OfCrashes(seed);
    const Outcome outcome = Run(plan);
    ASSERT_EQ(outcome.failure, "") << plan.ToText();
    ASSERT_EQ(outcome.history.Violation(), "") << plan.ToText();
    crashes += outcome.facts[Fact::kProcessDeaths] + outcome.facts[Fact::kPowerCuts];
    recovered.settled += outcome.recovered.settled;
    recovered.taken_back += outcome.recovered.taken_back;
    recovered.dropped += outcome.recovered.dropped;
    recovered.deletes_finished += outcome.recovered.deletes_finished;
  }
  EXPECT_GT(crashes, Seeds());
  EXPECT_GT(recovered.settled, Seeds() / 4);
  EXPECT_GT(recovered.taken_back, Seeds() / 16);
  EXPECT_GT(recovered.dropped, Seeds() / 16);
  EXPECT_GT(recovered.deletes_finished, Seeds() / 64);
}

// Each in a separate process, so that a run which ends by a signal names its seed, too.
TEST_F(EngineSimulation, EachKindOfRunIsWithoutAFault) {
#ifdef ERDA_SANITIZED
  constexpr uint64_t kPart = 4;  // Runs of these kinds take long there.
#else
  constexpr uint64_t kPart = 1;
#endif
  for (uint64_t seed = 1; seed <= Seeds() / kPart; ++seed) {
    const Plan plan = Plan::Of(static_cast<Kind>(seed % kKindNames.size()), seed);
    ASSERT_EQ(RunApart(plan), "") << plan.ToText();
  }
}

TEST_F(EngineSimulation, IsRepeatedByItsSeed) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Outcome first = Run(Plan::OfMixed(seed));
    const Outcome second = Run(Plan::OfMixed(seed));
    EXPECT_EQ(first.history.Hash(), second.history.Hash()) << "seed " << seed;
    EXPECT_EQ(first.network_hash, second.network_hash) << "seed " << seed;
    const Outcome other = Run(Plan::OfMixed(seed + 1000));
    EXPECT_NE(first.history.Hash(), other.history.Hash()) << "seed " << seed;
  }
}

// Runs with a defect on purpose. Found returns the number of runs in which the checker finds it.
class PlantedDefect : public EngineSimulation {
 protected:
  uint64_t Found(Defect defect, uint64_t runs) {
    uint64_t found = 0;
    for (uint64_t seed = 1; seed <= runs; ++seed) {
      Plan plan = Plan::OfMixed(seed);
      plan.defect = defect;
      plan.keys = std::min(plan.keys, 3U);
      plan.operations = 300;
      // Operations with an unknown outcome would excuse too much.
      plan.kill_chance = plan.drop_chance = plan.network.drop_chance = 0;
      const Outcome outcome = Run(plan);
      found += outcome.history.Violation().empty() ? 0 : 1;
    }
    return found;
  }
};

TEST_F(PlantedDefect, AStaleGetIsFound) { EXPECT_GE(Found(Defect::kStaleGet, 40), 20U); }
TEST_F(PlantedDefect, ALostPutIsFound) { EXPECT_GE(Found(Defect::kLostPut, 40), 20U); }
TEST_F(PlantedDefect, ARepeatedPutIsFound) { EXPECT_GE(Found(Defect::kRepeatedPut, 160), 20U); }

}  // namespace
}  // namespace erda::sim
