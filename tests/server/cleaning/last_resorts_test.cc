#include "server/cleaning/last_resorts.h"

#include <gtest/gtest.h>

#include <variant>

#include "server/store.h"

namespace erda::server {
namespace {

class LastResortsTest : public testing::Test {
 protected:
  Store store_;
  CleanQueues queues_;
  LastResorts resorts_{store_.versions(), queues_};
};

TEST_F(LastResortsTest, OneSweepIsOrderedForEachWait) {
  resorts_.Begin();
  EXPECT_TRUE(resorts_.OrderSweep());
  EXPECT_TRUE(resorts_.is_sweeping());
  const auto order = queues_.orders.Pop();
  ASSERT_TRUE(order);
  EXPECT_TRUE(std::holds_alternative<SweepOrder>(*order));
  resorts_.EndSweep(0);
  EXPECT_FALSE(resorts_.is_sweeping());
  EXPECT_FALSE(resorts_.OrderSweep()) << "puts still wait for the same room";
  resorts_.Begin();
  EXPECT_TRUE(resorts_.OrderSweep());
}

TEST_F(LastResortsTest, NothingIsSweptIfNoValueHasADeadline) {
  resorts_.Begin();
  queues_.expiring_puts.NoneLeft(queues_.expiring_puts.counted());
  EXPECT_FALSE(resorts_.OrderSweep());
  queues_.expiring_puts.Count();
  EXPECT_TRUE(resorts_.OrderSweep());
}

TEST_F(LastResortsTest, PassedDeadlineGivesOneMoreTry) {
  EXPECT_FALSE(resorts_.TakePassedDeadline()) << "no sweep has found one";
  resorts_.EndSweep(store_.time().DeadlineIn(10));
  EXPECT_FALSE(resorts_.TakePassedDeadline());
  store_.PassTime(11);
  EXPECT_TRUE(resorts_.TakePassedDeadline());
  EXPECT_FALSE(resorts_.TakePassedDeadline()) << "once for each sweep";
}

TEST_F(LastResortsTest, VersionsInFlightAreLookedAtOnce) {
  store_.Reserve("key", "value");
  EXPECT_FALSE(resorts_.SettleArrived()) << "nobody waits";
  resorts_.Begin();
  EXPECT_TRUE(resorts_.SettleArrived());
  EXPECT_FALSE(resorts_.SettleArrived());
}

}  // namespace
}  // namespace erda::server
