// tools/paper with real servers: its measurements, and its continuation.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "paths.h"
#include "programs/fixture.h"

namespace erda {
namespace {

using nlohmann::json;

class PaperNoSanitizerTest : public ProgramsTest {
 protected:
  Ended Paper(const Words& arguments) const {
    Words command = {"/usr/bin/env",     "PYTHONDONTWRITEBYTECODE=1",
                     "/usr/bin/python3", ERDA_SOURCE_DIR "/tools/paper",
                     "--quick",          "--out",
                     Path("out")};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return Process(command).Wait(std::chrono::seconds(100));
  }
  // Three schemes: latency at one size and throughput of two threads of YCSB-C, and the processor time at 16 B of four
  // workloads.
  static constexpr size_t kRuns = size_t{3} * (1 + 1 + 4);
  [[nodiscard]] Ended Small(const Words& more = {}) const {
    Words arguments = {"--build", Build(),     "--figures", "14,18,22,table1", "--sizes", "1K",        "--threads",
                       "2",       "--seconds", "0.01",      "--rounds",        "1",       "--records", "200"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Paper(arguments);
  }
  [[nodiscard]] static std::string Build() { return BinDir() + "/.."; }
  [[nodiscard]] json Report() const { return json::parse(ReadFile(Path("out/report.json")), nullptr, false); }
  [[nodiscard]] size_t Points() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(Path("out/points")), {}));
  }
};

TEST_F(PaperNoSanitizerTest, MeasuresAllThreeAndContinuesAfterAStop) {
  const auto ended = Small();
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_NE(ended.out.find("update_bytes_1k"), std::string::npos) << ended.out;
  EXPECT_EQ(Points(), kRuns);
  const json report = Report();
  ASSERT_TRUE(report.is_object());
  for (const json& point : report["points"]) {
    SCOPED_TRACE(point["command"].get<std::string>());
    EXPECT_EQ(point["result"]["scheme"], point["scheme"]);
    EXPECT_EQ(point["result"]["workload"], point["workload"]);
    EXPECT_EQ(point["result"]["value_size"], point["value_size"]);
    EXPECT_EQ(point["result"]["threads"], point["threads"]);
    EXPECT_EQ(point["result"]["depth"], 1);
    EXPECT_GT(point["result"]["run"]["ops_per_second"], 0);
    EXPECT_EQ(point["command"].get<std::string>().find(Path("")), std::string::npos);
  }
  for (const std::string scheme : {"erda", "redo", "raw"}) {
    EXPECT_GT(report["figures"]["14"]["points"][0]["mean_us"][scheme], 0) << scheme;
    EXPECT_GT(report["figures"]["18"]["points"][0]["ops_per_second"][scheme], 0) << scheme;
    EXPECT_EQ(report["figures"]["22"]["points"].size(), 4U);
  }
  EXPECT_EQ(report["figures"].size(), 4U);
  const json& latency = report["figures"]["14"]["points"][0]["mean_us"];
  EXPECT_DOUBLE_EQ(report["ratios"]["ycsb_c_latency_1k"],
                   latency["erda"].get<double>() / latency["redo"].get<double>());
  EXPECT_GT(report["ratios"]["update_bytes_1k"], 0.5);
  EXPECT_LT(report["ratios"]["update_bytes_1k"], 0.53);
  const std::string page = ReadFile(Path("out/report.html"));
  EXPECT_NE(page.find("Figure 14"), std::string::npos);
  EXPECT_EQ(page.find("Figure 15"), std::string::npos);
  EXPECT_NE(page.find("<svg"), std::string::npos);

  // One run is missing: only that one is measured.
  const std::string lost = Path("out/points/latency-C-1024b-1t-redo-1.json");
  const std::string kept = Path("out/points/latency-C-1024b-1t-erda-1.json");
  ASSERT_TRUE(std::filesystem::remove(lost));
  const auto before = ReadFile(kept);
  const auto again = Small();
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_NE(again.err.find("17 of 18 runs are in"), std::string::npos) << again.err;
  EXPECT_EQ(again.err.find("loading Erda"), std::string::npos) << again.err;
  EXPECT_TRUE(std::filesystem::exists(lost));
  EXPECT_EQ(ReadFile(kept), before);

  // Other conditions are not mixed with these.
  ExpectRefused(Small({"--records", "300"}), 1, "records 200, not 300");
  EXPECT_EQ(Points(), kRuns);
}

TEST_F(PaperNoSanitizerTest, MeasuresTheRemotePathsOfPmrAccess) {
  const auto ended = Paper({"--build", Build(), "--pmr"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_NE(ended.out.find("PMRSync / PMRDirect, 4 KiB"), std::string::npos) << ended.out;
  const json results = json::parse(ReadFile(Path("out/pmr.json")), nullptr, false);
  ASSERT_TRUE(results.is_object());
  EXPECT_EQ(results["runs"][0]["result"]["fabric"], "shm");
  EXPECT_EQ(results["runs"][0]["command"].get<std::string>().find(Path("")), std::string::npos);
  EXPECT_NE(ReadFile(Path("out/report.html")).find("PMEMDirect"), std::string::npos);
}

TEST_F(PaperNoSanitizerTest, ImpossibleRunsAreRefused) {
  ExpectRefused(Paper({"--build", Path("nowhere")}), 1, "erda-server not found");
  ExpectRefused(Paper({"--report"}), 1, "has no evaluation");
  std::filesystem::create_directories(Path("out"));
  WriteFile(Path("out/mine"), "precious");
  ExpectRefused(Small({"--fresh"}), 1, "is not empty, and not a folder of an evaluation");
  EXPECT_EQ(ReadFile(Path("out/mine")), "precious");
  for (const Words& bad : {Words{"--figures", "13"}, Words{"--figures", "17-14"}, Words{"--sizes", "0"},
                           Words{"--sizes", "64K"}, Words{"--threads", "0"}, Words{"--seconds", "0"},
                           Words{"--records", "1"}, Words{"--out", Path("nowhere/out")}, Words{"more"}}) {
    const auto ended = Paper(bad);
    EXPECT_EQ(ended.code, 2) << bad.back();
    EXPECT_EQ(ended.out, "");
    EXPECT_NE(ended.err.find("paper: error: "), std::string::npos) << ended.err;
  }
}

}  // namespace
}  // namespace erda
