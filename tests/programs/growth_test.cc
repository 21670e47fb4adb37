// erda-bench growth, and the output of the programs about an index that has grown.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "programs/fixture.h"

namespace erda {
namespace {

class GrowthProgramsTest : public ProgramsTest {};

TEST_F(GrowthProgramsTest, BenchReportsTimesInBothStates) {
  const auto ended = Run("erda-bench", {"growth", "--keys", "10000", "--json", Path("growth.json")});
  ExpectFine(ended);
  EXPECT_NE(ended.out.find("growing over idle, p99"), std::string::npos) << ended.out;
  const nlohmann::json report = nlohmann::json::parse(ReadFile(Path("growth.json")), nullptr, false);
  ASSERT_TRUE(report.is_object());
  EXPECT_GT(report["slots_after"], report["slots_before"]);
  const uint64_t idle = report["idle"]["put"]["operations"];
  const uint64_t growing = report["growing"]["put"]["operations"];
  EXPECT_EQ(idle + growing, 5000U);
  EXPECT_GT(idle, 0U);
  EXPECT_GT(growing, 0U);
  EXPECT_GE(report["growing"]["get"]["p999_ns"], report["growing"]["get"]["p50_ns"]);
  ExpectRefused(Run("erda-bench", {"growth", "--keys", "1"}), 2, "--keys");
}

TEST_F(GrowthProgramsTest, InspectReportsTheIndexesGrowth) {
  {
    const auto server = StartServer({"--index-entries", "128"});
    const auto filled = Ycsb({"-w", "C", "--records", "3000", "--operations", "10", "--value-size", "20"});
    ExpectFine(filled);
    StopServer(*server);
  }
  const auto ended = Run("erda-inspect", {"--json", "--verify", Pool()});
  ExpectFine(ended);
  const nlohmann::json report = nlohmann::json::parse(ended.out, nullptr, false);
  ASSERT_TRUE(report.is_object()) << ended.out;
  EXPECT_EQ(report["damage_count"], 0) << ended.out;
  const nlohmann::json& shard = report["shards"][0];
  EXPECT_EQ(shard["keys"], 3000);
  EXPECT_EQ(report["geometry"]["index_slots"], 128);
  EXPECT_EQ(shard["index_slots"], shard["index_blocks"].get<uint64_t>() * 128);
  EXPECT_GT(shard["index_slots"], 4000);
  EXPECT_GT(shard["regions"]["of_index"], 0);
  EXPECT_NE(Run("erda-inspect", {Pool()}).out.find(" of the index "), std::string::npos);
}

}  // namespace
}  // namespace erda
