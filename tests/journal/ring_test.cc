#include "journal/ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "journal/ring_fixture.h"

namespace erda::journal {
namespace {

TEST_F(RingTest, NewRingIsEmpty) {
  const auto ring = Open();
  ASSERT_TRUE(ring.has_value());
  EXPECT_TRUE(visited_.empty());
  EXPECT_EQ(ring->checkpoint(), 0U);
  EXPECT_EQ(ring->held(), 0U);
  EXPECT_EQ(ring->end(), 0U);
  EXPECT_EQ(ring->epoch(), 1U);
  EXPECT_EQ(ring->free_bytes(), 10 * kDiskBlock);
  EXPECT_EQ(ring->Room(), 10 * kDiskBlock - sizeof(RecordHeader));
}

TEST_F(RingTest, AppendedRecordsComeBackInOrderWithTheirTimes) {
  auto ring = Open();
  ASSERT_TRUE(ring.has_value());
  const std::span<const std::byte> parts[] = {AsBytes("on"), AsBytes("e ")};
  ASSERT_TRUE(ring->Append(0, parts, 11).ok());
  EXPECT_EQ(ring->held(), 4U);
  ASSERT_TRUE(AppendTo(*ring, AsBytes("two "), 22).ok());
  EXPECT_EQ(ring->free_bytes(), 8 * kDiskBlock);
  disk_.PowerCut();
  ring = Open();
  ASSERT_TRUE(ring.has_value());
  ASSERT_EQ(visited_.size(), 2U);
  EXPECT_EQ(visited_[0].from, 0U);
  EXPECT_EQ(visited_[0].epoch, 1U);
  EXPECT_EQ(visited_[0].time_us, 11U);
  EXPECT_EQ(visited_[1].from, 4U);
  EXPECT_EQ(visited_[1].time_us, 22U);
  EXPECT_EQ(Visited(), "one two ");
  EXPECT_EQ(ring->end(), 8U);
  EXPECT_EQ(ring->held(), 8U);
  EXPECT_EQ(ring->free_bytes(), 8 * kDiskBlock);
}

TEST_F(RingTest, RecordsAreHeldOnlyAfterTheFlush) {
  auto ring = Open();
  ASSERT_TRUE(ring.has_value());
  ASSERT_TRUE(ring->Write(0, OnePart(AsBytes("one ")), 0).ok());
  ASSERT_TRUE(ring->Write(4, OnePart(AsBytes("two ")), 0).ok());
  EXPECT_EQ(ring->held(), 0U);
  EXPECT_EQ(ring->end(), 8U);
  ASSERT_TRUE(ring->Flush().ok());
  EXPECT_EQ(ring->held(), 8U);
}

TEST_F(RingTest, RecordThatDoesNotFitBeforeTheEndBeginsAtTheFirstBlock) {
  auto ring = Open();
  ASSERT_TRUE(ring.has_value());
  const auto long_bytes = SomeBytes(RecordRoom(4), 1);
  ASSERT_TRUE(AppendTo(*ring, long_bytes).ok());
  ASSERT_TRUE(AppendTo(*ring, long_bytes).ok());  // Two blocks are left at the end.
  ASSERT_TRUE(ring->Checkpoint(long_bytes.size()).ok());
  EXPECT_EQ(ring->Room(), RecordRoom(4));
  const auto three = SomeBytes(RecordRoom(3), 2);
  ASSERT_TRUE(AppendTo(*ring, three).ok());
  EXPECT_EQ(ring->Room(), RecordRoom(1));
  ASSERT_TRUE(AppendTo(*ring, AsBytes("last")).ok());
  EXPECT_EQ(ring->Room(), 0U);
  disk_.PowerCut();
  ring = Open();
  ASSERT_EQ(visited_.size(), 3U);
  EXPECT_EQ(visited_[0].bytes, long_bytes);
  EXPECT_EQ(visited_[0].from, long_bytes.size());
  EXPECT_EQ(visited_[1].bytes, three);
  EXPECT_EQ(AsString(visited_[2].bytes), "last");
  EXPECT_EQ(ring->Room(), 0U);
}

TEST_F(RingTest, FullRingRefusesUntilACheckpoint) {
  auto ring = Open();
  ASSERT_TRUE(ring.has_value());
  const auto two = SomeBytes(RecordRoom(2), 3);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(AppendTo(*ring, two).ok());
  EXPECT_EQ(ring->Room(), 0U);
  EXPECT_EQ(ring->free_bytes(), 0U);
  const uint64_t calls = disk_.calls();
  const Status refused = AppendTo(*ring, AsBytes("x"));
  EXPECT_EQ(refused.code(), Code::kResourceExhausted);
  EXPECT_EQ(disk_.calls(), calls);
  EXPECT_TRUE(ring->failure().ok());
  EXPECT_EQ(ring->end(), 5 * two.size());
  ASSERT_TRUE(ring->Checkpoint(two.size()).ok());
  EXPECT_EQ(ring->Room(), RecordRoom(2));
  EXPECT_TRUE(AppendTo(*ring, two).ok());
}

TEST_F(RingTest, CheckpointLetsTheReaderBeginLater) {
  auto ring = Open();
  ASSERT_TRUE(ring.has_value());
  ASSERT_TRUE(AppendTo(*ring, AsBytes("one ")).ok());
  ASSERT_TRUE(AppendTo(*ring, AsBytes("two ")).ok());
  ASSERT_TRUE(ring->Checkpoint(4).ok());
  EXPECT_EQ(ring->checkpoint(), 4U);
  disk_.PowerCut();
  ring = Open();
  EXPECT_EQ(ring->checkpoint(), 4U);
  EXPECT_EQ(Visited(), "two ");
  ASSERT_TRUE(ring->Checkpoint(8).ok());
  const uint64_t calls = disk_.calls();
  ASSERT_TRUE(ring->Checkpoint(8).ok());
  EXPECT_EQ(disk_.calls(), calls);
  ring = Open();
  EXPECT_EQ(Visited(), "");
  EXPECT_EQ(ring->checkpoint(), 8U);
  EXPECT_EQ(ring->end(), 8U);
  EXPECT_EQ(ring->free_bytes(), 10 * kDiskBlock);
}

TEST_F(RingTest, CheckpointIsTheEndOfAHeldRecord) {
  auto ring = Open();
  ASSERT_TRUE(AppendTo(*ring, AsBytes("one ")).ok());
  ASSERT_TRUE(ring->Write(4, OnePart(AsBytes("two ")), 0).ok());
  const uint64_t calls = disk_.calls();
  for (const Place place : {3, 5, 8, 9}) EXPECT_EQ(ring->Checkpoint(place).code(), Code::kInternal) << place;
  EXPECT_EQ(disk_.calls(), calls);
  EXPECT_EQ(ring->checkpoint(), 0U);
  EXPECT_TRUE(ring->Flush().ok());
  EXPECT_TRUE(ring->Checkpoint(8).ok());
}

TEST_F(RingTest, EmptyRingTakesTheLongestRecordAnywhere) {
  auto ring = Open();
  ASSERT_TRUE(ring.has_value());
  const auto whole = SomeBytes(RecordRoom(10), 4);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(AppendTo(*ring, AsBytes("short")).ok());
    ASSERT_TRUE(ring->Checkpoint(ring->end()).ok());
    ASSERT_TRUE(AppendTo(*ring, whole).ok());
    disk_.PowerCut();
    ring = Open();
    ASSERT_EQ(visited_.size(), 1U);
    EXPECT_EQ(visited_[0].bytes, whole);
    ASSERT_TRUE(ring->Checkpoint(ring->end()).ok());
  }
}

// --- Epochs

TEST_F(RingTest, RecordOfAnEarlierEpochAfterTheEndIsNotTaken) {
  auto ring = Open();
  ASSERT_TRUE(ring.has_value());
  ASSERT_TRUE(AppendTo(*ring, AsBytes("one ")).ok());
  // The record before this one is lost in a cut.
  Plant(4, 8, 1, AsBytes("old!"));
  ring = Open();
  EXPECT_EQ(Visited(), "one ");
  ASSERT_TRUE(ring->BeginEpoch(ring->end()).ok());
  EXPECT_EQ(ring->epoch(), 2U);
  ASSERT_TRUE(AppendTo(*ring, AsBytes("two ")).ok());
  ring = Open();
  EXPECT_EQ(Visited(), "one two ");
  EXPECT_EQ(visited_[1].epoch, 2U);
  // After the checkpoint, no record before the end shows its epoch.
  ASSERT_TRUE(ring->Checkpoint(8).ok());
  ring = Open();
  EXPECT_EQ(Visited(), "");
  EXPECT_EQ(ring->end(), 8U);
}

// A front held the stream up to a later place, and the pool file has it. So no record ends there.
TEST_F(RingTest, EpochBeginsAtALaterPlace) {
  auto ring = Open();
  ASSERT_TRUE(AppendTo(*ring, AsBytes("one ")).ok());
  ASSERT_TRUE(ring->Checkpoint(4).ok());
  ASSERT_TRUE(ring->BeginEpoch(64).ok());
  EXPECT_EQ(ring->end(), 64U);
  EXPECT_EQ(ring->held(), 64U);
  EXPECT_EQ(ring->checkpoint(), 64U);
  // A record of the earlier epoch, as a cut may have left it.
  Plant(3, 64, 1, AsBytes("old!"));
  ring = Open();
  EXPECT_EQ(Visited(), "");
  EXPECT_EQ(ring->end(), 64U);
  EXPECT_EQ(ring->epoch(), 2U);
  EXPECT_FALSE(ring->has_front());
  ASSERT_TRUE(ring->NameFront().ok());
  ASSERT_TRUE(AppendTo(*ring, AsBytes("two ")).ok());
  ring = Open();
  EXPECT_EQ(Visited(), "two ");
  EXPECT_TRUE(ring->has_front());
  ASSERT_TRUE(ring->BeginEpoch(ring->end()).ok());
  EXPECT_FALSE(Open()->has_front());
}

TEST_F(RingTest, FrontIsNamedInBothCheckpoints) {
  for (const uint64_t copy : {0, 1}) {
    ASSERT_TRUE(Ring::Format(disk_, part_, kRingIdentity).ok());
    auto ring = Open();
    EXPECT_FALSE(ring->has_front());
    ASSERT_TRUE(ring->NameFront().ok());
    disk_.bytes()[part_.offset + copy * kDiskBlock] ^= std::byte{1};
    ring = Open();
    EXPECT_TRUE(ring->has_front());
    EXPECT_EQ(ring->epoch(), 1U);
  }
}

TEST_F(RingTest, SameEpochGoesOnAfterARestartThatKeepsTheStream) {
  auto ring = Open();
  ASSERT_TRUE(AppendTo(*ring, AsBytes("one ")).ok());
  Plant(4, 8, 1, AsBytes("3rd "));
  ring = Open();
  ASSERT_TRUE(AppendTo(*ring, AsBytes("two ")).ok());
  ring = Open();
  EXPECT_EQ(Visited(), "one two 3rd ");
  EXPECT_EQ(ring->epoch(), 1U);
}

TEST_F(RingTest, EpochsBeginOnce) {
  for (uint64_t epoch = 2; epoch < 6; ++epoch) {
    auto ring = Open();
    ASSERT_TRUE(ring->BeginEpoch(ring->end()).ok());
    EXPECT_EQ(ring->epoch(), epoch);
    disk_.PowerCut();
    ring = Open();
    EXPECT_EQ(ring->epoch(), epoch);
  }
}

TEST_F(RingTest, RecordOfAnEpochThatHasNotBegunIsNotTaken) {
  Plant(2, 0, 2, AsBytes("new!"));
  Open();
  EXPECT_EQ(Visited(), "");
}

// A client may put a value that looks like a record, and that a later lap leaves just where the next record is
// expected. The client knows all but the secret.
TEST_F(RingTest, ForgedRecordIsNotTaken) {
  auto ring = Open();
  ASSERT_TRUE(AppendTo(*ring, AsBytes("one ")).ok());
  RingIdentity guessed = kRingIdentity;
  guessed.secret = {};
  Plant(3, 4, 1, AsBytes("evil"), guessed);
  Open();
  EXPECT_EQ(Visited(), "one ");
  Plant(3, 4, 1, AsBytes("good"));
  Open();
  EXPECT_EQ(Visited(), "one good");
}

TEST_F(RingTest, RingWritesOnlyInItsPart) {
  for (std::byte& byte : disk_.bytes()) byte = std::byte{0x5a};
  ASSERT_TRUE(Ring::Format(disk_, part_, kRingIdentity).ok());
  auto ring = Open();
  ASSERT_TRUE(ring.has_value());
  for (uint64_t i = 0; i < 40; ++i) {
    ASSERT_TRUE(AppendTo(*ring, SomeBytes(1 + i * 331, i)).ok());
    ASSERT_TRUE(ring->Checkpoint(ring->end()).ok());
  }
  const auto bytes = disk_.bytes();
  const auto untouched = [](std::span<const std::byte> range) {
    return std::ranges::all_of(range, [](std::byte byte) { return byte == std::byte{0x5a}; });
  };
  EXPECT_TRUE(untouched(bytes.first(part_.offset)));
  EXPECT_TRUE(untouched(bytes.subspan(part_.offset + part_.size)));
}

// --- Long records

class LongRingTest : public testing::Test {
 protected:
  FakeDisk disk_{(2 + 700) * kDiskBlock, 4096, 1};
  const RingPart part_{0, (2 + 700) * kDiskBlock};
};

TEST_F(LongRingTest, LongestRecordsAndShortOnesAreReadAcrossTheReadersBuffer) {
  ASSERT_TRUE(Ring::Format(disk_, part_, kRingIdentity).ok());
  auto ring = MustOpenRing(disk_, part_);
  std::vector<std::byte> all;
  const auto append = [&](uint64_t size) {
    const auto bytes = SomeBytes(size, all.size() + size);
    all.insert(all.end(), bytes.begin(), bytes.end());
    return AppendTo(*ring, bytes).ok();
  };
  EXPECT_EQ(ring->Room(), kRecordBytesMax);
  for (int lap = 0; lap < 5; ++lap) {
    const Place begin = ring->end();
    ASSERT_TRUE(append(kRecordBytesMax));
    for (uint64_t i = 0; i < 100; ++i) ASSERT_TRUE(append(3000 + i * 37));
    ASSERT_TRUE(append(kRecordBytesMax));
    std::vector<VisitedRecord> visited;
    ring = MustOpenRing(disk_, part_, &visited);
    ASSERT_EQ(visited.size(), 102U);
    Place place = begin;
    for (const auto& record : visited) {
      ASSERT_EQ(record.from, place);
      ASSERT_TRUE(std::ranges::equal(record.bytes, std::span(all).subspan(place, record.bytes.size())));
      place += record.bytes.size();
    }
    ASSERT_EQ(place, all.size());
    ASSERT_TRUE(ring->Checkpoint(all.size()).ok());
  }
}

}  // namespace
}  // namespace erda::journal
