#include "bench/floors/settings.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

namespace erda::floors {
namespace {

// Returns the settings of a command line. Returns nothing if it does not parse.
std::optional<Settings> Parsed(const std::vector<std::string>& arguments) {
  Settings settings;
  CLI::App app("", "erda-bench");
  AddFloors(app, settings);
  std::vector<std::string> words(arguments.rbegin(), arguments.rend());  // The order that CLI11 expects.
  words.emplace_back("floors");
  try {
    app.parse(words);
  } catch (const CLI::Error&) {
    return std::nullopt;
  }
  return settings;
}

TEST(FloorsSettings, DefaultsNeedNoOption) {
  const auto settings = Parsed({});
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->fabric, "shm");
  EXPECT_EQ(settings->address, "");
  EXPECT_EQ(settings->pool, "dram:");
  EXPECT_EQ(settings->value_bytes, 64U);
  EXPECT_EQ(settings->ops, 10'000U);
  EXPECT_EQ(settings->rounds, 20U);
  EXPECT_EQ(settings->block_ops, 0U);
  EXPECT_EQ(settings->limit, 0.0);
  EXPECT_EQ(settings->gid_index, -1);
  EXPECT_EQ(CheckSettings(*settings), "");
}

TEST(FloorsSettings, EachOptionIsTaken) {
  const auto settings = Parsed({"--fabric",      "verbs",
                                "--address",     "verbs://10.9.0.1:7700",
                                "--raw-address", "verbs://10.9.0.1:9",
                                "--pool",        "/dev/dax0.0",
                                "--pool-size",   "1G",
                                "--value-bytes", "4K",
                                "--ops",         "300",
                                "--rounds",      "3",
                                "--block",       "8",
                                "--limit",       "1.25",
                                "--device",      "rxe0",
                                "--gid-index",   "1",
                                "--json",        "out.json"});
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->fabric, "verbs");
  EXPECT_EQ(settings->address, "verbs://10.9.0.1:7700");
  EXPECT_EQ(settings->raw_address, "verbs://10.9.0.1:9");
  EXPECT_EQ(settings->pool, "/dev/dax0.0");
  EXPECT_EQ(settings->pool_size, 1U << 30);
  EXPECT_EQ(settings->value_bytes, 4096U);
  EXPECT_EQ(settings->ops, 300U);
  EXPECT_EQ(settings->rounds, 3U);
  EXPECT_EQ(settings->block_ops, 8U);
  EXPECT_EQ(settings->limit, 1.25);
  EXPECT_EQ(settings->device, "rxe0");
  EXPECT_EQ(settings->gid_index, 1);
  EXPECT_EQ(settings->json_path, "out.json");
  EXPECT_EQ(CheckSettings(*settings), "");
}

TEST(FloorsSettings, NumbersOutOfRangeAreRefused) {
  for (const std::vector<std::string>& bad : std::vector<std::vector<std::string>>{{"--fabric", "tcp"},
                                                                                   {"--ops", "0"},
                                                                                   {"--rounds", "0"},
                                                                                   {"--block", "65"},
                                                                                   {"--limit", "0"},
                                                                                   {"--gid-index", "-1"},
                                                                                   {"--value-bytes", "64X"},
                                                                                   {"--unknown"}}) {
    EXPECT_FALSE(Parsed(bad)) << bad[0];
  }
}

TEST(FloorsSettings, SettingsAreCheckedTogether) {
  const auto error = [](const std::vector<std::string>& arguments) { return CheckSettings(Parsed(arguments).value()); };
  EXPECT_NE(error({"--fabric", "verbs"}).find("needs an --address"), std::string::npos);
  EXPECT_NE(error({"--address", "verbs://10.9.0.1:7700"}).find("is not an address of --fabric shm"), std::string::npos);
  const auto verbs_error = [&](std::vector<std::string> address) {
    address.insert(address.begin(), {"--fabric", "verbs", "-a"});
    return error(address);
  };
  EXPECT_EQ(verbs_error({"verbs://10.9.0.1:7700?device=rxe0&gid=1"}), "");
  EXPECT_NE(verbs_error({"verbs://10.9.0.1"}).find("--address: verbs://10.9.0.1: the port is missing"),
            std::string::npos);
  EXPECT_NE(verbs_error({"verbs://10.9.0.1:7700?gid=1"}).find("gid needs a device"), std::string::npos);
  EXPECT_NE(verbs_error({"verbs://10.9.0.1:65535"}).find("give a --raw-address"), std::string::npos);
  EXPECT_EQ(verbs_error({"verbs://10.9.0.1:65535", "--raw-address", "verbs://10.9.0.1:5"}), "");
  EXPECT_NE(verbs_error({"verbs://10.9.0.1:65533"}).find("two ports after"), std::string::npos);
  EXPECT_EQ(verbs_error({"verbs://10.9.0.1:65532"}), "");
  EXPECT_NE(
      verbs_error({"verbs://10.9.0.1:5", "--raw-address", "shm:/x"}).find("--raw-address: shm:/x is not an address of"),
      std::string::npos);
  EXPECT_NE(error({"--value-bytes", "16301"}).find("has 16300 bytes here"), std::string::npos);
  EXPECT_EQ(error({"--value-bytes", "16300"}), "");
  EXPECT_NE(error({"--ops", "2", "--rounds", "3"}).find("--rounds"), std::string::npos);
}

TEST(FloorsSettings, RawAddressFollowsFromTheStoresAddress) {
  EXPECT_EQ(RawAddressOf("shm:/run/erda.sock"), "shm:/run/erda.sock.raw");
  EXPECT_EQ(RawAddressOf("verbs://10.9.0.1:7700"), "verbs://10.9.0.1:7701");
  EXPECT_EQ(RawAddressOf("verbs://[fd09::1]:7700"), "verbs://[fd09::1]:7701");
  EXPECT_EQ(RawAddressOf("verbs://10.9.0.1:7700?device=rxe0"), "verbs://10.9.0.1:7701?device=rxe0");
  EXPECT_EQ(RawAddressOf("verbs://[fd09::1]:7700?device=a:b&gid=2"), "verbs://[fd09::1]:7701?device=a:b&gid=2");
  EXPECT_EQ(RawAddressOf("verbs://10.9.0.1:0?device=rxe0"), "verbs://10.9.0.1:0?device=rxe0") << "any that is free";
  EXPECT_EQ(RawAddressOf("verbs://10.9.0.1:65535"), "");
  EXPECT_EQ(RawAddressOf("verbs://10.9.0.1:"), "");
  EXPECT_EQ(RawAddressOf("verbs://host"), "");
}

TEST(FloorsSettings, TheHostStandsInTheAddress) {
  EXPECT_EQ(HostOf("verbs://10.9.0.1:7700"), "10.9.0.1");
  EXPECT_EQ(HostOf("verbs://[fd09::1]:7700"), "fd09::1");
  EXPECT_EQ(HostOf("verbs://10.9.0.1:7700?device=rxe0"), "10.9.0.1");
  EXPECT_EQ(HostOf("verbs://host"), "");
  EXPECT_EQ(HostOf("shm:/run/erda.sock"), "");
}

TEST(FloorsPlan, BlockTakesMuchLongerThanAReadingOfTheClock) {
  EXPECT_EQ(BlockFor(20, 60'000), 1U);
  EXPECT_EQ(BlockFor(20, 2000), 1U);
  EXPECT_EQ(BlockFor(20, 1999), 2U);
  EXPECT_EQ(BlockFor(5000, 60'000), 16U);
  EXPECT_EQ(BlockFor(20, 50), 64U);
  EXPECT_EQ(BlockFor(20, 1), 64U) << "and no longer than this";
}

TEST(FloorsPlan, PlanHasWholeBlocksInEachRound) {
  Settings settings;
  settings.ops = 1000;
  settings.rounds = 3;
  const Plan plan = PlanFor(settings, 8);
  EXPECT_EQ(plan.rounds, 3U);
  EXPECT_EQ(plan.blocks, 42U) << "334 operations";
  EXPECT_EQ(plan.ops(), 1008U);
  EXPECT_EQ(plan.warm_blocks, 11U);
}

TEST(FloorsPlan, ThePoolGrowsWithThePuts) {
  Settings settings;
  settings.ops = 100;
  EXPECT_EQ(PoolBytesFor(settings), 64ULL << 20) << "the least";
  settings.ops = Settings().ops;
  settings.value_bytes = 4096;
  const uint64_t small = PoolBytesFor(settings);
  EXPECT_GT(small, 3 * settings.ops * 4096);
  settings.ops *= 2;
  EXPECT_GT(PoolBytesFor(settings), small);
}

}  // namespace
}  // namespace erda::floors
