#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "base/random.h"
#include "log/fixture.h"

namespace erda::log {
namespace {

using format::FirstObjectOffset;
using format::kGranuleBytes;
using format::LogAddress;
using format::SegmentState;
using Space = TestLog::Space;

uint64_t AnySize(Random& random, const TestLog& log) {
  const uint64_t most = random.Chance(0.2) ? RoomIn(log, 0) : 600;
  return random.Between(3, most / kGranuleBytes) * kGranuleBytes;
}

TEST(LogAppendTest, ANewLogIsEmpty) {
  TestLog log;
  EXPECT_EQ(log->bytes_used(), 0U);
  EXPECT_EQ(log->regions().bytes_total(), 6 * 16384U);
  EXPECT_EQ(log.FreeRegions(), 6U);
  EXPECT_EQ(log.PublishedGeneration(), 0U);
  EXPECT_TRUE(log->BytesAt(log.head(), LogAddress::At(0, 64)).empty());
}

TEST(LogAppendTest, TheFirstObjectFollowsTheTombstoneSlot) {
  TestLog log;
  const auto first = log.Append(48);
  const auto second = log.Append(64);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->address, LogAddress::At(0, 1152));
  EXPECT_EQ(first->offset, log.geometry().RegionOffset(log.region(0)) + 1152);
  EXPECT_EQ(second->address, LogAddress::At(0, 1200));
  EXPECT_EQ(second->offset, first->offset + 48);
  EXPECT_EQ(log->bytes_used(), 1152U + 48 + 64);
}

TEST(LogAppendTest, EachObjectHasASeparatePlaceInOneSegment) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    TestLog log;
    const format::Geometry& g = log.geometry();
    Random random(seed);
    std::set<std::pair<uint32_t, uint32_t>> addresses;
    std::vector<std::pair<uint64_t, uint64_t>> ranges;
    for (int i = 0; i < 2000; ++i) {
      const uint64_t size = AnySize(random, log);
      const auto head = static_cast<uint32_t>(random.Uniform(g.heads_per_shard));
      const auto space = log.Append(size, head);
      if (!space) continue;
      EXPECT_TRUE(addresses.insert({head, space->address.raw()}).second);
      ranges.emplace_back(space->offset, space->offset + size);
      // The object lies in a region of this shard, and after the header of its segment.
      ASSERT_GE(space->offset, g.regions_offset);
      const uint64_t in_regions = space->offset - g.regions_offset;
      ASSERT_LT(in_regions, g.regions() * g.region_size);
      ASSERT_EQ(in_regions / g.region_size % g.shards, TestLog::kShard);
      const uint64_t in_region = in_regions % g.region_size;
      EXPECT_EQ(space->address.offset_in_slot(), in_region);
      EXPECT_GE(in_region % g.segment_size, FirstObjectOffset(in_region / g.segment_size));
      EXPECT_LE(in_region % g.segment_size + size, g.segment_size);
      // The address leads to that place.
      EXPECT_EQ(log->OffsetOf(log.head(head), space->address), space->offset);
      EXPECT_EQ(log->BytesAt(log.head(head), space->address).data(), log.bytes().data() + space->offset);
      EXPECT_EQ(log->Inspect(log.head(head), space->address).header.version, log.next_version - 1);
    }
    std::ranges::sort(ranges);
    for (size_t i = 1; i < ranges.size(); ++i) ASSERT_LE(ranges[i - 1].second, ranges[i].first);
    EXPECT_EQ(log.FreeRegions(), 1U);
  }
}

TEST(LogAppendTest, TheLargestObjectFillsASegment) {
  TestLog log;
  const uint64_t most = RoomIn(log, 0);
  const auto first = log.Append(most);
  const auto second = log.Append(most);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->address, LogAddress::At(0, 1152));
  EXPECT_EQ(second->address, LogAddress::At(0, 4096 + 64));
  const auto third = log.Append(RoomIn(log, 1) - most);  // the rest of the second segment, to the last byte
  ASSERT_TRUE(third);
  EXPECT_EQ(third->address, LogAddress::At(0, 4096 + 64 + most));
  EXPECT_EQ(log.Append(48)->address, LogAddress::At(0, 2 * 4096 + 64));
}

TEST(LogAppendTest, TombstoneSlotIsInTheOpenRegionAndNoObjectTouchesIt) {
  TestLog log({.regions = 4, .heads = 1});
  std::vector<std::pair<uint64_t, uint64_t>> slots;
  while (const auto space = log.Append(496)) {
    const Space slot = log->TombstoneSlot(log.head(), log.next_version).value();
    EXPECT_EQ(slot.address, LogAddress::At(space->address.slot(), 64));
    EXPECT_EQ(slot.offset, log.geometry().RegionOffset(log.region(space->address.slot())) + 64);
    EXPECT_EQ(log->OffsetOf(log.head(), slot.address), slot.offset);
    EXPECT_GE(space->address.offset_in_slot(), 64 + format::kTombstoneSlotBytes);
  }
  EXPECT_EQ(log->TombstoneSlot(log.head(), log.next_version)->address.slot(), 2U);
}

TEST(LogAppendTest, AFullLogKeepsOneRegionForTheCleaner) {
  TestLog log({.regions = 4, .heads = 1});
  int appended = 0;
  while (log.Append(RoomIn(log, 0))) ++appended;
  EXPECT_EQ(appended, 3 * 4);  // one in each segment of three regions
  EXPECT_EQ(log.FreeRegions(), 1U);
  for (int again = 0; again < 3; ++again) EXPECT_FALSE(log.Append(RoomIn(log, 0)));
  EXPECT_EQ(log.FreeRegions(), 1U);
}

TEST(LogAppendTest, SmallObjectsStillFitWhereALargeOneDidNot) {
  TestLog log({.regions = 2, .heads = 1});
  const uint64_t most = RoomIn(log, 0);
  std::optional<Space> last;
  while (const auto space = log.Append(most)) last = space;
  ASSERT_TRUE(last);
  const uint64_t used = log->bytes_used();
  // The last segment has 1088 bytes left: a refused object takes none of them.
  for (uint64_t left = 4096 - 64 - most; left >= 64; left -= 64) {
    EXPECT_FALSE(log.Append(left + 16));
    const auto space = log.Append(64);
    ASSERT_TRUE(space) << left;
    EXPECT_EQ(space->offset, last->offset + most + (4096 - 64 - most - left));
  }
  EXPECT_FALSE(log.Append(48));
  EXPECT_EQ(log->bytes_used(), used + 1088);
  EXPECT_EQ(log->bytes_used(), log.geometry().region_size);
}

TEST(LogAppendTest, AFullHeadDoesNotStopAnother) {
  // The writers get 127 of the 128 head slots of the first head, and 159 of the 160 regions. The cleaner has the rest.
  TestLog log({.regions = 160, .heads = 2, .region_size = 8192, .segment_size = 8192});
  int appended = 0;
  while (log.Append(RoomIn(log, 0), 0)) ++appended;
  EXPECT_EQ(appended, 127);
  EXPECT_EQ(log.FreeRegions(), 33U);
  appended = 0;
  while (log.Append(RoomIn(log, 0), 1)) ++appended;
  EXPECT_EQ(appended, 32);
  EXPECT_EQ(log.FreeRegions(), 1U);
}

TEST(LogAppendTest, TheHeadsShareTheRegions) {
  TestLog log;
  const auto first = log.Append(48, 0);
  const auto second = log.Append(48, 1);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->address, second->address);  // each head has separate addresses
  EXPECT_NE(first->offset, second->offset);
  EXPECT_EQ(log.region_word(0), format::RegionWord::Linked(1, log.head(0), 0));
  EXPECT_EQ(log.region_word(1), format::RegionWord::Linked(2, log.head(1), 0));  // each link takes the next generation
}

TEST(LogAppendTest, LinkPublishesTheRegionToClients) {
  TestLog log;
  static_cast<void>(log.Append(48, 1));
  EXPECT_EQ(log.Published(1, 0), format::HeadSlot::Of(log.region(0), 1));
  EXPECT_TRUE(log.Published(0, 0).none());
  EXPECT_TRUE(log.Published(1, 1).none());
  const uint64_t generation = log.PublishedGeneration();
  while (log.Published(1, 1).none()) ASSERT_TRUE(log.Append(480, 1));
  EXPECT_EQ(log.Published(1, 1), format::HeadSlot::Of(log.region(1), 2));
  EXPECT_GT(log.PublishedGeneration(), generation);

  const format::HeadSlot before = log.Published(1, 1);
  ASSERT_TRUE(log.Reopen().ok());
  EXPECT_EQ(log.Published(1, 1), before);
  EXPECT_GT(log.PublishedGeneration(), 0U);
}

TEST(LogAppendTest, TheOtherShardsRegionsAreNotTouched) {
  TestLog log;
  while (log.Append(400, 0)) {
  }
  const format::Geometry& g = log.geometry();
  for (uint32_t i = 0; i < g.regions_per_shard; ++i) {
    EXPECT_TRUE(IsZero(log.bytes().subspan(g.RegionOffset(g.RegionOf(0, i)), g.region_size))) << i;
  }
}

// --- The states of a segment

TEST(LogSegmentTest, ASegmentWithNothingInFlightIsSettledWhenItIsFull) {
  TestLog log;
  const auto first = log.Append(RoomIn(log, 0));
  ASSERT_TRUE(first);
  EXPECT_EQ(log.StateOf(*first), SegmentState::kOpen);
  EXPECT_EQ(log.SegmentOf(*first).first_version, 1U);
  EXPECT_EQ(log.SegmentOf(*first).identity, format::SegmentHeader::Identity(1));
  const auto next = log.Append(48);
  ASSERT_TRUE(next);
  EXPECT_EQ(log.StateOf(*first), SegmentState::kSettled);
  EXPECT_EQ(log.StateOf(*next), SegmentState::kOpen);
  EXPECT_EQ(log.SegmentOf(*next).first_version, 2U);
}

TEST(LogSegmentTest, AFullSegmentIsSettledWithTheLastThatWasInFlight) {
  TestLog log;
  const auto first = log.Append(1000 / 16 * 16);
  const auto second = log.Append(1000 / 16 * 16);
  ASSERT_TRUE(first && second);
  log->BeginFlight(log.head(), first->address);
  log->BeginFlight(log.head(), second->address);
  ASSERT_TRUE(log.Append(RoomIn(log, 0)));
  EXPECT_EQ(log.StateOf(*first), SegmentState::kSealed);
  log->EndFlight(log.head(), second->address);
  EXPECT_EQ(log.StateOf(*first), SegmentState::kSealed);
  log->EndFlight(log.head(), first->address);
  EXPECT_EQ(log.StateOf(*first), SegmentState::kSettled);
}

TEST(LogSegmentTest, OpenSegmentStaysOpenWhenFlightsEnd) {
  TestLog log;
  const auto first = log.Append(48);
  ASSERT_TRUE(first);
  for (int i = 0; i < 3; ++i) {
    log->BeginFlight(log.head(), first->address);
    log->EndFlight(log.head(), first->address);
    EXPECT_EQ(log.StateOf(*first), SegmentState::kOpen);
  }
  ASSERT_TRUE(log.Append(RoomIn(log, 0)));
  EXPECT_EQ(log.StateOf(*first), SegmentState::kSettled);
}

TEST(LogSegmentTest, FlightsInOneSegmentDoNotHoldAnother) {
  TestLog log;
  const uint64_t most = RoomIn(log, 0);
  const auto first = log.Append(most);
  ASSERT_TRUE(first);
  log->BeginFlight(log.head(), first->address);
  const auto second = log.Append(most);
  const auto third = log.Append(most);
  ASSERT_TRUE(second && third);
  EXPECT_EQ(log.StateOf(*first), SegmentState::kSealed);
  EXPECT_EQ(log.StateOf(*second), SegmentState::kSettled);
  EXPECT_EQ(log.StateOf(*third), SegmentState::kOpen);
}

TEST(LogSegmentTest, CloseSettlesEachFullSegment) {
  TestLog log;
  const auto first = log.Append(RoomIn(log, 0));
  ASSERT_TRUE(first);
  log->BeginFlight(log.head(), first->address);
  const auto second = log.Append(RoomIn(log, 0));
  ASSERT_TRUE(second);
  // Another server takes up the pool. It knows of no value in flight.
  ASSERT_TRUE(log.Reopen().ok());
  EXPECT_EQ(log.StateOf(*first), SegmentState::kSealed);
  log->Close();
  EXPECT_EQ(log.StateOf(*first), SegmentState::kSettled);
  EXPECT_EQ(log.StateOf(*second), SegmentState::kOpen);
  const uint64_t bytes = log.nvm().counters().bytes;
  log->Close();
  EXPECT_EQ(log.nvm().counters().bytes, bytes);  // the second Close writes nothing
}

// --- The mark

std::optional<uint64_t> MarkOf(const TestLog& log, const TestLog::Space& space) {
  return log.SegmentOf(space).Marked(log.geometry().segment_size);
}

TEST(LogMarkTest, MarkFollowsTheTailWhileNothingIsInFlight) {
  TestLog log;
  std::optional<TestLog::Space> first;
  uint64_t tail = format::FirstObjectOffset(0);
  uint64_t marked = 0;
  int moves = 0;
  for (; tail + 96 <= log.geometry().segment_size; tail += 96) {
    const auto space = log.Append(96);
    if (!first) first = space;
    const uint64_t now = MarkOf(log, *first).value_or(0);
    moves += now != marked ? 1 : 0;
    marked = now;
    ASSERT_LE(marked, tail);
    ASSERT_LT(tail, std::max(marked, format::FirstObjectOffset(0)) + 1024 + 96);
  }
  EXPECT_EQ(moves, 2);  // one move for each KiB
}

TEST(LogMarkTest, MarkDoesNotPassAVersionInFlight) {
  TestLog log({.segment_size = 16384});
  ASSERT_TRUE(log.Append(480));
  const auto stuck = log.Append(480);
  const auto other = log.Append(480);
  ASSERT_TRUE(stuck && other);
  log->BeginFlight(log.head(), stuck->address);
  log->BeginFlight(log.head(), other->address);
  // The mark will move to the place of this object, after `other`.
  ASSERT_TRUE(log.Append(1040));
  ASSERT_TRUE(log.Append(1040));
  log->EndFlight(log.head(), other->address);
  ASSERT_TRUE(log.Append(1040));
  EXPECT_LE(MarkOf(log, *stuck).value_or(0), stuck->address.offset_in_slot());
  log->EndFlight(log.head(), stuck->address);
  ASSERT_TRUE(log.Append(1040));
  EXPECT_GT(MarkOf(log, *stuck).value_or(0), other->address.offset_in_slot());
}

TEST(LogMarkTest, MarkMovesWhileOneVersionIsAlwaysInFlight) {
  TestLog log({.segment_size = 16384});
  std::optional<TestLog::Space> before;
  for (int i = 0; i < 50; ++i) {
    const auto space = log.Append(96);
    ASSERT_TRUE(space);
    log->BeginFlight(log.head(), space->address);
    if (before) log->EndFlight(log.head(), before->address);
    before = space;
  }
  EXPECT_GT(MarkOf(log, *before).value_or(0), before->address.offset_in_slot() - 3 * 1024);
}

TEST(LogMarkTest, FlightsOfAnotherSegmentDoNotHoldTheMark) {
  TestLog log;
  const auto stuck = log.Append(RoomIn(log, 0));
  ASSERT_TRUE(stuck);
  log->BeginFlight(log.head(), stuck->address);
  const auto next = log.Append(1040);
  ASSERT_TRUE(next);
  log->BeginFlight(log.head(), next->address);
  ASSERT_TRUE(log.Append(96));  // the mark waits for `next`
  log->EndFlight(log.head(), stuck->address);
  ASSERT_TRUE(log.Append(1040));
  EXPECT_EQ(MarkOf(log, *next).value_or(0) > 64, false);
  log->EndFlight(log.head(), next->address);
  ASSERT_TRUE(log.Append(96));
  EXPECT_GE(MarkOf(log, *next).value_or(0), 64 + 1040U);
}

TEST(LogMarkTest, MarkIsAtTheEndOfAClosedLog) {
  TestLog log;
  const auto space = log.Append(96);
  ASSERT_TRUE(space);
  log->Close();
  EXPECT_EQ(MarkOf(log, *space), format::FirstObjectOffset(0) + 96);
}

}  // namespace
}  // namespace erda::log
