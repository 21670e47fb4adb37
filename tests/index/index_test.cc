#include "index/index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <unordered_set>
#include <vector>

#include "index/fixture.h"

namespace erda::index {
namespace {

using format::EntryMeta;
using format::EntryWord;
using format::IndexEntry;
using format::kNeighbourhood;
using format::LogAddress;

TEST(IndexTest, AnInsertedKeyIsFoundUntilItIsFreed) {
  TestIndex index(1024);
  KeySource keys(1);
  const uint64_t key = keys.Next();
  EXPECT_FALSE(index.Find(key));
  ASSERT_TRUE(index.Insert(key, 77));
  const auto slot = index.Find(key);
  ASSERT_TRUE(slot);
  EXPECT_EQ(index->WordAt(*slot), WordOf(77));
  EXPECT_EQ(index->census().used(), 1U);
  EXPECT_TRUE(index.Free(key));
  EXPECT_FALSE(index.Find(key));
  EXPECT_EQ(index->census().used(), 0U);
}

TEST(IndexTest, AnEntryStatesTagDepthDistanceAndSize) {
  TestIndex index(1024);
  const uint64_t key = 0x8000'0000'1234'5678;
  const auto slot = index->free_slots().MakeRoom(key);
  ASSERT_TRUE(slot.ok());
  index->Describe(*slot, key, 1000);
  index->Enter(*slot, WordOf(5));
  const EntryMeta meta = index->At(*slot).entry_meta();
  EXPECT_EQ(meta.tag(), 0x12345678U);
  EXPECT_EQ(meta.depth(), 0U);  // The index has one block.
  EXPECT_EQ(meta.distance(), *slot - index->layout().HomeOf(key));
  EXPECT_EQ(meta.size_hint_bytes(), 1008U);
}

TEST(IndexTest, MakingRoomTakesNoSlot) {
  TestIndex index(1024);
  KeySource keys(2);
  const uint64_t key = keys.Next();
  const auto first = index->free_slots().MakeRoom(key);
  const auto second = index->free_slots().MakeRoom(key);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(*first, *second);
  EXPECT_EQ(index->census().used(), 0U);
}

TEST(IndexTest, TheFirstAndTheLastHomeHaveWholeNeighbourhoods) {
  for (const uint64_t high : {uint64_t{0}, UINT64_MAX - UINT32_MAX}) {
    TestIndex index(128);
    for (uint64_t tag = 0; tag < kNeighbourhood; ++tag) ASSERT_TRUE(index.Insert(high + tag)) << tag;
    EXPECT_FALSE(index.Insert(high + kNeighbourhood));
    for (uint64_t tag = 0; tag < kNeighbourhood; ++tag) EXPECT_TRUE(index.Find(high + tag)) << tag;
    EXPECT_EQ(index->census().used(), kNeighbourhood);
  }
}

TEST(IndexTest, KeysWithOneTagAreToldApartByTheCaller) {
  TestIndex index(1024);
  const uint64_t first = 0x12345678;
  const uint64_t second = (uint64_t{1} << 33) | first;  // It has the same home and the same tag.
  ASSERT_EQ(index->layout().HomeOf(first), index->layout().HomeOf(second));
  ASSERT_TRUE(index.Insert(first, 10));
  ASSERT_TRUE(index.Insert(second, 20));
  const auto with_address = [&](uint32_t address) {
    return index->Find(
        first, [&](Slot, const IndexEntry& entry) { return entry.entry_word().new_address() == LogAddress(address); });
  };
  ASSERT_TRUE(with_address(10) && with_address(20));
  EXPECT_NE(*with_address(10), *with_address(20));
  EXPECT_FALSE(with_address(30));
}

TEST(IndexTest, OnlyEntriesWithTheTagAreOffered) {
  TestIndex index(1024);
  for (uint64_t tag = 0; tag < 20; ++tag) ASSERT_TRUE(index.Insert(tag));
  int offered = 0;
  EXPECT_FALSE(index->Find(5, [&](Slot, const IndexEntry& entry) {
    EXPECT_EQ(entry.entry_meta().tag(), 5U);
    ++offered;
    return false;
  }));
  EXPECT_EQ(offered, 1);
}

TEST(IndexTest, TheMetaOfAFreeSlotFindsNothing) {
  TestIndex index(1024);
  ASSERT_TRUE(index.Insert(9));
  const Slot slot = *index.Find(9);
  index->Free(slot);
  EXPECT_EQ(index->At(slot).entry_meta().tag(), 9U);  // Free leaves the meta.
  EXPECT_FALSE(index.Find(9));
}

TEST(IndexTest, AStoredWordIsTheEntrysWord) {
  TestIndex index(1024);
  ASSERT_TRUE(index.Insert(9, 1));
  const Slot slot = *index.Find(9);
  const EntryMeta meta = index->At(slot).entry_meta();
  index->StoreWord(slot, index->WordAt(slot).Published(LogAddress(2)));
  EXPECT_EQ(index->WordAt(slot).new_address(), LogAddress(2));
  EXPECT_EQ(index->WordAt(slot).old_address(), LogAddress(1));
  index->StoreWordLazily(slot, index->WordAt(slot).Settled());
  EXPECT_TRUE(index->WordAt(slot).settled());
  EXPECT_EQ(index->At(slot).entry_meta(), meta);
}

TEST(IndexTest, ASizeHintIsWrittenWhenItChanges) {
  TestIndex index(1024);
  ASSERT_TRUE(index.Insert(9));
  const Slot slot = *index.Find(9);
  const EntryMeta before = index->At(slot).entry_meta();
  const uint64_t bytes = index.nvm().counters().bytes;
  index->StoreSizeHint(slot, 50);  // As many granules as 64 bytes, which the hint says.
  EXPECT_EQ(index.nvm().counters().bytes, bytes);
  index->StoreSizeHint(slot, 65);
  EXPECT_EQ(index.nvm().counters().bytes, bytes + 8);
  const EntryMeta after = index->At(slot).entry_meta();
  EXPECT_EQ(after.size_hint_bytes(), 80U);
  EXPECT_EQ(EntryMeta::Make(before.tag(), before.depth(), before.distance(), 80), after);
}

TEST(IndexTest, ReopeningFindsAllEntries) {
  TestIndex index(1024);
  KeySource keys(3);
  std::unordered_set<uint64_t> used;
  for (int i = 0; i < 100; ++i) used.insert(keys.Next());
  for (const uint64_t key : used) ASSERT_TRUE(index.Insert(key));
  index.Reopen();
  EXPECT_EQ(index->census().used(), 100U);
  EXPECT_TRUE(index.IsSound(used));
}

// Keys find free slots near their homes, so the displacement counter stands still.
TEST(IndexTest, AnEmptyIndexDisplacesNothing) {
  TestIndex index(4096);
  KeySource keys(4);
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(index.Insert(keys.Next()));
  EXPECT_EQ(*index.displacements(), 0U);
}

TEST(IndexTest, ADisplacementIsCountedByTwo) {
  TestIndex index(256);
  // Homes 0, 1, 2 ...: with 193 homes, these hashes lie in the middle of their intervals.
  const auto key_at = [&](uint64_t home, uint32_t tag) {
    const uint64_t step = UINT64_MAX / (256 - kNeighbourhood + 1);
    return ((home * step + step / 2) & ~uint64_t{UINT32_MAX}) | tag;
  };
  for (uint32_t i = 0; i < kNeighbourhood; ++i) ASSERT_TRUE(index.Insert(key_at(i, i)));
  ASSERT_EQ(index->layout().HomeOf(key_at(1, 1)), 1U);
  EXPECT_EQ(*index.displacements(), 0U);
  // The first neighbourhood is full. The entry with home 1 can move to the next slot, and makes room for one more entry
  // with home 0.
  ASSERT_TRUE(index.Insert(key_at(0, 1000)));
  EXPECT_EQ(*index.displacements(), 2U);
  EXPECT_EQ(index.Find(key_at(1, 1)), Slot{kNeighbourhood});
  EXPECT_EQ(index->At(kNeighbourhood).entry_meta().distance(), kNeighbourhood - 1);
  EXPECT_EQ(index.Find(key_at(0, 1000)), Slot{1});
  // The record tells a recovery which two slots to look at.
  const auto move = index->moves().Last();
  ASSERT_TRUE(move.ok());
  EXPECT_EQ(move->from(), Slot{1});
  EXPECT_EQ(move->to(), Slot{kNeighbourhood});
}

TEST(IndexTest, WithoutADisplacementThereIsNoLastMove) {
  TestIndex index(256);
  ASSERT_TRUE(index.Insert(1));
  const auto move = index->moves().Last();
  ASSERT_TRUE(move.ok());
  EXPECT_TRUE(move->none());
}

// Keys come, move and go among the counted slots and among the others.
TEST(IndexTest, SlotsAreCountedWhileTheyChange) {
  TestIndex index(256);
  KeySource keys(8);
  Random& random = keys.random();
  std::vector<uint64_t> used;
  for (int round = 0; round < 20; ++round) {
    index->Open(std::nullopt);
    while (!index->census().is_complete()) {
      const uint64_t key = keys.Next();
      if (random.Chance(0.55) && index.Insert(key)) {
        used.push_back(key);
      } else if (!used.empty()) {
        std::swap(used[random.Uniform(used.size())], used.back());
        ASSERT_TRUE(index.Free(used.back()));
        used.pop_back();
      }
      if (random.Chance(0.1)) index->Count(random.Uniform(20));
    }
    EXPECT_EQ(index->census().used(), used.size());
    ASSERT_TRUE(index.IsSound({used.begin(), used.end()}));
  }
  EXPECT_GT(*index.displacements(), 20U);
}

TEST(IndexTest, AFullIndexRefusesKeysAndKeepsItsEntries) {
  TestIndex index(128);
  KeySource keys(5);
  std::unordered_set<uint64_t> used;
  for (int i = 0; i < 1000; ++i) {
    const uint64_t key = keys.Next();
    const auto slot = index->free_slots().MakeRoom(key);
    if (!slot.ok()) {
      EXPECT_EQ(slot.status().code(), Code::kResourceExhausted);
      continue;
    }
    index->Describe(*slot, key, 64);
    index->Enter(*slot, WordOf(1));
    used.insert(key);
  }
  EXPECT_EQ(index->census().used(), 128U);  // Of 1000 keys, one finds each slot.
  EXPECT_TRUE(index.IsSound(used));
  // A freed slot can be used again.
  const uint64_t gone = *used.begin();
  ASSERT_TRUE(index.Free(gone));
  EXPECT_TRUE(index.Insert(gone));
}

TEST(IndexTest, NothingOutsideOfTheShardsSlotsIsTouched) {
  TestIndex index(128);
  const uint64_t begin = index.geometry().FirstSlotOffset(TestIndex::kShard, 0);
  const uint64_t end = index.geometry().FirstSlotOffset(TestIndex::kShard, 128);
  const uint64_t move = format::kShardRecordsOffset + TestIndex::kShard * sizeof(format::ShardRecord) +
                        offsetof(format::ShardRecord, move);
  KeySource keys(6);
  for (int i = 0; i < 1000; ++i) static_cast<void>(index.Insert(keys.Next()));
  const auto bytes = index.pool().bytes();
  for (uint64_t at = 0; at < bytes.size(); ++at) {
    if (at >= begin && at < end) continue;
    if (at >= move && at < move + sizeof(uint64_t)) continue;  // The shard's record of moves.
    ASSERT_EQ(bytes[at], std::byte{0}) << at;
  }
}

// Returns how full an index is when it first refuses a key. One crowded place is enough for that. So a larger index
// refuses at a lower load.
double LoadAtFirstRefusal(uint64_t slots, uint64_t seed) {
  TestIndex index(slots);
  KeySource keys(seed);
  while (index.Insert(keys.Next())) {
  }
  const double load = static_cast<double>(index->census().used()) / static_cast<double>(slots);
  std::printf("%7lu slots, seed %lu: first refusal at a load of %.3f\n", slots, seed, load);
  return load;
}

TEST(IndexLoadTest, AnIndexTakesKeysUpToALoadOf85Percent) {
  for (const uint64_t slots : {1024, 4096, 16384, 65536}) {
    for (uint64_t seed = 1; seed <= 4; ++seed) EXPECT_GE(LoadAtFirstRefusal(slots, seed), 0.85);
  }
}

TEST(IndexLoadNoSanitizerTest, AnIndexOfMillionsOfSlotsTakesKeysUpToALoadOf85Percent) {
  EXPECT_GE(LoadAtFirstRefusal(1 << 20, 1), 0.85);
  EXPECT_GE(LoadAtFirstRefusal(1 << 22, 2), 0.85);
}

TEST(IndexRandomTest, EveryEntryStaysInItsNeighbourhood) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    TestIndex index(2048);
    KeySource keys(seed);
    Random& random = keys.random();
    std::vector<uint64_t> used;
    for (int i = 0; i < 40'000; ++i) {
      if (used.size() < 1900 && random.Chance(0.6)) {
        const uint64_t key = keys.Next();
        if (index.Insert(key)) used.push_back(key);
      } else if (!used.empty()) {
        std::swap(used[random.Uniform(used.size())], used.back());
        ASSERT_TRUE(index.Free(used.back()));
        used.pop_back();
      }
      if (i % 4000 == 0) {
        ASSERT_TRUE(index.IsSound({used.begin(), used.end()})) << "after " << i;
      }
    }
    ASSERT_TRUE(index.IsSound({used.begin(), used.end()}));
    EXPECT_GT(*index.displacements(), 1000U);
    EXPECT_EQ(*index.displacements() % 2, 0U);
  }
}

}  // namespace
}  // namespace erda::index
