// A client learns of one shard from the hello, the control block and readings.
#include "client/known_shard.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "base/bytes.h"
#include "format/activity.h"

namespace erda::client {
namespace {

using format::HeadSlot;
using format::LogAddress;

constexpr uint32_t kSecondShard = 1;  // of 2

class KnownShardTest : public testing::Test {
 protected:
  void SetUp() override {
    hello_.geometry = *format::ChooseGeometry({64 << 20, 2, 1 << 20, 256 << 10, 0});
    hello_.pool_uuid.fill(7);
    known_.Reset(hello_);
    control_.assign(format::ControlRegionBytes(hello_.geometry), std::byte{0});
  }
  [[nodiscard]] const format::Geometry& geometry() const { return hello_.geometry; }
  // Stores the head slot in the control block.
  void SetSlot(uint32_t head_in_shard, uint32_t slot, HeadSlot value) {
    std::memcpy(control_.data() + format::HeadSlotOffset(head_in_shard, slot), &value, sizeof(value));
  }
  // Stores the first words of the control block.
  void SetReading(const Reading& reading) { std::memcpy(control_.data(), &reading, sizeof(reading)); }

  format::HelloReply hello_{};
  std::vector<std::byte> control_;
  KnownShard known_{kSecondShard};
};

TEST_F(KnownShardTest, SlotComesFromTheLastControlBlock) {
  const uint32_t head = known_.FirstHead();
  const LogAddress address = LogAddress::At(2, 4096);
  SetSlot(0, 2, HeadSlot::Of(3, 5));
  known_.LearnControl(control_);
  EXPECT_EQ(known_.SlotOf(head, address), HeadSlot::Of(3, 5));
  EXPECT_TRUE(known_.SlotOf(head, LogAddress::At(1, 4096)).none());
  SetSlot(0, 2, HeadSlot::Of(4, 6));
  EXPECT_EQ(known_.SlotOf(head, address), HeadSlot::Of(3, 5)) << "the new block has not arrived";
  known_.LearnControl(control_);
  EXPECT_EQ(known_.SlotOf(head, address), HeadSlot::Of(4, 6));
}

TEST_F(KnownShardTest, HeadOfAnotherShardHasNoSlot) {
  for (uint32_t head = 0; head < geometry().heads_per_shard; ++head) SetSlot(head, 0, HeadSlot::Of(3, 5));
  known_.LearnControl(control_);
  const LogAddress address = LogAddress::At(0, 4096);
  EXPECT_FALSE(known_.SlotOf(known_.FirstHead(), address).none());
  EXPECT_TRUE(known_.SlotOf(known_.FirstHead() - 1, address).none());
  EXPECT_TRUE(known_.SlotOf(known_.FirstHead() + geometry().heads_per_shard, address).none());
}

TEST_F(KnownShardTest, OnlyChangedSlotsCountAsSlotChange) {
  known_.LearnControl(control_);
  const uint64_t before = known_.slot_changes();
  SetReading({2, geometry().first_blocks(), 0, 0, 9});
  known_.LearnControl(control_);
  EXPECT_EQ(known_.slot_changes(), before);
  SetSlot(0, 1, HeadSlot::Of(3, 5));
  known_.LearnControl(control_);
  EXPECT_EQ(known_.slot_changes(), before + 1);
  known_.LearnControl(control_);
  EXPECT_EQ(known_.slot_changes(), before + 1);
}

TEST_F(KnownShardTest, EarlierReadingChangesNothing) {
  const uint64_t blocks = geometry().first_blocks();
  known_.Learn({6, blocks + 1, 0, 0, 100});
  known_.Learn({4, blocks, 0, 0, 90});
  const Reading reading = known_.reading();
  EXPECT_EQ(reading.displacements, 6U);
  EXPECT_EQ(reading.blocks, blocks + 1);
  EXPECT_EQ(reading.time, 100U);
  EXPECT_EQ(known_.time(), 100U);
  EXPECT_EQ(known_.layout().blocks(), blocks + 1);
}

TEST_F(KnownShardTest, ImpossibleNumberOfBlocksIsIgnored) {
  known_.Learn({0, geometry().blocks_max() + 1, 0, 0, 0});
  EXPECT_EQ(known_.layout().blocks(), geometry().first_blocks());
  known_.Learn({0, geometry().blocks_max(), 0, 0, 0});
  EXPECT_EQ(known_.layout().blocks(), geometry().blocks_max());
}

TEST_F(KnownShardTest, ControlBlockTellsThePlaceOfABlock) {
  const uint64_t block = geometry().first_blocks();
  SetReading({0, block + 1, 0, 0, 0});
  known_.LearnControl(control_);
  EXPECT_FALSE(known_.layout().IsKnown(block));
  const uint32_t region_plus_1 = 4;
  std::memcpy(control_.data() + format::RunsOffset(geometry()), &region_plus_1, sizeof(region_plus_1));
  known_.LearnControl(control_);
  EXPECT_TRUE(known_.layout().IsKnown(block));
}

TEST_F(KnownShardTest, NewConnectionForgetsTheReading) {
  SetReading({6, geometry().first_blocks() + 1, 0, 0, 100});
  known_.LearnControl(control_);
  known_.Reset(hello_);
  EXPECT_EQ(known_.time(), 0U) << "another server may have an earlier time";
  EXPECT_EQ(known_.reading().displacements, 0U);
  EXPECT_EQ(known_.layout().blocks(), geometry().first_blocks());
}

TEST_F(KnownShardTest, ResolveStaysWithinTheSegment) {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  const uint64_t in_slot = geometry().segment_size + 4096;
  ASSERT_TRUE(known_.Resolve(HeadSlot::Of(3, 5), LogAddress::At(0, in_slot), &offset, &bytes));
  EXPECT_EQ(offset, geometry().RegionOffset(3) + in_slot);
  EXPECT_EQ(bytes, geometry().segment_size - 4096);
  EXPECT_FALSE(known_.Resolve(HeadSlot(), LogAddress::At(0, in_slot), &offset, &bytes));
  EXPECT_FALSE(known_.Resolve(HeadSlot::Of(3, 5), format::kNoAddress, &offset, &bytes));
  EXPECT_FALSE(known_.Resolve(HeadSlot::Of(geometry().regions(), 5), LogAddress::At(0, in_slot), &offset, &bytes));
}

}  // namespace
}  // namespace erda::client
