#include "bench/cleaning/report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace erda::cleaning {
namespace {

Measured Workload(const char* name, uint64_t get_ratio, uint64_t put_ratio) {
  Measured measured{name, name, {}};
  for (const State state : kStates) {
    const bool cleaning = state == State::kCleaning;
    Slices& slices = measured.Of(state);
    slices.seconds = 2;
    slices.cleaner_seconds = cleaning ? 1 : 0;
    if (cleaning) slices.cleaned = {100, 6000, 10000, 7};
    for (int i = 0; i < 100; ++i) {
      if (get_ratio > 0) slices.get.Record(1000 * (cleaning ? get_ratio : 1));
      if (put_ratio > 0) slices.put.Record(1000 * (cleaning ? put_ratio : 1));
    }
  }
  return measured;
}

Report SmallReport() {
  Report report;
  report.machine = {"lab", "A CPU", 2, "6.1", "hpet"};
  report.address = "shm:/socket";
  report.durability = "volatile";
  report.flush_method = "none";
  report.log_bytes = 60 << 20;
  report.region_bytes = 1 << 20;
  report.keys = 1000;
  report.workloads = {Workload("ycsb_a", 2, 3), Workload("ycsb_b", 1, 5), Workload("ycsb_c", 4, 0),
                      Workload("update", 0, 4)};
  report.shard_time = {{{1000, 2, 1, 4, 2}, {1000, 2, 1, 4, 1}}};
  for (const uint64_t share : kShares) report.copying.push_back({share, {10, share, 100, 0}});
  return report;
}

TEST(CleaningReport, RatiosAreOfP99CleaningOverIdle) {
  const Report report = SmallReport();
  EXPECT_NEAR(report.workloads[0].GetRatio().value(), 2, 0.01);
  EXPECT_NEAR(report.workloads[0].PutRatio().value(), 3, 0.01);
  EXPECT_FALSE(report.workloads[2].PutRatio());
  EXPECT_FALSE(report.workloads[3].GetRatio());
  EXPECT_NEAR(report.GetRatio(), 2, 0.01);  // The median of 2, 1 and 4.
  EXPECT_NEAR(report.PutRatio(), 4, 0.01);  // The median of 3, 5 and 4.
}

TEST(CleaningReport, TimePerGetIsTheShardsAdditionalTime) {
  const Report report = SmallReport();
  EXPECT_DOUBLE_EQ(report.shard_time[0].PerGet(), 0);
  EXPECT_DOUBLE_EQ(report.shard_time[1].PerGet(), 0.5e9 / 1000);
  EXPECT_EQ(ShardTime().PerGet(), 0);
}

TEST(CleaningReport, CopiedPerFreedCountsTheGain) {
  EXPECT_DOUBLE_EQ((Cleaned{1, 80, 100, 0}).CopiedPerFreed(), 4);
  EXPECT_DOUBLE_EQ((Copying{80, {}}).ideal(), 4);
  EXPECT_EQ(Cleaned().CopiedPerFreed(), 0);
}

TEST(CleaningReport, StatesMustMatchTheirNames) {
  EXPECT_EQ(WhatIsWrong(SmallReport()), "");
  Report report = SmallReport();
  report.workloads[1].Of(State::kCleaning).cleaned = {};
  EXPECT_NE(WhatIsWrong(report).find("copied nothing in the cleaning slices of ycsb_b"), std::string::npos);
  report = SmallReport();
  report.workloads[2].Of(State::kIdle).cleaned.copied = 120;  // Of 6000: still little.
  EXPECT_EQ(WhatIsWrong(report), "");
  report.workloads[2].Of(State::kIdle).cleaned.copied = 121;
  EXPECT_NE(WhatIsWrong(report).find("not idle in the idle slices of ycsb_c"), std::string::npos);
  report = SmallReport();
  report.workloads[0].Of(State::kIdle).cleaned.regions = 3;
  EXPECT_NE(WhatIsWrong(report).find("it cleaned 3 regions"), std::string::npos);
  report = SmallReport();
  report.copying[3].cleaned = {};
  EXPECT_NE(WhatIsWrong(report).find("with 90 % live"), std::string::npos);
}

TEST(CleaningReport, JsonHasTheDocumentedFields) {
  Settings settings;
  settings.rounds = 24;
  const auto json = ToJson(settings, SmallReport());
  EXPECT_EQ(json["machine"]["name"], "lab");
  EXPECT_EQ(json["fabric"], "shm");
  EXPECT_EQ(json["value_bytes"], 1024);
  EXPECT_EQ(json["live"], 70);
  EXPECT_EQ(json["rounds"], 24);
  EXPECT_EQ(json["workloads"].size(), 4U);
  const auto& cleaning = json["workloads"]["ycsb_a"]["cleaning"];
  EXPECT_EQ(cleaning["get"]["count"], 100);
  EXPECT_NEAR(cleaning["get"]["p99_us"], 2, 0.01);
  EXPECT_NEAR(cleaning["get"]["mean_us"], 2, 0.01);
  for (const char* field : {"mean_us", "p50_us", "p90_us", "p99_us", "p999_us"}) {
    EXPECT_GT(cleaning["put"][field], 0) << field;
  }
  EXPECT_EQ(cleaning["cleaner_busy"], 0.5);
  EXPECT_EQ(cleaning["regions_cleaned"], 100);
  EXPECT_EQ(cleaning["bytes_copied"], 6000);
  EXPECT_EQ(cleaning["bytes_freed"], 10000);
  EXPECT_EQ(cleaning["puts_delayed"], 7);
  EXPECT_FALSE(json["workloads"]["ycsb_c"]["idle"].contains("put"));
  EXPECT_FALSE(json["workloads"]["update"]["idle"].contains("get"));
  EXPECT_NEAR(json["ratios"]["get_p99"], 2, 0.01);
  EXPECT_NEAR(json["ratios"]["put_p99"], 4, 0.01);
  EXPECT_NEAR(json["ratios"]["ycsb_c"]["get_p99"], 4, 0.01);
  EXPECT_FALSE(json["ratios"]["ycsb_c"].contains("put_p99"));
  EXPECT_EQ(json["server_cpu_per_get"]["idle_ns"], 0);
  EXPECT_GT(json["server_cpu_per_get"]["cleaning_ns"], 0);
  EXPECT_EQ(json["copied_per_freed"].size(), kShares.size());
  EXPECT_DOUBLE_EQ(json["copied_per_freed"]["80"]["measured"], 4);
  EXPECT_DOUBLE_EQ(json["copied_per_freed"]["80"]["ideal"], 4);
}

TEST(CleaningReport, TableNamesTheMeasurement) {
  const std::string table = ToTable(Settings(), SmallReport());
  for (const char* part : {"lab: 2 x A CPU", "70 % of the log", "median of the workloads: get 2.00, put 4.00",
                           "idle 0.0 ns, cleaning 500000.0 ns", "80 %"}) {
    EXPECT_NE(table.find(part), std::string::npos) << part << " is not in\n" << table;
  }
}

}  // namespace
}  // namespace erda::cleaning
