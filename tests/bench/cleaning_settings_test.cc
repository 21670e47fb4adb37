#include "bench/cleaning/settings.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <string>

namespace erda::cleaning {
namespace {

Settings Parsed(const std::string& arguments) {
  Settings settings;
  CLI::App app;
  AddCleaning(app, settings);
  app.parse("cleaning " + arguments);
  Complete(settings);
  return settings;
}

TEST(CleaningSettings, QuickRunIsSmall) {
  const Settings usual = Parsed("");
  const Settings quick = Parsed("--quick");
  EXPECT_EQ(usual.pool_size, 256U << 20);
  EXPECT_EQ(quick.pool_size, 64U << 20);
  EXPECT_LT(quick.rounds, usual.rounds);
  EXPECT_LT(quick.slice_ms, usual.slice_ms);
  EXPECT_LT(quick.times, usual.times);
}

TEST(CleaningSettings, GivenOptionsReplaceTheDefaults) {
  const Settings settings = Parsed("--quick --pool-size 128M --rounds 7 --slice-ms 5 --times 9 --live 60 --rate 10");
  EXPECT_EQ(settings.pool_size, 128U << 20);
  EXPECT_EQ(settings.rounds, 7U);
  EXPECT_EQ(settings.slice_ms, 5U);
  EXPECT_EQ(settings.times, 9U);
  EXPECT_EQ(settings.live, 60U);
  EXPECT_EQ(settings.rate, 10U);
}

TEST(CleaningSettings, AddressIsOneOfTheFabric) {
  EXPECT_EQ(CheckSettings(Parsed("")), "");
  EXPECT_EQ(CheckSettings(Parsed("--fabric verbs --address verbs://10.9.0.1:7700")), "");
  EXPECT_NE(CheckSettings(Parsed("--fabric verbs")).find("needs an --address"), std::string::npos);
  EXPECT_NE(CheckSettings(Parsed("--address verbs://10.9.0.1:7700")).find("--address"), std::string::npos);
}

TEST(CleaningSettings, ThereMustBeRoomForIdleSlices) {
  EXPECT_THROW(Parsed("--live 81"), CLI::ValidationError);
  EXPECT_THROW(Parsed("--live 0"), CLI::ValidationError);
}

}  // namespace
}  // namespace erda::cleaning
