// kv-leveldb and kv-cuckoo: the logs of PMRAccess in front of two stores.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "paths.h"
#include "programs/fixture.h"

namespace erda {
namespace {

class KvProgramNoSanitizerTest : public ProgramsTest, public testing::WithParamInterface<const char*> {
 protected:
  [[nodiscard]] Ended Kv(const Words& arguments) const {
    Words command = {BinDir() + "/../kv/kv-" + GetParam()};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return Process(command).Wait();
  }
};

TEST_P(KvProgramNoSanitizerTest, MeasuresEachLogWithEachWorkload) {
  const auto ended = Kv({"--folder", Path(""), "--records", "500", "--milliseconds", "20", "--clients", "2"});
  ExpectFine(ended);
  for (const char* workload : {"Load  ", "YCSB-A", "YCSB-B"}) {
    for (const char* access : {"SyncAccess", "GroupAccess", "PMEMAccess", "PMRAccess"}) {
      const size_t at = ended.out.find(std::string(workload) + "    " + access);
      ASSERT_NE(at, std::string::npos) << workload << access << ended.out;
      EXPECT_GT(std::stod(ended.out.substr(at + 22)), 0);
    }
  }
  EXPECT_TRUE(std::filesystem::is_empty(Path("")));
}

TEST_P(KvProgramNoSanitizerTest, ImpossibleRunsAreRefused) {
  EXPECT_EQ(Kv({}).code, 2);
  EXPECT_EQ(Kv({"--folder", Path("nowhere")}).code, 2);
  const auto small = Kv({"--folder", Path(""), "--front-size", "8K", "--clients", "3"});
  EXPECT_EQ(small.code, 2);
  EXPECT_NE(small.err.find("each client needs 4096 bytes"), std::string::npos) << small.err;
}

INSTANTIATE_TEST_SUITE_P(Stores, KvProgramNoSanitizerTest, testing::Values("leveldb", "cuckoo"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace erda
