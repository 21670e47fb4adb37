#include "nvm/front.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "base/bytes.h"
#include "nvm/fake_pmr.h"
#include "nvm/fixture.h"
#include "nvm/writer.h"

namespace erda::nvm {
namespace {

testing::AssertionResult FrontRefuses(const FrontOptions& options, Code code, std::string_view part) {
  const auto front = OpenFront(options);
  if (front.ok()) return testing::AssertionFailure() << options.address << " was opened";
  const std::string_view message = front.status().message();
  const bool names_both =
      message.find("front " + options.address) != message.npos && message.find(part) != message.npos;
  if (front.status().code() == code && names_both) return testing::AssertionSuccess();
  return testing::AssertionFailure() << front.status().ToString();
}

std::unique_ptr<Pool> MustOpenFront(const FrontOptions& options) {
  auto front = OpenFront(options);
  EXPECT_TRUE(front.ok()) << front.status().ToString();
  return front.ok() ? *std::move(front) : nullptr;
}

// --- Files

using FrontTest = PoolTest;

TEST_F(FrontTest, MissingFileIsNotFound) {
  EXPECT_TRUE(FrontRefuses({.address = Path("none")}, Code::kNotFound, "No such file"));
  EXPECT_TRUE(FrontRefuses({.address = "pmr:" + Path("none")}, Code::kNotFound, "No such file"));
  EXPECT_FALSE(Exists("none"));
}

TEST_F(FrontTest, OrdinaryFileIsRefusedUnlessAskedFor) {
  WriteFile("front", std::string(8192, 'x'));
  EXPECT_TRUE(FrontRefuses({.address = Path("front")}, Code::kInvalidArgument, "a power cut can take its bytes"));
  const auto front = MustOpenFront({.address = Path("front"), .any_file = true});
  ASSERT_NE(front, nullptr);
  EXPECT_EQ(front->size(), 8192U);
  EXPECT_EQ(AsString(front->bytes().first(4)), "xxxx");
}

TEST_F(FrontTest, FrontThatIsTooSmallIsRefused) {
  WriteFile("front", std::string(8192, 'x'));
  EXPECT_TRUE(FrontRefuses({.address = Path("front"), .least_size = 8193, .any_file = true}, Code::kInvalidArgument,
                           "has 8192 bytes, and 8193 are needed"));
  EXPECT_NE(MustOpenFront({.address = Path("front"), .least_size = 8192, .any_file = true}), nullptr);
}

TEST_F(FrontTest, FrontOfAnotherServerIsRefused) {
  WriteFile("front", std::string(8192, 'x'));
  const FrontOptions options{.address = Path("front"), .any_file = true};
  const auto front = MustOpenFront(options);
  EXPECT_TRUE(FrontRefuses(options, Code::kUnavailable, "another server"));
}

// libpmem reads the variable when it is loaded, so the statement runs in a new process, which inherits it.
TEST(FrontDeathTest, FileOfNvmIsTaken) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  ASSERT_EQ(::setenv("PMEM_IS_PMEM_FORCE", "1", 1), 0);
  const auto use = [] {
    const TemporaryFolder folder;
    std::string path = (folder / "front").string();
    std::filesystem::copy_file("/proc/self/cmdline", path);
    std::filesystem::resize_file(path, 4096);
    const auto front = OpenFront({.address = std::move(path)});
    const bool power_safe = front.ok() && (*front)->durability() == Durability::kPowerSafe;
    front.ok() ? std::exit(power_safe ? 0 : 1) : std::exit(2);
  };
  EXPECT_EXIT(use(), testing::ExitedWithCode(0), "");
  ASSERT_EQ(::unsetenv("PMEM_IS_PMEM_FORCE"), 0);
}

// --- The persistent memory region of an NVMe disk

class PmrTest : public testing::Test {
 protected:
  [[nodiscard]] std::string address() const { return "pmr:" + device_.resource(); }
  [[nodiscard]] testing::AssertionResult Refuses(Code code, std::string_view part) const {
    return FrontRefuses({.address = address()}, code, part);
  }
  FakePmr device_;
};

TEST_F(PmrTest, StoresReachTheRegion) {
  for (const char* const suffix : {"", "_wc"}) {
    const auto front = MustOpenFront({.address = address() + suffix, .least_size = FakePmr::kRegionBytes});
    ASSERT_NE(front, nullptr);
    EXPECT_EQ(front->size(), FakePmr::kRegionBytes);
    EXPECT_EQ(front->durability(), Durability::kPowerSafe);
    const std::string_view text = *suffix == '\0' ? "one" : "two";
    Writer writer(*front);
    writer.Write(100, AsBytes(text));
    writer.Persist(100, text.size());
    EXPECT_EQ(device_.ReadFile("resource4").substr(100, 3), text);
    EXPECT_EQ(writer.counters().fences, 1U);
    EXPECT_FALSE(writer.failed());
  }
}

TEST_F(PmrTest, DeviceAndRegionAreSwitchedOn) {
  device_.WriteFile("enable", "0\n");
  ASSERT_NE(MustOpenFront({.address = address()}), nullptr);
  EXPECT_EQ(device_.ReadFile("enable").front(), '1');
  EXPECT_EQ(device_.Get(pmr::kPmrCtl), pmr::kPmrCtlEn);
}

TEST_F(PmrTest, OpenWaitsUntilTheRegionIsReady) {
  device_.Set(pmr::kPmrSts, FakePmr::kNotReady);
  device_.Set(pmr::kPmrCap, FakePmr::kCapability | 60U << 16);  // Half a minute.
  std::thread disk([this] {
    while (device_.Get(pmr::kPmrCtl) == 0) std::this_thread::yield();
    device_.Set(pmr::kPmrSts, 0);
  });
  EXPECT_NE(MustOpenFront({.address = address()}), nullptr);
  device_.Set(pmr::kPmrCtl, pmr::kPmrCtlEn);  // If Open failed.
  disk.join();
}

TEST_F(PmrTest, RegionThatIsNeverReadyIsRefused) {
  device_.Set(pmr::kPmrSts, FakePmr::kNotReady);
  EXPECT_TRUE(Refuses(Code::kUnavailable, "does not become ready"));
}

TEST_F(PmrTest, BrokenRegionIsRefused) {
  device_.Set(pmr::kPmrSts, FakePmr::kUnreliable);
  EXPECT_TRUE(Refuses(Code::kUnavailable, "health 3, error 0"));
}

// A device that was pulled out reads as ones.
TEST_F(PmrTest, FenceNoticesABrokenRegion) {
  for (const uint32_t status : {FakePmr::kUnreliable, FakePmr::kNotReady, 5U, UINT32_MAX}) {
    device_.Set(pmr::kPmrSts, 0);
    const auto front = MustOpenFront({.address = address()});
    ASSERT_NE(front, nullptr);
    Writer writer(*front);
    device_.Set(pmr::kPmrSts, status);
    EXPECT_FALSE(writer.failed());
    writer.Persist(0, 8);
    EXPECT_TRUE(writer.failed());
    device_.Set(pmr::kPmrSts, 0);  // Too late: stores are lost.
    writer.Persist(0, 8);
    EXPECT_TRUE(writer.failed());
  }
}

TEST_F(PmrTest, RegionOfAnotherServerIsRefusedUnderEachName) {
  const auto front = MustOpenFront({.address = address() + "_wc"});
  EXPECT_TRUE(Refuses(Code::kUnavailable, "another server"));
}

TEST_F(PmrTest, FileThatIsNoResourceIsRefused) {
  for (const char* const name : {"resource", "resource4x", "region", "resource4_wc_wc"}) {
    device_.WriteFile(name, "x");
    EXPECT_TRUE(FrontRefuses({.address = "pmr:" + device_.Path(name)}, Code::kInvalidArgument,
                             "is not the file of a PCI resource"));
  }
}

TEST_F(PmrTest, OtherDeviceIsRefused) {
  device_.WriteFile("class", "0x020000\n");
  EXPECT_TRUE(Refuses(Code::kInvalidArgument, "its PCI class is '0x020000'"));
  EXPECT_EQ(device_.Get(pmr::kPmrCtl), 0U);
}

TEST_F(PmrTest, DiskWithoutARegionIsRefused) {
  device_.Set(pmr::kCapHigh, 0);
  EXPECT_TRUE(Refuses(Code::kInvalidArgument, "this disk has none"));
  EXPECT_EQ(device_.Get(pmr::kPmrCtl), 0U);
}

TEST_F(PmrTest, AnotherResourceOfTheDiskIsRefused) {
  device_.WriteFile("resource2", std::string(4096, '\0'));
  EXPECT_TRUE(FrontRefuses({.address = "pmr:" + device_.Path("resource2")}, Code::kInvalidArgument, "in resource4"));
}

TEST(PmrRegistersTest, TimeToBecomeReady) {
  EXPECT_EQ(pmr::ReadyMilliseconds(3U << 16), 1500U);
  EXPECT_EQ(pmr::ReadyMilliseconds(3U << 16 | 1U << 8), 180'000U);
}

TEST(PmrRegistersTest, WhatPersists) {
  EXPECT_TRUE(pmr::RegionReadPersists(1U << 10));
  EXPECT_FALSE(pmr::StatusReadPersists(1U << 10));
  EXPECT_FALSE(pmr::RegionReadPersists(2U << 10));
  EXPECT_TRUE(pmr::StatusReadPersists(2U << 10));
}

}  // namespace
}  // namespace erda::nvm
