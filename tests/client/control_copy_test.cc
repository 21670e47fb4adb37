// The client's copy of a control block: which Read brings what, and how many have arrived.
#include "client/control_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "client/hand_fabric.h"
#include "format/control_block.h"
#include "format/hello.h"

namespace erda::client {
namespace {

class ControlCopyTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(copy_.Reset(fabric_, geometry_).ok()); }

  const format::Geometry geometry_ = *format::ChooseGeometry({64 << 20, 1, 1 << 20, 256 << 10, 0});
  HandFabric fabric_;
  ControlCopy copy_;
};

TEST_F(ControlCopyTest, ReadGoesIntoRegisteredMemoryWithOrWithoutActivity) {
  const fabric::WorkRequest without = copy_.ReadWork(false);
  EXPECT_EQ(without.kind, fabric::OpKind::kRead);
  EXPECT_EQ(without.id, ControlCopy::kReadId);
  EXPECT_EQ(without.local.size(), format::ControlBytes(geometry_));
  EXPECT_EQ(without.remote.region, format::kControlRegion);
  EXPECT_EQ(without.remote.offset, 0U);
  const fabric::WorkRequest with = copy_.ReadWork(true);
  EXPECT_EQ(with.local.size(), format::ControlRegionBytes(geometry_));
  EXPECT_TRUE(fabric_.Knows(with.local));
}

TEST_F(ControlCopyTest, BytesAndActivityAreWhatTheReadBrought) {
  const fabric::WorkRequest work = copy_.ReadWork(true);
  work.local.front() = std::byte{1};
  work.local[format::ActivityOffset(geometry_)] = std::byte{2};
  EXPECT_EQ(copy_.bytes().front(), std::byte{1});
  EXPECT_EQ(copy_.activity().front(), std::byte{2});
  EXPECT_EQ(copy_.activity().size(), sizeof(format::ActivityBlock));
}

TEST_F(ControlCopyTest, NextReadSkipsTheReadThatIsUnderWay) {
  EXPECT_EQ(copy_.reads(), 0U);
  EXPECT_EQ(copy_.NextRead(), 1U);
  copy_.OnPosted();
  EXPECT_TRUE(copy_.pending());
  EXPECT_EQ(copy_.NextRead(), 2U) << "the Read under way was posted too early to count";
  copy_.OnArrived();
  EXPECT_FALSE(copy_.pending());
  EXPECT_EQ(copy_.reads(), 1U);
  EXPECT_EQ(copy_.NextRead(), 2U);
}

TEST_F(ControlCopyTest, LostReadDoesNotCountAndTheCountGoesOn) {
  copy_.OnPosted();
  copy_.OnArrived();
  copy_.OnPosted();
  copy_.Forget();
  EXPECT_FALSE(copy_.pending());
  EXPECT_EQ(copy_.reads(), 1U);
  ASSERT_TRUE(copy_.Reset(fabric_, geometry_).ok());
  EXPECT_EQ(copy_.reads(), 1U) << "an operation may compare numbers of two connections";
}

TEST_F(ControlCopyTest, NewConnectionBeginsWithZeroes) {
  std::ranges::fill(copy_.ReadWork(true).local, std::byte{7});
  ASSERT_TRUE(copy_.Reset(fabric_, geometry_).ok());
  EXPECT_TRUE(std::ranges::all_of(copy_.bytes(), [](std::byte byte) { return byte == std::byte{0}; }));
}

}  // namespace
}  // namespace erda::client
