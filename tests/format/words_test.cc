// Tests of the types of one word: log address, entry meta, region word, and others.
#include <gtest/gtest.h>

#include <array>
#include <bit>

#include "format/control_block.h"
#include "format/index_entry.h"
#include "format/log_address.h"
#include "format/log_layout.h"
#include "format/superblock.h"

namespace erda::format {
namespace {

constexpr std::array kOffsets = {uint64_t{0},         uint64_t{16},         uint64_t{64},
                                 uint64_t{4096},      uint64_t{1} << 20,    uint64_t{1} << 27,
                                 kRegionBytesMax / 2, kRegionBytesMax - 32, kRegionBytesMax - 16};

constexpr bool AddressesRoundTrip() {
  for (uint32_t slot = 0; slot < kSlotsPerHead; ++slot) {
    for (const uint64_t offset : kOffsets) {
      const LogAddress address = LogAddress::At(slot, offset);
      if (address.slot() != slot || address.offset_in_slot() != offset) return false;
      if (address.raw() != slot * (1U << 24) + offset / 16 || LogAddress(address.raw()) != address) return false;
      if (address.none() != (slot == 0 && offset == 0)) return false;
    }
  }
  return true;
}
static_assert(AddressesRoundTrip());

TEST(LogAddressTest, AddressReturnsItsSlotAndOffset) { EXPECT_TRUE(AddressesRoundTrip()); }

TEST(LogAddressTest, ExtremeAddressesHaveTheirDocumentedNumbers) {
  EXPECT_EQ(LogAddress::At(0, 16).raw(), 1U);
  EXPECT_EQ(LogAddress::At(1, 0).raw(), 0x01000000U);
  EXPECT_EQ(LogAddress::At(127, kRegionBytesMax - 16).raw(), 0x7fffffffU);
  EXPECT_TRUE(kNoAddress.none());
  EXPECT_EQ(kNoAddress.raw(), 0U);
}

TEST(LogAddressTest, TheHighestBitIsNoPartOfAnAddress) {
  EXPECT_EQ(LogAddress(0xffffffff).raw(), 0x7fffffffU);
  EXPECT_EQ(LogAddress(0x80000001), LogAddress(1));
  EXPECT_TRUE(LogAddress(0x80000000).none());
}

constexpr bool MetasRoundTrip() {
  for (const uint32_t tag : {0U, 1U, 0x89abcdefU, UINT32_MAX}) {
    for (uint32_t depth = 0; depth < 256; depth += 51) {
      for (uint32_t distance = 0; distance < 256; ++distance) {
        const EntryMeta meta = EntryMeta::Make(tag, depth, distance, 100);
        const uint64_t expected = uint64_t{tag} << 32 | depth << 24 | distance << 16 | 7;
        if (meta.raw() != expected || EntryMeta(expected) != meta) return false;
        if (meta.tag() != tag || meta.depth() != depth || meta.distance() != distance) return false;
      }
    }
  }
  return true;
}
static_assert(MetasRoundTrip());

TEST(EntryMetaTest, MetaReturnsItsTagDepthAndDistance) { EXPECT_TRUE(MetasRoundTrip()); }

TEST(EntryMetaTest, ANewDistanceOrDepthChangesNothingElse) {
  const EntryMeta meta = EntryMeta::Make(0x12345678, 200, 31, 5000);
  for (uint32_t distance = 0; distance < 256; ++distance) {
    const EntryMeta moved = meta.WithDistance(distance);
    EXPECT_EQ(moved.distance(), distance);
    EXPECT_EQ(moved.WithDistance(31), meta);
  }
  for (uint32_t depth = 0; depth < 256; ++depth) {
    const EntryMeta told = meta.WithDepth(depth);
    EXPECT_EQ(told.depth(), depth);
    EXPECT_EQ(told.WithDepth(200), meta);
  }
}

TEST(EntryMetaTest, OversizedFieldDoesNotSpillIntoItsNeighbours) {
  const EntryMeta meta = EntryMeta::Make(1, 256 + 7, 256 + 9, 16);
  EXPECT_EQ(meta.tag(), 1U);
  EXPECT_EQ(meta.depth(), 7U);
  EXPECT_EQ(meta.distance(), 9U);
  EXPECT_EQ(meta.WithDistance(256 + 3).depth(), 7U);
}

TEST(EntryMetaTest, TheSizeHintRoundsUpToGranules) {
  const auto hint = [](uint64_t bytes) { return EntryMeta::Make(0, 0, 0, bytes).size_hint_bytes(); };
  EXPECT_EQ(hint(0), 0U);
  EXPECT_EQ(hint(1), 16U);
  EXPECT_EQ(hint(16), 16U);
  EXPECT_EQ(hint(17), 32U);
  EXPECT_EQ(hint(0xfffe * 16), 0xfffeU * 16);
}

TEST(EntryMetaTest, ALargeSizeHintSaturates) {
  constexpr uint64_t kMost = 0xffff * kGranuleBytes;
  for (const uint64_t bytes : {kMost - 15, kMost, kMost + 1, kRegionBytesMax, uint64_t{1} << 40}) {
    const EntryMeta meta = EntryMeta::Make(5, 6, 7, bytes);
    EXPECT_EQ(meta.size_hint_bytes(), kMost) << bytes;
    EXPECT_EQ(meta.distance(), 7U) << bytes;
  }
}

TEST(EntryMetaTest, TheTagIsTheLowHalfOfTheHash) {
  EXPECT_EQ(EntryMeta::TagOf(0x0123456789abcdef), 0x89abcdefU);
  EXPECT_EQ(EntryMeta::TagOf(uint64_t{7} << 32), 0U);
}

bool RegionWordsRoundTrip() {
  for (const uint32_t generation : {0U, 1U, 0x80000000U, UINT32_MAX}) {
    if (RegionWord::Free(generation).linked() || RegionWord::Free(generation).generation() != generation) return false;
    for (uint32_t head = 0; head < 256; ++head) {
      for (uint32_t slot = 0; slot < kSlotsPerHead; ++slot) {
        const RegionWord word = RegionWord::Linked(generation, head, slot);
        if ((word.raw() & ~uint64_t{0xff000000}) != (uint64_t{generation} << 32 | slot << 16 | head << 8 | 0xa5))
          return false;
        const RegionWord settled = word.Settled();
        if (!settled.linked() || !settled.settled() || word.settled() || settled.head() != head) return false;
        if (settled.slot() != slot || settled.generation() != generation || !settled.IsWholeLink()) return false;
        if (!word.linked() || word.head() != head || word.slot() != slot || word.generation() != generation)
          return false;
      }
    }
  }
  return true;
}

TEST(RegionWordTest, WordReturnsItsHeadSlotAndGeneration) { EXPECT_TRUE(RegionWordsRoundTrip()); }

TEST(RegionWordTest, NoFlippedBitMakesOneWordOfAnother) {
  for (const uint32_t generation : {0U, 1U, 2U, 0x01020304U}) {
    for (const RegionWord word :
         {RegionWord::Free(generation), RegionWord::Emptied(generation), RegionWord::Linked(generation, 0, 0),
          RegionWord::Linked(generation, 3, 31), RegionWord::Linked(generation, 0, 0).Settled(),
          RegionWord::Linked(generation, 3, 31).Settled()}) {
      for (int bit = 0; bit < 64; ++bit) {
        const RegionWord flipped(word.raw() ^ uint64_t{1} << bit);
        EXPECT_NE(flipped, RegionWord::Free(flipped.generation())) << "bit " << bit;
        EXPECT_NE(flipped, RegionWord::Emptied(flipped.generation())) << "bit " << bit;
        EXPECT_FALSE(flipped.IsWholeLink()) << "bit " << bit;
      }
    }
  }
}

TEST(RegionWordTest, AnEmptiedRegionIsNeitherFreeNorLinked) {
  for (const uint32_t generation : {0U, 1U, 0x80000000U, UINT32_MAX}) {
    const RegionWord emptied = RegionWord::Emptied(generation);
    EXPECT_EQ(emptied.generation(), generation);
    EXPECT_FALSE(emptied.linked());
    EXPECT_NE(emptied, RegionWord::Free(generation));
    EXPECT_NE(emptied, RegionWord::Linked(generation, emptied.head(), emptied.slot()));
  }
}

TEST(CheckedWordTest, CheckedWordReturnsItsTimeAndZeroesAreNoTime) {
  for (const uint64_t millis : {uint64_t{1}, uint64_t{1'790'000'000'000}, (uint64_t{1} << 48) - 1}) {
    EXPECT_EQ(CheckedWord::Of(millis).number(), millis);
    EXPECT_EQ(CheckedWord(CheckedWord::Of(millis).raw()).number(), millis);
  }
  EXPECT_EQ(CheckedWord().number(), 0U);
}

TEST(CheckedWordTest, NoFlippedBitMakesOneTimeOfAnother) {
  for (const uint64_t millis : {uint64_t{0}, uint64_t{1}, uint64_t{1'790'000'000'000}, (uint64_t{1} << 48) - 1}) {
    for (int bit = 0; bit < 64; ++bit) {
      EXPECT_EQ(CheckedWord(CheckedWord::Of(millis).raw() ^ uint64_t{1} << bit).number(), 0U)
          << millis << ", bit " << bit;
    }
  }
}

TEST(HeadSlotTest, SlotReturnsItsRegionAndGeneration) {
  EXPECT_TRUE(HeadSlot().none());
  for (const uint32_t region : {0U, 1U, 1000U}) {
    for (const uint32_t generation : {0U, 1U, UINT32_MAX}) {
      const HeadSlot slot = HeadSlot::Of(region, generation);
      EXPECT_FALSE(slot.none());
      EXPECT_EQ(slot.region(), region);
      EXPECT_EQ(slot.generation(), generation);
      EXPECT_EQ(HeadSlot(slot.raw()), slot);
    }
  }
}

TEST(RegionWordTest, ZeroesAreAFreeRegion) {
  EXPECT_FALSE(RegionWord().linked());
  EXPECT_EQ(RegionWord(), RegionWord::Free(0));
}

TEST(SegmentTest, ASegmentsIdentityNamesItsGeneration) {
  static_assert(SegmentHeader::Identity(0) == 0x4745534500000000);
  static_assert(SegmentHeader::Identity(UINT32_MAX) == 0xb8baacbaffffffff);
  EXPECT_NE(SegmentHeader::Identity(1), SegmentHeader::Identity(2));
}

// A segment that is not opened yet has zeroes, or the identity of an earlier use. Any other word is damage.
TEST(SegmentTest, NoFlippedBitMakesAnOpenedSegmentLookNew) {
  SegmentHeader header{};
  EXPECT_TRUE(header.NotYet(1));
  header.identity = SegmentHeader::Identity(6);
  EXPECT_TRUE(header.NotYet(7));
  EXPECT_FALSE(header.NotYet(6));
  EXPECT_FALSE(header.NotYet(5));
  for (const uint32_t generation : {1U, 2U, 7U, 1U << 31}) {
    for (int bit = 0; bit < 64; ++bit) {
      header.identity = SegmentHeader::Identity(generation) ^ uint64_t { 1 } << bit;
      EXPECT_FALSE(header.NotYet(generation)) << "bit " << bit;
    }
  }
}

TEST(SegmentTest, NoTwoFlippedBitsMakeOneStateOfAnother) {
  constexpr SegmentState kStates[] = {SegmentState::kOpen, SegmentState::kSealed, SegmentState::kSettled,
                                      SegmentState::kCopies, SegmentState::kCopied};
  for (const auto a : kStates) {
    EXPECT_GT(std::popcount(static_cast<uint64_t>(a)), 2);
    for (const auto b : kStates) {
      if (a == b) continue;
      EXPECT_GT(std::popcount(static_cast<uint64_t>(a) ^ static_cast<uint64_t>(b)), 2);
    }
  }
}

TEST(SegmentTest, CopiesAreKnownByTheirStateAlone) {
  SegmentHeader header{};
  EXPECT_FALSE(header.copies());
  for (const uint64_t first_version : {0, 1, 77}) {
    header.first_version = first_version;
    for (const auto state : {SegmentState::kCopies, SegmentState::kCopied}) {
      header.state = static_cast<uint64_t>(state);
      EXPECT_TRUE(header.copies());
      EXPECT_EQ(header.settled(), state == SegmentState::kCopied);
      EXPECT_EQ(header.oldest_version(), 0U);
    }
    for (const auto state : {SegmentState::kOpen, SegmentState::kSealed, SegmentState::kSettled}) {
      header.state = static_cast<uint64_t>(state);
      EXPECT_FALSE(header.copies());
      EXPECT_EQ(header.settled(), state == SegmentState::kSettled);
      EXPECT_EQ(header.oldest_version(), first_version);
    }
  }
}

TEST(SegmentTest, AMarkIsAPlaceInItsSegmentOrNone) {
  SegmentHeader header{};
  EXPECT_EQ(header.Marked(4096), std::nullopt);
  for (const uint64_t offset : {uint64_t{64}, uint64_t{1152}, uint64_t{4080}, uint64_t{4096}}) {
    header.mark = SegmentHeader::Mark(offset);
    EXPECT_EQ(header.Marked(4096), offset);
    for (int bit = 0; bit < 64; ++bit) {
      header.mark = SegmentHeader::Mark(offset) ^ uint64_t { 1 } << bit;
      EXPECT_EQ(header.Marked(4096), std::nullopt) << "bit " << bit;
      for (int other = 0; other < bit; ++other) {
        header.mark = SegmentHeader::Mark(offset) ^ uint64_t { 1 } << bit ^ uint64_t { 1 } << other;
        EXPECT_EQ(header.Marked(4096), std::nullopt) << "bits " << bit << ", " << other;
      }
    }
  }
  for (const uint64_t offset : {uint64_t{64}, uint64_t{1} << 28, uint64_t{3} << 28, kRegionBytesMax}) {
    for (int bit = 0; bit < 64; ++bit) {
      for (int other = 0; other <= bit; ++other) {
        header.mark = SegmentHeader::Mark(offset) ^ uint64_t { 1 } << bit;
        if (other != bit) header.mark ^= uint64_t{1} << other;
        EXPECT_EQ(header.Marked(kRegionBytesMax), std::nullopt) << "bits " << bit << ", " << other;
      }
    }
  }
  for (const uint64_t nowhere : {uint64_t{4112}, uint64_t{1160}, uint64_t{UINT32_MAX}}) {
    header.mark = SegmentHeader::Mark(nowhere);
    EXPECT_EQ(header.Marked(4096), std::nullopt) << nowhere;
  }
}

TEST(SegmentTest, OnlyTheFirstSegmentOfARegionHasATombstoneSlot) {
  EXPECT_EQ(FirstObjectOffset(0), 1152U);
  EXPECT_EQ(FirstObjectOffset(1), 64U);
  EXPECT_EQ(FirstObjectOffset(127), 64U);
  EXPECT_GE(kTombstoneSlotBytes, ObjectSpace(kKeyBytesMax, 0));
}

TEST(ObjectSizeTest, AnObjectTakesWholeGranules) {
  static_assert(ObjectBytes(1, 0) == 37 && ObjectSpace(1, 0) == 48);
  for (uint64_t key = 1; key < 40; ++key) {
    for (uint64_t value = 0; value < 40; ++value) {
      EXPECT_EQ(ObjectSpace(key, value) % kGranuleBytes, 0U);
      EXPECT_GE(ObjectSpace(key, value), ObjectBytes(key, value));
      EXPECT_LT(ObjectSpace(key, value), ObjectBytes(key, value) + kGranuleBytes);
      EXPECT_EQ(ObjectBytes(key, value), 32 + key + 4 + value);
    }
  }
  EXPECT_EQ(ObjectBytes(kKeyBytesMax, UINT32_MAX), 32 + 1024 + 4 + uint64_t{UINT32_MAX});
}

}  // namespace
}  // namespace erda::format
