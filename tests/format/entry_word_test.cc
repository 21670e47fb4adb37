#include "format/entry_word.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>

namespace erda::format {
namespace {

constexpr uint64_t kTagBit = uint64_t{1} << 63;
constexpr uint64_t kFirstBits = uint64_t{0x7fffffff} << 32;
constexpr uint64_t kSecondBits = uint64_t{0x7fffffff} << 1;
constexpr uint64_t kSettledBit = 1;
static_assert((kTagBit ^ kFirstBits ^ kSecondBits ^ kSettledBit) == UINT64_MAX, "the parts cover the word");

constexpr std::array kAddresses = {
    kNoAddress,
    LogAddress(1),
    LogAddress(2),
    LogAddress(0x2aaaaaaa),
    LogAddress(0x55555555),
    LogAddress(0x40000000),
    LogAddress::At(31, 64),
    LogAddress(0x7ffffffe),
    LogAddress(0x7fffffff),
};

// The meaning of a word: its fields.
struct Meaning {
  bool tag;
  LogAddress newer;
  LogAddress older;
  bool settled;
  constexpr bool operator==(const Meaning&) const = default;
};
constexpr Meaning MeaningOf(EntryWord word) {
  return {word.new_tag(), word.new_address(), word.old_address(), word.settled()};
}

// Return the bits that hold the new address, and the old address, of a word with this tag.
constexpr uint64_t NewBits(bool tag) { return tag ? kFirstBits : kSecondBits; }
constexpr uint64_t OldBits(bool tag) { return tag ? kSecondBits : kFirstBits; }
// Returns whether the words differ in these bits at most.
constexpr bool OnlyDiffer(EntryWord a, EntryWord b, uint64_t bits) { return ((a.raw() ^ b.raw()) & ~bits) == 0; }

constexpr bool RoundTrips(const Meaning& m) {
  const EntryWord word = EntryWord::Make(m.tag, m.newer, m.older, m.settled);
  const uint64_t expected = (m.tag ? kTagBit : 0) | (uint64_t{(m.tag ? m.newer : m.older).raw()} << 32) |
                            (uint64_t{(m.tag ? m.older : m.newer).raw()} << 1) | (m.settled ? kSettledBit : 0);
  return word.raw() == expected && MeaningOf(word) == m && EntryWord(word.raw()) == word &&
         word.empty() == (word.raw() == 0);
}

constexpr bool SettlesWell(const Meaning& m) {
  const EntryWord word = EntryWord::Make(m.tag, m.newer, m.older, m.settled);
  return MeaningOf(word.Settled()) == Meaning{m.tag, m.newer, m.older, true} &&
         MeaningOf(word.Unsettled()) == Meaning{m.tag, m.newer, m.older, false} &&
         word.Settled().Settled() == word.Settled() && word.Unsettled().Unsettled() == word.Unsettled() &&
         word.Settled().Unsettled() == word.Unsettled() && OnlyDiffer(word, word.Settled(), kSettledBit) &&
         OnlyDiffer(word, word.Unsettled(), kSettledBit);
}

// This rule keeps the last whole version: the tag flips only over a settled version.
constexpr bool PublishesWell(const Meaning& m, LogAddress next) {
  const EntryWord word = EntryWord::Make(m.tag, m.newer, m.older, m.settled);
  const EntryWord published = word.Published(next);
  if (word.empty()) return MeaningOf(published) == Meaning{true, next, kNoAddress, false};
  if (m.settled) {
    // The new address takes the place of the older of the two addresses. The other one stays where it is.
    return MeaningOf(published) == Meaning{!m.tag, next, m.newer, false} &&
           OnlyDiffer(word, published, kTagBit | kSettledBit | OldBits(m.tag));
  }
  return MeaningOf(published) == Meaning{m.tag, next, m.older, false} && OnlyDiffer(word, published, NewBits(m.tag));
}

constexpr bool ReplacesOldWell(const Meaning& m, LogAddress late) {
  const EntryWord word = EntryWord::Make(m.tag, m.newer, m.older, m.settled);
  return MeaningOf(word.WithOld(late)) == Meaning{m.tag, m.newer, late, m.settled} &&
         OnlyDiffer(word, word.WithOld(late), OldBits(m.tag));
}

constexpr bool TakesBackWell(const Meaning& m, LogAddress earlier, bool settled) {
  const EntryWord word = EntryWord::Make(m.tag, m.newer, m.older, m.settled);
  const EntryWord taken = word.TakenBackTo(earlier, settled);
  return MeaningOf(taken) == Meaning{m.tag, earlier, m.older, settled} &&
         OnlyDiffer(word, taken, NewBits(m.tag) | kSettledBit);
}

constexpr bool TakesBackToOldWell(const Meaning& m) {
  const EntryWord word = EntryWord::Make(m.tag, m.newer, m.older, m.settled);
  const EntryWord taken = word.TakenBackToOld();
  if (m.older.none()) return taken.empty();
  // The old address stays where it is, and becomes the new one. The other place is free.
  return MeaningOf(taken) == Meaning{!m.tag, m.older, kNoAddress, true} &&
         OnlyDiffer(word, taken, kTagBit | kSettledBit | NewBits(m.tag));
}

// An entry needs one settled version: the new one if it is settled, and otherwise the old one.
constexpr bool NamesWhatIsSettled(const Meaning& m, LogAddress address) {
  const EntryWord word = EntryWord::Make(m.tag, m.newer, m.older, m.settled);
  if (word.needed_old() != (m.settled ? kNoAddress : m.older)) return false;
  const bool named = address == (m.settled ? m.newer : m.older) && !address.none();
  return word.NamesSettled(address) == named;
}

constexpr bool MovesWell(const Meaning& m, LogAddress to) {
  const EntryWord word = EntryWord::Make(m.tag, m.newer, m.older, m.settled);
  const LogAddress from = m.settled ? m.newer : m.older;
  // No two versions stand at one address.
  if (!word.NamesSettled(from) || m.newer == m.older) return true;
  const EntryWord moved = word.Moved(from, to);
  if (m.settled) {
    return MeaningOf(moved) == Meaning{m.tag, to, m.older, true} && OnlyDiffer(word, moved, NewBits(m.tag));
  }
  return MeaningOf(moved) == Meaning{m.tag, m.newer, to, false} && OnlyDiffer(word, moved, OldBits(m.tag));
}

// Checks every word that two of the addresses, a tag and a settled bit make.
template <class Check>
constexpr bool ForAllWords(Check&& check) {
  for (const bool tag : {false, true}) {
    for (const bool settled : {false, true}) {
      for (const LogAddress newer : kAddresses) {
        for (const LogAddress older : kAddresses) {
          if (!check(Meaning{tag, newer, older, settled})) return false;
        }
      }
    }
  }
  return true;
}
template <class Check>
constexpr bool ForAllWordsAndAddresses(Check&& check) {
  return ForAllWords([&](const Meaning& m) {
    for (const LogAddress address : kAddresses) {
      if (!check(m, address)) return false;
    }
    return true;
  });
}

// The compiler evaluates all of these checks.
static_assert(ForAllWords(RoundTrips));
static_assert(ForAllWords(SettlesWell));
static_assert(ForAllWordsAndAddresses(PublishesWell));
static_assert(ForAllWordsAndAddresses(ReplacesOldWell));
static_assert(ForAllWordsAndAddresses([](const Meaning& m, LogAddress address) {
  return TakesBackWell(m, address, false) && TakesBackWell(m, address, true);
}));
static_assert(ForAllWords(TakesBackToOldWell));
static_assert(ForAllWordsAndAddresses(NamesWhatIsSettled));
static_assert(ForAllWordsAndAddresses(MovesWell));

// These tests repeat the checks at run time. The compiler's evaluation and the code that it generates need not agree.
TEST(EntryWordTest, EveryWordReturnsItsFields) { EXPECT_TRUE(ForAllWords(RoundTrips)); }

TEST(EntryWordTest, SettlingChangesTheSettledBitAlone) { EXPECT_TRUE(ForAllWords(SettlesWell)); }

TEST(EntryWordTest, PublishingFlipsTheTagOnlyOverASettledVersion) {
  EXPECT_TRUE(ForAllWordsAndAddresses(PublishesWell));
}

TEST(EntryWordTest, ALateVersionBecomesTheOldOneAlone) { EXPECT_TRUE(ForAllWordsAndAddresses(ReplacesOldWell)); }

TEST(EntryWordTest, TakingBackKeepsTheOldVersion) {
  EXPECT_TRUE(ForAllWordsAndAddresses([](const Meaning& m, LogAddress address) {
    return TakesBackWell(m, address, false) && TakesBackWell(m, address, true);
  }));
}

TEST(EntryWordTest, TakingBackToTheOldVersionMakesItTheSettledNewOne) { EXPECT_TRUE(ForAllWords(TakesBackToOldWell)); }

TEST(EntryWordTest, OnlySettledVersionsAreNeededAndMovable) {
  EXPECT_TRUE(ForAllWordsAndAddresses(NamesWhatIsSettled));
}

TEST(EntryWordTest, AMoveChangesTheAddressOfTheSettledVersionAlone) { EXPECT_TRUE(ForAllWordsAndAddresses(MovesWell)); }

TEST(EntryWordTest, EveryBitPatternIsOneWord) {
  for (int bit = 0; bit < 64; ++bit) {
    for (const uint64_t raw : {uint64_t{1} << bit, ~(uint64_t{1} << bit)}) {
      const EntryWord word(raw);
      EXPECT_EQ(EntryWord::Make(word.new_tag(), word.new_address(), word.old_address(), word.settled()).raw(), raw);
      EXPECT_FALSE(word.empty());
    }
  }
}

TEST(EntryWordTest, TheLastSettledVersionSurvivesAnyNumberOfUnsettledOnes) {
  EntryWord word = EntryWord().Published(LogAddress(10)).Settled();
  for (uint32_t address = 11; address < 20; ++address) {
    word = word.Published(LogAddress(address));
    EXPECT_EQ(word.new_address(), LogAddress(address));
    EXPECT_EQ(word.old_address(), LogAddress(10));
    EXPECT_FALSE(word.settled());
  }
  EXPECT_EQ(word.TakenBackToOld(), EntryWord::Make(!word.new_tag(), LogAddress(10), kNoAddress, true));
}

TEST(EntryWordTest, AFirstVersionThatIsTakenBackLeavesNothing) {
  EXPECT_TRUE(EntryWord().Published(LogAddress(10)).TakenBackToOld().empty());
}

TEST(EntryWordTest, TheLayoutIsThePapers) {
  EXPECT_EQ(EntryWord::Make(true, LogAddress(0x12345678), LogAddress(0x0abcdef1), true).raw(), 0x923456781579bde3U);
  EXPECT_EQ(EntryWord::Make(false, LogAddress(0x12345678), LogAddress(0x0abcdef1), false).raw(), 0x0abcdef12468acf0U);
  EXPECT_EQ(EntryWord().Published(LogAddress(1)).raw(), 0x8000000100000000U);
}

}  // namespace
}  // namespace erda::format
