// erda-bench soak: a nearly full store is overwritten many times.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "programs/fixture.h"

namespace erda {
namespace {

class SoakTest : public ProgramsTest {};

TEST_F(SoakTest, OverwritesASmallPoolManyTimes) {
#ifdef ERDA_SANITIZED
  constexpr const char* kTimes = "2";
#else
  constexpr const char* kTimes = "20";
#endif
  Process soak(Command("erda-bench", {"soak", "--pool-size", "64M", "--times", kTimes}));
  const Ended ended = soak.Wait(std::chrono::seconds(100));
  ExpectFine(ended);
  EXPECT_NE(ended.out.find("a pool of 64 MiB, 80 % of what is usable"), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find(std::string(kTimes) + ".0 times the pool"), std::string::npos) << ended.out;
  EXPECT_EQ(ended.out.find("cleaned: 0 regions"), std::string::npos) << ended.out;
}

TEST_F(SoakTest, NamedPoolStaysAfterTheRun) {
  ExpectFine(Run("erda-bench", {"soak", "--pool", Pool(), "--pool-size", "16M", "--times", "1", "--live", "50"}));
  EXPECT_EQ(std::filesystem::file_size(Pool()), 16U << 20);
  ExpectFine(Run("erda-inspect", {"--verify", Pool()}));
}

TEST_F(SoakTest, ImpossibleRunsAreRefused) {
  MakePool();
  ExpectRefused(Run("erda-bench", {"soak", "--pool", Pool()}), 2, "exists already");
  ExpectRefused(Run("erda-bench", {"soak", "--pool-size", "10K"}), 2, "pool");
  ExpectRefused(Run("erda-bench", {"soak", "--pool-size", "512K"}), 2, "--pool-size");
  ExpectRefused(Run("erda-bench", {"soak", "--live", "101"}), 2, "--live");
}

}  // namespace
}  // namespace erda
