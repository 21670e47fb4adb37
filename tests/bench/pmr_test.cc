// The report of erda-bench pmr.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "bench/pmr/report.h"
#include "bench/pmr/worker.h"

namespace erda::pmr_bench {
namespace {

Report Measured() {
  Report report;
  report.not_measured[static_cast<size_t>(Path::kPmrDirect)] = "no region";
  Row row;
  row.bytes = 1024;
  for (size_t path = 0; path < 3; ++path) {
    for (const double us : {1.0, 2.0, 9.0}) row.us[path].Add(us * static_cast<double>(path + 1));
    row.ops_per_second[path].Add(2048);
  }
  report.rows.push_back(row);
  return report;
}

TEST(PmrReportTest, JsonLeavesOutPathsThatWereNotMeasured) {
  const auto json = ToJson(Settings(), Measured());
  const auto& row = json["rows"][0];
  EXPECT_EQ(row["bytes"], 1024);
  EXPECT_EQ(row["PMRSync"]["median_us"], 4);
  EXPECT_EQ(row["PMRSync"]["mean_us"], 8);
  EXPECT_EQ(row["PMRSync"]["p99_us"], 18);
  EXPECT_EQ(row["PMRSync"]["mib_per_second"], 2);
  EXPECT_FALSE(row.contains("PMRDirect"));
  EXPECT_EQ(json["not_measured"]["PMRDirect"], "no region");
  EXPECT_EQ(json["not_measured"].size(), 1U);
}

TEST(PmrReportTest, TableSaysWhyAPathIsMissing) {
  const std::string table = ToTable(Settings(), Measured());
  EXPECT_NE(table.find("PMRDirect cannot be measured: no region"), std::string::npos) << table;
  EXPECT_NE(table.find(" 4.00 / 18.00       6.00 / 27.00                  -\n"), std::string::npos) << table;
}

TEST(PmrReportTest, ImmediateHasKindAndSize) {
  EXPECT_EQ(ImmediateOf(Message::kFlushRegion, kBytesMax), 3U << 24 | 65536U);
  EXPECT_EQ(ImmediateOf(Message::kToDisk, 64), 64U);
}

TEST(PmrReportTest, VerbsNeedsAnAddress) {
  Settings settings;
  settings.folder = "/";
  EXPECT_EQ(CheckSettings(settings), "");
  settings.fabric = "verbs";
  EXPECT_NE(CheckSettings(settings), "");
  settings.address = "verbs://10.9.0.1:7700";
  EXPECT_EQ(CheckSettings(settings), "");
}

}  // namespace
}  // namespace erda::pmr_bench
