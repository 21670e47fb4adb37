// Some waits look before they sleep, and others sleep at once.
#include "base/looks.h"

#include <gtest/gtest.h>

namespace erda {
namespace {

// Returns how many of `waits` waits look, if each look ends with this outcome.
uint32_t CountLooks(Looks& looks, uint32_t waits, bool answered) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < waits; ++i) {
    if (!looks.Begin()) continue;
    ++n;
    looks.Ended(answered);
  }
  return n;
}

TEST(LooksTest, EveryWaitLooksWhileLooksPay) {
  Looks looks;
  EXPECT_EQ(CountLooks(looks, 1000, true), 1000U);
}

TEST(LooksTest, FewLooksInVainChangeNothing) {
  Looks looks;
  for (int round = 0; round < 100; ++round) {
    EXPECT_EQ(CountLooks(looks, Looks::kVainMost - 1, false), Looks::kVainMost - 1);
    EXPECT_EQ(CountLooks(looks, 1, true), 1U);
  }
}

TEST(LooksTest, FewWaitsLookAfterManyLooksInVain) {
  Looks looks;
  EXPECT_EQ(CountLooks(looks, Looks::kVainMost, false), Looks::kVainMost);
  EXPECT_EQ(CountLooks(looks, 100 * Looks::kWaitsPerTry, false), 100U);
}

TEST(LooksTest, OneLookThatPaysMakesEveryWaitLookAgain) {
  Looks looks;
  CountLooks(looks, 1000, false);
  uint32_t sleeps = 0;
  while (!looks.Begin()) ++sleeps;
  EXPECT_LT(sleeps, Looks::kWaitsPerTry);
  looks.Ended(true);
  EXPECT_EQ(CountLooks(looks, 1000, true), 1000U);
}

}  // namespace
}  // namespace erda
