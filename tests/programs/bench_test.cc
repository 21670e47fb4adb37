// erda-bench, which starts its server.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "programs/fixture.h"

namespace erda {
namespace {

using nlohmann::json;

class BenchTest : public ProgramsTest {
 protected:
  static Ended Floors(const Words& arguments) {
    Words all = {"floors", "--ops", "20", "--rounds", "2", "--block", "2"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return Run("erda-bench", all);
  }
  // It prints only its progress.
  static void ExpectDone(const Ended& ended) {
    EXPECT_EQ(ended.code, 0);
    std::istringstream lines(ended.err);
    for (std::string line; std::getline(lines, line);) {
      EXPECT_TRUE(line.starts_with("erda-bench: floors: ")) << line;
    }
  }
};

TEST_F(BenchTest, MeasuresFloorsOverShm) {
  const std::string path = Path("floors.json");
  const auto ended = Floors({"--fabric", "shm", "--json", path});
  ExpectDone(ended);
  EXPECT_NE(ended.out.find("over the floor"), std::string::npos) << ended.out;
  const json results = json::parse(ReadFile(path), nullptr, false);
  ASSERT_TRUE(results.is_object());
  EXPECT_EQ(results["fabric"], "shm");
  EXPECT_EQ(results["pool"], "dram:");
  EXPECT_EQ(results["flush_method"], "none");
  EXPECT_EQ(results["value_size"], 64);
  EXPECT_EQ(results["ops"], 20);
  EXPECT_NE(results["machine"]["name"], "");
  EXPECT_EQ(results["figures"].size(), 17U);
  for (const auto& [name, figure] : results["figures"].items()) {
    EXPECT_EQ(figure["blocks"], 10) << name;
    EXPECT_GT(figure["median_us"], 0) << name;
    EXPECT_GE(figure["p99_us"], figure["median_us"]) << name;
  }
  for (const char* ratio : {"get_warm", "get_cold", "put_inline", "put_bare", "put_reserve", "put_delegate", "get_rate",
                            "get_memory", "trust"}) {
    EXPECT_GT(results["ratios"][ratio], 0) << ratio;
  }
  EXPECT_TRUE(results["ib_read_lat_us"].is_null());
}

TEST_F(BenchTest, MakesAPoolFileAndRemovesIt) {
  ExpectDone(Floors({"--address", Address(), "--pool", Pool()}));
  EXPECT_FALSE(std::filesystem::exists(Pool()));
}

TEST_F(BenchTest, LeavesAnExistingPoolInOrder) {
  MakePool();
  ExpectDone(Floors({"--pool", Pool()}));
  const auto server = StartServer();
  const auto found = Cli({"get", "key"});
  ExpectFine(found);
  EXPECT_EQ(found.out, "value\n");
  StopServer(*server);
}

TEST_F(BenchTest, ALimitThatIsNotKeptIsAFailure) {
  const auto ended = Floors({"--limit", "0.001"});
  EXPECT_EQ(ended.code, 1);
  EXPECT_NE(ended.err.find("is above --limit 0.001"), std::string::npos) << ended.err;
  EXPECT_NE(ended.out.find("over the floor"), std::string::npos);
  EXPECT_EQ(Floors({"--limit", "1000000"}).code, 0);
}

TEST_F(BenchTest, ImpossibleRunsAreRefused) {
  ExpectRefused(Run("erda-bench", {}), 2, "subcommand");
  ExpectRefused(Floors({"--fabric", "verbs"}), 2, "needs an --address");
  ExpectRefused(Floors({"--value-bytes", "1M"}), 2, "--value-bytes");
  ExpectRefused(Floors({"--pool", Path("no/such/folder")}), 2, "no/such/folder");
  ExpectRefused(Floors({"--address", "shm:" + Path("no/such/folder")}), 2, "no/such/folder");
}

TEST_F(BenchTest, DoesNotTouchAPoolThatIsServed) {
  const auto server = StartServer();
  ExpectRefused(Floors({"--pool", Pool()}), 1, "another server has it open");
  StopServer(*server);
}

TEST_F(BenchTest, UnwritableResultFileIsNamed) {
  const auto ended = Floors({"--json", Path("no/such/file")});
  EXPECT_EQ(ended.code, 1);
  EXPECT_NE(ended.err.find("no/such/file"), std::string::npos) << ended.err;
}

TEST_F(BenchTest, MeasuresPutsOnEachPath) {
  const std::string path = Path("paths.json");
  const auto ended = Run("erda-bench", {"paths", "--pool", Path("new"), "--pool-size", "32M", "--ops", "20", "--rounds",
                                        "2", "--value-bytes", "70000", "1000", "10000", "1000", "--json", path});
  ExpectFine(ended);
  EXPECT_NE(ended.out.find("40 puts of each path and size in 2 rounds"), std::string::npos) << ended.out;
  const json results = json::parse(ReadFile(path), nullptr, false);
  ASSERT_TRUE(results.is_object());
  ASSERT_EQ(results["rows"].size(), 3U);
  size_t row = 0;
  for (const uint64_t size : {1000U, 10000U, 70000U}) {
    const json& one = results["rows"][row++];
    EXPECT_EQ(one["value_size"], size);
    EXPECT_EQ(one.contains("inline"), size < 65536);
    for (const char* name : {"reserve", "delegate"}) EXPECT_GT(one[name]["median_us"].get<double>(), 0) << name;
  }
  EXPECT_LE(results["inline_is_fastest_up_to"].get<uint64_t>(), 10000U);
  EXPECT_TRUE(results.contains("delegate_over_reserve"));
  EXPECT_EQ(results["durability"], "process-safe");
  EXPECT_FALSE(std::filesystem::exists(Path("new")));
}

TEST_F(BenchTest, ImpossibleRunsOfPathsAreRefused) {
  ExpectRefused(Run("erda-bench", {"paths", "--fabric", "verbs"}), 2, "needs an --address");
  ExpectRefused(Run("erda-bench", {"paths", "--value-bytes", "2000000"}), 2, "--value-bytes");
  ExpectRefused(Run("erda-bench", {"paths", "--pool-size", "1M"}), 2, "a value");
}

TEST_F(BenchTest, MeasuresCleaning) {
  const std::string path = Path("cleaning.json");
  Process cleaning(Command("erda-bench", {"cleaning", "--quick", "--json", path}));
  const auto ended = cleaning.Wait(std::chrono::seconds(300));  // With a sanitizer it takes 50 s of processor time.
  ExpectFine(ended);
  EXPECT_NE(ended.out.find("bytes copied per byte freed, 90 %"), std::string::npos) << ended.out;
  const json results = json::parse(ReadFile(path), nullptr, false);
  ASSERT_TRUE(results.is_object());
  EXPECT_NE(results["machine"]["name"], "");
  EXPECT_EQ(results["value_bytes"], 1024);
  for (const char* name : {"ycsb_a", "ycsb_b", "ycsb_c", "update"}) {
    const json& workload = results["workloads"][name];
    for (const char* state : {"idle", "cleaning"}) {
      for (const char* kind : {"get", "put"}) {
        const bool has = workload[state].contains(kind);
        EXPECT_EQ(has, !(name == std::string("ycsb_c") && kind == std::string("put")) &&
                           !(name == std::string("update") && kind == std::string("get")))
            << name << " " << kind;
        if (!has) continue;
        EXPECT_GT(workload[state][kind]["count"], 0) << name << " " << kind;
        EXPECT_GT(workload[state][kind]["p50_us"], 0) << name << " " << kind;
        EXPECT_GE(workload[state][kind]["p999_us"], workload[state][kind]["p99_us"]) << name << " " << kind;
      }
    }
    EXPECT_EQ(workload["idle"]["bytes_copied"], 0) << name;
    EXPECT_GT(workload["cleaning"]["bytes_copied"], 0) << name;
  }
  EXPECT_GT(results["ratios"]["get_p99"], 0);
  EXPECT_GT(results["ratios"]["put_p99"], 0);
  EXPECT_GT(results["ratios"]["ycsb_a"]["get_p99"], 0);
  EXPECT_TRUE(results["server_cpu_per_get"]["cleaning_ns"].is_number());
  for (const char* share : {"50", "70", "80", "90"}) {
    EXPECT_GT(results["copied_per_freed"][share]["measured"], 0) << share;
    EXPECT_GT(results["copied_per_freed"][share]["ideal"], 0) << share;
  }
}

TEST_F(BenchTest, ImpossibleRunsOfCleaningAreRefused) {
  MakePool();
  ExpectRefused(Run("erda-bench", {"cleaning", "--quick", "--pool", Pool()}), 2, "it has keys already");
  ExpectRefused(Run("erda-bench", {"cleaning", "--fabric", "verbs"}), 2, "needs an --address");
  ExpectRefused(Run("erda-bench", {"cleaning", "--quick", "--value-bytes", "2M"}), 2, "--value-bytes");
  ExpectRefused(Run("erda-bench", {"cleaning", "--quick", "--value-bytes", "1M"}), 2, "such a pool takes");
}

}  // namespace
}  // namespace erda
