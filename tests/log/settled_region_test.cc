// A restart reads nothing of regions that the region table calls settled or free.
#include <cstring>

#include "log/fixture.h"

namespace erda::log {
namespace {

using format::RegionWord;

// Makes every reader of a segment's header or of the tombstone slot find damage.
void SpoilHeaders(const TestLog& log, uint32_t of_shard) {
  const format::Geometry& g = log.geometry();
  for (uint64_t segment = 0; segment < g.segments_per_region(); ++segment) {
    const uint64_t at = g.RegionOffset(log.region(of_shard)) + segment * g.segment_size;
    std::memset(log.bytes().data() + at, 0xee, sizeof(format::SegmentHeader) + format::kTombstoneSlotBytes);
  }
}

TEST(SettledRegionTest, RegionIsSettledWhenWritersLeaveIt) {
  TestLog log;
  ASSERT_TRUE(log.Append(496));
  ASSERT_TRUE(log.FillRegion());
  EXPECT_EQ(log.region_word(0), RegionWord::Linked(1, log.head(), 0).Settled());
  EXPECT_EQ(log.region_word(1), RegionWord::Linked(2, log.head(), 1));
}

TEST(SettledRegionTest, RegionWithAPutInFlightIsSettledWhenThatEnds) {
  TestLog log;
  const auto early = log.Append(496);
  ASSERT_TRUE(early);
  log->BeginFlight(log.head(), early->address);
  ASSERT_TRUE(log.FillRegion());
  EXPECT_EQ(log.region_word(0), RegionWord::Linked(1, log.head(), 0));
  log->EndFlight(log.head(), early->address);
  EXPECT_EQ(log.region_word(0), RegionWord::Linked(1, log.head(), 0).Settled());
}

// A delete may still write a tombstone into this region.
TEST(SettledRegionTest, RegionOfTheOpenSegmentIsNotSettled) {
  TestLog log({.regions = 2, .heads = 1});
  while (log.Append(496)) {
  }
  EXPECT_EQ(log.region_word(0), RegionWord::Linked(1, log.head(), 0));
  log->Close();
  EXPECT_EQ(log.region_word(0), RegionWord::Linked(1, log.head(), 0));
}

TEST(SettledRegionTest, RestartReadsNothingOfSettledAndFreeRegions) {
  TestLog log({.regions = 6, .heads = 1});
  ASSERT_TRUE(log.Append(496));
  ASSERT_TRUE(log.FillRegion());
  const uint64_t used = log->bytes_used();
  const uint32_t free = log.FreeRegions();
  SpoilHeaders(log, 0);  // settled
  SpoilHeaders(log, 5);  // free
  ASSERT_TRUE(log.ReopenAfterCrash().ok());
  EXPECT_TRUE(log.found_plain());
  EXPECT_EQ(log->bytes_used(), used);
  EXPECT_EQ(log.FreeRegions(), free);
  log->Close();
  ASSERT_TRUE(log.Reopen().ok());
  EXPECT_EQ(log->bytes_used(), used);
}

TEST(SettledRegionTest, RegionThatIsNotSettledIsRead) {
  TestLog log({.regions = 6, .heads = 1});
  ASSERT_TRUE(log.Append(496));
  SpoilHeaders(log, 0);
  EXPECT_EQ(log.Reopen().code(), Code::kCorruption);
}

TEST(SettledRegionTest, EmptiedRegionIsNotSettledInItsNextUse) {
  TestLog log({.regions = 3, .heads = 1});
  ASSERT_TRUE(log.Append(496));
  ASSERT_TRUE(log.FillRegion());
  ASSERT_EQ(log.region_word(0), RegionWord::Linked(1, log.head(), 0).Settled());
  log->Empty(log.head(), 0);
  EXPECT_EQ(log.region_word(0), RegionWord::Emptied(1));
  log.ZeroAndFree(log.region(0));
  EXPECT_EQ(log.region_word(0), RegionWord::Free(1));
}

// A free region whose headers contradict its word. The log finds that when it wants to link the region, and leaves the
// region alone.
TEST(SettledRegionTest, FreeRegionThatWasOpenedSinceIsNotLinked) {
  TestLog log({.regions = 5, .heads = 1});
  ASSERT_TRUE(log.Append(496));
  const uint64_t opened = format::SegmentHeader::Identity(7);
  std::memcpy(log.bytes().data() + log.geometry().RegionOffset(log.region(1)), &opened, sizeof(opened));
  ASSERT_TRUE(log.Reopen().ok());
  uint32_t linked = 0;
  while (log.FillRegion()) ++linked;
  EXPECT_EQ(linked, 2U) << "regions 2 and 3; the last one that is free stays the cleaner's";
  EXPECT_EQ(log.region_word(1), RegionWord::Free(0));
  EXPECT_EQ(log->regions().free_regions(), 1U);
}

}  // namespace
}  // namespace erda::log
