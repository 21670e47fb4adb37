// Looks at entries over a fabric that keeps no order among Reads in flight (Capabilities::reads_in_order). So the
// client posts a Read that has to come after another one when that one has arrived.
#include <gtest/gtest.h>

#include <string>

#include "client/engine.h"
#include "client/hand_pool.h"

namespace erda::client {
namespace {

class OrderTest : public HandPoolTest {
 public:
  OrderTest() { fabric_->reads_in_order = false; }
};

const std::string kAbsent(CodeName(Code::kNotFound));

TEST_F(OrderTest, AMissReadsTheCounterAfterTheEntriesHaveArrived) {
  Connect();
  EXPECT_EQ(ReadsOfGet("absent"), "look 0 | all 0 | reading");
  EXPECT_EQ(got_, kAbsent);
}

TEST_F(OrderTest, AMissAfterAMissTakesTwoRoundTripsAndTwoReads) {
  Connect();
  ReadsOfGet("absent");
  const ClientStats before = engine_->stats();
  EXPECT_EQ(ReadsOfGet("absent too"), "all 0 | reading");
  EXPECT_EQ(got_, kAbsent);
  EXPECT_EQ(engine_->stats().reads - before.reads, 2U);
  EXPECT_EQ(engine_->stats().second_looks - before.second_looks, 1U);
}

TEST_F(OrderTest, HitAfterAHitReadsOnlyTheFirstHalf) {
  Connect();
  Put(0, "key", "value", 0);
  ReadsOfGet("absent");
  EXPECT_EQ(ReadsOfGet("key"), "all 0 | version");
  EXPECT_EQ(ReadsOfGet("key"), "look 0 | version");
  EXPECT_EQ(got_, "value");
}

TEST_F(OrderTest, HitFarFromItsHomeReadsNoCounter) {
  Connect();
  Put(0, "key", "value", 0, 40);
  EXPECT_EQ(ReadsOfGet("key"), "look 0 | all 0 | version");
  EXPECT_EQ(got_, "value");
}

// During the look, an entry leaves a slot that was not read yet for a slot that was read.
TEST_F(OrderTest, AMissDoesNotCountIfAnEntryWasMovedDuringTheLook) {
  Connect();
  ReadsOfGet("absent");
  Before(2, [&] {  // The reading after the entries.
    Put(0, "key", "value", 0, 40);
    TellDisplacements(2);
  });
  EXPECT_EQ(ReadsOfGet("key"), "all 0 | reading | all 0 | version");
  EXPECT_EQ(got_, "value");
}

TEST_F(OrderTest, AMissDuringAMoveReadsTheCounterFirst) {
  Connect();
  TellDisplacements(3);
  Before(4, [&] { TellDisplacements(4); });
  EXPECT_EQ(ReadsOfGet("absent"), "look 0 | all 0 | reading | reading | all 0 | reading");
  EXPECT_EQ(got_, kAbsent);
  EXPECT_EQ(ReadsOfGet("absent"), "all 0 | reading") << "what was read is known";
}

TEST_F(OrderTest, MissIsNotConfirmedWhileTheCounterIsOdd) {
  TellDisplacements(1);
  Connect();
  ReadsOfGet("absent");
  for (int reads = 1; reads < 20; ++reads) Before(reads, [&] { TellDisplacements(3); });
  EXPECT_EQ(RoundsIn(ReadsOfGet("absent")), 10 + 1) << "it goes on until the counter is even";
}

TEST_F(OrderTest, AGetOfAKeyThatLeftItsBlockReadsTheNumberFirst) {
  TellRuns();
  Connect();
  const std::string key = KeyWith(1);
  Put(0, key, "value", 0);
  Move(0, 1, key, 1);
  Tell(2);
  EXPECT_EQ(ReadsOfGet(key), "look 0 | reading | all 1 | version");
  EXPECT_EQ(got_, "value");
}

TEST_F(OrderTest, AMissDoesNotCountIfTheBlockWasSplitDuringTheLook) {
  TellRuns();
  Connect();
  const std::string key = KeyWith(1);
  ReadsOfGet("absent");
  Before(2, [&] {  // The reading after the entries.
    Put(1, key, "value", 1);
    Tell(2);
  });
  EXPECT_EQ(ReadsOfGet(key), "all 0 | reading | all 1 | version");
  EXPECT_EQ(got_, "value");
}

}  // namespace
}  // namespace erda::client
