// Scans against a server that answers by hand: the Reads of a scan, and which of them count.
#include "client/scan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/test_hash.h"
#include "client/hand_pool.h"

namespace erda::client {
namespace {

using format::EntryMeta;
using format::EntryWord;
using format::IndexEntry;
using format::LogAddress;

const std::string kBlockZero = "reading, block 0, reading";

class ScanTest : public HandPoolTest {
 protected:
  // Runs a scan. Returns its Reads by round trips. Its page is in page_.
  std::string ReadsOfScan(const ScanOptions& options = {}, int rounds_most = 200) {
    reads_ = 0;
    Scan scan(*engine_, options);
    std::string names;
    int rounds = 0;
    while (!scan.GoOn()) {
      const std::string round = Round();
      if (!round.empty()) names += (names.empty() ? "" : " | ") + round;
      if (each_round_) each_round_(rounds);
      if (++rounds == rounds_most) {
        ADD_FAILURE() << "the scan never ends: " << names;
        fabric_->Close();
        while (!scan.GoOn()) Round();
      }
    }
    happens_.clear();
    each_round_ = nullptr;
    auto page = scan.Take();
    error_ = page.status();
    page_ = page.ok() ? *page : ScanPage();
    told_.clear();
    for (const ScannedKey& each : page_.keys) {
      EXPECT_TRUE(told_.emplace(each.key, each.value).second) << each.key << " comes twice";
    }
    return names;
  }
  [[nodiscard]] uint64_t Cursor(uint32_t shard, uint32_t depth, uint32_t position) const {
    return ScanCursor{shard, depth, position, static_cast<uint16_t>(engine_->connections().pool().seed())}.raw();
  }
  // Reads all pages from a cursor on. Their keys and damage are in told_ and damaged_.
  void ScanAll(ScanOptions options = {}) {
    std::map<std::string, std::string> all;
    damaged_ = 0;
    for (std::optional<uint64_t> cursor = options.cursor; cursor; cursor = page_.next) {
      options.cursor = *cursor;
      ReadsOfScan(options);
      ASSERT_TRUE(error_.ok()) << error_.ToString();
      ASSERT_TRUE(!page_.next || *page_.next > options.cursor);
      damaged_ += page_.damaged;
      for (const auto& [key, value] : told_) EXPECT_TRUE(all.emplace(key, value).second) << key << " comes twice";
    }
    told_ = all;
  }

  // Returns the distance of a key's entry from its home. The first call chooses the first free slot.
  uint32_t DistanceOf(uint64_t block, const std::string& key) {
    if (const auto known = distances_.find(key); known != distances_.end()) return known->second;
    uint32_t distance = 0;
    while (ReadSlot(block, key, distance).word != 0) ++distance;
    distances_[key] = distance;
    return distance;
  }
  // Stores a settled version, and its entry.
  void Put(uint64_t block, const std::string& key, std::string_view value) {
    HandPoolTest::Put(block, key, value, 0, DistanceOf(block, key));
  }
  // Stores an entry with the tag of this hash in the key's slot.
  void Enter(uint64_t block, const std::string& key, EntryWord word, uint64_t hash) {
    const uint32_t distance = DistanceOf(block, key);
    WriteSlot(block, key, distance, {word.raw(), EntryMeta::Make(EntryMeta::TagOf(hash), 0, distance, 128).raw()});
  }
  void Enter(uint64_t block, const std::string& key, EntryWord word) { Enter(block, key, word, HashKey(key)); }
  void Move(uint64_t from, uint64_t to, const std::string& key, uint32_t depth) {
    HandPoolTest::Move(from, to, key, depth, DistanceOf(from, key));
  }
  void Forget(uint64_t block, const std::string& key) { HandPoolTest::Forget(block, key, DistanceOf(block, key)); }
  static EntryWord Settled(LogAddress address) { return EntryWord().Published(address).Settled(); }

  std::map<std::string, uint32_t> distances_;
  ScanPage page_;
  Status error_;
  std::map<std::string, std::string> told_;
  uint64_t damaged_ = 0;
  std::function<void(int round)> each_round_;  // Runs after each round.
};

using Told = std::map<std::string, std::string>;

// --- Places

TEST_F(ScanTest, PositionCombinesAnIntervalAndAPlaceInIt) {
  Random random(1);
  for (int i = 0; i < 1000; ++i) {
    const auto low = static_cast<uint32_t>(random.Uniform(uint64_t{1} << 32));
    EXPECT_EQ(Scan::PlaceOf(Scan::PlaceOf(low)), low);
    const uint32_t place = Scan::PlaceOf(low);
    EXPECT_EQ(Scan::PositionOf(place, 0), place);
    EXPECT_EQ(Scan::PositionOf(place, 32), low);
    for (uint32_t depth = 1; depth < 32; ++depth) {
      const uint32_t position = Scan::PositionOf(place, depth);
      EXPECT_EQ(position >> (32 - depth), low & ((1U << depth) - 1));
      EXPECT_EQ(position << depth, place << depth);
    }
  }
  EXPECT_EQ(Scan::PlaceOf(1), 1U << 31);
  EXPECT_EQ(Scan::PlaceOf(0x80000002), 0x40000001U);
}

TEST_F(ScanTest, CursorConvertsToANumberAndBack) {
  const ScanCursor cursor{63, 31, 0xfedcba98, 0xabcd};
  const ScanCursor again = ScanCursor::From(cursor.raw());
  EXPECT_EQ(again.shard, 63U);
  EXPECT_EQ(again.depth, 31U);
  EXPECT_EQ(again.position, 0xfedcba98U);
  EXPECT_EQ(again.pool, 0xabcdU);
  EXPECT_EQ(cursor.raw(), 0xabcd'3f'1f'fedcba98U);
  EXPECT_EQ(ScanCursor().raw(), 0U);
}

TEST_F(ScanTest, CursorThatNoPageOfThePoolReturnedIsRefused) {
  Connect();
  const auto deepest = static_cast<uint32_t>(std::bit_width(geometry_.blocks_max()) - 1);
  EXPECT_NE(ReadsOfScan({Cursor(0, deepest, 1), 10, 1000}), "");
  EXPECT_TRUE(error_.ok()) << error_.ToString();
  for (const uint64_t cursor : {Cursor(1, 0, 0), Cursor(0, 33, 1), Cursor(0, deepest + 1, 1), Cursor(0, 1, 0),
                                Cursor(0, 0, 1) ^ uint64_t{1} << 48, UINT64_MAX}) {
    EXPECT_EQ(ReadsOfScan({cursor, 10, 1000}), "") << cursor;
    EXPECT_EQ(error_.code(), Code::kInvalidArgument);
  }
}

// --- The Reads of a scan

TEST_F(ScanTest, PageReadsTheBlockBetweenTwoReadingsAndEachVersionOnce) {
  Connect();
  EXPECT_EQ(ReadsOfScan(), kBlockZero);
  EXPECT_EQ(told_, Told());
  EXPECT_EQ(page_.next, std::nullopt);
  EXPECT_EQ(page_.part, 1);
  Put(0, KeyWith(1), "one");
  Put(0, KeyWith(2), "two");
  Put(0, KeyWith(3), "three");
  EXPECT_EQ(ReadsOfScan(), kBlockZero + " | version | version, version");
  EXPECT_EQ(told_, (Told{{KeyWith(1), "one"}, {KeyWith(2), "two"}, {KeyWith(3), "three"}}));
  EXPECT_EQ(page_.damaged, 0U);
}

TEST_F(ScanTest, EntryIsReadAfterTheVersionIfThereAreSeveralHeads) {
  Make(10);
  Connect();
  Put(0, KeyWith(1), "one");
  EXPECT_EQ(ReadsOfScan(), kBlockZero + " | version, entry 0");
  EXPECT_EQ(told_, (Told{{KeyWith(1), "one"}}));
  // The entry is another one now. That may happen again and again, so a get of the key decides.
  key_ = KeyWith(1);
  Before(5, [&] { Put(0, KeyWith(1), "new"); });
  EXPECT_EQ(ReadsOfScan(), kBlockZero + " | version, entry 0 | look 0 | version, entry 0");
  EXPECT_EQ(told_, (Told{{KeyWith(1), "new"}}));
}

TEST_F(ScanTest, ScanNeedsOnlyOneOperationAtATime) {
  queue_depth_ = 1;
  Connect();
  for (uint64_t low = 0; low < 5; ++low) Put(0, KeyWith(low), std::to_string(low));
  EXPECT_EQ(ReadsOfScan(), kBlockZero + " | version | version | version | version | version");
  EXPECT_EQ(told_.size(), 5U);
}

TEST_F(ScanTest, AValueThatIsLargerThanItsHintIsReadAgain) {
  Connect();
  const std::string key = KeyWith(1);
  const std::string value(900, 'v');
  Enter(0, key, Settled(Write(key, value, HashKey(key))));
  EXPECT_EQ(ReadsOfScan(), kBlockZero + " | version | version");
  EXPECT_EQ(told_, (Told{{key, value}}));
}

TEST_F(ScanTest, ScanWithoutValuesReadsOnlyKeys) {
  Connect();
  const std::string key = KeyWith(1);
  Put(0, key, std::string(2000, 'v'));
  const uint64_t before = engine_->stats().read_bytes;
  EXPECT_EQ(ReadsOfScan({.values = false}), kBlockZero + " | version");
  EXPECT_EQ(engine_->stats().read_bytes - before,
            2 * format::kMissReadingBytes + kBlockSlots * sizeof(IndexEntry) + kLabelBytesRead);
  EXPECT_EQ(told_, (Told{{key, ""}}));
  std::string longer = std::string(300, 'k');  // It comes before the other key in the scan's order.
  const auto place_of = [](std::string_view k) { return Scan::PlaceOf(static_cast<uint32_t>(HashKey(k))); };
  while (place_of(longer) > place_of(key)) longer.push_back('k');
  Put(0, longer, "value");
  EXPECT_EQ(ReadsOfScan({.values = false}), kBlockZero + " | version | version, version");
  EXPECT_EQ(told_, (Told{{key, ""}, {longer, ""}}));
  // The scan has to know whether an unsettled version is whole.
  const std::string fresh = KeyWith(2);
  Enter(0, fresh, EntryWord().Published(Write(fresh, "fresh", HashKey(fresh), Arrived::kHeader)));
  ReadsOfScan({.values = false});
  EXPECT_EQ(told_, (Told{{key, ""}, {longer, ""}}));
}

// --- Blocks, in their order

TEST_F(ScanTest, ScanReadsBlocksInTheOrderOfTheirPositions) {
  TellRuns();
  const std::map<uint64_t, std::vector<int>> orders = {
      {1, {0}}, {2, {0, 1}}, {3, {0, 2, 1}}, {4, {0, 1, 2, 3}}, {5, {0, 4, 1, 2, 3}}, {7, {0, 4, 1, 5, 2, 6, 3}}};
  for (const auto& [blocks, order] : orders) {
    Tell(blocks);
    Connect();
    std::string expected;
    for (const int block : order) {
      expected += (expected.empty() ? "" : " | ") + ("reading, block " + std::to_string(block) + ", reading");
    }
    EXPECT_EQ(ReadsOfScan(), expected) << blocks;
    engine_.reset();
  }
}

TEST_F(ScanTest, PagesOfAnySizeReturnEachKeyOnce) {
  TellRuns();
  for (uint64_t blocks = 1; blocks <= kBlocks; ++blocks) {
    Tell(blocks);
    next_object_ = 256;
    std::fill(pool_.begin(), pool_.end(), std::byte{0});
    distances_.clear();
    Told expected;
    for (uint64_t i = 0; i < 16; ++i) {
      const std::string key = KeyWith(i);
      Put(format::IndexLayout::BlockOf(HashKey(key), blocks), key, std::to_string(i));
      expected[key] = std::to_string(i);
    }
    Connect();
    for (const size_t keys : {0, 1, 2, 5, 100}) {
      ScanAll({0, keys, 1 << 20});
      EXPECT_EQ(told_, expected) << blocks << " blocks, " << keys << " keys";
      ScanAll({0, 1000, keys * 100});
      EXPECT_EQ(told_, expected) << blocks << " blocks, " << keys << "00 bytes";
    }
    engine_.reset();
  }
}

// The scan keeps the depth of the cursor. So the places after the cursor stay after it.
TEST_F(ScanTest, NextPageContinuesAfterTheIndexHasGrown) {
  TellRuns();
  Told expected;
  for (uint64_t i = 0; i < 16; ++i) {
    Put(0, KeyWith(i), "value");
    expected[KeyWith(i)] = "value";
  }
  for (size_t first = 1; first < 16; ++first) {
    Tell(1);
    Connect();
    ReadsOfScan({0, first, 1 << 20});
    ASSERT_EQ(told_.size(), first);
    const Told before = told_;
    const auto next = page_.next;
    ASSERT_TRUE(next);
    for (uint64_t i = 0; i < 16; ++i) {
      if ((i & 1) != 0) Move(0, 1, KeyWith(i), 1);
    }
    Tell(2);
    ScanAll({*next, 3, 1 << 20});
    for (const auto& [key, value] : before) EXPECT_TRUE(told_.emplace(key, value).second) << key << " comes twice";
    EXPECT_EQ(told_, expected);
    for (uint64_t i = 0; i < 16; ++i) {
      if ((i & 1) != 0) Move(1, 0, KeyWith(i), 0);
    }
    engine_.reset();
  }
}

// --- A block that changes while the client reads it

TEST_F(ScanTest, BlockIsReadAgainIfAnEntryMovedMeanwhile) {
  Connect();
  const std::string key = KeyWith(1);
  Put(0, key, "value");
  Before(1, [&] { TellDisplacements(1); });
  Before(4, [&] { TellDisplacements(2); });
  EXPECT_EQ(ReadsOfScan(), kBlockZero + " | " + kBlockZero + " | version");
  Before(3, [&] { TellDisplacements(4); });
  EXPECT_EQ(ReadsOfScan(), kBlockZero + " | " + kBlockZero + " | version");
  EXPECT_EQ(told_, (Told{{key, "value"}}));
}

// A server that lies about the block, or moves entries for ever, ends a scan and no connection.
TEST_F(ScanTest, BlockThatNeverStaysTheSameEndsThePage) {
  Connect();
  const std::string key = KeyWith(1);
  Put(0, key, "value");
  for (uint32_t read = 1; read < 3500; ++read) Before(read, [this, read] { TellDisplacements(2 * read); });
  ReadsOfScan({}, 2000);
  EXPECT_EQ(error_.code(), Code::kTimeout) << error_.ToString();
  EXPECT_TRUE(engine_->connections().links()[0]->up());
  ReadsOfScan();
  EXPECT_EQ(told_, (Told{{key, "value"}}));
  Tell(uint64_t{1} << 40);  // More blocks than an index can have.
  ReadsOfScan({}, 2000);
  EXPECT_EQ(error_.code(), Code::kTimeout) << error_.ToString();
}

// The block is split before any of the scan's Reads.
TEST_F(ScanTest, KeysThatMoveToAnotherBlockAreReturnedOnce) {
  TellRuns();
  const std::string stays = KeyWith(0);
  const std::string goes = KeyWith(1);
  Put(0, stays, "stays");
  Put(0, goes, "goes");
  for (uint32_t read = 1; read <= 8; ++read) {
    Tell(1);
    Connect();
    Before(read, [&] {
      Move(0, 1, goes, 1);
      Tell(2);
    });
    ReadsOfScan();
    EXPECT_TRUE(error_.ok());
    EXPECT_EQ(told_, (Told{{stays, "stays"}, {goes, "goes"}})) << "read " << read;
    EXPECT_EQ(page_.damaged, 0U) << "read " << read;
    engine_.reset();
    if (ReadSlot(1, goes, DistanceOf(1, goes)).word != 0) Move(1, 0, goes, 0);
  }
}

// --- Entries whose newest version has not arrived

// --- Expiry

TEST_F(ScanTest, ReadingAfterTheBlockTellsTheTimeForSettledVersions) {
  TellTime(99);
  Connect();
  deadline_ = 100;
  const std::string key = KeyWith(1);
  key_ = key;
  Put(0, key, "brief");
  EXPECT_EQ(ReadsOfScan(), kBlockZero + " | version") << "nothing more is read";
  EXPECT_EQ(told_, (Told{{key, "brief"}}));
  // When the deadline passes, a get of the key decides, once.
  TellTime(100);
  EXPECT_EQ(ReadsOfScan(), kBlockZero + " | version | look 0 | version");
  EXPECT_EQ(told_, Told());
  EXPECT_EQ(ReadsOfScan(), kBlockZero + " | version");
  EXPECT_EQ(told_, Told());
}

// The version may be published after its deadline, and after that reading.
TEST_F(ScanTest, TimeIsReadAfterAVersionThatTheBlockShowsAsUnsettled) {
  TellTime(99);
  Connect();
  deadline_ = 100;
  const std::string key = KeyWith(1);
  key_ = key;
  const LogAddress address = Write(key, "brief", HashKey(key), Arrived::kNothing);
  Enter(0, key, EntryWord().Published(address));
  Before(4, [&] {
    TellTime(100);
    Arrive(address, key, "brief", HashKey(key));
  });
  EXPECT_EQ(ReadsOfScan(), kBlockZero + " | version | time | look 0 | version");
  EXPECT_EQ(told_, Told());
}

TEST_F(ScanTest, OldVersionShowsTheKeyAndAGetDecidesItsValue) {
  Connect();
  const std::string key = KeyWith(1);
  const LogAddress old_address = Write(key, "old", HashKey(key));
  const LogAddress new_address = Write(key, "new", HashKey(key), Arrived::kNothing);
  Enter(0, key, Settled(old_address).Published(new_address));
  key_ = key;
  ReadsOfScan();
  EXPECT_EQ(told_, (Told{{key, "old"}}));
  Before(5, [&] {  // The version arrives when the old one has told the key.
    Arrive(new_address, key, "new", HashKey(key));
    Enter(0, key, Settled(new_address));
  });
  EXPECT_EQ(ReadsOfScan(), kBlockZero + " | version | version | look 0 | version");
  EXPECT_EQ(told_, (Told{{key, "new"}}));
}

TEST_F(ScanTest, AKeyWhoseFirstPutHasNotArrivedIsAbsent) {
  Connect();
  const std::string key = KeyWith(1);
  key_ = key;
  Enter(0, key, EntryWord().Published(Write(key, "value", HashKey(key), Arrived::kNothing)));
  EXPECT_EQ(ReadsOfScan(), kBlockZero + " | version | entry 0 | control");
  EXPECT_EQ(told_, Told());
  EXPECT_EQ(page_.damaged, 0U);
}

TEST_F(ScanTest, ScanLooksAgainOnlyAtChangedEntries) {
  Connect();
  const std::string key = KeyWith(1);
  const std::string other = KeyWith(2);
  Put(0, other, "other");
  const LogAddress address = Write(key, "value", HashKey(key), Arrived::kNothing);
  const auto enter = [&] { Enter(0, key, EntryWord().Published(address)); };
  enter();
  Before(6, [&] {  // The second look at the version's entry.
    Arrive(address, key, "value", HashKey(key));
    Enter(0, key, Settled(address));
  });
  EXPECT_EQ(ReadsOfScan(), kBlockZero + " | version | version | entry 0 | " + kBlockZero + " | version");
  EXPECT_EQ(told_, (Told{{key, "value"}, {other, "other"}}));

  // The entry is removed.
  std::memset(pool_.data() + geometry_.RegionOffset(kLogRegion) + address.offset_in_slot(), 0, 128);
  enter();
  Before(6, [&] { Forget(0, key); });
  EXPECT_EQ(ReadsOfScan(), kBlockZero + " | version | version | entry 0 | " + kBlockZero);
  EXPECT_EQ(told_, (Told{{other, "other"}}));

  // The entry goes to another block, and the put arrives there.
  TellRuns();
  enter();
  Before(6, [&] {
    Move(0, 1, key, 1);
    Arrive(address, key, "value", HashKey(key));
    Tell(2);
  });
  ReadsOfScan();
  EXPECT_EQ(told_, (Told{{key, "value"}, {other, "other"}}));
}

// A client with the right to write changes the entry again and again. The entry names places without a version.
TEST_F(ScanTest, EntryThatNeverStaysTheSameEndsThePage) {
  Connect();
  const std::string key = KeyWith(1);
  const auto change = [&](int round) {
    Enter(0, key, EntryWord().Published(LogAddress::At(0, 1024 + 64 * static_cast<uint32_t>(round % 7))));
  };
  change(0);
  each_round_ = change;
  ReadsOfScan({}, 100'000);
  EXPECT_EQ(error_.code(), Code::kTimeout) << error_.ToString();
  Forget(0, key);
  EXPECT_EQ(ReadsOfScan(), kBlockZero);
  EXPECT_TRUE(error_.ok());
}

// --- Keys that share a place

TEST_F(ScanTest, KeysThatShareAPlaceAreOnOnePage) {
  Connect();
  const uint64_t low = HashKey("a") & UINT32_MAX;
  for (const char* key : {"a", "b", "c"}) {
    const uint64_t hash = (uint64_t{static_cast<uint8_t>(*key)} << 32) + low;
    Enter(0, key, Settled(Write(key, key, hash)), hash);
  }
  ReadsOfScan({0, 1, 1});
  EXPECT_EQ(told_, (Told{{"a", "a"}, {"b", "b"}, {"c", "c"}}));
  // The scan looks at one of the keys again, and does not tell the others twice.
  const uint64_t hash = (uint64_t{'d'} << 32) + low;
  const LogAddress address = Write("d", "d", hash, Arrived::kNothing);
  Enter(0, "d", EntryWord().Published(address), hash);
  Before(8, [&] {
    Arrive(address, "d", "d", hash);
    Enter(0, "d", Settled(address), hash);
  });
  ReadsOfScan();
  EXPECT_EQ(told_, (Told{{"a", "a"}, {"b", "b"}, {"c", "c"}, {"d", "d"}}));
}

// (I1) The place of an old version beside a settled one may be another key's now. Here the other key shares the place.
TEST_F(ScanTest, OldVersionBesideASettledOneShowsNoKey) {
  Connect();
  const uint64_t low = HashKey("a") & UINT32_MAX;
  const uint64_t hash_a = (uint64_t{'a'} << 32) + low;
  const uint64_t hash_b = (uint64_t{'b'} << 32) + low;
  const LogAddress of_a = Write("a", "a", hash_a);
  Enter(0, "a", Settled(of_a), hash_a);
  Enter(0, "b", Settled(of_a).Published(Write("b", "b", hash_b, Arrived::kNothing)).Settled(), hash_b);
  ReadsOfScan();
  EXPECT_EQ(told_, (Told{{"a", "a"}}));
  EXPECT_EQ(page_.damaged, 1U);
}

// The key is removed and put again while the client reads the block. It is in its old slot and in its new one.
TEST_F(ScanTest, KeyFoundTwiceInABlockIsReturnedOnce) {
  Connect();
  const std::string key = KeyWith(1);
  Put(0, KeyWith(0), "other");
  Put(0, key, "before");
  HandPoolTest::Put(0, key, "behind", 0, kFar);
  ReadsOfScan();
  EXPECT_EQ(told_.size(), 2U);
  EXPECT_TRUE(told_.contains(key));
}

// --- Damage

TEST_F(ScanTest, DamagedKeysAreCountedAndTheOthersReturned) {
  Connect();
  const std::string sound = KeyWith(0);
  Put(0, sound, "sound");
  Enter(0, KeyWith(1), Settled(Write(KeyWith(1), "value", HashKey(KeyWith(1)), Arrived::kHeader)));
  Enter(0, KeyWith(2), Settled(Write(KeyWith(2), "value", HashKey(KeyWith(2)), Arrived::kNothing)));
  // Its tag is another key's, with the same place in the log.
  const std::string astray = KeyWith(3);
  Enter(0, astray, Settled(Write(astray, "value", HashKey(astray))), HashKey(astray) ^ 0x100);
  ReadsOfScan();
  EXPECT_TRUE(error_.ok());
  EXPECT_EQ(told_, (Told{{sound, "sound"}}));
  EXPECT_EQ(page_.damaged, 3U);
}

// By its tag the key belongs into another block. No get would find it there.
TEST_F(ScanTest, AnEntryOfAnotherBlockIsCountedAsDamageOnce) {
  TellRuns();
  Tell(4);
  Connect();
  const std::string key = KeyWith(1);
  Enter(1, key, Settled(Write(key, "value", HashKey(key))), HashKey(key) ^ 2);
  ReadsOfScan();
  EXPECT_EQ(told_, Told());
  EXPECT_EQ(page_.damaged, 1U);
  // The block may take any number of pages.
  Told others;
  for (uint32_t number = 1; number < 6; ++number) {
    Put(1, KeyWith(1, number), "value");
    others[KeyWith(1, number)] = "value";
  }
  ScanAll({0, 1, 1});
  EXPECT_EQ(told_, others);
  EXPECT_EQ(damaged_, 1U);
}

// The entry left its block while the client read that, and is damaged. The scan counts it only in its new block.
TEST_F(ScanTest, DamagedKeyThatMovesToAnotherBlockIsCountedOnce) {
  TellRuns();
  const std::string key = KeyWith(1);
  for (uint32_t read = 1; read <= 4; ++read) {
    Tell(1);
    Connect();
    Enter(0, key, Settled(Write(key, "value", HashKey(key), Arrived::kHeader)));
    Before(read, [&] {
      Move(0, 1, key, 1);
      Tell(2);
    });
    ScanAll();
    EXPECT_EQ(told_, Told());
    EXPECT_EQ(damaged_, 1U) << "read " << read;
    engine_.reset();
    Forget(1, key);
  }
}

// --- The connection

TEST_F(ScanTest, LostConnectionEndsThePageAndTheScanCanBeRepeated) {
  Connect();
  for (uint64_t low = 0; low < 5; ++low) Put(0, KeyWith(low), "value");
  for (const uint32_t read : {1U, 3U, 4U, 8U}) {
    Before(read, [&] { fabric_->Close(); });
    ReadsOfScan();
    EXPECT_EQ(error_.code(), Code::kUnavailable) << read;
    EXPECT_EQ(engine_->in_flight(), 0U);
    engine_.reset();
    Connect();
    ReadsOfScan();
    EXPECT_EQ(told_.size(), 5U);
  }
}

// In another pool, the scan would tell other keys as if they were this pool's.
TEST_F(ScanTest, PageThatMeetsAnotherPoolEndsWithAnError) {
  Connect();
  Put(0, KeyWith(1), "value");
  Scan scan(*engine_, {});
  fabric_->Close();
  engine_->Poll();
  fabric_->peer_data[offsetof(format::HelloReply, pool_uuid)] ^= std::byte{1};
  bool accepted = false;
  int rounds = 0;
  for (; !scan.GoOn() && rounds < 100; ++rounds) {
    if (fabric_->channel() != nullptr && !std::exchange(accepted, true)) fabric_->Accept();
    clock_.now += std::chrono::milliseconds(1);
    Round();
  }
  ASSERT_LT(rounds, 100);
  EXPECT_TRUE(accepted);
  const auto page = scan.Take();
  EXPECT_EQ(page.status().code(), Code::kInvalidArgument) << page.status().ToString();
  EXPECT_NE(page.status().message().find("another pool"), std::string_view::npos);
}

// The client may meet a pool with more shards between the last block of a page and the page's end.
TEST_F(ScanTest, APageEndsWithTheLastShardOfThePoolThatItBeganIn) {
  Connect();
  Scan scan(*engine_, {});
  ASSERT_FALSE(scan.GoOn());
  for (int rounds = 0; rounds < 10 && !fabric_->posted.empty(); ++rounds) Round();
  fabric_->Close();
  engine_->Poll();
  geometry_ = *format::ChooseGeometry({512 << 10, 2, 4096, 4096, 2 * kBlockSlots});
  pool_.assign(geometry_.pool_size, std::byte{0});
  control_.assign(format::ControlRegionBytes(geometry_), std::byte{0});
  fabric_->peer_regions.assign(4, {geometry_.pool_size, fabric::Access::kRemoteReadWrite});
  std::byte* const hello = fabric_->peer_data.data();
  hello[offsetof(format::HelloReply, pool_uuid)] ^= std::byte{1};
  std::memcpy(hello + offsetof(format::HelloReply, geometry), &geometry_, sizeof(geometry_));
  (void)engine_->connections().Connect();
  ASSERT_NE(fabric_->channel(), nullptr);
  fabric_->Accept();
  engine_->Poll();
  ASSERT_EQ(engine_->connections().links().size(), 2U);
  ASSERT_TRUE(scan.GoOn());
  const auto page = scan.Take();
  ASSERT_TRUE(page.ok()) << page.status().ToString();
  EXPECT_EQ(page->next, std::nullopt);
  EXPECT_EQ(page->part, 1);
}

}  // namespace
}  // namespace erda::client
