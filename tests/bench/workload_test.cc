#include "bench/ycsb/workload.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace erda::bench {
namespace {

constexpr uint64_t kRecords = 10'000;
constexpr int kOps = 100'000;

class WorkloadTest : public testing::TestWithParam<Workload> {};

TEST_P(WorkloadTest, OperationsHaveTheWorkloadsMix) {
  Inserts inserts(kRecords, kOps);
  OpSource source(GetParam(), kRecords, 1, inserts);
  std::array<int, 4> counts{};
  for (int i = 0; i < kOps; ++i) {
    const Op op = source.Next();
    ++counts.at(static_cast<size_t>(op.kind));
    if (op.kind == OpKind::kInsert) {
      ASSERT_GE(op.record, kRecords);
      inserts.End(op.record);
    } else {
      ASSERT_LT(op.record, inserts.limit());
    }
  }
  const auto expect_percent = [&](OpKind kind, uint32_t percent) {
    const int count = counts[static_cast<size_t>(kind)];
    if (percent == 0 || percent == 100) {
      EXPECT_EQ(count, kOps / 100 * static_cast<int>(percent));
    } else {
      EXPECT_NEAR(count, kOps / 100 * static_cast<int>(percent), kOps / 100);
    }
  };
  const Workload& workload = GetParam();
  expect_percent(OpKind::kUpdate, workload.update_percent);
  expect_percent(OpKind::kInsert, workload.insert_percent);
  expect_percent(OpKind::kReadModifyWrite, workload.rmw_percent);
  expect_percent(OpKind::kGet, workload.get_percent());
}

TEST_P(WorkloadTest, SameSeedGivesTheSameOperations) {
  const auto draw = [](uint64_t seed) {
    Inserts inserts(kRecords, 1000);
    OpSource source(GetParam(), kRecords, seed, inserts);
    std::vector<uint64_t> records(1000);
    for (uint64_t& record : records) record = source.Next().record;
    return records;
  };
  EXPECT_EQ(draw(5), draw(5));
  EXPECT_NE(draw(5), draw(6));
}

INSTANTIATE_TEST_SUITE_P(All, WorkloadTest, testing::ValuesIn(kWorkloads),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(Workload, WorkloadIsFoundByItsName) {
  EXPECT_EQ(FindWorkload("F")->rmw_percent, 50U);
  EXPECT_FALSE(FindWorkload("E").has_value());
  EXPECT_FALSE(FindWorkload("").has_value());
}

TEST(Workload, MixIsDescribedInWords) {
  EXPECT_EQ(MixOf(*FindWorkload("A")), "50% get, 50% update");
  EXPECT_EQ(MixOf(*FindWorkload("D")), "95% get of the latest, 5% insert");
  EXPECT_EQ(MixOf(*FindWorkload("F")), "50% get, 50% read-modify-write");
  EXPECT_EQ(MixOf(*FindWorkload("rmw")), "100% read-modify-write");
}

TEST(Workload, DistributionIsFoundByItsName) {
  for (const auto distribution : {Distribution::kZipfian, Distribution::kUniform, Distribution::kLatest}) {
    EXPECT_EQ(FindDistribution(NameOf(distribution)), distribution);
  }
  EXPECT_FALSE(FindDistribution("hotspot").has_value());
}

TEST(Workload, UniformPrefersNoRecord) {
  constexpr uint64_t kFew = 100;
  Workload workload = *FindWorkload("C");
  workload.distribution = Distribution::kUniform;
  Inserts inserts(kFew, 0);
  OpSource source(workload, kFew, 1, inserts);
  std::vector<int> counts(kFew);
  for (int i = 0; i < kOps; ++i) ++counts.at(source.Next().record);
  const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
  // Each count has a standard deviation of 31.
  EXPECT_GT(*least, kOps / 100 - 5 * 31);
  EXPECT_LT(*most, kOps / 100 + 5 * 31);
}

TEST(Workload, LatestPrefersRecentInserts) {
  Inserts inserts(kRecords, kOps);
  OpSource source(*FindWorkload("D"), kRecords, 1, inserts);
  int gets = 0;
  int newest = 0;
  int newest_hundredth = 0;
  for (int i = 0; i < kOps; ++i) {
    const uint64_t limit = inserts.limit();
    const Op op = source.Next();
    if (op.kind == OpKind::kInsert) {
      inserts.End(op.record);
      continue;
    }
    ++gets;
    if (op.record == limit - 1) ++newest;
    if (op.record >= limit - kRecords / 100) ++newest_hundredth;
  }
  // Zipf's law with 0.99 over 10000 to 15000 records: 10 % for the first rank, 53 % for the first hundred.
  EXPECT_NEAR(newest, gets * 0.10, gets * 0.01);
  EXPECT_NEAR(newest_hundredth, gets * 0.53, gets * 0.03);
}

TEST(Workload, ZipfianPrefersTheSameFewRecords) {
  Inserts inserts(kRecords, 0);
  OpSource source(*FindWorkload("C"), kRecords, 1, inserts);
  std::vector<int> counts(kRecords);
  for (int i = 0; i < kOps; ++i) ++counts[source.Next().record];
  std::sort(counts.rbegin(), counts.rend());
  EXPECT_NEAR(counts[0], kOps * 0.10, kOps * 0.01);
  EXPECT_NEAR(counts[1], kOps * 0.05, kOps * 0.01);
}

TEST(Inserts, LimitWaitsForTheFirstOneMissing) {
  Inserts inserts(10, 100);
  for (uint64_t record = 10; record < 14; ++record) EXPECT_EQ(inserts.Begin(), record);
  EXPECT_EQ(inserts.limit(), 10U);
  inserts.End(11);
  inserts.End(13);
  EXPECT_EQ(inserts.limit(), 10U);
  inserts.End(10);
  EXPECT_EQ(inserts.limit(), 12U);
  inserts.End(12);
  EXPECT_EQ(inserts.limit(), 14U);
}

TEST(Inserts, LimitReachesAllThatManyThreadsInsert) {
  constexpr uint64_t kEach = 50'000;
  constexpr uint64_t kThreads = 4;
  Inserts inserts(1, kEach * kThreads);
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&inserts] {
      for (uint64_t k = 0; k < kEach; ++k) inserts.End(inserts.Begin());
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(inserts.limit(), 1 + kEach * kThreads);
}

TEST(KeyOf, KeysAreDistinctAndHaveTheirForm) {
  std::set<std::string> keys;
  for (uint64_t record = 0; record < 100'000; ++record) {
    const Key key = KeyOf(record);
    const std::string text(AsView(key));
    ASSERT_EQ(text.size(), 24U);
    ASSERT_EQ(text.substr(0, 4), "user");
    ASSERT_TRUE(std::all_of(text.begin() + 4, text.end(), [](char c) { return c >= '0' && c <= '9'; })) << text;
    keys.insert(text);
  }
  EXPECT_EQ(keys.size(), 100'000U);
}

std::string Made(const Values& values, uint64_t record, uint64_t sequence) {
  std::string value(values.value_bytes(), '\0');
  values.Fill(value, record, sequence);
  return value;
}

TEST(Values, CheckAcceptsFilledValues) {
  for (const size_t size : std::initializer_list<size_t>{16, 17, 100, 1024, 100'000}) {
    const Values values(size);
    for (uint64_t record = 0; record < 20; ++record) {
      EXPECT_EQ(values.Check(Made(values, record, record * 7), record), "");
    }
  }
}

TEST(Values, FillMakesSizesBelowTheHeader) {
  for (size_t size = 0; size < Values::kHeaderBytes; ++size) EXPECT_EQ(Made(Values(size), 1, 2).size(), size);
}

TEST(Values, CheckRefusesAnotherKeysValue) {
  const Values values(100);
  EXPECT_NE(values.Check(Made(values, 1, 5), 2), "");
}

TEST(Values, CheckRefusesAnotherSize) {
  const Values values(100);
  EXPECT_NE(values.Check(Made(values, 1, 5).substr(0, 99), 1), "");
  EXPECT_NE(values.Check("", 1), "");
}

TEST(Values, CheckRefusesAnyChangedByte) {
  const Values values(100);
  for (size_t i = 0; i < values.value_bytes(); ++i) {
    std::string value = Made(values, 1, 5);
    value[i] = static_cast<char>(value[i] ^ 1);
    EXPECT_NE(values.Check(value, 1), "") << i;
  }
}

TEST(Values, CheckRefusesAMixOfTwoPuts) {
  const Values values(1024);
  const std::string older = Made(values, 1, 5);
  const std::string newer = Made(values, 1, 6);
  for (size_t cut = Values::kHeaderBytes; cut < older.size(); cut += 8) {
    EXPECT_NE(values.Check(newer.substr(0, cut) + older.substr(cut), 1), "") << cut;
  }
}

}  // namespace
}  // namespace erda::bench
