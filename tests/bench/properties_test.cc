#include "bench/ycsb/properties.h"

#include <gtest/gtest.h>

#include <fstream>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/floors/temporary_folder.h"
#include "bench/ycsb/workload.h"

namespace erda::bench {
namespace {

using Options = std::vector<std::pair<std::string, std::string>>;

Properties PropertiesOf(std::initializer_list<std::string_view> assignments) {
  Properties properties;
  for (const std::string_view assignment : assignments) EXPECT_TRUE(properties.Add(assignment).ok()) << assignment;
  return properties;
}

TranslatedProperties Translated(std::initializer_list<std::string_view> assignments) {
  auto translated = Translate(PropertiesOf(assignments));
  EXPECT_TRUE(translated.ok()) << translated.status().ToString();
  return translated.ok() ? *std::move(translated) : TranslatedProperties();
}

std::string Refusal(std::initializer_list<std::string_view> assignments) {
  const auto translated = Translate(PropertiesOf(assignments));
  EXPECT_EQ(translated.status().code(), Code::kInvalidArgument);
  return std::string(translated.status().message());
}

class PropertyFileTest : public testing::Test {
 protected:
  Status Read(const std::string& text) {
    const std::string path = folder_.path() + "/workload";
    std::ofstream(path) << text;
    return properties_.AddFile(path);
  }

  const floors::TemporaryFolder folder_;
  Properties properties_;
};

TEST_F(PropertyFileTest, FileHasAssignmentsAndComments) {
  ASSERT_TRUE(Read("# YCSB\n! more\n\n recordcount = 1000 \r\nworkload=core\nempty=\n").ok());
  EXPECT_EQ(properties_.all().size(), 3U);
  EXPECT_EQ(properties_.Value("recordcount", ""), "1000");
  EXPECT_EQ(properties_.Value("workload", ""), "core");
  EXPECT_EQ(properties_.Value("empty", "x"), "");
  EXPECT_EQ(properties_.Value("none", "x"), "x");
}

TEST_F(PropertyFileTest, LaterAssignmentsReplaceEarlierOnes) {
  ASSERT_TRUE(Read("recordcount=1\n").ok());
  ASSERT_TRUE(properties_.Add("recordcount=2").ok());
  EXPECT_EQ(properties_.Value("recordcount", ""), "2");
}

TEST_F(PropertyFileTest, FaultHasItsFileAndLine) {
  EXPECT_NE(Read("# a\nrecordcount 1000\n").message().find("workload, line 2: 'recordcount 1000'"), std::string::npos);
  EXPECT_NE(properties_.AddFile(folder_.path() + "/none").message().find("/none: No such file"), std::string::npos);
  EXPECT_EQ(properties_.Add("=1").code(), Code::kInvalidArgument);
}

TEST(TranslateProperties, CountsAreOptions) {
  EXPECT_EQ(Translated({"recordcount=1", "operationcount=2", "threadcount=3", "maxexecutiontime=4"}).options,
            (Options{{"--records", "1"}, {"--operations", "2"}, {"--threads", "3"}, {"--seconds", "4"}}));
  EXPECT_EQ(Translated({"maxexecutiontime=0"}).options, Options());
  EXPECT_EQ(Translated({"dataintegrity=true"}).options, (Options{{"--verify", "true"}}));
  EXPECT_EQ(Translated({"dataintegrity=false"}).options, Options());
}

TEST(TranslateProperties, FieldsTogetherAreTheValue) {
  EXPECT_EQ(Translated({"fieldcount=4", "fieldlength=16"}).options, (Options{{"--value-size", "64"}}));
  EXPECT_EQ(Translated({"fieldlength=50"}).options, (Options{{"--value-size", "500"}}));
  EXPECT_EQ(Translated({"fieldcount=1"}).options, (Options{{"--value-size", "100"}}));
  EXPECT_NE(Refusal({"fieldcount=many"}).find("fieldcount"), std::string::npos);
}

TEST(TranslateProperties, ProportionsAreAWorkload) {
  const auto a = Translated({"readproportion=0.5", "updateproportion=0.5", "requestdistribution=zipfian"});
  EXPECT_EQ(a.workload->name, "A");
  EXPECT_EQ(a.workload->update_percent, 50U);
  EXPECT_EQ(a.workload->distribution, Distribution::kZipfian);
  const auto d =
      Translated({"readproportion=0.95", "updateproportion=0", "insertproportion=0.05", "requestdistribution=latest"});
  EXPECT_EQ(d.workload->name, "D");
  EXPECT_EQ(d.workload->insert_percent, 5U);
  EXPECT_EQ(d.workload->distribution, Distribution::kLatest);
  const auto f = Translated({"readproportion=0.5", "updateproportion=0", "readmodifywriteproportion=0.5"});
  EXPECT_EQ(f.workload->name, "F");
  EXPECT_EQ(f.workload->rmw_percent, 50U);
  EXPECT_EQ(f.workload->distribution, Distribution::kUniform);
  // Weights need not have the sum 1.
  const auto custom = Translated({"readproportion=6", "updateproportion=2", "insertproportion=2"});
  EXPECT_EQ(custom.workload->name, "custom");
  EXPECT_EQ(custom.workload->get_percent(), 60U);
  EXPECT_EQ(custom.workload->update_percent, 20U);
  EXPECT_EQ(custom.workload->insert_percent, 20U);
}

TEST(TranslateProperties, MissingProportionsAreThoseOfTheCoreWorkload) {
  EXPECT_FALSE(Translated({"recordcount=1"}).workload.has_value());
  const auto reads = Translated({"updateproportion=0.05"});
  EXPECT_EQ(reads.workload->name, "B");
  const auto only = Translated({"requestdistribution=uniform"});
  EXPECT_FALSE(only.workload.has_value());
  EXPECT_EQ(only.distribution, Distribution::kUniform);
}

TEST(TranslateProperties, ScansAreRefusedWithAReason) {
  EXPECT_NE(Refusal({"readproportion=0", "updateproportion=0", "scanproportion=0.95", "insertproportion=0.05"})
                .find("scanproportion=0.95: erda-ycsb has no scans: Erda finds keys by their hash"),
            std::string::npos);
  EXPECT_TRUE(Translated({"scanproportion=0", "maxscanlength=100"}).unused.empty());
}

TEST(TranslateProperties, WorkThatIsNotPossibleIsRefused) {
  for (const std::string_view assignment :
       {"workload=site.ycsb.workloads.TimeSeriesWorkload", "insertorder=ordered", "fieldlengthdistribution=zipfian",
        "target=1000", "insertstart=5", "insertcount=7", "requestdistribution=hotspot", "readproportion=x",
        "readproportion=-1", "dataintegrity=maybe"}) {
    EXPECT_NE(Refusal({assignment}).find(assignment), std::string::npos) << assignment;
  }
  EXPECT_NE(Refusal({"readproportion=0.995", "updateproportion=0.005"}).find("99.5 %"), std::string::npos);
  EXPECT_NE(Refusal({"readproportion=0", "updateproportion=0"}).find("all 0"), std::string::npos);
}

TEST(TranslateProperties, OtherNamesAreReported) {
  EXPECT_EQ(Translated({"redis.host=here", "readallfields=true", "workload=core"}).unused,
            std::vector<std::string>{"redis.host"});
}

}  // namespace
}  // namespace erda::bench
