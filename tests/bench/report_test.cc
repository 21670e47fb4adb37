#include "bench/ycsb/report.h"

#include <gtest/gtest.h>

#include <chrono>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>

#include "tools/shared/progress.h"

namespace erda::bench {
namespace {

Settings SettingsFor(std::string_view workload) {
  Settings settings;
  settings.workload = *FindWorkload(workload);
  settings.records = 10;
  settings.operations = 4;
  return settings;
}

Report SmallReport() {
  Report report;
  report.load = {10, 0.5};
  report.run = {4, 2.0, 0.75};
  report.records = 12;
  for (const uint64_t ns : std::initializer_list<uint64_t>{1000, 2000, 1500}) report.measured.get.Record(ns);
  report.measured.put.Record(1800);
  report.nvm_bytes = {400, 300};
  return report;
}

TEST(Report, JsonHasTheDocumentedFields) {
  const auto json = ToJson(SettingsFor("A"), SmallReport());
  EXPECT_EQ(json["workload"], "A");
  EXPECT_EQ(json["records"], 10);
  EXPECT_EQ(json["operations"], 4);
  EXPECT_EQ(json["value_size"], 1024);
  EXPECT_EQ(json["threads"], 1);
  EXPECT_EQ(json["depth"], 1);
  EXPECT_EQ(json["load"]["seconds"], 0.5);
  EXPECT_EQ(json["load"]["ops_per_second"], 20.0);
  EXPECT_EQ(json["run"]["ops_per_second"], 2.0);
  EXPECT_EQ(json["run"]["get"]["count"], 3);
  EXPECT_EQ(json["run"]["get"]["p50_ns"], 1500);
  EXPECT_EQ(json["run"]["get"]["max_ns"], 2000);
  EXPECT_EQ(json["run"]["get"]["mean_ns"], 1500.0);
  for (const char* field : {"p90_ns", "p99_ns", "p999_ns"}) EXPECT_EQ(json["run"]["put"][field], 1800) << field;
  EXPECT_FALSE(json["run"].contains("rmw"));
  EXPECT_EQ(json["scheme"], "erda");
  EXPECT_EQ(json["run"]["nvm_bytes"], 700);
  EXPECT_EQ(json["run"]["nvm_bytes_server"], 400);
  EXPECT_EQ(json["run"]["nvm_bytes_clients"], 300);
  EXPECT_FALSE(json["run"].contains("server_cpu_seconds"));
  EXPECT_EQ(json["not_found"], 0);
  EXPECT_EQ(json["failures"], 0);
  EXPECT_EQ(json["records_after"], 12);
  EXPECT_EQ(json["distribution"], "zipfian");
  EXPECT_EQ(json["run"]["operations"], 4);
}

TEST(Report, ReportHasTheSlowestThreadsShare) {
  Settings settings = SettingsFor("A");
  EXPECT_EQ(ToJson(settings, SmallReport())["run"]["slowest_share"], 0.75);
  EXPECT_EQ(ToTable(settings, SmallReport()).find("slowest"), std::string::npos);  // There is one thread.
  settings.threads = 2;
  EXPECT_NE(ToTable(settings, SmallReport()).find("the slowest had done 0.75 of its share"), std::string::npos);
}

TEST(Report, JsonHasReadModifyWritesForTheirWorkloadOnly) {
  EXPECT_TRUE(ToJson(SettingsFor("F"), SmallReport())["run"].contains("rmw"));
  EXPECT_TRUE(ToJson(SettingsFor("rmw"), SmallReport())["run"].contains("rmw"));
}

TEST(Report, ReportHasTheServersTimeIfItWasMeasured) {
  Report report = SmallReport();
  report.server_cpu_seconds = 0.5;
  EXPECT_EQ(ToJson(SettingsFor("A"), report)["run"]["server_cpu_seconds"], 0.5);
  EXPECT_NE(ToTable(SettingsFor("A"), report).find("0.500 s, 125000.000 us for each"), std::string::npos);
  EXPECT_EQ(ToTable(SettingsFor("A"), SmallReport()).find("processor time"), std::string::npos);
}

TEST(Report, ReportNamesAnotherScheme) {
  Settings settings = SettingsFor("A");
  EXPECT_EQ(ToTable(settings, SmallReport()).find("scheme"), std::string::npos);
  settings.scheme = "redo";
  EXPECT_TRUE(ToTable(settings, SmallReport()).starts_with("scheme redo\n"));
  EXPECT_EQ(ToJson(settings, SmallReport())["scheme"], "redo");
}

TEST(Report, TableNamesWritersAndTheDistribution) {
  Settings settings = SettingsFor("A");
  settings.workload.distribution = Distribution::kUniform;
  EXPECT_NE(ToTable(settings, SmallReport()).find("50% update, uniform\n"), std::string::npos);
  settings.threads = 3;
  settings.writers = 1;
  EXPECT_TRUE(ToTable(settings, SmallReport()).starts_with("1 of the threads update, the others get, uniform\n"));
  EXPECT_EQ(ToJson(settings, SmallReport())["workload"], "writers");
  EXPECT_EQ(ToJson(settings, SmallReport())["distribution"], "uniform");
}

TEST(Report, LoadAloneHasNoRun) {
  Settings settings = SettingsFor("A");
  settings.run = false;
  const std::string table = ToTable(settings, SmallReport());
  EXPECT_NE(table.find("\nload"), std::string::npos);
  EXPECT_EQ(table.find("\nrun"), std::string::npos);
}

TEST(Report, TableShowsOnlyMeasuredFigures) {
  Settings settings = SettingsFor("A");
  const std::string table = ToTable(settings, SmallReport());
  EXPECT_NE(table.find("workload A: 50% get, 50% update"), std::string::npos);
  EXPECT_NE(table.find("\nload"), std::string::npos);
  EXPECT_NE(table.find("2 ops/s"), std::string::npos);
  EXPECT_NE(table.find("1.50"), std::string::npos);
  EXPECT_NE(table.find("NVM bytes written: 700, 175.0 for each operation"), std::string::npos);
  EXPECT_EQ(table.find("rmw"), std::string::npos);
  EXPECT_EQ(table.find("found nothing"), std::string::npos);
  settings.load = false;
  EXPECT_EQ(ToTable(settings, SmallReport()).find("\nload"), std::string::npos);
}

TEST(Progress, LineShowsPartRateAndRemainingTime) {
  using std::chrono::seconds;
  using tools::ProgressLine;
  EXPECT_EQ(ProgressLine("run", 0, 100, seconds(1)), "run [------------------------------]   0%");
  EXPECT_EQ(ProgressLine("run", 50, 200, seconds(2)), "run [#######-----------------------]  25%  25 ops/s, 6 s left");
  EXPECT_EQ(ProgressLine("run", 100, 100, seconds(4)), "run [##############################] 100%  25 ops/s, 0 s left");
}

TEST(Failures, FailuresKeepTheFirstMessage) {
  Failures failures;
  EXPECT_FALSE(failures.any());
  failures.Add("first");
  failures.Add("second");
  EXPECT_TRUE(failures.any());
  EXPECT_EQ(failures.count(), 2U);
  EXPECT_EQ(failures.first(), "first");
}

}  // namespace
}  // namespace erda::bench
