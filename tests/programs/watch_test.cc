// Events that erda-server logs without a request, each once.
#include "tools/erda-server/watch.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace erda::tools {
namespace {

TEST(FillWatchTest, LevelIsReportedOnceWhenItIsReached) {
  FillWatch watch;
  EXPECT_EQ(watch.Look(84, false), std::nullopt);
  EXPECT_EQ(watch.Look(85, false), 85);
  EXPECT_EQ(watch.Look(85, false), std::nullopt);
  EXPECT_EQ(watch.Look(94, false), std::nullopt);
  EXPECT_EQ(watch.Look(95, false), 95);
  EXPECT_EQ(watch.Look(99, false), std::nullopt);
}

TEST(FillWatchTest, WaveringPoolIsReportedOnce) {
  FillWatch watch;
  EXPECT_EQ(watch.Look(85, false), 85);
  for (const int percent : {84, 85, 81, 85, 94}) EXPECT_EQ(watch.Look(percent, false), std::nullopt) << percent;
  EXPECT_EQ(watch.Look(95, false), 95);
  EXPECT_EQ(watch.Look(91, false), std::nullopt);
  EXPECT_EQ(watch.Look(95, false), std::nullopt);
}

TEST(FillWatchTest, LevelIsReportedAgainAfterThePoolWasClearlyBelowIt) {
  FillWatch watch;
  EXPECT_EQ(watch.Look(96, false), 95) << "the highest of several";
  EXPECT_EQ(watch.Look(90, false), std::nullopt);
  EXPECT_EQ(watch.Look(95, false), 95);
  EXPECT_EQ(watch.Look(80, false), std::nullopt);
  EXPECT_EQ(watch.Look(85, false), 85);
}

TEST(FillWatchTest, RefusedPutMeansFull) {
  FillWatch watch;
  EXPECT_EQ(watch.Look(60, true), 100);
  EXPECT_EQ(watch.Look(60, true), std::nullopt);
  EXPECT_EQ(watch.Look(56, false), std::nullopt);
  EXPECT_EQ(watch.Look(60, true), std::nullopt);
  EXPECT_EQ(watch.Look(55, false), std::nullopt);
  EXPECT_EQ(watch.Look(60, true), 100);
}

TEST(DamageWatchTest, DamagedKeyIsReportedOnce) {
  DamageWatch watch;
  EXPECT_EQ(watch.Tell("one"), "the stored value of key one is damaged; only a new put repairs it");
  EXPECT_EQ(watch.Tell("one"), std::nullopt);
  EXPECT_TRUE(watch.Tell("two").has_value());
  EXPECT_TRUE(watch.Tell("").has_value());
  EXPECT_EQ(watch.Tell(""), std::nullopt);
}

TEST(DamageWatchTest, ManyKeysEndInOneLine) {
  DamageWatch watch;
  for (size_t i = 0; i < DamageWatch::kKeysMax; ++i) EXPECT_TRUE(watch.Tell(std::to_string(i)).has_value());
  const auto last = watch.Tell("one more");
  ASSERT_TRUE(last.has_value());
  EXPECT_NE(last->find("more than 1000 keys are damaged"), std::string::npos) << *last;
  EXPECT_EQ(watch.Tell("and one more"), std::nullopt);
}

}  // namespace
}  // namespace erda::tools
