// The tests use the table of regions alone, without segments and without entries.
#include "log/region_table.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "format/control_block.h"
#include "format/log_layout.h"
#include "log/fixture.h"

namespace erda::log {

using format::RegionWord;

class RegionTableTest : public testing::Test {
 protected:
  // Returns the table of the next server that takes up the pool.
  [[nodiscard]] RegionTable TakenUp() {
    control_.assign(format::ControlBytes(pool_.geometry()) / sizeof(uint64_t), 0);
    RegionTable table(pool_.nvm(), ShardShape(pool_.geometry(), TestLog::kShard),
                      std::as_writable_bytes(std::span(control_)));
    const Status status = table.TakeUp();
    EXPECT_TRUE(status.ok()) << status.ToString();
    return table;
  }
  [[nodiscard]] uint32_t head() const { return pool_.head(); }
  [[nodiscard]] uint32_t RegionOfLink(RegionTable* table, LinkFor purpose = LinkFor::kWriters) const {
    const auto slot = table->Link(head(), purpose);
    return slot ? table->slots().RegionIn(head(), *slot) : kNoRegion;
  }

  TestLog pool_{{.regions = 4, .heads = 1}};

 private:
  std::vector<uint64_t> control_;
};

TEST_F(RegionTableTest, LinkedRegionIsFullWhenItIsLeft) {
  RegionTable table = TakenUp();
  const uint32_t slot = table.Link(head(), LinkFor::kWriters).value();
  const uint32_t region = table.slots().RegionIn(head(), slot);
  EXPECT_FALSE(table.slots().IsFull(head(), slot));
  EXPECT_FALSE(table.AwaitsSettled(region));
  table.Leave(head(), slot);
  EXPECT_TRUE(table.slots().IsFull(head(), slot));
  EXPECT_TRUE(table.AwaitsSettled(region));
  table.StoreSettled(region);
  EXPECT_FALSE(table.AwaitsSettled(region));
  EXPECT_TRUE(table.IsSettled(region));
}

TEST_F(RegionTableTest, AWordThatDecayedIsNotSettled) {
  RegionTable table = TakenUp();
  const uint32_t slot = table.Link(head(), LinkFor::kWriters).value();
  table.Leave(head(), slot);
  const uint64_t good = pool_.region_word(0).raw();
  for (int bit = 0; bit < 64; ++bit) {
    pool_.StoreRegionWord(0, good ^ (uint64_t{1} << bit));
    EXPECT_FALSE(table.AwaitsSettled(pool_.region(0))) << "bit " << bit;
  }
  pool_.StoreRegionWord(0, good);
  EXPECT_TRUE(table.AwaitsSettled(pool_.region(0)));
}

TEST_F(RegionTableTest, WritersLeaveTheLastFreeRegionToTheCleaner) {
  RegionTable table = TakenUp();
  for (int i = 0; i < 3; ++i) EXPECT_NE(RegionOfLink(&table), kNoRegion);
  EXPECT_EQ(table.free_regions(), 1U);
  EXPECT_EQ(RegionOfLink(&table), kNoRegion);
  EXPECT_FALSE(table.LinkRun());
  EXPECT_EQ(RegionOfLink(&table, LinkFor::kCleaner), pool_.region(3));
  EXPECT_EQ(table.free_regions(), 0U);
}

TEST_F(RegionTableTest, RegionsAreTakenInTurnAndSlotsFromTheFirst) {
  RegionTable table = TakenUp();
  ASSERT_EQ(RegionOfLink(&table), pool_.region(0));
  ASSERT_EQ(RegionOfLink(&table), pool_.region(1));
  table.Leave(head(), 0);
  table.Empty(head(), 0);
  EXPECT_EQ(table.slots().RegionIn(head(), 0), kNoRegion);
  table.FreeEmptied(pool_.region(0));
  EXPECT_EQ(table.Link(head(), LinkFor::kWriters), 0U);
  EXPECT_EQ(table.slots().RegionIn(head(), 0), pool_.region(2));
  EXPECT_EQ(table.slots().GenerationOf(pool_.region(2)), 3U);
  EXPECT_EQ(table.slots().AgeOf(head(), 1), 1U) << "one region was linked since";
}

TEST_F(RegionTableTest, ASlotIsUsedUntilItsEmptiedRegionIsFree) {
  RegionTable table = TakenUp();
  ASSERT_EQ(table.Link(head(), LinkFor::kWriters), 0U);
  table.Leave(head(), 0);
  table.Empty(head(), 0);
  EXPECT_EQ(table.Link(head(), LinkFor::kWriters), 1U);
  table.FreeEmptied(pool_.region(0));
  EXPECT_EQ(table.Link(head(), LinkFor::kWriters), 0U);
}

TEST_F(RegionTableTest, TheNextTableFindsLinkedRegionsFullAndEmptiedOnesWithoutASlot) {
  {
    RegionTable table = TakenUp();
    ASSERT_EQ(RegionOfLink(&table), pool_.region(0));
    ASSERT_EQ(RegionOfLink(&table), pool_.region(1));
    table.Leave(head(), 0);
    table.Empty(head(), 0);
  }
  RegionTable next = TakenUp();
  EXPECT_TRUE(next.slots().IsFull(head(), 1));
  next.Reopen(head(), 1);
  EXPECT_FALSE(next.slots().IsFull(head(), 1));
  ASSERT_EQ(next.emptied().size(), 1U);
  EXPECT_EQ(next.emptied().front().head, UINT32_MAX);
  EXPECT_EQ(next.newest_generation(), 2U);
  // The clients of this server do not know the former region of the slot, so the table may link the slot at once.
  EXPECT_EQ(next.Link(head(), LinkFor::kWriters), 0U);
  next.FreeEmptied(pool_.region(0));
  EXPECT_EQ(next.free_regions(), 2U);
}

TEST_F(RegionTableTest, UnlinkedRegionsAreFreeAtOnce) {
  RegionTable table = TakenUp();
  const uint32_t slot = table.Link(head(), LinkFor::kWriters).value();
  table.Unlink(head(), slot);
  EXPECT_EQ(pool_.region_word(0), RegionWord::Free(1));
  EXPECT_EQ(table.slots().GenerationOf(pool_.region(0)), 0U);
  EXPECT_EQ(table.free_regions(), 4U);
}

}  // namespace erda::log
