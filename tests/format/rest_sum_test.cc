// The sum that a clean close leaves of an index (format/rest_sum.h).
#include "format/rest_sum.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"

namespace erda::format {
namespace {

IndexEntry WithFlip(IndexEntry entry, uint64_t bit) {
  (bit < 64 ? entry.word : entry.meta) ^= uint64_t{1} << (bit % 64);
  return entry;
}

bool Same(const IndexEntry& a, const IndexEntry& b) { return a.word == b.word && a.meta == b.meta; }

class RestSumTest : public testing::Test {
 protected:
  RestSumTest() {
    Random random(5);
    for (int i = 0; i < 500; ++i)
      entries_.push_back(i % 3 == 0 ? IndexEntry{} : IndexEntry{random.Next(), i % 3 * random.Next()});
  }
  [[nodiscard]] RestSum Sum() const {
    RestSum sum;
    for (size_t slot = 0; slot < entries_.size(); ++slot) sum += RestSum::Of(slot, entries_[slot]);
    return sum;
  }
  std::vector<IndexEntry> entries_;
};

TEST_F(RestSumTest, DifferenceNamesEachFlippedBitAndItsDirection) {
  const RestSum at_rest = Sum();
  for (size_t slot = 0; slot < entries_.size(); slot += 7) {
    for (uint64_t bit = 0; bit < 128; ++bit) {
      const IndexEntry before = entries_[slot];
      entries_[slot] = WithFlip(before, bit);
      RestSum difference = at_rest;
      difference -= Sum();
      ASSERT_NE(difference.hash(), 0U);
      EXPECT_EQ(difference.slot(), slot);
      EXPECT_TRUE(Same(difference.WithoutFlip(entries_[slot]), before));
      EXPECT_TRUE(difference.IsChange(before, entries_[slot]));
      EXPECT_FALSE(difference.IsChange(entries_[slot], before)) << "a mended slot must not be flipped again";
      entries_[slot] = before;
    }
  }
}

TEST_F(RestSumTest, TwoFlippedBitsAreNotTakenForOne) {
  const RestSum at_rest = Sum();
  Random random(6);
  for (int i = 0; i < 5000; ++i) {
    const size_t one = random.Uniform(entries_.size());
    const size_t other = i % 2 == 0 ? one : random.Uniform(entries_.size());
    const uint64_t bit = random.Uniform(127);
    const std::vector<IndexEntry> before = entries_;
    entries_[one] = WithFlip(entries_[one], bit);
    entries_[other] = WithFlip(entries_[other], bit + 1);
    RestSum difference = at_rest;
    difference -= Sum();
    EXPECT_NE(difference, RestSum());
    if (difference.slot() < entries_.size()) {
      const IndexEntry found = entries_[difference.slot()];
      EXPECT_FALSE(difference.IsChange(difference.WithoutFlip(found), found));
    }
    entries_ = before;
  }
}

TEST(RestSumRecordTest, EachFlippedBitOfTheRecordMakesTheSumUnknown) {
  for (const RestSum sum : {RestSum(), RestSum(0x123456789abc, 0x7fffffffffff), RestSum(1, 0)}) {
    ShardRecord record{};
    record.rest_place = sum.place_word();
    record.rest_hash = sum.hash_word();
    ASSERT_EQ(RestSum::In(record), sum);
    for (int bit = 0; bit < 128; ++bit) {
      ShardRecord damaged = record;
      (bit < 64 ? damaged.rest_place : damaged.rest_hash) ^= uint64_t{1} << (bit % 64);
      EXPECT_EQ(RestSum::In(damaged), std::nullopt) << bit;
    }
  }
  EXPECT_EQ(RestSum::In(ShardRecord{}), std::nullopt);
}

// The bytes of the format.
TEST(RestSumRecordTest, AnExampleHasItsDocumentedNumbers) {
  const IndexEntry entry{0x8000000000000003, 0x0102030405060709};
  EXPECT_EQ(RestSum::Of(5, entry).place(), 0x29dU);
  EXPECT_EQ(RestSum::Of(5, entry).hash(), 0x4f9266c5d0aeU);
  EXPECT_EQ(RestSum::Of(5, IndexEntry{}), RestSum());
}

}  // namespace
}  // namespace erda::format
