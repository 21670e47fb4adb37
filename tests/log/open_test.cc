#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"
#include "log/fixture.h"

namespace erda::log {
namespace {

using format::FirstObjectOffset;
using format::kGranuleBytes;
using format::LogAddress;
using format::RegionWord;

TEST(LogOpenTest, AnEmptyLogIsTakenUpEmpty) {
  TestLog log;
  ASSERT_TRUE(log.Reopen().ok());
  EXPECT_EQ(log->bytes_used(), 0U);
  EXPECT_EQ(log.Append(48)->address, LogAddress::At(0, 1152));
}

// A twin log that is never reopened shows where the log must go on.
TEST(LogOpenTest, TheLogGoesOnWhereItEnded) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    TestLog log;
    TestLog twin;
    Random random(seed);
    for (int i = 0; i < 1500; ++i) {
      const uint64_t size = random.Between(3, random.Chance(0.1) ? 184 : 30) * kGranuleBytes;
      const auto head = static_cast<uint32_t>(random.Uniform(2));
      if (random.Chance(0.1)) {
        ASSERT_TRUE(log.Reopen().ok());
      }
      ASSERT_EQ(log->bytes_used(), twin->bytes_used()) << "after " << i;
      const auto space = log.Append(size, head);
      const auto expected = twin.Append(size, head);
      ASSERT_EQ(space.has_value(), expected.has_value()) << "after " << i;
      if (!space) continue;
      ASSERT_EQ(space->address, expected->address) << "after " << i;
      ASSERT_EQ(space->offset, expected->offset) << "after " << i;
    }
    EXPECT_EQ(log.FreeRegions(), 1U);
    EXPECT_EQ(log.FreeRegions(), twin.FreeRegions());
  }
}

TEST(LogOpenTest, EveryObjectIsWhereItWas) {
  TestLog log;
  std::vector<LogAddress> addresses;
  while (const auto space = log.Append(400)) addresses.push_back(space->address);
  ASSERT_TRUE(log.Reopen().ok());
  for (size_t i = 0; i < addresses.size(); ++i) {
    EXPECT_EQ(log->Inspect(log.head(), addresses[i]).header.version, i + 1);
  }
}

TEST(LogOpenTest, ASegmentFilledToTheLastByteIsFull) {
  TestLog log;
  ASSERT_TRUE(log.Append(RoomIn(log, 0)));
  ASSERT_TRUE(log.Reopen().ok());
  EXPECT_EQ(log->bytes_used(), 4096U);
  EXPECT_EQ(log.Append(48)->address, LogAddress::At(0, 4096 + 64));
}

TEST(LogOpenTest, AnOpenSegmentWithoutObjectsIsEmpty) {
  TestLog log;
  const auto space = log.Reserve(48);  // nothing writes the header
  ASSERT_TRUE(space);
  ASSERT_TRUE(log.Reopen().ok());
  EXPECT_EQ(log->bytes_used(), FirstObjectOffset(0));
  EXPECT_EQ(log.Append(64)->address, space->address);
}

// Such a header may be damaged, and good objects may follow it. The log writes nothing over them.
TEST(LogOpenTest, AHeaderThatDoesNotVerifyFillsItsSegment) {
  // A write of header and key was cut off somewhere, or any one bit is wrong.
  constexpr uint64_t kHeaderBits = format::ChecksumOffset(3) * 8;
  for (uint64_t bit = 0; bit < kHeaderBits; ++bit) {
    const bool of_left =
        bit / 8 == offsetof(format::ObjectHeader, flags) && (format::ObjectHeader::kLeft >> (bit % 8)) % 2 != 0;
    if (of_left) continue;
    TestLog log({.regions = 2, .heads = 1});
    ASSERT_TRUE(log.Append(48));
    const auto torn = log.Append(64);
    ASSERT_TRUE(torn);
    log.bytes()[torn->offset + bit / 8] ^= std::byte{1} << static_cast<int>(bit % 8);
    ASSERT_TRUE(log.Reopen().ok());
    ASSERT_EQ(log->bytes_used(), 4096U) << "bit " << bit;
    ASSERT_EQ(log.Append(80)->address, LogAddress::At(0, 4096 + FirstObjectOffset(1))) << "bit " << bit;
  }
}

// Without a mark, the walk begins at the start of the segment.
TEST(LogOpenTest, LogOpensWithoutADamagedMark) {
  for (int bit = 0; bit < 64; ++bit) {
    TestLog log;
    std::optional<TestLog::Space> last;
    for (int i = 0; i < 16; ++i) last = log.Append(96);
    ASSERT_TRUE(last);
    const uint64_t at = last->offset - last->address.offset_in_slot() + offsetof(format::SegmentHeader, mark);
    ASSERT_GT(log.SegmentOf(*last).Marked(log.geometry().segment_size), FirstObjectOffset(0));
    log.nvm().Store64(at, log.nvm().Load64(at) ^ uint64_t{1} << bit);
    ASSERT_EQ(log.SegmentOf(*last).Marked(log.geometry().segment_size), std::nullopt) << "bit " << bit;
    ASSERT_TRUE(log.Reopen().ok());
    ASSERT_EQ(log.Append(48)->offset, last->offset + 96) << "bit " << bit;
  }
}

// Objects stood before the mark when it was stored. If zeroes have replaced them, the log still puts nothing there.
TEST(LogOpenTest, LogAppendsNothingBeforeTheMark) {
  TestLog log;
  const auto space = log.Append(96);
  ASSERT_TRUE(space);
  log->Close();
  log.nvm().ZeroOut(space->offset, 96);
  ASSERT_TRUE(log.Reopen().ok());
  EXPECT_EQ(log.Append(48)->offset, space->offset + 96);
}

// A crash cut sealing off after it had stored the end of the segment. Then smaller objects filled the segment.
TEST(LogOpenTest, SegmentFilledAfterACutSealingStatesItsEnd) {
  TestLog log;
  const auto space = log.Append(RoomIn(log, 0) - 48);
  ASSERT_TRUE(space);
  log.nvm().Store64(space->offset - space->address.offset_in_slot() + offsetof(format::SegmentHeader, end), 4048);
  ASSERT_TRUE(log.Append(48));
  ASSERT_TRUE(log.Reopen().ok());
  log->Close();
  EXPECT_EQ(log.StateOf(*space), format::SegmentState::kSettled);
  EXPECT_EQ(log.SegmentOf(*space).end, 4096U);
}

// A crash came after the shard had sealed a segment, and before it opened the next. The segment keeps its end.
TEST(LogOpenTest, SealedSegmentKeepsItsEnd) {
  TestLog log;
  const auto space = log.Append(RoomIn(log, 0) - 48);
  ASSERT_TRUE(space);
  const uint64_t header = space->offset - space->address.offset_in_slot();
  log.nvm().Store64(header + offsetof(format::SegmentHeader, end), 4048);
  log.nvm().Store64(header + offsetof(format::SegmentHeader, state),
                    static_cast<uint64_t>(format::SegmentState::kSettled));
  ASSERT_TRUE(log.Reopen().ok());
  EXPECT_EQ(log.Append(48)->address, LogAddress::At(0, 4096 + 64));
  EXPECT_EQ(log.SegmentOf(*space).end, 4048U);
}

TEST(LogOpenTest, AMissingValueDoesNotEndTheWalk) {
  TestLog log;
  ASSERT_TRUE(log.Append(1600));  // only header and key are there: the value may be under way
  const auto behind = log.Append(48);
  ASSERT_TRUE(behind);
  ASSERT_TRUE(log.Reopen().ok());
  EXPECT_EQ(log.Append(48)->offset, behind->offset + 48);
}

TEST(LogOpenTest, AnObjectOfAnotherPoolOrPlaceIsNotTaken) {
  TestLog log;
  ASSERT_TRUE(log.Append(48));
  const auto space = log.Reserve(48);
  ASSERT_TRUE(space);
  // A header that verifies in another head or at another address.
  for (const auto& [head, address] :
       {std::pair(log.head(1), space->address), std::pair(log.head(0), LogAddress(space->address.raw() + 1)),
        std::pair(log.head(0), LogAddress::At(1, space->address.offset_in_slot()))}) {
    log.WriteHeader(head, {address, space->offset}, 48, 2);
    ASSERT_TRUE(log.Reopen().ok());
    EXPECT_EQ(log->bytes_used(), 4096U);
  }
  log.WriteHeader(log.head(0), *space, 48, 2);
  ASSERT_TRUE(log.Reopen().ok());
  EXPECT_EQ(log->bytes_used(), FirstObjectOffset(0) + 48 + 48);
}

// A region in its second use, as after cleaning. It has the same places, so only the versions show which objects are
// old.
TEST(LogOpenTest, ObjectsOfAnEarlierUseAreNotTaken) {
  TestLog log({.regions = 2, .heads = 1});
  while (log.Append(480)) {
  }
  log.StoreRegionWord(0, RegionWord::Free(1).raw());
  ASSERT_TRUE(log.Reopen().ok());
  EXPECT_EQ(log->bytes_used(), 0U);

  const uint64_t version = log.next_version;
  const auto space = log.Reserve(480);  // the shard crashed before it wrote the header
  ASSERT_TRUE(space);
  EXPECT_EQ(log.region_word(0), RegionWord::Linked(2, log.head(), 0));
  EXPECT_EQ(log.SegmentOf(*space).first_version, version);
  ASSERT_EQ(log->Inspect(log.head(), space->address).header.version, 1U) << "the old object is still there";
  ASSERT_TRUE(log.Reopen().ok());
  // The log takes neither the old object after the open segment's header, nor the later segments of the old generation.
  // It appends nothing to the rest of the open segment.
  EXPECT_EQ(log->bytes_used(), 4096U);
  EXPECT_EQ(log.Append(480)->address, LogAddress::At(0, 4096 + FirstObjectOffset(1)));
}

TEST(LogOpenTest, ALinkedRegionWithoutASegmentOfItsGenerationIsDamage) {
  TestLog log({.regions = 2, .heads = 1});
  while (log.Append(480)) {
  }
  log.StoreRegionWord(0, RegionWord::Linked(2, log.head(), 0).raw());
  EXPECT_EQ(log.Reopen().code(), Code::kCorruption);
}

TEST(LogOpenTest, ASegmentWithVersionsOverTheLimitIsDamage) {
  TestLog log;
  ASSERT_TRUE(log.Append(48));
  EXPECT_EQ(log.Reopen(1).code(), Code::kCorruption);
  EXPECT_TRUE(log.Reopen(2).ok());
}

TEST(LogOpenTest, TheOpenSegmentIsTheNewestOfAllRegions) {
  // The newest segment is in the lowest head slot here, so the order of slots is not the order of age.
  TestLog log({.regions = 4, .heads = 1});
  while (log.FreeRegions() > 1) ASSERT_TRUE(log.Append(480));
  log.StoreRegionWord(0, RegionWord::Free(1).raw());
  ASSERT_TRUE(log.Reopen().ok());
  std::optional<TestLog::Space> last;
  for (int i = 0; i < 200 && log.region_word(0).generation() == 1; ++i) last = log.Append(480);
  ASSERT_TRUE(last);
  ASSERT_EQ(last->address, LogAddress::At(0, 1152));
  ASSERT_TRUE(log.Reopen().ok());
  EXPECT_EQ(log.Append(480)->address, LogAddress::At(0, 4096 + FirstObjectOffset(1)));
}

// --- A damaged region table

class LogDamageTest : public testing::Test {
 protected:
  void SetUp() override {
    // Fills regions 0 to 2, which are in head slots 0 to 2 of head 0.
    while (log_.FreeRegions() > 3) ASSERT_TRUE(log_.Append(RoomIn(log_, 0)));
  }
  testing::AssertionResult IsDamage(uint32_t region, uint64_t raw) {
    const uint64_t good = log_.region_word(region).raw();
    log_.StoreRegionWord(region, raw);
    const Status status = log_.Reopen();
    log_.StoreRegionWord(region, good);
    const std::string named = "region " + std::to_string(log_.region(region));
    if (status.code() == Code::kCorruption && status.message().find(named) != std::string_view::npos)
      return testing::AssertionSuccess();
    return testing::AssertionFailure() << status.ToString();
  }

  TestLog log_;
};

TEST_F(LogDamageTest, TwoRegionsInOneSlotAreDamage) {
  EXPECT_TRUE(IsDamage(2, log_.region_word(1).raw()));
  EXPECT_TRUE(IsDamage(5, log_.region_word(0).raw()));
  EXPECT_TRUE(log_.Reopen().ok());
}

TEST_F(LogDamageTest, ImpossibleHeadSlotIsDamage) {
  for (const uint32_t slot : {32U, 33U, 255U}) EXPECT_TRUE(IsDamage(1, RegionWord::Linked(1, log_.head(), slot).raw()));
}

TEST_F(LogDamageTest, AHeadOfAnotherShardIsDamage) {
  for (const uint32_t head : {0U, 1U, 4U, 255U}) EXPECT_TRUE(IsDamage(1, RegionWord::Linked(1, head, 1).raw()));
}

TEST_F(LogDamageTest, ImpossibleRegionWordIsDamage) {
  const uint64_t good = log_.region_word(1).raw();
  for (uint64_t state = 0; state < 256; ++state) {
    if (state == (good & 0xff)) continue;
    EXPECT_TRUE(IsDamage(1, (good & ~uint64_t{0xff}) | state)) << state;
  }
  EXPECT_TRUE(
      IsDamage(0, log_.region_word(0).raw() & ~uint64_t{0xff}));  // slot 0 of the first head, as if it were free
  for (int bit = 0; bit < 64; ++bit) EXPECT_TRUE(IsDamage(1, good ^ uint64_t{1} << bit)) << bit;
}

TEST_F(LogDamageTest, RandomRegionTableIsTakenOrRefused) {
  constexpr uint64_t kSeed = 11;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  Random random(kSeed);
  int taken = 0;
  for (int i = 0; i < 20'000; ++i) {
    for (uint32_t region = 0; region < log_.geometry().regions_per_shard; ++region) {
      const auto generation = static_cast<uint32_t>(random.Uniform(3));
      const auto head = static_cast<uint32_t>(random.Between(2, random.Chance(0.1) ? 4 : 3));
      const auto slot = static_cast<uint32_t>(random.Uniform(random.Chance(0.1) ? 40 : 32));
      const RegionWord word =
          random.Chance(0.4) ? RegionWord::Free(generation) : RegionWord::Linked(generation, head, slot);
      log_.StoreRegionWord(region, random.Chance(0.02) ? random.Next() : word.raw());
    }
    const Status status = log_.Reopen();
    if (!status.ok()) {
      ASSERT_EQ(status.code(), Code::kCorruption);
      continue;
    }
    ++taken;
    ASSERT_LE(log_->bytes_used(), log_->regions().bytes_total());
  }
  EXPECT_GT(taken, 100);
}

// --- Addresses

TEST(LogAddressTest, NoAddressLeadsOutOfASegment) {
  constexpr uint64_t kSeed = 12;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  TestLog log;
  while (log.Append(400, 0) && log.Append(400, 1)) {
  }
  const format::Geometry& g = log.geometry();
  Random random(kSeed);
  uint64_t inside = 0;
  for (int i = 0; i < 300'000; ++i) {
    const auto head = static_cast<uint32_t>(random.Chance(0.9) ? random.Uniform(6) : random.Next());
    const auto slot = static_cast<uint32_t>(random.Uniform(random.Chance(0.5) ? 3 : 32));
    const uint64_t offset = random.Uniform(random.Chance(0.7) ? g.region_size * 2 : format::kRegionBytesMax);
    const LogAddress address =
        random.Chance(0.9) ? LogAddress::At(slot, offset) : LogAddress(static_cast<uint32_t>(random.Next()));
    const auto bytes = log->BytesAt(head, address);
    static_cast<void>(log->Inspect(head, address));
    if (bytes.empty()) continue;
    ++inside;
    ASSERT_GE(bytes.data(), log.bytes().data() + g.regions_offset);
    const auto begin = static_cast<uint64_t>(bytes.data() - log.bytes().data()) - g.regions_offset;
    ASSERT_LE(begin + bytes.size(), g.regions() * g.region_size);
    ASSERT_EQ(begin / g.region_size % g.shards, TestLog::kShard);
    ASSERT_EQ(begin / g.segment_size, (begin + bytes.size() - 1) / g.segment_size);
    ASSERT_EQ((begin + bytes.size()) % g.segment_size, 0U);
    ASSERT_EQ(begin % g.region_size, address.offset_in_slot());
  }
  EXPECT_GT(inside, 10'000U);
}

TEST(LogAddressTest, AddressOutsideOfTheLogHasNoBytes) {
  TestLog log;
  ASSERT_TRUE(log.Append(48));
  EXPECT_TRUE(log->BytesAt(log.head(), format::kNoAddress).empty());
  EXPECT_TRUE(log->BytesAt(log.head(), LogAddress::At(1, 64)).empty());     // a slot without a region
  EXPECT_TRUE(log->BytesAt(log.head(), LogAddress::At(0, 16384)).empty());  // after the region
  EXPECT_TRUE(log->BytesAt(log.head(1), LogAddress::At(0, 1152)).empty());  // another head
  EXPECT_TRUE(log->BytesAt(0, LogAddress::At(0, 1152)).empty());            // another shard's
  EXPECT_TRUE(log->BytesAt(UINT32_MAX, LogAddress::At(0, 1152)).empty());
  EXPECT_EQ(log->BytesAt(log.head(), LogAddress::At(0, 16384 - 16)).size(), 16U);
  EXPECT_EQ(log->BytesAt(log.head(), LogAddress::At(0, 4096)).size(), 4096U);
}

}  // namespace
}  // namespace erda::log
