// tools/compare, with the real servers and libraries.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>

#include "paths.h"
#include "programs/fixture.h"

namespace erda {
namespace {

using nlohmann::json;

class CompareNoSanitizerTest : public ProgramsTest {
 protected:
  static constexpr const char* kPath = "/usr/local/bin:/usr/bin:/bin";
  // The tool puts its files into a folder of the test.
  [[nodiscard]] Words Command(const Words& arguments, const std::string& path = kPath) const {
    std::filesystem::create_directories(Path("work"));
    Words command = {"/usr/bin/env",
                     "PATH=" + path,
                     "PYTHONDONTWRITEBYTECODE=1",
                     "/usr/bin/python3",
                     ERDA_SOURCE_DIR "/tools/compare",
                     "--folder",
                     Path("work")};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return command;
  }
  [[nodiscard]] Ended Compare(const Words& arguments, const std::string& path = kPath) const {
    return Process(Command(arguments, path)).Wait(std::chrono::seconds(100));
  }
  [[nodiscard]] static std::string Build() { return BinDir() + "/.."; }
  [[nodiscard]] bool LeftNothing() const { return std::filesystem::is_empty(Path("work")); }
  // Stops the tool once a temporary folder has this file.
  void ExpectStops(const Words& arguments, const std::string& file) const {
    for (const int signal : {SIGTERM, SIGINT}) {
      Process compare(Command(arguments));
      const auto has_begun = [this, &file] {
        for (const auto& folder : std::filesystem::directory_iterator(Path("work"))) {
          if (std::filesystem::exists(folder.path() / file)) return true;
        }
        return false;
      };
      ASSERT_TRUE(WaitUntil(has_begun)) << compare.err();
      compare.Signal(signal);
      EXPECT_EQ(compare.Wait().code, 128 + signal) << compare.err();
      EXPECT_TRUE(LeftNothing());
    }
  }
};

TEST_F(CompareNoSanitizerTest, MeasuresAllThreeAndLeavesNothing) {
  const auto ended = Compare({"--quick", "--build", Build(), "--sizes", "1K", "--clients", "1,2", "--depth", "8",
                              "--records", "1000", "--json", Path("json"), "--html", Path("html")});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_NE(ended.out.find("redis_latency"), std::string::npos) << ended.out;
  EXPECT_TRUE(LeftNothing());

  const json report = json::parse(ReadFile(Path("json")), nullptr, false);
  ASSERT_TRUE(report.is_object());
  // Three workloads, two numbers of clients, two depths, three systems; and updates of the four systems that survive
  // their server's death.
  EXPECT_EQ(report["results"].size(), 3U * 2 * 2 * 3 + 2 * 2 * 4);
  for (const json& result : report["results"]) {
    SCOPED_TRACE(result["command"].get<std::string>());
    EXPECT_GT(result["median"]["ops_per_second"], 0);
    EXPECT_EQ(result["median"].contains("get"), result["workload"] != "update");
    EXPECT_EQ(result["median"].contains("put"), result["workload"] != "C");
    EXPECT_EQ(result["rounds"].size(), 1U);
  }
  // Each ratio is that of the figures that it names.
  const auto find = [&report](const std::string& system, const json& ratio) {
    const auto found = std::find_if(report["results"].begin(), report["results"].end(), [&](const json& result) {
      return result["system"] == system && result["workload"] == ratio["workload"] &&
             result["clients"] == ratio["clients"] && result["depth"] == ratio["depth"];
    });
    return found == report["results"].end() ? json() : (*found)["median"];
  };
  const json& details = report["ratio_details"];
  EXPECT_EQ(details["redis_latency"]["clients"], 1);
  EXPECT_EQ(details["redis_latency"]["depth"], 1);
  EXPECT_DOUBLE_EQ(report["ratios"]["redis_latency"],
                   find("redis", details["redis_latency"])["get"]["p50_us"].get<double>() /
                       find("erda", details["redis_latency"])["get"]["p50_us"].get<double>());
  for (const std::string other : {"redis", "memcached"}) {
    const json& ratio = details[other + "_throughput"];
    EXPECT_EQ(ratio["clients"], 2);
    EXPECT_EQ(ratio["depth"], 8);
    EXPECT_DOUBLE_EQ(report["ratios"][other + "_throughput"], find("erda", ratio)["ops_per_second"].get<double>() /
                                                                  find(other, ratio)["ops_per_second"].get<double>());
  }
  for (const char* name : {"Redis", "memcached", "hiredis", "libmemcached"}) {
    EXPECT_NE(report["versions"][name], "unknown") << name;
  }
  const std::string page = ReadFile(Path("html"));
  EXPECT_NE(page.find("<svg"), std::string::npos);
  EXPECT_EQ(page.find("src="), std::string::npos);
  EXPECT_EQ(page.find("@import"), std::string::npos);
}

// The preset files, with some of its parts.
class CompareFilesNoSanitizerTest : public CompareNoSanitizerTest {
 protected:
  json Measured(const std::string& parts) {
    const auto ended =
        Compare({"--preset", "files", "--quick", "--build", Build(), "--sizes", "1K", "--clients", "2", "--records",
                 "1000", "--workloads", "rmw", "--parts", parts, "--json", Path("json"), "--html", Path("html")});
    EXPECT_EQ(ended.code, 0) << ended.err;
    EXPECT_NE(ended.out.find("Who wins"), std::string::npos) << ended.out;
    EXPECT_NE(ReadFile(Path("html")).find("<svg"), std::string::npos);
    EXPECT_TRUE(LeftNothing());
    json report = json::parse(ReadFile(Path("json")), nullptr, false);
    EXPECT_TRUE(report.is_object());
    return report;
  }
  static void ExpectFigures(const json& report, const std::set<std::string>& stores,
                            const std::set<std::string>& ratios) {
    std::set<std::string> found;
    for (const json& result : report["results"]) {
      SCOPED_TRACE(result["command"].get<std::string>());
      found.insert(result["store"]);
      const json& median = result["median"];
      const std::string workload = result["workload"];
      EXPECT_GT(median["ops_per_second"], 0);
      EXPECT_GT(median["mean_us"], 0);
      EXPECT_EQ(median.contains("rmw_mean_us"), workload == "rmw");
      EXPECT_EQ(median.contains("put_per_second"), workload == "rmw" || workload == "update" || workload == "beside");
    }
    EXPECT_EQ(found, stores);
    for (const std::string& ratio : ratios) EXPECT_GT(report["ratios"][ratio]["value"], 0) << ratio;
    EXPECT_EQ(report["ratios"].size(), ratios.size());
  }
};

TEST_F(CompareFilesNoSanitizerTest, MeasuresOneClientAndSeveral) {
  const json report = Measured("mixes,puts,clients");
  EXPECT_EQ(report["results"].size(), 5U * (1 + 1 + 2));
  ExpectFigures(report, {"erda", "lmdb", "lmdb_writemap", "rocksdb", "tkrzw"},
                {"update_1024", "update_tail_1024", "put_1024", "update_1024_2"});
  for (const char* name : {"Erda", "LMDB", "RocksDB", "Tkrzw"}) EXPECT_NE(report["versions"][name], "unknown") << name;
}

TEST_F(CompareFilesNoSanitizerTest, MeasuresAWriterLoadsAndSyncs) {
  const json report = Measured("readers,load,synced");
  EXPECT_EQ(report["results"].size(), 6U * 2 + 5 + 2);
  ExpectFigures(report, {"erda", "lmdb", "lmdb_synced", "lmdb_writemap", "redis", "rocksdb", "rocksdb_synced", "tkrzw"},
                {"writer_1024", "readers_1024", "load_1024"});
  EXPECT_NE(report["versions"]["Redis"], "unknown");
}

TEST_F(CompareNoSanitizerTest, MeasuresPutsThatSurviveAPowerCut) {
  const auto ended = Compare({"--preset", "durable", "--quick", "--build", Build(), "--clients", "1,2", "--depth", "4",
                              "--json", Path("json"), "--html", Path("html")});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_NE(ended.out.find("Ratios with a target"), std::string::npos) << ended.out;
  EXPECT_TRUE(LeftNothing());
  const json report = json::parse(ReadFile(Path("json")), nullptr, false);
  ASSERT_TRUE(report.is_object());
  EXPECT_EQ(report["results"].size(), 2U * 2 * 5);
  std::set<std::string> found;
  for (const json& result : report["results"]) {
    found.insert(result["store"]);
    EXPECT_GT(result["median"]["ops_per_second"], 0) << result["command"];
    EXPECT_GE(result["median"]["p99_us"], result["median"]["p50_us"]) << result["command"];
  }
  EXPECT_EQ(found, (std::set<std::string>{"erda_journal", "redis_always", "rocksdb_synced", "lmdb_synced",
                                          "lmdb_writemap_synced"}));
  EXPECT_EQ(report["disk"]["rounds"].size(), 1U);
  EXPECT_GT(report["disk"]["bytes_per_second"], 0);
  EXPECT_NE(report["server_commands"]["erda_journal"].get<std::string>().find("--journal"), std::string::npos);
  EXPECT_NE(report["server_commands"]["redis_always"].get<std::string>().find("--appendfsync always"),
            std::string::npos);
  for (const char* ratio : {"redis_always_1", "redis_always_4", "rocksdb_synced_1", "lmdb_synced_1", "disk_share"}) {
    EXPECT_GT(report["ratios"][ratio]["value"], 0) << ratio;
  }
  EXPECT_NE(ReadFile(Path("html")).find("The promise for an acknowledged put"), std::string::npos);
}

TEST_F(CompareNoSanitizerTest, PutsThatSurviveAPowerCutHaveOneSizeAndNoParts) {
  for (const Words& bad : {Words{"--parts", "puts"}, Words{"--stores", "redis"}, Words{"--sizes", "1K,2K"}}) {
    Words arguments = {"--preset", "durable"};
    arguments.insert(arguments.end(), bad.begin(), bad.end());
    EXPECT_EQ(Compare(arguments).code, 2) << bad.front();
  }
  EXPECT_TRUE(LeftNothing());
}

TEST_F(CompareNoSanitizerTest, StoppedInTheMiddleItLeavesNothing) {
  ExpectStops({"--quick", "--build", Build(), "--sizes", "1K"}, "memcached.sock");
}

// Clients are running, or were.
TEST_F(CompareFilesNoSanitizerTest, StoppedInTheMiddleItLeavesNothing) {
  ExpectStops(
      {"--preset", "files", "--quick", "--build", Build(), "--sizes", "1K", "--parts", "clients", "--rounds", "99"},
      "result1.json");
}

TEST_F(CompareNoSanitizerTest, ImpossibleRunsAreRefused) {
  ExpectRefused(Compare({"--quick", "--build", Path("nowhere")}), 1, "erda-server not found");
  ExpectRefused(Compare({"--quick", "--build", Build()}, Path("nowhere")), 1, "apt-get install redis-server memcached");
  for (const Words& bad :
       {Words{"--sizes", "0"}, Words{"--sizes", "1G"}, Words{"--clients", "0"}, Words{"--depth", "1"},
        Words{"--preset", "tapes"}, Words{"--preset", "files", "--depth", "2"}, Words{"--parts", "puts"},
        Words{"--workloads", "C"}, Words{"--stores", "erda"}, Words{"--seconds", "1"},
        Words{"--preset", "files", "--stores", "tape"}, Words{"--preset", "files", "--seconds", "0"},
        Words{"--preset", "files", "--parts", "scans"}, Words{"--sizes", "1M"},
        Words{"--preset", "files", "--workloads", "E"}, Words{"--preset", "files", "--sizes", "8M"},
        Words{"--rounds", "none"}, Words{"--json", Path("nowhere/json")}, Words{"more"}}) {
    const auto ended = Compare(bad);
    EXPECT_EQ(ended.code, 2) << bad.back();
    EXPECT_EQ(ended.out, "");
    EXPECT_NE(ended.err.find("compare: error: "), std::string::npos) << ended.err;
  }
  EXPECT_TRUE(LeftNothing());
}

}  // namespace
}  // namespace erda
