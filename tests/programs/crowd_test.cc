// erda-bench crowd: a client beside many silent ones.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "programs/fixture.h"

namespace erda {
namespace {

class CrowdTest : public ProgramsTest {};

TEST_F(CrowdTest, BenchMeasuresBesideEachNumberOfSilentClients) {
  const auto ended = Run("erda-bench", {"crowd", "--silent", "0,5,40", "--operations", "500", "--rounds", "2", "--json",
                                        Path("crowd.json")});
  ExpectFine(ended);
  EXPECT_NE(ended.out.find("the largest median over the first one"), std::string::npos) << ended.out;
  const nlohmann::json report = nlohmann::json::parse(ReadFile(Path("crowd.json")), nullptr, false);
  ASSERT_TRUE(report.is_object());
  ASSERT_EQ(report["steps"].size(), 3U);
  for (const auto& step : report["steps"]) {
    EXPECT_EQ(step["put"]["operations"], 1000);
    EXPECT_EQ(step["get"]["operations"], 1000);
    EXPECT_GT(step["server_bytes"], 0);
  }
  EXPECT_EQ(report["steps"][2]["silent"], 40);
  EXPECT_GE(report["worst_put"], 1.0);
}

TEST_F(CrowdTest, BenchRefusesNumbersThatDoNotAscend) {
  ExpectRefused(Run("erda-bench", {"crowd", "--silent", "5,0"}), 2, "--silent");
  ExpectRefused(Run("erda-bench", {"crowd", "--silent", "100000"}), 2, "--silent");
}

}  // namespace
}  // namespace erda
