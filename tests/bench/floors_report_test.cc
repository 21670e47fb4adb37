#include "bench/floors/report.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "base/temporary_folder.h"

namespace erda::floors {
namespace {

// Returns a report. Figure number i has the samples i + 1 (three times) and 100.
Report SmallReport() {
  Report report;
  report.machine = {"lab", "A CPU", 2, "6.1", "hpet"};
  report.address = "verbs://10.9.0.1:7700";
  report.durability = "power-safe";
  report.flush_method = "server-flush";
  report.least_rights = "window";
  report.plan = {8, 1, 2, 2};
  report.clock_ns = 1000;
  for (size_t i = 0; i < kFigures; ++i) {
    for (int n = 0; n < 3; ++n) report.samples[i].Add(static_cast<double>(i + 1));
    report.samples[i].Add(100);
  }
  report.ib_read_lat_note = "not installed";
  return report;
}

TEST(FloorsSamples, EachPercentileIsOneOfTheSamples) {
  Samples samples;
  for (const double us : {5.0, 1.0, 4.0, 2.0, 3.0}) samples.Add(us);
  EXPECT_EQ(samples.count(), 5U);
  EXPECT_EQ(samples.median(), 3.0);
  EXPECT_EQ(samples.Percentile(20), 1.0);
  EXPECT_EQ(samples.Percentile(21), 2.0);
  EXPECT_EQ(samples.Percentile(0), 1.0);
  EXPECT_EQ(samples.Percentile(100), 5.0);
  EXPECT_EQ(samples.p99(), 5.0);
}

TEST(FloorsReport, RatiosAreOfTheMedians) {
  const Ratios ratios = SmallReport().ratios(Settings());
  EXPECT_DOUBLE_EQ(ratios.get_cold, 3.0 / (1.0 + 2.0));
  EXPECT_DOUBLE_EQ(ratios.put_bare, 5.0 / 4.0);
  EXPECT_DOUBLE_EQ(ratios.put_inline, 6.0 / 4.0);
  EXPECT_DOUBLE_EQ(ratios.put_reserve, 8.0 / (4.0 + 7.0));
  EXPECT_DOUBLE_EQ(ratios.put_delegate, 15.0 / 14.0);
  EXPECT_DOUBLE_EQ(ratios.trust, 17.0 / 16.0);
  EXPECT_DOUBLE_EQ(ratios.get_warm, 10.0 / 2.0);
  EXPECT_DOUBLE_EQ(ratios.get_rate, 11.0 / 12.0);
  EXPECT_DOUBLE_EQ(ratios.get_memory.value(), 10.0 / 13.0);
  EXPECT_DOUBLE_EQ(ratios.worst(), 5.0);
  Settings settings;
  settings.fabric = "verbs";
  EXPECT_FALSE(SmallReport().ratios(settings).get_memory);
}

TEST(FloorsReport, IbReadLatIsComparedWithTheSmallRead) {
  Report report = SmallReport();
  EXPECT_FALSE(report.ib_read_lat_ratio());
  report.ib_read_lat_us = 0.8;
  EXPECT_DOUBLE_EQ(report.ib_read_lat_ratio().value(), 1.25);
}

TEST(FloorsReport, JsonHasTheDocumentedFields) {
  Settings settings;
  settings.fabric = "verbs";
  settings.pool = "/dev/dax0.0";
  settings.value_bytes = 1024;
  const auto json = ToJson(settings, SmallReport());
  EXPECT_EQ(json["machine"]["name"], "lab");
  EXPECT_EQ(json["machine"]["cpus"], 2);
  EXPECT_EQ(json["machine"]["clock"], "hpet");
  EXPECT_EQ(json["fabric"], "verbs");
  EXPECT_EQ(json["address"], "verbs://10.9.0.1:7700");
  EXPECT_EQ(json["pool"], "/dev/dax0.0");
  EXPECT_EQ(json["durability"], "power-safe");
  EXPECT_EQ(json["flush_method"], "server-flush");
  EXPECT_EQ(json["least_rights"], "window");
  EXPECT_EQ(json["value_size"], 1024);
  EXPECT_EQ(json["delegated_value_size"], 16384);
  EXPECT_EQ(json["ops"], 32);
  EXPECT_EQ(json["rounds"], 2);
  EXPECT_EQ(json["block_ops"], 8);
  double expected = 1;
  for (const char* figure :
       {"raw_read_64", "raw_read_object", "get_cold", "raw_ping_pong", "raw_put_work", "put_inline", "raw_write_flush",
        "put_reserve", "delete", "get_warm", "raw_reads_deep", "gets_deep", "memory_work", "raw_write_ask",
        "put_delegate", "put_trusted", "put_guarded"}) {
    EXPECT_EQ(json["figures"][figure]["median_us"], expected++) << figure;
    EXPECT_EQ(json["figures"][figure]["p99_us"], 100.0) << figure;
    EXPECT_EQ(json["figures"][figure]["blocks"], 4) << figure;
  }
  EXPECT_EQ(json["figures"].size(), kFigures);
  EXPECT_EQ(json["ratios"]["get_cold"], 1.0);
  EXPECT_EQ(json["ratios"]["put_bare"], 1.25);
  EXPECT_EQ(json["ratios"]["put_inline"], 1.5);
  EXPECT_EQ(json["ratios"]["put_reserve"], 8.0 / 11.0);
  EXPECT_EQ(json["ratios"]["put_delegate"], 15.0 / 14.0);
  EXPECT_EQ(json["ratios"]["trust"], 17.0 / 16.0);
  EXPECT_EQ(json["ratios"]["get_warm"], 5.0);
  EXPECT_EQ(json["ratios"]["get_rate"], 11.0 / 12.0);
  EXPECT_TRUE(json["ratios"]["get_memory"].is_null());
  EXPECT_TRUE(json["ib_read_lat_us"].is_null());
  EXPECT_TRUE(json["ib_read_lat_ratio"].is_null());
  EXPECT_EQ(json["ib_read_lat_note"], "not installed");
}

TEST(FloorsReport, JsonHasIbReadLatIfItRan) {
  Report report = SmallReport();
  report.ib_read_lat_us = 0.5;
  report.ib_read_lat_note.clear();
  const auto json = ToJson(Settings(), report);
  EXPECT_EQ(json["ib_read_lat_us"], 0.5);
  EXPECT_EQ(json["ib_read_lat_ratio"], 2.0);
  EXPECT_FALSE(json.contains("ib_read_lat_note"));
}

TEST(FloorsReport, TableNamesTheMeasurementAndTheMachine) {
  const std::string table = ToTable(Settings(), SmallReport());
  for (const char* part :
       {"lab: 2 x A CPU, Linux 6.1, clock hpet", "server-flush", "32 operations of each kind in 2 rounds", "get, cold",
        "put, reserve", "raw WriteImm of 148 B, and of 64 B back", "1.25", "ib_read_lat: not installed"}) {
    EXPECT_NE(table.find(part), std::string::npos) << part << " is not in\n" << table;
  }
  Report report = SmallReport();
  report.ib_read_lat_us = 0.5;
  EXPECT_NE(ToTable(Settings(), report).find("the raw Read takes 2.00 times that"), std::string::npos);
}

TEST(FloorsReport, ThisMachineHasAName) {
  const Machine machine = ThisMachine();
  EXPECT_NE(machine.name, "");
  EXPECT_NE(machine.kernel, "");
  EXPECT_GT(machine.cpus, 0U);
}

class AtomicFileTest : public testing::Test {
 protected:
  [[nodiscard]] size_t Files() const {
    const std::filesystem::directory_iterator begin(folder_.path());
    return static_cast<size_t>(std::distance(begin, std::filesystem::directory_iterator()));
  }
  const TemporaryFolder folder_;
};

TEST_F(AtomicFileTest, WritingReplacesAnExistingFile) {
  const std::string path = folder_ / "results.json";
  for (const std::string content : {"a longer text", "short"}) {
    ASSERT_TRUE(WriteFileAtomically(path, content).ok());
    std::ifstream file(path);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), content);
  }
  EXPECT_EQ(Files(), 1U);
}

TEST_F(AtomicFileTest, FailedWriteLeavesNoFile) {
  std::filesystem::create_directory(folder_ / "taken");
  const Status status = WriteFileAtomically(folder_ / "taken", "text");
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find("taken"), std::string_view::npos);
  EXPECT_EQ(Files(), 1U);
  EXPECT_FALSE(WriteFileAtomically(folder_ / "no such folder" / "file", "text").ok());
}

}  // namespace
}  // namespace erda::floors
