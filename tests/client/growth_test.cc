// Gets while the index grows, against a server that answers by hand: the Reads of a get, and which of them count.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/hand_clock.h"
#include "base/test_hash.h"
#include "client/engine.h"
#include "client/hand_pool.h"
#include "format/control_block.h"
#include "format/durability.h"
#include "format/index_entry.h"
#include "format/messages.h"
#include "format/object.h"

namespace erda::client {
namespace {

using fabric::OpKind;
using fabric::WorkRequest;
using format::EntryMeta;
using format::EntryWord;
using format::IndexEntry;
using format::LogAddress;

class GrowthTest : public HandPoolTest {};

const std::string kAbsentName(CodeName(Code::kNotFound));

// --- The client knows the number of blocks

TEST_F(GrowthTest, NumberOfBlocksDecidesWhereAGetLooks) {
  // Returns the block of a key whose hash ends with these bits, in an index of `blocks` blocks.
  struct {
    uint64_t blocks;
    std::vector<uint64_t> block_of;
  } const cases[] = {
      {1, {0, 0, 0, 0, 0, 0, 0, 0}}, {2, {0, 1, 0, 1, 0, 1, 0, 1}}, {3, {0, 1, 2, 1, 0, 1, 2, 1}},
      {4, {0, 1, 2, 3, 0, 1, 2, 3}}, {5, {0, 1, 2, 3, 4, 1, 2, 3}}, {7, {0, 1, 2, 3, 4, 5, 6, 3}},
  };
  TellRuns();
  for (const auto& [blocks, block_of] : cases) {
    SCOPED_TRACE(std::to_string(blocks) + " blocks");
    Tell(blocks);
    Connect();
    for (uint64_t low = 0; low < 8; ++low) {
      const std::string key = KeyWith(low);
      const std::string block = std::to_string(block_of[low]);
      EXPECT_EQ(ReadsOfGet(key), "look " + block + " | reading, all " + block + ", reading");
      EXPECT_EQ(got_, kAbsentName);
      Put(block_of[low], key, "here", 3);
      EXPECT_EQ(ReadsOfGet(key), "look " + block + " | version");
      EXPECT_EQ(got_, "here");
      Forget(block_of[low], key);
      Put(block_of[low], key, "far", 0, kFar);  // The entry tells nothing of the next number of blocks.
      EXPECT_EQ(ReadsOfGet(key), "look " + block + " | reading, all " + block + ", reading | version");
      EXPECT_EQ(got_, "far");
      Forget(block_of[low], key, kFar);
      next_object_ = 256;
    }
    engine_.reset();
  }
}

// The depth of an entry counts for no get. Some blocks have been split since the entry was put, and others have not.
TEST_F(GrowthTest, EntryOfAnyDepthCounts) {
  TellRuns();
  Tell(5);
  Connect();
  const std::string key = KeyWith(6);
  for (const uint32_t depth : {0U, 1U, 2U, 3U, 32U, 63U, 64U, 255U}) {
    Put(2, key, "value", depth);
    EXPECT_EQ(ReadsOfGet(key), "look 2 | version") << depth;
    EXPECT_EQ(got_, "value") << depth;
  }
}

// The client reads an entry again, since it may have read one word beside another key's meta. Both are of the same
// block.
TEST_F(GrowthTest, EntryIsReadAgainInTheBlockWhereItWasFound) {
  Make(10);
  ASSERT_GT(geometry_.heads_per_shard, 1U);
  TellRuns();
  Connect();
  const std::string key = KeyWith(3);
  Put(0, key, "value", 0);
  EXPECT_EQ(ReadsOfGet(key), "look 0 | version, entry 0");
  Move(0, 1, key, 1);
  Tell(2);
  EXPECT_EQ(ReadsOfGet(key), "look 0 | reading, all 1, reading | version, entry 1");
  EXPECT_EQ(got_, "value");
  // The entry leaves its slot again, between the look and the version.
  Before(2, [&] {
    Move(1, 3, key, 2);
    Tell(4);
  });
  EXPECT_EQ(ReadsOfGet(key), "look 1 | version, entry 1 | look 1 | reading, all 3, reading | version, entry 3");
  EXPECT_EQ(got_, "value");
}

// --- The key has left the block

TEST_F(GrowthTest, GetFollowsTheDepthOfAnEmptySlot) {
  TellRuns();
  Connect();
  const std::string key = KeyWith(1);
  Put(0, key, "value", 0);
  EXPECT_EQ(ReadsOfGet(key), "look 0 | version");
  Move(0, 1, key, 1);
  Tell(2);
  const ClientStats before = engine_->stats();
  EXPECT_EQ(ReadsOfGet(key), "look 0 | reading, all 1, reading | version") << "one round trip more";
  EXPECT_EQ(got_, "value");
  EXPECT_EQ(engine_->stats().reads - before.reads, 5U);
  EXPECT_EQ(engine_->stats().second_looks - before.second_looks, 1U);
  EXPECT_EQ(ReadsOfGet(key), "look 1 | version") << "the client knows the number now";
  EXPECT_EQ(got_, "value");
  EXPECT_EQ(ReadsOfGet(KeyWith(3)), "look 1 | reading, all 1, reading") << "and of other keys";
}

// Every slot that the client read may tell of the split. It may have an entry of another key, which has left or has
// come since.
TEST_F(GrowthTest, AnySlotOfTheFirstLookMayTellOfTheSplit) {
  TellRuns();
  for (const uint32_t distance : {0U, 1U, 17U, format::kFirstLook - 1}) {
    for (const bool used : {false, true}) {
      SCOPED_TRACE(distance);
      Tell(1);
      Connect();
      Tell(2);
      const std::string key = KeyWith(1);
      Put(1, key, "value", 1, distance == 0 ? 1 : 0);
      const EntryMeta other = EntryMeta::Make(EntryMeta::TagOf(HashKey(key)) + 2, 1, distance, 64);
      WriteSlot(0, key, distance, {used ? EntryWord().Published(LogAddress(1)).raw() : 0, other.raw()});
      EXPECT_EQ(ReadsOfGet(key), "look 0 | reading, all 1, reading | version");
      EXPECT_EQ(got_, "value");
      Forget(0, key, distance);
      Forget(1, key, distance == 0 ? 1 : 0);
      next_object_ = 256;
      engine_.reset();
    }
  }
}

TEST_F(GrowthTest, KeyFarFromItsHomeIsFoundByTheSameLook) {
  TellRuns();
  Connect();
  const std::string key = KeyWith(1);
  Put(1, key, "value", 1, kFar);
  WriteDepth(0, key, 3, 1);
  Tell(2);
  EXPECT_EQ(ReadsOfGet(key), "look 0 | reading, all 1, reading | version");
  EXPECT_EQ(got_, "value");
}

TEST_F(GrowthTest, SecondLookTellsTheNumberOfBlocksIfThereIsNoHint) {
  TellRuns();
  Connect();
  const std::string key = KeyWith(1);
  Put(1, key, "value", 1);
  Tell(2);
  EXPECT_EQ(ReadsOfGet(key), "look 0 | reading, all 0, reading | reading, all 1, reading | version");
  EXPECT_EQ(got_, "value");
  EXPECT_EQ(ReadsOfGet(key), "look 1 | version");
  EXPECT_EQ(got_, "value");
}

TEST_F(GrowthTest, KnownDepthIsNoHint) {
  TellRuns();
  Tell(2);
  Connect();
  const std::string key = KeyWith(2);
  WriteDepth(0, key, 3, 1);
  WriteDepth(0, key, 4, 0);
  EXPECT_EQ(ReadsOfGet(key), "look 0 | reading, all 0, reading");
  EXPECT_EQ(got_, kAbsentName);
  Put(2, key, "value", 2);
  Tell(3);
  EXPECT_EQ(ReadsOfGet(key), "look 0 | reading, all 0, reading | reading, all 2, reading | version");
  EXPECT_EQ(got_, "value");
}

TEST_F(GrowthTest, LargestDepthLeadsToTheKeyAfterSeveralDoublings) {
  TellRuns();
  Connect();
  const std::string key = KeyWith(6);
  Put(6, key, "value", 3);
  WriteDepth(0, key, 3,
             1);  // Some keys left for block 1, some for block 2, and some came when there were four blocks already.
  WriteDepth(0, key, 4, 3);
  WriteDepth(0, key, 5, 2);
  Tell(7);
  EXPECT_EQ(ReadsOfGet(key), "look 0 | reading, all 6, reading | version");
  EXPECT_EQ(got_, "value");
}

TEST_F(GrowthTest, FirstGetAfterSeveralDoublingsTakesAFewMoreRoundTrips) {
  TellRuns();
  Connect();
  const std::string key = KeyWith(3);
  Put(0, key, "value", 0);
  Move(0, 1, key, 1);
  Move(1, 3, key, 2);
  Tell(7);
  EXPECT_EQ(ReadsOfGet(key), "look 0 | reading, all 1, reading | reading, all 3, reading | version");
  EXPECT_EQ(got_, "value");
  EXPECT_EQ(ReadsOfGet(key), "look 3 | version");
  for (uint64_t low = 0; low < 7; ++low) {
    const std::string block = std::to_string(low);
    EXPECT_EQ(ReadsOfGet(KeyWith(low, 1)), "look " + block + " | reading, all " + block + ", reading");
  }
}

// A slot tells of a depth, and the key has no block of that depth yet. Its block is not split, and others are.
TEST_F(GrowthTest, DepthOfABlockThatDoesNotExistYetCostsOneLook) {
  TellRuns();
  Connect();
  const std::string key = KeyWith(3);
  Put(1, key, "value", 1);
  WriteDepth(0, key, 3, 2);  // Block 2 came of block 0. Block 3 would come of block 1.
  Tell(3);
  EXPECT_EQ(ReadsOfGet(key), "look 0 | reading, all 3, reading | reading, all 1, reading | version");
  EXPECT_EQ(got_, "value");
}

TEST_F(GrowthTest, KeyInNeitherBlockIsAbsent) {
  TellRuns();
  Connect();
  const std::string key = KeyWith(1);
  WriteDepth(0, key, 3, 1);
  Tell(2);
  EXPECT_EQ(ReadsOfGet(key), "look 0 | reading, all 1, reading") << "no more than ever";
  EXPECT_EQ(got_, kAbsentName);
  EXPECT_EQ(ReadsOfGet(key), "look 1 | reading, all 1, reading");
  EXPECT_EQ(got_, kAbsentName);
}

TEST_F(GrowthTest, KeyInNeitherBlockIsAbsentWithoutAHint) {
  TellRuns();
  Connect();
  const std::string key = KeyWith(1);
  Tell(2);
  EXPECT_EQ(ReadsOfGet(key), "look 0 | reading, all 0, reading | reading, all 1, reading");
  EXPECT_EQ(got_, kAbsentName);
}

// The number says that other keys have left the block, and this key has not.
TEST_F(GrowthTest, AbsentKeyThatStaysInItsBlockTakesOneSecondLook) {
  TellRuns();
  Connect();
  Tell(2);
  EXPECT_EQ(ReadsOfGet(KeyWith(2)), "look 0 | reading, all 0, reading");
  EXPECT_EQ(got_, kAbsentName);
  EXPECT_EQ(ReadsOfGet(KeyWith(1)), "look 1 | reading, all 1, reading") << "that has told the number";
}

// The client has learned the number by another get. It does not read it again.
TEST_F(GrowthTest, GetUnderWayUsesTheNumberThatAnotherGetLearned) {
  TellRuns();
  Connect();
  const std::string absent = KeyWith(1);
  const std::string key = KeyWith(3);
  Put(0, key, "value", 0);
  Move(0, 1, key, 1);
  WriteDepth(0, absent, 3, 1);
  Tell(2);
  std::string got_absent;
  key_ = absent;
  Get(absent, &got_absent);
  ASSERT_EQ(Round(), "look 0");
  Get(key, &got_);  // The client does not know the number yet.
  engine_->Poll();
  ASSERT_EQ(fabric_->posted.size(), 4U);
  const WorkRequest look = fabric_->posted.back();
  fabric_->posted.pop_back();
  EXPECT_EQ(Round(), "reading, all 1, reading");
  EXPECT_EQ(got_absent, kAbsentName);  // The client knows the number now.
  key_ = key;
  EXPECT_EQ(Answer(look), "look 0");
  engine_->Poll();
  EXPECT_EQ(Round(), "reading, all 1, reading") << "one round trip more, and not two";
  while (!fabric_->posted.empty()) Round();
  EXPECT_EQ(got_, "value");
}

// --- A depth is only a guess

TEST_F(GrowthTest, FlippedDepthCostsOneRoundTrip) {
  TellRuns();
  Tell(2);
  Connect();
  const std::string key = KeyWith(2);
  WriteDepth(0, key, 3, 2);
  EXPECT_EQ(ReadsOfGet(key), "look 0 | reading, all 2, reading | reading, all 0, reading");
  EXPECT_EQ(got_, kAbsentName);
  Put(0, key, "far", 1, kFar);
  EXPECT_EQ(ReadsOfGet(key), "look 0 | reading, all 2, reading | reading, all 0, reading | version");
  EXPECT_EQ(got_, "far");
  WriteDepth(0, key, 3, 1);
  EXPECT_EQ(ReadsOfGet(key), "look 0 | reading, all 0, reading | version") << "the number is what it was";
}

// An entry may state any depth. For any number of blocks and any place of the key, a get has the same outcome as
// without that entry. Entries in other blocks do not count.
TEST_F(GrowthTest, NoDepthChangesTheOutcomeOfAGet) {
  TellRuns();
  struct {
    uint64_t blocks;
    uint64_t block;
  } const cases[] = {{1, 0}, {2, 0}, {3, 2}, {6, 2}};  // For a key that ends with 0110.
  const std::string key = KeyWith(6);
  for (const auto& [blocks, block] : cases) {
    for (uint64_t other = 0; other < kBlocks; ++other) {
      if (other != block) Put(other, key, "none of it counts", 3, kFar);
    }
    Tell(blocks);
    Connect();
    for (uint32_t depth = 0; depth < 256; ++depth) {
      SCOPED_TRACE(std::to_string(blocks) + " blocks, depth " + std::to_string(depth));
      WriteDepth(block, key, 3, depth);
      EXPECT_LE(RoundsIn(ReadsOfGet(key)), 3);
      EXPECT_EQ(got_, kAbsentName);
      next_object_ = 2048;
      Put(block, key, "far", depth, kFar);
      EXPECT_LE(RoundsIn(ReadsOfGet(key)), 4);
      EXPECT_EQ(got_, "far");
      Forget(block, key, kFar);
      ASSERT_FALSE(HasFailure());
    }
    Forget(block, key);
    for (uint64_t other = 0; other < kBlocks; ++other) Forget(other, key, kFar);
    next_object_ = 256;
    engine_.reset();
  }
}

// --- The new block's place

TEST_F(GrowthTest, GetInAnUnknownRunReadsTheControlBlock) {
  Connect();
  TellRuns();
  const std::string key = KeyWith(3);
  Put(0, key, "value", 0);
  Move(0, 1, key, 1);
  Tell(2);
  EXPECT_EQ(ReadsOfGet(key), "look 0 | control, reading, all 0, reading | reading, all 1, reading | version")
      << "two round trips more";
  EXPECT_EQ(got_, "value");
  EXPECT_EQ(ReadsOfGet(key), "look 1 | version");
  // The client knows all of it now.
  Move(1, 3, key, 2);
  Tell(4);
  EXPECT_EQ(ReadsOfGet(key), "look 1 | reading, all 3, reading | version");
  EXPECT_EQ(got_, "value");
}

TEST_F(GrowthTest, MissInAnUnknownRunReadsTheControlBlock) {
  Connect();
  TellRuns();
  const std::string key = KeyWith(1);
  WriteDepth(0, key, 3, 1);
  Tell(2);
  EXPECT_EQ(ReadsOfGet(key), "look 0 | control, reading, all 0, reading | reading, all 1, reading");
  EXPECT_EQ(got_, kAbsentName);
}

TEST_F(GrowthTest, ControlBlockIsReadAfterTheNumberIfThereIsNoHint) {
  Connect();
  TellRuns();
  const std::string key = KeyWith(1);
  Put(1, key, "value", 1);
  Tell(2);
  EXPECT_EQ(ReadsOfGet(key), "look 0 | reading, all 0, reading | control | look 1 | version");
  EXPECT_EQ(got_, "value");
}

// The server tells the run before the number. So one reading may come before both, and the other one after both.
TEST_F(GrowthTest, RunNewerThanTheControlBlockMakesTheGetReadItAgain) {
  Connect();
  const std::string key = KeyWith(1);
  Put(1, key, "value", 1);
  WriteDepth(0, key, 3, 1);
  Before(3, [&] {  // After the control block.
    TellRuns();
    Tell(2);
  });
  EXPECT_EQ(ReadsOfGet(key), "look 0 | control, reading, all 0, reading | control | look 1 | version");
  EXPECT_EQ(got_, "value");
}

// A flipped depth names a block that could exist, and no control block tells of it.
TEST_F(GrowthTest, GetDoesNotWaitForABlockThatNoControlBlockNames) {
  TellRun(0, kRunRegions[0] + 1);
  Tell(2);
  Connect();
  const std::string key = KeyWith(6);
  WriteDepth(0, key, 3, 3);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(ReadsOfGet(key), "look 0 | control, reading, all 0, reading");
    EXPECT_EQ(got_, kAbsentName);
  }
  Put(0, key, "far", 1, kFar);
  EXPECT_EQ(ReadsOfGet(key), "look 0 | control, reading, all 0, reading | version");
  EXPECT_EQ(got_, "far");
}

TEST_F(GrowthTest, ImpossibleBlockIsNotLookedFor) {
  TellRuns();
  Tell(2);
  Connect();
  uint32_t number = 0;
  std::string key = KeyWith(2);
  while ((HashKey(key) & 63) < geometry_.blocks_max()) key = KeyWith(2, ++number);
  for (const uint32_t depth : {6U, 20U, 32U, 63U, 255U}) {
    WriteDepth(0, key, 3, depth);
    EXPECT_EQ(ReadsOfGet(key), "look 0 | reading, all 0, reading") << depth;
    EXPECT_EQ(got_, kAbsentName);
  }
}

// --- The number changes during a look (I14)

TEST_F(GrowthTest, KeyThatLeavesDuringTheSecondLookIsFound) {
  TellRuns();
  const std::string key = KeyWith(1);
  for (const uint32_t read : {3U, 4U}) {  // Before the block is read, or after it.
    SCOPED_TRACE(read);
    Tell(1);
    Connect();
    Put(0, key, "value", 0, kFar);
    Before(read, [&] {
      Move(0, 1, key, 1, kFar);
      Tell(2);
    });
    const bool found = read == 4;  // No key was put since.
    EXPECT_EQ(ReadsOfGet(key), found ? "look 0 | reading, all 0, reading | version"
                                     : "look 0 | reading, all 0, reading | reading, all 1, reading | version");
    EXPECT_EQ(got_, "value");
    Forget(1, key, kFar);
    engine_.reset();
  }
}

TEST_F(GrowthTest, MissDoesNotCountIfTheKeysBlockChanged) {
  TellRuns();
  Connect();
  const std::string key = KeyWith(1);
  Before(4, [&] { Tell(2); });
  EXPECT_EQ(ReadsOfGet(key), "look 0 | reading, all 0, reading | reading, all 1, reading");
  EXPECT_EQ(got_, kAbsentName);
  // The key is put there when the client does not look at the old block any more.
  const std::string put = KeyWith(3);
  Before(4, [&] {
    Put(3, put, "value", 2);
    Tell(4);
  });
  EXPECT_EQ(ReadsOfGet(put), "look 1 | reading, all 1, reading | reading, all 3, reading | version");
  EXPECT_EQ(got_, "value");
}

// The key's block is the same by both numbers.
TEST_F(GrowthTest, MissCountsIfOnlyOtherKeysBlocksChanged) {
  TellRuns();
  Connect();
  const std::string key = KeyWith(2);
  Before(4, [&] { Tell(2); });
  EXPECT_EQ(ReadsOfGet(key), "look 0 | reading, all 0, reading");
  EXPECT_EQ(got_, kAbsentName);
  EXPECT_EQ(ReadsOfGet(KeyWith(1)), "look 1 | reading, all 1, reading") << "it is known";
}

TEST_F(GrowthTest, GetFollowsANumberThatChangesAgainAndAgain) {
  TellRuns();
  Connect();
  const std::string key = KeyWith(6);  // The key is in block 0, then in 2, then in 6.
  Before(4, [&] { Tell(2); });         // The key is still in that block.
  Before(3, [&] { TellDisplacements(2); });
  Before(7, [&] { Tell(3); });
  Before(10, [&] { Tell(7); });
  EXPECT_EQ(ReadsOfGet(key),
            "look 0 | reading, all 0, reading | reading, all 0, reading | reading, all 2, reading | "
            "reading, all 6, reading");
  EXPECT_EQ(got_, kAbsentName);
}

// A move within the block, from one reading to the next, repeats the look (I6).
TEST_F(GrowthTest, MissInTheNewBlockDoesNotCountWhileEntriesMove) {
  TellRuns();
  Connect();
  const std::string key = KeyWith(1);
  WriteDepth(0, key, 3, 1);
  Tell(2);
  TellDisplacements(1);
  Before(5, [&] { TellDisplacements(2); });
  Before(6, [&] { Put(1, key, "value", 1); });
  EXPECT_EQ(ReadsOfGet(key), "look 0 | reading, all 1, reading | reading, all 1, reading | version");
  EXPECT_EQ(got_, "value");
}

// A split that was cut off has left entries in a block that the index does not have yet. The key has a newer version
// since.
TEST_F(GrowthTest, EntryInABlockThatDoesNotExistYetDoesNotCount) {
  TellRuns();
  Connect();
  const std::string key = KeyWith(1);
  Put(1, key, "old", 1);
  Put(0, key, "new", 0, kFar);
  WriteDepth(0, key, 3, 1);  // The hint comes of the same split.
  EXPECT_EQ(ReadsOfGet(key), "look 0 | reading, all 1, reading | reading, all 0, reading | version");
  EXPECT_EQ(got_, "new");
  Forget(0, key, kFar);  // The key is deleted.
  EXPECT_EQ(ReadsOfGet(key), "look 0 | reading, all 1, reading | reading, all 0, reading");
  EXPECT_EQ(got_, kAbsentName);
}

// The block was the old one when the client read it. By the second reading the block is the key's.
TEST_F(GrowthTest, EntryInABlockThatBeginsDuringTheLookDoesNotCount) {
  TellRuns();
  Connect();
  const std::string key = KeyWith(1);
  Put(1, key, "old", 1);
  Put(0, key, "new", 0, kFar);
  WriteDepth(0, key, 3, 1);
  Before(4, [&] {
    Move(0, 1, key, 1, kFar);
    Forget(1, key);
    Tell(2);
  });
  EXPECT_EQ(ReadsOfGet(key), "look 0 | reading, all 1, reading | reading, all 1, reading | version");
  EXPECT_EQ(got_, "new");
}

// An entry does not count, either, if the number before the look made another block the key's. The entry was there
// before, and is gone.
TEST_F(GrowthTest, EntryInAnEarlierBlockOfTheKeyDoesNotCount) {
  TellRuns();
  Connect();
  const std::string key = KeyWith(3);
  Put(1, key, "old", 1);
  WriteDepth(0, key, 3, 1);
  Put(3, key, "new", 2);
  Tell(4);
  EXPECT_EQ(ReadsOfGet(key), "look 0 | reading, all 1, reading | reading, all 3, reading | version");
  EXPECT_EQ(got_, "new");
}

// --- Impossible numbers

TEST_F(GrowthTest, LookWithASmallerNumberOfBlocksIsRepeated) {
  TellRuns();
  Tell(4);
  Connect();
  const std::string key = KeyWith(3);
  Before(2, [&] { Tell(2); });
  Before(5, [&] { Tell(4); });
  EXPECT_EQ(ReadsOfGet(key), "look 3 | reading, all 3, reading | reading, all 3, reading");
  EXPECT_EQ(got_, kAbsentName);
  EXPECT_EQ(ReadsOfGet(key), "look 3 | reading, all 3, reading");
}

// The next server at this address may have another pool.
TEST_F(GrowthTest, ClientForgetsTheBlocksWithTheConnection) {
  TellRuns();
  Tell(7);
  Connect();
  const std::string key = KeyWith(6);
  EXPECT_EQ(ReadsOfGet(key), "look 6 | reading, all 6, reading");
  fabric_->Close();
  engine_->Poll();
  for (uint32_t run = 0; run < kRunRegions.size(); ++run) TellRun(run, 0);
  Tell(1);
  Put(0, key, "value", 0);
  Get(key, &got_);
  engine_->Poll();
  fabric_->Accept();
  engine_->Poll();
  EXPECT_EQ(Round(), "control");
  EXPECT_EQ(Round(), "look 0");
  EXPECT_EQ(Round(), "version");
  EXPECT_EQ(got_, "value");
  TellRuns();
  Move(0, 1, key, 1);
  Put(2, key, "moved", 2);
  Tell(3);
  // This is another key. Its first look meets the slot that the key has left.
  const uint64_t left = HomeOffset(0, key) + 3 * sizeof(format::IndexEntry);
  std::string near;
  for (uint32_t n = 0; near.empty(); ++n) {
    const uint64_t home = HomeOffset(0, KeyWith(1, n));
    if (home <= left && left < home + format::kFirstLookBytes) near = KeyWith(1, n);
  }
  EXPECT_EQ(ReadsOfGet(near), "look 0 | control, reading, all 0, reading | reading, all 1, reading");
  EXPECT_EQ(ReadsOfGet(key), "look 2 | version");
  EXPECT_EQ(got_, "moved");
}

// A client hashes the key when an operation begins. The operation may then wait for a connection, and meet a pool with
// another seed.
TEST_F(GrowthTest, WaitingOperationsAreHashedAgainForTheNextPool) {
  const std::string key = KeyWith(6);
  Connect({5, 6});
  EXPECT_NE(ReadsOfGet(key).substr(0, 6), "look 0") << "this pool has another place for it";
  fabric_->Close();
  engine_->Poll();
  Tell(7);
  TellRuns();
  Put(6, key, "value", 3);
  std::string second;
  Get(key, &got_);
  Get(key, &second);
  TellSeed(kTestHashSeed);
  engine_->Poll();
  fabric_->Accept();
  engine_->Poll();
  EXPECT_EQ(Round(), "control");
  for (const std::string* got : {&got_, &second}) {
    EXPECT_EQ(Round(), "look 6");
    EXPECT_EQ(Round(), "version");
    EXPECT_EQ(*got, "value");
  }
}

}  // namespace
}  // namespace erda::client
