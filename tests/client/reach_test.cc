// Gets of keys that may be far from their homes, against a server that answers by hand (format/reach.h, I15).
#include "format/reach.h"

#include <gtest/gtest.h>

#include <string>

#include "client/hand_pool.h"

namespace erda::client {
namespace {

using format::EntryMeta;
using format::EntryWord;
using format::Reaches;

const std::string kAbsentName(CodeName(Code::kNotFound));

// A block has 128 slots. The window of exponent 1 is all of it.
class ReachTest : public HandPoolTest {
 protected:
  void SetUp() override {
    HandPoolTest::SetUp();
    do {
      crowded_ = "key" + std::to_string(number_++);
    } while (geometry_.HomeInBlock(HashKey(crowded_)) != kHome);
  }
  // From here on the control block has these reaches.
  void Raise(std::string_view key) {
    reaches_ = reaches_.Raised(HashKey(key));
    const uint64_t number = reaches_.number();
    std::memcpy(control_.data() + offsetof(format::ControlBlock, reaches), &number, sizeof(number));
  }
  // Stores a version, and an entry in this slot of block 0 that names it.
  void PutAt(uint64_t slot, std::string_view key, std::string_view value) {
    const uint64_t hash = HashKey(key);
    const format::IndexEntry entry{
        EntryWord().Published(Write(key, value, hash)).Settled().raw(),
        EntryMeta::Make(EntryMeta::TagOf(hash), 0, EntryMeta::kFar, format::ObjectSpace(key.size(), value.size()))
            .raw()};
    WriteEntry(slot, entry);
  }
  void WriteEntry(uint64_t slot, const format::IndexEntry& entry) {
    std::memcpy(pool_.data() + OffsetOf(0) + slot * sizeof(entry), &entry, sizeof(entry));
  }

  static constexpr uint64_t kHome = 30;
  std::string crowded_;
  int number_ = 0;
  Reaches reaches_;
};

TEST_F(ReachTest, FarKeyIsFoundOnBothSidesOfItsNeighbourhood) {
  for (const bool known : {false, true}) {
    for (const uint64_t slot : {kHome - 1, uint64_t{0}, kHome + 64, kBlockSlots - 1}) {
      SCOPED_TRACE(slot);
      reaches_ = {};
      if (known) Raise(crowded_);
      Connect();
      if (!known) Raise(crowded_);
      PutAt(slot, crowded_, "value");
      const bool before = slot < kHome;
      // The rest of the block is two pieces: 34 slots after the neighbourhood, and 30 before it.
      EXPECT_EQ(ReadsOfGet(crowded_), before ? "look 0 | reading, all 0, reading | piece 0 | piece 0 | version"
                                             : "look 0 | reading, all 0, reading | piece 0 | version");
      EXPECT_EQ(got_, "value");
      WriteEntry(slot, {});
      next_object_ = 256;
      engine_.reset();
    }
  }
}

TEST_F(ReachTest, MissReadsTheWholeWindowBetweenTwoReadings) {
  Connect();
  EXPECT_EQ(ReadsOfGet(crowded_), "look 0 | reading, all 0, reading");
  Raise(crowded_);
  EXPECT_EQ(ReadsOfGet(crowded_), "look 0 | reading, all 0, reading | piece 0 | piece 0 | reading");
  EXPECT_EQ(got_, kAbsentName);
  std::string other;
  do {
    other = "key" + std::to_string(number_++);
  } while (Reaches::ClassOf(HashKey(other)) == Reaches::ClassOf(HashKey(crowded_)));
  EXPECT_EQ(ReadsOfGet(other), "look 0 | reading, all 0, reading") << "of another class";
}

// The window grows during the search, and the key comes.
TEST_F(ReachTest, WindowThatGrowsDuringALookIsSearched) {
  Connect();
  Before(4, [&] {
    Raise(crowded_);
    PutAt(0, crowded_, "value");
  });
  EXPECT_EQ(ReadsOfGet(crowded_), "look 0 | reading, all 0, reading | piece 0 | piece 0 | version");
  EXPECT_EQ(got_, "value");
}

// Entries that moved, or went to another block, may have overtaken the look.
TEST_F(ReachTest, MissInAWindowDoesNotCountWhileEntriesMove) {
  Connect();
  Raise(crowded_);
  Before(6, [&] {
    TellDisplacements(2);
    PutAt(kHome + 3, crowded_, "value");
  });
  EXPECT_EQ(ReadsOfGet(crowded_),
            "look 0 | reading, all 0, reading | piece 0 | piece 0 | reading | reading, all 0, reading | version");
  EXPECT_EQ(got_, "value");
}

// Any number of keys may have one tag, and all of them stand in the window. The get ends all the same.
TEST_F(ReachTest, KeyThatSharesItsTagWithManyIsAbsentOrFound) {
  Connect();
  Raise(crowded_);
  const uint64_t hash = HashKey(crowded_);
  const auto foreign = Write("foreign", "v", hash ^ uint64_t{1} << 40);  // As if its hash ended alike.
  const auto put_foreign = [&](uint64_t slot) {
    const auto old = format::LogAddress::At(0, 2048 + slot * format::kGranuleBytes);  // Each entry has another word.
    WriteEntry(slot, {EntryWord().Published(old).Settled().Published(foreign).Settled().raw(),
                      EntryMeta::Make(EntryMeta::TagOf(hash), 0, EntryMeta::kFar, 64).raw()});
  };
  const auto rounds_of_get = [&] {
    int rounds = 0;
    for (Get(crowded_, &got_); !fabric_->posted.empty() && rounds < 1000; ++rounds) (void)Round();
    return rounds;
  };
  for (uint64_t slot = kHome; slot < kHome + 5; ++slot) put_foreign(slot);
  for (uint64_t slot = kHome + 64; slot < kBlockSlots; ++slot) put_foreign(slot);
  for (uint64_t slot = 0; slot < kHome - 1; ++slot) put_foreign(slot);
  EXPECT_EQ(rounds_of_get(), (1 + 5) + 1 + (1 + 34) + (1 + 29) + 1)
      << "two looks, two pieces and their versions, a reading";
  EXPECT_EQ(got_, kAbsentName);
  PutAt(kHome - 1, crowded_, "value");
  EXPECT_EQ(rounds_of_get(), (1 + 5) + 1 + (1 + 34) + (1 + 29) + 1) << "and the key's own, in place of the reading";
  EXPECT_EQ(got_, "value");
}

// A fabric keeps no order among Reads. So a client that knows of the window asks for the reading after all of the
// pieces.
TEST_F(ReachTest, PiecesArriveBeforeTheReadingIfReadsHaveNoOrder) {
  fabric_->reads_in_order = false;
  Connect();
  Raise(crowded_);
  EXPECT_EQ(ReadsOfGet(crowded_), "look 0 | all 0 | reading | piece 0 | piece 0 | reading");
  EXPECT_EQ(got_, kAbsentName);
  EXPECT_EQ(ReadsOfGet(crowded_), "all 0 | piece 0 | piece 0 | reading") << "after a miss, and it is known";
  EXPECT_EQ(got_, kAbsentName);
  Before(4, [&] {  // The reading after the entries.
    TellDisplacements(2);
    PutAt(kHome + 3, crowded_, "value");
  });
  EXPECT_EQ(ReadsOfGet(crowded_), "all 0 | piece 0 | piece 0 | reading | all 0 | version");
  EXPECT_EQ(got_, "value");
  WriteEntry(kHome + 3, {});
  PutAt(0, crowded_, "far");
  EXPECT_EQ(ReadsOfGet(crowded_), "all 0 | piece 0 | piece 0 | version");
  EXPECT_EQ(got_, "far");
}

// If a server lies about reaches, a get looks at its whole block, and no farther.
TEST_F(ReachTest, ImpossibleReachCountsAsTheWholeBlock) {
  Connect();
  for (int i = 0; i < 7; ++i) Raise(crowded_);
  EXPECT_EQ(ReadsOfGet(crowded_), "look 0 | reading, all 0, reading | piece 0 | piece 0 | reading");
  EXPECT_EQ(got_, kAbsentName);
}

// The reaches that a client knows never shrink, in any order of the readings.
TEST_F(ReachTest, OlderReadingDoesNotShrinkTheReaches) {
  Raise(crowded_);
  Connect();
  reaches_ = {};
  uint64_t none = 0;
  std::memcpy(control_.data() + offsetof(format::ControlBlock, reaches), &none, sizeof(none));
  (void)ReadsOfGet(crowded_);
  EXPECT_EQ(engine_->connections().links()[0]->known.layout().reaches().Exponent(HashKey(crowded_)), 1U);
}

}  // namespace
}  // namespace erda::client
