// erda-bench pmr: four ways to make bytes persistent at a server.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "format/superblock.h"
#include "journal/front_part.h"
#include "programs/fixture.h"

namespace erda {
namespace {

using nlohmann::json;

class PmrBenchTest : public ProgramsTest {
 protected:
  [[nodiscard]] Ended Pmr(const Words& more) const {
    std::filesystem::create_directories(Path("disk"));
    Words all = {"pmr",       "--folder", Path("disk"),    "--rounds", "2",  "--ops", "20",     "--milliseconds", "5",
                 "--clients", "2",        "--value-bytes", "5000",     "64", "65536", "--json", Path("json")};
    all.insert(all.end(), more.begin(), more.end());
    return Run("erda-bench", all);
  }
};

TEST_F(PmrBenchTest, MeasuresAllPathsOverShm) {
  WriteFile(Path("nvm"), std::string(1 << 20, '\0'));
  WriteFile(Path("region"), std::string(1 << 20, '\0'));
  const auto ended = Pmr({"--nvm", Path("nvm"), "--region", Path("region")});
  ExpectFine(ended);
  EXPECT_TRUE(std::filesystem::is_empty(Path("disk")));
  const json report = json::parse(ReadFile(Path("json")), nullptr, false);
  ASSERT_TRUE(report.is_object());
  EXPECT_EQ(report["flush"], "server");
  EXPECT_TRUE(report["not_measured"].empty());
  ASSERT_EQ(report["rows"].size(), 3U);
  EXPECT_EQ(report["rows"][1]["bytes"], 5000);
  for (const auto& row : report["rows"]) {
    for (const char* path : {"SSDSync", "PMRSync", "PMEMDirect", "PMRDirect"}) {
      EXPECT_GT(row[path]["median_us"], 0) << path;
      EXPECT_GT(row[path]["ops_per_second"], 0) << path;
    }
  }
  // Both kinds of paths leave the bytes of the payload, in the area of each client, and not after it.
  for (const char* name : {"nvm", "region"}) {
    const std::string bytes = ReadFile(Path(name));
    EXPECT_EQ(bytes.substr(0, 2 * 65536), std::string(2 * 65536, 'v')) << name;
    EXPECT_EQ(bytes[2 * 65536], '\0') << name;
  }
}

TEST_F(PmrBenchTest, ReadCanFlush) {
  const auto ended = Pmr({"--flush", "read"});
  ExpectFine(ended);
  EXPECT_NE(ended.out.find("flushed by a Read"), std::string::npos) << ended.out;
}

TEST_F(PmrBenchTest, ImpossibleRunsAreRefused) {
  ExpectRefused(Run("erda-bench", {"pmr"}), 2, "--folder");
  ExpectRefused(Run("erda-bench", {"pmr", "--folder", Path("nowhere")}), 2, "is no folder");
  ExpectRefused(Pmr({"--nvm", Path("nowhere")}), 1, "front " + Path("nowhere"));
  WriteFile(Path("small"), std::string(100'000, '\0'));
  ExpectRefused(Pmr({"--region", Path("small")}), 2, "131072 are needed");
  ExpectRefused(Pmr({"--value-bytes", "65537"}), 2, "--value-bytes");
}

TEST_F(PmrBenchTest, MemoryWithDataOfErdaIsRefused) {
  std::string pool(1 << 20, '\0');
  std::memcpy(pool.data(), &format::kPoolMagic, sizeof(format::kPoolMagic));
  journal::FrontHeader header{};
  header.magic = journal::kFrontMagic;
  std::string own(1 << 20, '\0');
  std::memcpy(own.data(), &header, sizeof(header));
  header.uuid = {1};
  std::string front(1 << 20, '\0');
  std::memcpy(front.data(), &header, sizeof(header));
  for (const std::string& bytes : {pool, front}) {
    WriteFile(Path("memory"), bytes);
    ExpectRefused(Pmr({"--nvm", Path("memory")}), 2, "has data of Erda");
    EXPECT_EQ(ReadFile(Path("memory")), bytes);
  }
  WriteFile(Path("memory"), own);  // Of kv-leveldb or kv-cuckoo.
  ExpectFine(Pmr({"--nvm", Path("memory")}));
}

}  // namespace
}  // namespace erda
