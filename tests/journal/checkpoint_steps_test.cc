#include "journal/checkpoint_steps.h"

#include <gtest/gtest.h>

namespace erda::journal {
namespace {

using Places = CheckpointSteps::Places;

Places TakeNext(CheckpointSteps& steps) {
  Places places = steps.next();
  steps.Pop();
  return places;
}

TEST(CheckpointStepsTest, PlacesThatAreCloseMakeOneStep) {
  CheckpointSteps steps({100, 0}, 50);
  steps.Note({100, 0});
  EXPECT_TRUE(steps.empty()) << "nothing has changed";
  steps.Note({110, 0});
  steps.Note({120, 29});
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_EQ(TakeNext(steps), (Places{120, 29}));
  EXPECT_TRUE(steps.empty());
  steps.Note({120, 29});
  EXPECT_TRUE(steps.empty()) << "the step is made";
}

TEST(CheckpointStepsTest, LargeStepIsLeftAsItIs) {
  CheckpointSteps steps({0, 0}, 50);
  steps.Note({30, 20});
  steps.Note({30, 21});
  steps.Note({30, 71});
  steps.Note({200, 71});
  steps.Note({201, 71});
  ASSERT_EQ(steps.size(), 4U);
  EXPECT_EQ(TakeNext(steps), (Places{30, 20}));
  EXPECT_EQ(TakeNext(steps), (Places{30, 71})) << "it has all that came before it was large enough";
  EXPECT_EQ(TakeNext(steps), (Places{200, 71}));
  EXPECT_EQ(TakeNext(steps), (Places{201, 71}));
  EXPECT_TRUE(steps.empty());
}

// The beginning of a step may be made while later places come.
TEST(CheckpointStepsTest, StepBeginsWhereTheLastOneEnded) {
  CheckpointSteps steps({0}, 50);
  steps.Note({60});
  steps.Pop();
  steps.Note({80});
  steps.Note({100});
  steps.Note({120});
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_EQ(TakeNext(steps), (Places{120}));
}

}  // namespace
}  // namespace erda::journal
