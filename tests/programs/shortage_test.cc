// erda-bench shortage: a client that puts beside processes that want the same processors.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "programs/fixture.h"

namespace erda {
namespace {

class ShortageTest : public ProgramsTest {};

TEST_F(ShortageTest, BenchMeasuresBesideReadersAndComputingProcesses) {
  const auto ended = Run("erda-bench", {"shortage", "--busy", "0,2r,1p", "--seconds", "1", "--rounds", "1", "--json",
                                        Path("shortage.json")});
  ExpectFine(ended);
  EXPECT_NE(ended.out.find("updates/s"), std::string::npos) << ended.out;
  const nlohmann::json report = nlohmann::json::parse(ReadFile(Path("shortage.json")), nullptr, false);
  ASSERT_TRUE(report.is_object());
  ASSERT_EQ(report["lines"].size(), 3U);
  for (const auto& line : report["lines"]) {
    EXPECT_EQ(line["server"], "erda");
    EXPECT_GT(line["updates_per_second"], 0);
    EXPECT_GT(line["p99_us"], 0);
  }
  EXPECT_EQ(report["lines"][0]["gets_per_second"], 0);
  EXPECT_GT(report["lines"][1]["gets_per_second"], 0);
  EXPECT_GT(report["lines"][1]["gets_per_second_alone"], 0);
}

TEST_F(ShortageTest, BenchMeasuresWhatAComputingProcessGets) {
  // On a busy machine the process may get nothing for a second.
  double share = 0;
  for (int tries = 0; tries < 10 && share == 0; ++tries) {
    ExpectFine(Run("erda-bench",
                   {"shortage", "--busy", "1p", "--seconds", "1", "--rounds", "1", "--json", Path("shortage.json")}));
    const nlohmann::json report = nlohmann::json::parse(ReadFile(Path("shortage.json")), nullptr, false);
    ASSERT_TRUE(report.is_object());
    share = report["lines"][0]["busy_share"];
  }
  EXPECT_GT(share, 0);
}

TEST_F(ShortageTest, BenchMeasuresAnotherServerInTurn) {
  const auto server = StartServer();
  const std::string also = Address() + "=" + std::to_string(server->pid());
  const auto ended = Run("erda-bench", {"shortage", "--busy", "0", "--rounds", "1", "--updates-per-second", "100",
                                        "--also", also, "--json", Path("shortage.json")});
  ExpectFine(ended);
  const nlohmann::json report = nlohmann::json::parse(ReadFile(Path("shortage.json")), nullptr, false);
  ASSERT_EQ(report["lines"].size(), 2U);
  EXPECT_EQ(report["lines"][1]["server"], "shm");
  for (const auto& line : report["lines"]) EXPECT_LE(line["updates_per_second"], 200);
}

TEST_F(ShortageTest, BenchRefusesWhatItCannotMeasure) {
  for (const std::string busy : {"x", "2q", "-1", "1000", "2pr"}) {
    ExpectRefused(Run("erda-bench", {"shortage", "--busy", busy}), 2, "--busy");
  }
  for (const std::string also : {"redis:/tmp/socket", "redis:/tmp/socket=x", "=12"}) {
    ExpectRefused(Run("erda-bench", {"shortage", "--also", also}), 2, "--also");
  }
}

}  // namespace
}  // namespace erda
