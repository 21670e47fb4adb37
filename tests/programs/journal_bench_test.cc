// erda-bench journal: a pool with a journal beside its disk.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "paths.h"
#include "programs/fixture.h"

namespace erda {
namespace {

using nlohmann::json;

class JournalBenchTest : public ProgramsTest {
 protected:
  [[nodiscard]] Ended Journal(const Words& more) const {
    std::filesystem::create_directories(Path("disk"));
    Words all = {"journal", "--folder", Path("disk"), "--rounds", "2",         "--milliseconds",
                 "40",      "--keys",   "100",        "--json",   Path("json")};
    all.insert(all.end(), more.begin(), more.end());
    return Run("erda-bench", all);
  }
  [[nodiscard]] json Report() const {
    EXPECT_TRUE(std::filesystem::is_empty(Path("disk")));
    return json::parse(ReadFile(Path("json")), nullptr, false);
  }
  static void ExpectTimes(const json& times, const char* unit) {
    EXPECT_GT(times["count"], 0);
    EXPECT_GT(times[std::string("median_") + unit], 0);
    EXPECT_GE(times[std::string("p99_") + unit], times[std::string("median_") + unit]);
  }
};

TEST_F(JournalBenchTest, MeasuresTheDiskAlone) {
  const auto ended = Journal({"--disk-only"});
  ExpectFine(ended);
  EXPECT_NE(ended.out.find("4 KiB with RWF_DSYNC"), std::string::npos) << ended.out;
  EXPECT_EQ(ended.out.find("put"), std::string::npos) << ended.out;
  const json report = Report();
  ASSERT_TRUE(report.is_object());
  for (const char* kind : {"flushed", "durable", "sequential"}) ExpectTimes(report["disk"][kind], "us");
  EXPECT_GT(report["disk"]["bytes_per_second"], 0);
  EXPECT_FALSE(report.contains("loads"));
}

TEST_F(JournalBenchTest, MeasuresPutsGetsBytesAndRestarts) {
  const auto ended = Journal(
      {"--pool-size", "64M", "--journal-size", "32M", "--clients", "3", "--depth", "4", "--value-bytes", "500"});
  ExpectFine(ended);
  EXPECT_NE(ended.out.find("bytes written to the disk / bytes put, 3 x 4"), std::string::npos) << ended.out;
  const json report = Report();
  ASSERT_TRUE(report.is_object());
  EXPECT_EQ(report["durability"], "power-safe");
  ExpectTimes(report["disk"]["flushed"], "us");
  ExpectTimes(report["put"], "us");
  ASSERT_EQ(report["loads"].size(), 3U);
  for (const auto& load : report["loads"]) {
    EXPECT_GT(load["puts_per_second"], 0);
    EXPECT_GT(load["put"]["count"], 0);
    EXPECT_EQ(load["bytes_put"].get<uint64_t>() % 500, 0U);
    // Each byte is written at least to the ring and to the pool file. The kernel counts no bytes in memory.
    if (report["disk"]["in_memory"]) continue;
    EXPECT_GT(load["bytes_written"].get<uint64_t>(), 2 * load["bytes_put"].get<uint64_t>());
  }
  EXPECT_EQ(report["loads"][2]["clients"], 3);
  EXPECT_EQ(report["loads"][2]["depth"], 4);
  EXPECT_GT(report["get_idle"]["count"], 0);
  EXPECT_GT(report["get_busy"]["count"], 0);
  for (const char* restart : {"restart_with_image", "restart_without_image"}) {
    ExpectTimes(report[restart], "ms");
    EXPECT_EQ(report[restart]["count"], 2) << restart;
  }
  for (const char* ratio : {"median_put_over_write", "mean_put_over_write", "get_busy_over_idle"}) {
    EXPECT_GT(report["ratios"][ratio], 0) << ratio;
  }
}

TEST_F(JournalBenchTest, InterruptedRunLeavesNoFiles) {
  const std::string disk = Path("disk");
  std::filesystem::create_directories(disk);
  Process bench({BinDir() + "/erda-bench", "journal", "--folder", disk, "--pool-size", "64M", "--journal-size", "32M",
                 "--milliseconds", "60000"});
  EXPECT_TRUE(WaitUntil([&] {
    for (const auto& folder : std::filesystem::directory_iterator(disk)) {
      if (std::filesystem::exists(folder.path() / "journal")) return true;
    }
    return !bench.Running();
  }));
  bench.Signal(SIGINT);
  EXPECT_EQ(bench.Wait().code, 128 + SIGINT);
  EXPECT_TRUE(WaitUntil([&] { return std::filesystem::is_empty(disk); }));
}

TEST_F(JournalBenchTest, ImpossibleRunsAreRefused) {
  ExpectRefused(Run("erda-bench", {"journal"}), 2, "--folder");
  ExpectRefused(Run("erda-bench", {"journal", "--folder", Path("nowhere")}), 2, "is no folder");
  ExpectRefused(Run("erda-bench", {"journal", "--folder", Path(""), "--depth", "1"}), 2, "--depth");
  ExpectRefused(Journal({"--pool-size", "1K"}), 2, "pool");
}

}  // namespace
}  // namespace erda
