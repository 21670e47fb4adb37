// The log's part in cleaning: it counts the bytes that entries need in each region, opens segments for copies, and
// empties regions.
#include <gtest/gtest.h>

#include <array>
#include <set>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"
#include "log/fixture.h"

namespace erda::log {
namespace {

using format::EntryWord;
using format::FirstObjectOffset;
using format::kNoAddress;
using format::LogAddress;
using format::RegionWord;
using format::SegmentState;
using Space = TestLog::Space;

// --- The bytes that entries need

TEST(LogUseTest, ObjectIsLiveWhileAnEntryNamesIt) {
  TestLog log;
  const auto first = log.Append(496);
  const auto second = log.Append(96);
  ASSERT_TRUE(first && second && log.FillRegion());
  EXPECT_TRUE(log.UseOf(0).none());
  log.Name(*first);
  log.Name(*second);
  EXPECT_EQ(log.UseOf(0).names, 2U);
  EXPECT_EQ(log.UseOf(0).live_bytes, 496U + 96);
  EXPECT_EQ(log.counts().bytes_live(), 496U + 96);
  EXPECT_FALSE(log.UseOf(0).none());
  const uint64_t changes = log.counts().changes();
  log.Unname(*first);
  EXPECT_EQ(log.UseOf(0).names, 1U);
  EXPECT_EQ(log.UseOf(0).live_bytes, 96U);
  log.Unname(*second);
  EXPECT_TRUE(log.UseOf(0).none());
  EXPECT_EQ(log.counts().bytes_live(), 0U);
  EXPECT_EQ(log.counts().changes(), changes + 2);
}

TEST(LogUseTest, TheOldVersionIsNeededUntilTheNewOneIsSettled) {
  TestLog log;
  const auto older = log.Append(496);
  ASSERT_TRUE(older && log.FillRegion());
  const auto newer = log.Append(496);
  ASSERT_TRUE(newer);
  const EntryWord first = EntryWord().Published(older->address).Settled();
  const EntryWord second = first.Published(newer->address);
  log->OnEntryChanged(log.head(), EntryWord(), first);
  log->OnEntryChanged(log.head(), first, second);
  EXPECT_EQ(log.UseOf(0).names, 1U);
  log->OnEntryChanged(log.head(), second, second.Settled());
  EXPECT_TRUE(log.UseOf(0).none());
  // The log counts the old version down once. Another change of the settled entry does not count it down again.
  log->OnEntryChanged(log.head(), second.Settled(), EntryWord());
  EXPECT_TRUE(log.UseOf(0).none());
  EXPECT_EQ(log.counts().bytes_live(), 0U);
}

TEST(LogUseTest, EachChangeOfAnEntryIsCounted) {
  TestLog log;
  std::vector<Space> spaces;
  for (int i = 0; i < 200; ++i) {
    const auto space = log.Append(96);
    ASSERT_TRUE(space);
    spaces.push_back(*space);
  }
  const uint64_t changes = log.counts().changes();
  // One key: the shard publishes each version and settles it at once.
  EntryWord word;
  for (int i = 0; i < 100; ++i) {
    const EntryWord published = word.Published(spaces[i].address);
    log->OnEntryChanged(log.head(), word, published);
    log->OnEntryChanged(log.head(), published, published.Settled());
    word = published.Settled();
  }
  // The versions of 100 more keys stay unsettled.
  for (int i = 100; i < 200; ++i) {
    log->OnEntryChanged(log.head(), EntryWord(), EntryWord().Published(spaces[i].address));
  }
  EXPECT_EQ(log.counts().bytes_live(), 101U * 96);
  EXPECT_EQ(log.counts().changes(), changes + 99);
  ASSERT_TRUE(log.FillRegion() && log.Append(96));
  uint64_t names = 0;
  for (const auto& region : log.Full()) names += region.use.names;
  EXPECT_EQ(names, 101U);
}

// The shard knows the objects of most puts, and the log then reads neither header.
TEST(LogUseTest, AReplacedValueCountsAsItsChangeWouldByTheHeaders) {
  TestLog log;
  const auto older = log.Append(496);
  ASSERT_TRUE(older && log.FillRegion());
  const auto newer = log.Append(96);
  ASSERT_TRUE(newer && log.FillRegion());
  const EntryWord first = EntryWord().Published(older->address).Settled();
  log->OnEntryChanged(log.head(), EntryWord(), first);
  const uint64_t changes = log.counts().changes();
  log->OnValueReplaced({log.head(), first, first.Published(newer->address), older->offset, 496, 96});
  EXPECT_TRUE(log.UseOf(0).none());
  EXPECT_EQ(log.UseOf(0).live_bytes, 0U);
  EXPECT_EQ(log.UseOf(1).names, 1U);
  EXPECT_EQ(log.UseOf(1).live_bytes, 96U);
  EXPECT_EQ(log.counts().bytes_live(), 96U);
  EXPECT_EQ(log.counts().changes(), changes + 1);
}

TEST(LogLeftTest, AValueThatTheShardKnowsIsMarked) {
  TestLog log;
  const auto space = log.Append(96);
  ASSERT_TRUE(space);
  const auto header = [&] { return LoadAs<format::ObjectHeader>(log.bytes().subspan(space->offset)); };
  const format::ObjectHeader before = header();
  log->OnValueLeft(space->offset);
  EXPECT_TRUE(header().left());
  EXPECT_EQ(header().header_crc, before.header_crc);
  EXPECT_EQ(header().kind, before.kind);
}

// A damaged entry may name a place inside of another key's value. The log changes nothing there.
TEST(LogLeftTest, OnlyAVersionWithTheEntrysTagIsMarked) {
  TestLog log;
  const auto space = log.Append(96);  // the hash of its key is 0
  ASSERT_TRUE(space);
  const auto header = [&] { return LoadAs<format::ObjectHeader>(log.bytes().subspan(space->offset)); };
  const EntryWord word = EntryWord().Published(space->address).Settled();
  const auto entry = [&](uint32_t tag) {
    return format::IndexEntry{word.raw(), format::EntryMeta::Make(tag, 0, 0, 96).raw()};
  };
  log->OnEntryStored(log.head(), entry(7), EntryWord());
  EXPECT_EQ(header().flags, 0);
  log->OnEntryStored(log.head(), entry(0), word);
  EXPECT_FALSE(header().left()) << "the entry names it still";
  log->OnEntryStored(log.head(), entry(0), EntryWord());
  EXPECT_TRUE(header().left());
}

TEST(LogUseTest, MoveOfAnEntryMovesItsLiveBytes) {
  TestLog log;
  const auto from = log.Append(496);
  ASSERT_TRUE(from && log.FillRegion());
  const auto to = log.Append(496);
  ASSERT_TRUE(to && log.FillRegion());
  const EntryWord word = EntryWord().Published(from->address).Settled();
  log->OnEntryChanged(log.head(), EntryWord(), word);
  log->OnEntryChanged(log.head(), word, word.Moved(from->address, to->address));
  EXPECT_TRUE(log.UseOf(0).none());
  EXPECT_EQ(log.UseOf(1).names, 1U);
  EXPECT_EQ(log.UseOf(1).live_bytes, 496U);
  EXPECT_EQ(log.counts().bytes_live(), 496U);
}

TEST(LogUseTest, HeldRegionIsNotFree) {
  TestLog log;
  const auto space = log.Append(496);
  ASSERT_TRUE(space && log.FillRegion());
  log->Hold(log.head(), space->address);
  log->Hold(log.head(), space->address);
  EXPECT_EQ(log.UseOf(0).held, 2U);
  const uint64_t changes = log.counts().changes();
  log->Release(log.head(), space->address);
  EXPECT_FALSE(log.UseOf(0).none());
  EXPECT_EQ(log.counts().changes(), changes);
  log->Release(log.head(), space->address);
  EXPECT_TRUE(log.UseOf(0).none());
  EXPECT_EQ(log.counts().changes(), changes + 1) << "it may be worth to be cleaned now";
}

TEST(LogUseTest, FillingARegionCountsAsAChange) {
  TestLog log;
  const auto space = log.Append(496);
  ASSERT_TRUE(space);
  log->Hold(log.head(), space->address);
  log->Release(log.head(), space->address);
  EXPECT_EQ(log.counts().changes(), 0U);
  ASSERT_TRUE(log.FillRegion());
  EXPECT_EQ(log.counts().changes(), 1U);
}

TEST(LogUseTest, FilledBytesThatAreNotLiveAreDead) {
  TestLog log;
  const auto named = log.Append(496);
  ASSERT_TRUE(named && log.FillRegion(496));
  log.Name(*named);
  // Five objects follow the tombstone slot in the first segment. Each other segment has eight.
  EXPECT_EQ(log.UseOf(0).filled, (5 + 3 * 8) * 496U);
  EXPECT_EQ(log.Full().front().dead_bytes(), (5 + 3 * 8 - 1) * 496U);
}

TEST(LogUseTest, EachHeadHasSeparateCounts) {
  TestLog log;
  const auto space = log.Append(496, 0);
  ASSERT_TRUE(space && log.Append(496, 1));
  ASSERT_TRUE(log.FillRegion(496, 0) && log.FillRegion(496, 1));
  log.Name(*space, 0);
  for (const auto& region : log.Full()) EXPECT_EQ(region.use.names, region.head == log.head(0) ? 1U : 0U);
}

TEST(LogUseTest, DamagedEntryCountsForNoRegion) {
  TestLog log;
  ASSERT_TRUE(log.FillRegion() || log.FillRegion());
  log->OnEntryChanged(log.head(2), EntryWord(), EntryWord().Published(LogAddress::At(0, 1152)).Settled());
  log->OnEntryChanged(0, EntryWord(), EntryWord().Published(LogAddress::At(0, 1152)).Settled());
  EXPECT_EQ(log.counts().bytes_live(), 0U);
}

TEST(LogFullTest, OpenRegionsOfWritersAndCleanerAreNotFull) {
  TestLog log;
  EXPECT_TRUE(log.Full().empty());
  ASSERT_TRUE(log.FillRegion());  // links the first region
  EXPECT_TRUE(log.Full().empty());
  const auto copies = log->copies().Next(log.head(), 0);
  ASSERT_TRUE(copies);
  EXPECT_EQ(copies->slot, 1U);
  EXPECT_TRUE(log.Full().empty());
  ASSERT_TRUE(log.FillRegion());
  ASSERT_EQ(log.Full().size(), 1U);
  EXPECT_EQ(log.Full().front().slot, 0U);
  EXPECT_EQ(log.Full().front().region, log.region(0));
  EXPECT_EQ(log.Full().front().generation, 1U);
  for (int segment = 1; segment <= 4; ++segment) ASSERT_TRUE(log->copies().Next(log.head(), 4096));
  // The cleaner now copies into another region, so the earlier one is full.
  ASSERT_EQ(log.Full().size(), 2U);
  EXPECT_EQ(log.Full().back().slot, copies->slot);
  EXPECT_GT(log.Full().front().age, log.Full().back().age);
}

// --- Copies

TEST(LogCopiesTest, OnlyTheCleanerTakesTheLastFreeRegion) {
  TestLog log({.regions = 4, .heads = 1});
  while (log.Append(496)) {
  }
  ASSERT_EQ(log->regions().free_regions(), 1U);
  EXPECT_EQ(log->copies().Room(log.head()), 0U);
  for (uint64_t segment = 0; segment < 4; ++segment) {
    const auto copies = log->copies().Next(log.head(), segment == 0 ? 0 : 4096);
    ASSERT_TRUE(copies);
    EXPECT_EQ(*copies, (CopySegment{log.region(3), 4, 3, segment}));
    EXPECT_EQ(log->copies().Room(log.head()), (3 - segment) * 4096);
  }
  EXPECT_EQ(log->regions().free_regions(), 0U);
  EXPECT_FALSE(log->copies().Next(log.head(), 4096));
  EXPECT_FALSE(log.Append(496));
}

TEST(LogCopiesTest, SegmentOfCopiesIsMarkedAndIsSettledWithItsEnd) {
  TestLog log;
  const auto header = [&](const CopySegment& copies) {
    const uint64_t offset = log.geometry().RegionOffset(copies.region) + copies.segment * 4096;
    return LoadAs<format::SegmentHeader>(log.bytes().subspan(offset));
  };
  const uint64_t used = log->bytes_used();
  const auto first = log->copies().Next(log.head(), 0);
  ASSERT_TRUE(first);
  EXPECT_EQ(log->bytes_used(), used + 4096);
  EXPECT_EQ(header(*first).state, static_cast<uint64_t>(SegmentState::kCopies));
  EXPECT_EQ(header(*first).identity, format::SegmentHeader::Identity(first->generation));
  EXPECT_TRUE(header(*first).copies());
  EXPECT_FALSE(log.Published(0, first->slot).none());
  const auto second = log->copies().Next(log.head(), 2000);
  ASSERT_TRUE(second);
  EXPECT_EQ(header(*first).state, static_cast<uint64_t>(SegmentState::kCopied));
  EXPECT_EQ(header(*first).end, 2000U);
  EXPECT_TRUE(header(*first).copies());
  EXPECT_EQ(header(*second).state, static_cast<uint64_t>(SegmentState::kCopies));
}

TEST(LogCopiesTest, NextServerCopiesIntoTheSegmentThatWasOpen) {
  for (const bool crash : {false, true}) {
    TestLog log;
    const auto object = log.Append(496);
    ASSERT_TRUE(object);
    EXPECT_FALSE(log->copies().Open(log.head()));
    ASSERT_TRUE(log->copies().Next(log.head(), 0));
    const auto second = log->copies().Next(log.head(), 2000);
    const auto of_other = log->copies().Next(log.head(1), 0);
    for (int round = 0; round < 2; ++round) {
      const uint64_t used = log->bytes_used();
      ASSERT_TRUE((crash ? log.ReopenAfterCrash() : log.Reopen()).ok());
      EXPECT_EQ(log->bytes_used(), used);
      EXPECT_EQ(log->copies().Open(log.head()), second);
      EXPECT_EQ(log->copies().Open(log.head(1)), of_other);
    }
    const auto third = log->copies().Next(log.head(), 3000);
    ASSERT_TRUE(third);
    EXPECT_EQ(third->region, second->region);
    EXPECT_EQ(third->segment, 2U);
    // Puts continue at the place after the last object.
    EXPECT_EQ(log.Append(96)->address, LogAddress(object->address.raw() + 496 / 16));
  }
}

TEST(LogCopiesTest, LastIsThePlaceOfTheLastCopyThatAnEntryNames) {
  TestLog log;
  ASSERT_TRUE(log.Append(496));
  const auto open = log->copies().Next(log.head(), 0);
  ASSERT_TRUE(open);
  const auto name = [&](const CopySegment& in, uint64_t at) {
    log->OnEntryChanged(log.head(), EntryWord(),
                        EntryWord().Published(LogAddress::At(in.slot, in.segment * 4096 + at)).Settled());
  };
  EXPECT_EQ(log->copies().Last(log.head()), 0U);
  name(*open, 3008);
  name(*open, 2000);
  EXPECT_EQ(log->copies().Last(log.head()), 3008U);
  name(*open, format::kGranuleBytes);  // the place that stands for a value that was set aside
  EXPECT_EQ(log->copies().Last(log.head()), 3008U);
  const auto next = log->copies().Next(log.head(), 4000);
  ASSERT_TRUE(next);
  EXPECT_EQ(log->copies().Last(log.head()), 0U);
  name(*open, 3504);
  name(*next, format::kGranuleBytes);
  EXPECT_EQ(log->copies().Last(log.head()), 0U);
  name(*next, 1008);
  EXPECT_EQ(log->copies().Last(log.head()), 1008U);
}

// --- Emptied regions

class LogEmptiedTest : public testing::Test {
 protected:
  // The region in the first head slot is full, and no entry names an object in it.
  void SetUp() override { ASSERT_TRUE(log_.FillRegion() && log_.FillRegion()); }
  TestLog log_;
};

TEST_F(LogEmptiedTest, EmptiedRegionHasNoBytesForClientsOrShard) {
  const uint64_t used = log_->bytes_used();
  const uint64_t published = log_.PublishedGeneration();
  ASSERT_FALSE(log_->BytesAt(log_.head(), LogAddress::At(0, 1152)).empty());
  log_->Empty(log_.head(), 0);
  EXPECT_EQ(log_.region_word(0), RegionWord::Emptied(1));
  EXPECT_TRUE(log_.Published(0, 0).none());
  EXPECT_GT(log_.PublishedGeneration(), published);
  EXPECT_EQ(log_->bytes_used(), used - log_.geometry().region_size);
  EXPECT_TRUE(log_->BytesAt(log_.head(), LogAddress::At(0, 1152)).empty());
  EXPECT_TRUE(log_.Full().empty());
  ASSERT_EQ(log_->regions().emptied().size(), 1U);
  EXPECT_EQ(log_->regions().emptied().front().region, log_.region(0));
  EXPECT_EQ(log_->regions().free_regions(), 4U);  // the emptied region is not free yet
  log_.ZeroAndFree(log_.region(0));
  EXPECT_EQ(log_.region_word(0), RegionWord::Free(1));
  EXPECT_TRUE(log_->regions().emptied().empty());
  EXPECT_EQ(log_->regions().free_regions(), 5U);
}

TEST_F(LogEmptiedTest, SlotOfAnEmptiedRegionWaitsUntilTheRegionIsFree) {
  log_->Empty(log_.head(), 0);
  ASSERT_TRUE(log_.FillRegion());
  EXPECT_TRUE(log_.Published(0, 0).none());
  EXPECT_EQ(log_.Published(0, 2).region(), log_.region(2));
  log_.ZeroAndFree(log_.region(0));
  ASSERT_TRUE(log_.FillRegion());
  EXPECT_EQ(log_.Published(0, 0).region(), log_.region(3));
}

TEST_F(LogEmptiedTest, NextRegionInTheSlotIsCountedFromZero) {
  EXPECT_EQ(log_.UseOf(0).filled, 5U * 496 + 3 * 8 * 496);
  log_->Empty(log_.head(), 0);
  log_.ZeroAndFree(log_.region(0));
  ASSERT_TRUE(log_.FillRegion(496));
  ASSERT_EQ(log_.Published(0, 0).region(), log_.region(2));
  ASSERT_TRUE(log_.FillRegion(960));
  EXPECT_EQ(log_.UseOf(0).filled, 496U + 2 * 960 + 3 * 4 * 960);
}

TEST_F(LogEmptiedTest, NextServerFindsTheEmptiedRegion) {
  for (const bool crash : {false, true}) {
    TestLog log;
    ASSERT_TRUE(log.FillRegion() && log.FillRegion());
    log->Empty(log.head(), 0);
    for (int round = 0; round < 2; ++round) {
      ASSERT_TRUE((crash ? log.ReopenAfterCrash() : log.Reopen()).ok());
      ASSERT_EQ(log->regions().emptied().size(), 1U);
      EXPECT_EQ(log->regions().emptied().front().region, log.region(0));
      EXPECT_EQ(log->regions().free_regions(), 4U);
      EXPECT_EQ(log.region_word(0), RegionWord::Emptied(1));
    }
    while (log.Append(496)) ASSERT_FALSE(log.region_word(0).linked());
    log.ZeroAndFree(log.region(0));
    EXPECT_EQ(log->regions().free_regions(), 2U);
    ASSERT_TRUE(log.Append(496));  // takes the other free region
    ASSERT_TRUE(log->copies().Next(log.head(), 0));
    EXPECT_TRUE(log.region_word(0).linked());
    ASSERT_TRUE(log.Reopen().ok());
    EXPECT_TRUE(log->regions().emptied().empty());
  }
}

TEST_F(LogEmptiedTest, RegionsAreUsedInTurn) {
  TestLog log({.regions = 6, .heads = 1});
  for (uint32_t links = 0; links < 60; ++links) {
    ASSERT_TRUE(log.FillRegion());
    EXPECT_EQ(log.region_word(links % 6), RegionWord::Linked(links + 1, log.head(), log.region_word(links % 6).slot()));
    for (const auto& region : log.Full()) {
      log->Empty(region.head, region.slot);
      log.ZeroAndFree(region.region);
    }
  }
}

// Writers and the cleaner link regions to all heads, over crashes and clean restarts.
TEST_F(LogEmptiedTest, NoGenerationComesTwiceInAShard) {
  TestLog log;
  Random random(1);
  std::set<uint32_t> generations;
  std::array<RegionWord, 6> words;  // the last word of each region
  int reopened = 0;
  for (int i = 0; i < 4000; ++i) {
    const auto head = static_cast<uint32_t>(random.Uniform(2));
    const uint64_t dice = random.Uniform(100);
    if (dice < 60) {
      static_cast<void>(log.Append(2000, head));
    } else if (dice < 70) {
      const bool begun = log->copies().Open(log.head(head)).has_value();
      static_cast<void>(log->copies().Next(log.head(head), begun ? 2000 : 0));
    } else if (dice < 85) {
      const auto full = log.Full();
      if (full.empty()) continue;
      const auto& region = full[random.Uniform(full.size())];
      log->Empty(region.head, region.slot);
    } else if (dice < 97) {
      const auto emptied = log->regions().emptied();
      if (!emptied.empty()) log.ZeroAndFree(emptied[random.Uniform(emptied.size())].region);
    } else {
      ++reopened;
      ASSERT_TRUE((random.Chance(0.5) ? log.ReopenAfterCrash() : log.Reopen()).ok());
    }
    for (uint32_t region = 0; region < 6; ++region) {
      const RegionWord word = log.region_word(region);
      const bool was_linked = std::exchange(words.at(region), word).linked();
      if (!word.linked()) continue;
      ASSERT_EQ(generations.insert(word.generation()).second, !was_linked) << "after " << i;
      ASSERT_EQ(log.Published(word.head() - log.head(), word.slot()),
                format::HeadSlot::Of(log.region(region), word.generation()));
    }
  }
  EXPECT_GT(generations.size(), 200U);
  EXPECT_GT(reopened, 50);
}

}  // namespace
}  // namespace erda::log
