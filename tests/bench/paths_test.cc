// Conclusions from the medians of the paths.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "bench/paths/measure.h"
#include "bench/paths/report.h"

namespace erda::paths {
namespace {

// Takes medians; a value below 0 means that the path has none.
void AddRow(Report& report, uint64_t size, double in_request, double reserve, double delegate) {
  Row row;
  row.value_size = size;
  const double medians[] = {in_request, reserve, delegate};
  for (size_t i = 0; i < kPaths.size(); ++i) {
    for (const double off : {-0.01, 0.0, 0.01}) {
      if (medians[i] >= 0) row.samples[i].Add(medians[i] + off);
    }
  }
  row.delegated_share = 1;
  report.rows.push_back(row);
}

TEST(PathsTest, InlineIsFastestUpToTheFirstSlowerSize) {
  Report report;
  EXPECT_EQ(report.InlineIsFastestUpTo(), 0U);
  AddRow(report, 64, 1, 2, 2);
  EXPECT_EQ(report.InlineIsFastestUpTo(), 64U);
  AddRow(report, 128, 2, 1.95, 2);
  EXPECT_EQ(report.InlineIsFastestUpTo(), 128U) << "within what runs differ by";
  AddRow(report, 256, 2, 3, 1.5);
  EXPECT_EQ(report.InlineIsFastestUpTo(), 128U);
  AddRow(report, 512, 2, 3, 4);
  EXPECT_EQ(report.InlineIsFastestUpTo(), 128U);
}

TEST(PathsTest, SizeWithoutAnInlinePutEndsTheRange) {
  Report report;
  AddRow(report, 64, 1, 2, 2);
  EXPECT_FALSE(report.DelegateOverReserve());
  AddRow(report, 100000, -1, 8, 6);
  EXPECT_EQ(report.InlineIsFastestUpTo(), 64U);
  EXPECT_DOUBLE_EQ(report.DelegateOverReserve().value_or(0), 0.75);
  AddRow(report, 200000, -1, 8, 8);
  AddRow(report, 300000, -1, 8, 16);
  EXPECT_DOUBLE_EQ(report.DelegateOverReserve().value_or(0), 1) << "the median of three";
  report.rows.back().delegated_share = 0;
  EXPECT_DOUBLE_EQ(report.DelegateOverReserve().value_or(0), 0.75) << "it was reserved";
}

TEST(PathsTest, TableAndJsonLeaveOutMissingFigures) {
  Report report;
  AddRow(report, 64, 1.25, 2.5, 2);
  AddRow(report, 100000, -1, 8, 6);
  const Settings settings;
  const auto json = ToJson(settings, report);
  EXPECT_EQ(json["rows"][0]["inline"]["median_us"], 1.25);
  EXPECT_FALSE(json["rows"][1].contains("inline"));
  EXPECT_EQ(json["inline_is_fastest_up_to"], 64);
  EXPECT_EQ(json["delegate_over_reserve"], 0.75);
  const std::string table = ToTable(settings, report);
  EXPECT_EQ(table.find("% delegated"), std::string::npos) << table;
  EXPECT_NE(table.find("inline is the fastest up to 64 B\n"), std::string::npos) << table;
  EXPECT_NE(table.find("a request of 16384 B, delegate takes 0.75 times as long as reserve"), std::string::npos)
      << table;
  EXPECT_NE(table.find("  100000          -         -"), std::string::npos) << table;
  report.rows.back().delegated_share = 0.25;
  EXPECT_NE(ToTable(settings, report).find("25 % delegated"), std::string::npos);
}

TEST(PathsTest, PathsOverVerbsNeedAVerbsAddress) {
  Settings settings;
  EXPECT_EQ(CheckSettings(settings), "");
  settings.fabric = "verbs";
  EXPECT_NE(CheckSettings(settings), "");
  settings.address = "shm:/tmp/socket";
  EXPECT_NE(CheckSettings(settings), "");
  settings.address = "verbs://10.9.0.1:7700";
  EXPECT_EQ(CheckSettings(settings), "");
}

}  // namespace
}  // namespace erda::paths
