#include "bench/soak/settings.h"

#include <gtest/gtest.h>

#include "format/geometry.h"

namespace erda::soak {
namespace {

TEST(SoakSettings, KeyIsAbsentBeforeItsFirstWrite) {
  for (uint64_t record = 0; record < 100; ++record) EXPECT_TRUE(IsDelete(record, 0));
}

TEST(SoakSettings, OneWriteInSixteenDeletes) {
  uint64_t deletes = 0;
  for (uint64_t number = 1; number <= 16000; ++number) deletes += IsDelete(7, number) ? 1 : 0;
  EXPECT_NEAR(static_cast<double>(deletes), 1000, 150);
}

TEST(SoakSettings, AllSizesAreUsed) {
  std::array<int, kValueBytes.size()> seen{};
  for (uint64_t number = 1; number <= 1000; ++number) ++seen[SizeClassOf(7, number)];
  for (const int times : seen) EXPECT_GT(times, 60);
}

TEST(SoakSettings, KeysFillTheUsableShareAsFarAsWished) {
  Settings settings;
  settings.live = 50;
  const uint64_t keys = KeysFor(settings).value();
  uint64_t bytes = 0;
  for (uint64_t record = 0; record < keys; ++record) bytes += IsDelete(record, 1) ? 0 : SpaceOf(record, 1);
  const auto geometry = format::ChooseGeometry({.pool_size = settings.pool_size});
  EXPECT_NEAR(static_cast<double>(bytes) / static_cast<double>(settings.pool_size), format::UsableShare(*geometry) / 2,
              0.01);
}

TEST(SoakSettings, ImpossiblePoolsAreRefused) {
  Settings settings;
  settings.pool_size = 1000;
  EXPECT_EQ(KeysFor(settings).status().code(), Code::kInvalidArgument);
  settings.pool_size = 512 << 10;
  EXPECT_EQ(KeysFor(settings).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace erda::soak
