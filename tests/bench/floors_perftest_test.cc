#include "bench/floors/perftest.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/temporary_folder.h"

namespace erda::floors {
namespace {

constexpr const char* kOutput =
    R"(---------------------------------------------------------------------------------------
                    RDMA_Read Latency Test
 Dual-port       : OFF		Device         : rxe0
 Number of qps   : 1		Transport type : IB
 GID index       : 1
---------------------------------------------------------------------------------------
 local address: LID 0000 QPN 0x0012 PSN 0x5c4b5c OUT 0x80 RKey 0x0004c5 VAddr 0x0055d0a5c3e000
 GID: 00:00:00:00:00:00:00:00:00:00:255:255:10:09:00:01
---------------------------------------------------------------------------------------
 #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] 
 64      1000          20.31          155.31       22.52    	       23.01       	4.31		35.10   		155.31 
---------------------------------------------------------------------------------------
)";

TEST(IbReadLat, TypicalLatencyIsFoundByItsHeading) {
  EXPECT_EQ(TypicalIn(kOutput), 22.52);
  EXPECT_EQ(TypicalIn(""), std::nullopt);
  EXPECT_EQ(TypicalIn("Couldn't connect to 10.9.0.1:18539\n"), std::nullopt);
  EXPECT_EQ(TypicalIn(" #bytes t_typical[usec]\n 64 many\n"), std::nullopt);
}

// A folder that stands for sysfs, or for one in the PATH.
class IbReadLatTest : public testing::Test {
 protected:
  IbReadLatTest() {
    if (const char* path = std::getenv("PATH")) path_ = path;
  }
  ~IbReadLatTest() override { setenv("PATH", path_.c_str(), 1); }

  void AddGid(const std::string& device, int index, const std::string& gid, const std::string& type) const {
    const auto port = folder_ / device / "ports" / "1";
    Write(port / "gids" / std::to_string(index), gid);
    Write(port / "gid_attrs" / "types" / std::to_string(index), type);
  }
  void AddProgram(const std::string& script) const {
    Write(folder_ / "ib_read_lat", "#!/bin/sh\n" + script);
    std::filesystem::permissions(folder_ / "ib_read_lat", std::filesystem::perms::owner_all);
    setenv("PATH", (folder_.path().string() + ":" + path_).c_str(), 1);
  }
  static void Write(const std::filesystem::path& path, const std::string& text) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text << "\n";
  }

  const TemporaryFolder folder_;
  std::string path_;
};

TEST_F(IbReadLatTest, TheDeviceIsTheOneWithTheAddress) {
  AddGid("mlx5_0", 0, "fe80:0000:0000:0000:0000:0000:0000:0001", "RoCE v2");
  AddGid("rxe0", 0, "0000:0000:0000:0000:0000:ffff:0a09:0001", "IB/RoCE v1");
  AddGid("rxe0", 3, "0000:0000:0000:0000:0000:ffff:0a09:0001", "RoCE v2");
  AddGid("rxe0", 4, "fd09:0000:0000:0000:0000:0000:0000:0001", "RoCE v2");
  const auto by_ipv4 = FindDevice(folder_.path(), "10.9.0.1");
  ASSERT_TRUE(by_ipv4);
  EXPECT_EQ(by_ipv4->name, "rxe0");
  EXPECT_EQ(by_ipv4->gid_index, 3);
  const auto by_ipv6 = FindDevice(folder_.path(), "fd09::1");
  ASSERT_TRUE(by_ipv6);
  EXPECT_EQ(by_ipv6->gid_index, 4);
  EXPECT_FALSE(FindDevice(folder_.path(), "10.9.0.2"));
  EXPECT_FALSE(FindDevice(folder_.path(), "a name"));
  EXPECT_FALSE(FindDevice(folder_ / "nothing", "10.9.0.1"));
}

TEST_F(IbReadLatTest, RunsServerAndClient) {
  // The last argument is the host for a client, and the port for a server. The first client comes too early.
  const std::string seen = folder_ / "seen";
  AddProgram("for last; do :; done\necho \"$@\" >> " + seen +
             "\n[ \"$last\" = 10.9.0.1 ] || exit 0\n"
             "[ $(grep -c 10.9.0.1 " +
             seen + ") -gt 1 ] || exit 1\ncat << EOF\n" + kOutput + "EOF");
  const auto us = RunIbReadLat({"rxe0", 3}, "10.9.0.1");
  ASSERT_TRUE(us.ok()) << us.status().ToString();
  EXPECT_EQ(*us, 22.52);
  std::ifstream file(seen);
  std::string line;
  std::getline(file, line);
  EXPECT_EQ(line.find("-d rxe0 -x 3 -s 64 "), 0U) << line;
}

TEST_F(IbReadLatTest, MissingProgramIsReported) {
  setenv("PATH", folder_.path().c_str(), 1);
  const auto us = RunIbReadLat({"rxe0", 3}, "10.9.0.1");
  ASSERT_FALSE(us.ok());
  EXPECT_NE(us.status().message().find("not installed"), std::string_view::npos) << us.status().ToString();
}

TEST_F(IbReadLatTest, FailedProgramIsReportedWithItsDevice) {
  AddProgram("exit 1");
  const auto us = RunIbReadLat({"rxe0", 3}, "10.9.0.1");
  ASSERT_FALSE(us.ok());
  EXPECT_NE(us.status().message().find("device rxe0 with GID index 3"), std::string_view::npos);
}

TEST_F(IbReadLatTest, UnknownOutputIsReported) {
  AddProgram("echo nothing");
  const auto us = RunIbReadLat({"rxe0", 3}, "10.9.0.1");
  ASSERT_FALSE(us.ok());
  EXPECT_NE(us.status().message().find("unknown form"), std::string_view::npos);
}

}  // namespace
}  // namespace erda::floors
