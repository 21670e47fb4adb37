// The two phases of cleaning a region that clients hold (docs/cleaning.md, "Merge and replicate"). It is merged while
// they hold it, and replicated once they let go.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/crc32c.h"
#include "base/test_hash.h"
#include "server/cleaning/cleaning_fixture.h"
#include "server/machine.h"

namespace erda::server {
namespace {

using format::Counter;
using format::HeadSlot;
using format::LogAddress;

class TwoPhasesTest : public CleaningTest {
 protected:
  static constexpr SessionId kHolder = 1;

  explicit TwoPhasesTest(uint64_t regions = 12) : CleaningTest(regions) {
    store_->CountKeys(store_->versions().index().size());
  }

  // Puts until the log appends to another region than that of the address. Each `live`-th put is of a new key, and the
  // others are of one key. Makes no step of cleaning.
  void FillAfter(LogAddress address, uint64_t live) {
    std::string key;
    for (uint64_t i = 0; i == 0 || (SlotOf(key) == address.slot() && !HasFatalFailure()); ++i) {
      key = i % live == 0 ? Key(next_key_++) : "hot";
      PutHere(key);
    }
  }
  void PutHere(const std::string& key) {
    const std::string value = ValueOf(++puts_, 200);
    ASSERT_EQ(store_->Inline(key, value).code, Code::kOk);
    model_[key] = value;
  }
  // Cleans all that a client can ask for.
  void CleanAll() {
    store_->cleaning().Ask();
    store_->Clean();
    EXPECT_FALSE(store_->cleaning().asked());
  }
  [[nodiscard]] uint32_t SlotOf(const std::string& key) const { return store_->WordOf(key).new_address().slot(); }
  // Returns the number of keys whose settled values stand in the head slot.
  [[nodiscard]] uint64_t KeysIn(uint32_t slot) const {
    uint64_t keys = 0;
    for (const auto& [key, value] : model_) keys += SlotOf(key) == slot ? 1 : 0;
    return keys;
  }
  [[nodiscard]] uint64_t moves() const { return store_->counter(Counter::kCleanMoves); }
  [[nodiscard]] uint64_t cleaned() const { return store_->counter(Counter::kCleanRegions); }
  [[nodiscard]] uint32_t free_regions() { return store_->versions().log().regions().free_regions(); }

  uint64_t next_key_ = 0;
};

// --- A reservation

TEST_F(TwoPhasesTest, MergePassesAReservationAndReplicateBringsItOver) {
  const Reserved held = store_->Reserve("held", "value", kHolder);
  ASSERT_EQ(held.code(), Code::kOk);
  const uint32_t slot = held.outcome.address.slot();
  const HeadSlot region = RegionOf(held.outcome.address);
  FillAfter(held.outcome.address, 4);
  EXPECT_GT(KeysIn(slot), 5U);
  CleanAll();
  EXPECT_EQ(KeysIn(slot), 0U) << "all but the version in flight stands elsewhere";
  EXPECT_EQ(RegionOf(held.outcome.address), region) << "its client may still write there";
  ExpectAll();

  const uint64_t before = moves();
  ASSERT_TRUE(store_->Finish(held));
  store_->Clean();  // nobody asks
  EXPECT_NE(RegionOf(held.outcome.address), region);
  EXPECT_EQ(moves(), before + 1) << "the version that was in flight";
  model_["held"] = "value";
  ExpectAll();
  store_->Recover();
  ExpectAll();
}

TEST_F(TwoPhasesTest, RegionOfAVersionThatIsTakenBackIsEmptiedWithoutACopy) {
  PutHere("held");
  FillAfter(store_->WordOf("held").new_address(), 4);
  const Reserved held = store_->Reserve("held", "never there", kHolder);
  const HeadSlot region = RegionOf(held.outcome.address);
  FillAfter(held.outcome.address, 4);
  CleanAll();
  EXPECT_EQ(RegionOf(held.outcome.address), region);
  const uint64_t before = moves();
  store_->EndSession(kHolder);
  store_->Clean();
  EXPECT_NE(RegionOf(held.outcome.address), region);
  EXPECT_EQ(moves(), before);
  ExpectAll();
}

// The value arrives while the cleaner walks the region, and the shard settles it. The cleaner passes it all the same:
// its client may still be about to write.
TEST_F(TwoPhasesTest, VersionThatSettlesDuringAMergeIsReplicated) {
  store_->SetFlush(kHolder, format::FlushMethod::kNone);
  const Reserved held = store_->Reserve("held", "value", kHolder);
  const HeadSlot region = RegionOf(held.outcome.address);
  FillAfter(held.outcome.address, 4);
  store_->cleaning().Ask();
  const uint64_t before = moves();
  while (moves() == before) ASSERT_TRUE(store_->CleanStep());
  store_->Land(held);
  EXPECT_EQ(store_->Sweep(), 1U);
  store_->Clean();
  EXPECT_NE(RegionOf(held.outcome.address), region);
  model_["held"] = "value";
  ExpectAll();
}

// (I11) A reader comes along `previous` to a version that is not in flight any more.
TEST_F(TwoPhasesTest, VersionThatWasTakenBackHoldsAMergedRegionToo) {
  PutHere("key");
  const Reserved oldest = store_->Reserve("key", "oldest", 1, Ack::kPlaced);
  FillAfter(oldest.outcome.address, 4);
  const Reserved taken_back = store_->Reserve("key", "taken back", 2, Ack::kPlaced);
  const HeadSlot region = RegionOf(taken_back.outcome.address);
  FillAfter(taken_back.outcome.address, 4);
  const Reserved newest = store_->Reserve("key", "newest", 3, Ack::kPlaced);
  ASSERT_EQ(newest.code(), Code::kOk);
  CleanAll();
  store_->EndSession(2);
  CleanAll();
  EXPECT_EQ(RegionOf(taken_back.outcome.address), region);
  store_->Land(oldest);
  model_["key"] = "oldest";
  EXPECT_EQ(store_->Get("key"), "oldest");
  store_->EndSession(3);
  store_->EndSession(1);
  CleanAll();
  EXPECT_NE(RegionOf(taken_back.outcome.address), region);
  ExpectAll();
}

// --- A chunk

TEST_F(TwoPhasesTest, MergeBringsOverWhatAnOpenChunkHas) {
  ASSERT_TRUE(store_->Delegated("in the chunk", "value", kHolder));
  model_["in the chunk"] = "value";
  const LogAddress there = store_->WordOf("in the chunk").new_address();
  const HeadSlot region = RegionOf(there);
  FillAfter(there, 4);
  CleanAll();
  EXPECT_EQ(KeysIn(there.slot()), 0U);
  EXPECT_EQ(RegionOf(there), region) << "its client may still write there";
  ExpectAll();
  const uint64_t before = moves();
  ASSERT_TRUE(store_->LandDelegated("another", "value that comes too late", kHolder));
  store_->GiveBack();
  store_->Clean();
  EXPECT_NE(RegionOf(there), region);
  EXPECT_EQ(moves(), before);
  ExpectAll();
  EXPECT_EQ(store_->Get("another"), kAbsent);
}

// A client with a window may write wherever it has put already, until the window is closed. So the merge passes all of
// the chunk, and copies nothing out of it that the client still changes.
TEST_F(TwoPhasesTest, MergePassesAllOfAChunkWithAWindow) {
  Versions& versions = store_->versions();
  const Outcome chunk = versions.delegating().Delegate(0, 64, 1024, kHolder, true);
  ASSERT_EQ(chunk.code, Code::kOk);
  const std::string key = "in the chunk";
  const std::string value = "value";
  const LogAddress at = LogAddress::At(chunk.address.slot(), chunk.address.offset_in_slot() + format::kChunkObjectsAt);
  std::ranges::copy(AsBytes(value), BytesAt(at) + format::ValueOffset(key.size()));
  const auto put = versions.delegating().Put(key, HashKey(key), static_cast<uint32_t>(value.size()),
                                             Crc32c(0, AsBytes(value)), Ack::kPersisted, at, kHolder);
  ASSERT_TRUE(put && put->code == Code::kOk);
  const HeadSlot region = RegionOf(at);
  FillAfter(at, 4);
  CleanAll();
  EXPECT_EQ(KeysIn(at.slot()), 0U);
  EXPECT_EQ(store_->WordOf(key).new_address(), at) << "the client may still change it";
  model_[key] = value;
  ExpectAll();

  const uint64_t before = moves();
  versions.delegating().GiveBack(0, chunk.address, chunk.header.version, kHolder);
  store_->Clean();
  EXPECT_EQ(RegionOf(at), region) << "the window is not closed";
  versions.chunks().CloseWindows(
      [&](SessionId session, uint64_t version) { versions.chunks().OnWindowClosed(session, version); });
  store_->Clean();
  EXPECT_NE(RegionOf(at), region);
  EXPECT_EQ(moves(), before + 1);
  ExpectAll();
}

// --- Damage

// From a damaged header on, the walk of a merge looks at every granule. It passes the held place, and is not lost after
// it.
TEST_F(TwoPhasesTest, DamageBeforeAHeldPlaceHidesNothing) {
  PutHere("damaged");
  const LogAddress damaged = store_->WordOf("damaged").new_address();
  model_.erase("damaged");
  const Reserved held = store_->Reserve("held", "value", kHolder);
  ASSERT_EQ(held.outcome.address.slot(), damaged.slot());
  FillAfter(held.outcome.address, 4);
  DamageHeader("damaged", 8);
  const HeadSlot region = RegionOf(damaged);
  CleanAll();
  EXPECT_EQ(KeysIn(damaged.slot()), 0U);
  for (const auto& [key, value] : model_) EXPECT_EQ(store_->Get(key), value) << key;
  ASSERT_TRUE(store_->Finish(held));
  model_["held"] = "value";
  CleanAll();  // The damaged entry is set aside after a merge that passes nothing.
  EXPECT_NE(RegionOf(damaged), region);
  EXPECT_EQ(store_->counter(Counter::kSetAside), 1U);
  for (const auto& [key, value] : model_) EXPECT_EQ(store_->Get(key), value) << key;
}

// --- Power cuts

// The power may go at each fence of both phases: no key loses its value, and the version in flight is there or not.
TEST(TwoPhasesCrashTest, PowerMayGoAtEachFenceOfBothPhases) {
  StoreOptions options;
  options.wish = Wish(12);
  Machine machine(options);
  Store& store = machine.store;
  store.CountKeys(store.versions().index().size());
  std::map<std::string, std::string> model;
  const auto put = [&](const std::string& key) {
    model[key] = ValueOf(model.size(), 200);
    ASSERT_EQ(store.Inline(key, model[key]).code, Code::kOk);
  };
  put("old");
  const Reserved held = store.Reserve("old", "newer", 1);
  ASSERT_TRUE(store.Delegated("in the chunk", "value", 2));
  model["in the chunk"] = "value";
  const uint32_t slot = held.outcome.address.slot();
  const auto slot_of = [&](const std::string& key) { return store.WordOf(key).new_address().slot(); };
  for (int i = 0; i == 0 || slot_of("key" + std::to_string(i - 1)) == slot; ++i) put("key" + std::to_string(i));
  for (int i = 0; i < 30; ++i) put("key" + std::to_string(i));

  bool finished = false;  // the put of the version in flight was acknowledged
  Random random(1);
  int fences = 0;
  const auto look = [&] {
    ++fences;
    for (const double kept : {0.0, 0.5, 1.0}) {
      SCOPED_TRACE(testing::Message() << "at fence " << fences << ", kept " << kept);
      Machine next(options, machine.pool->AfterPowerCut(random, kept));
      for (int round = 0; round < 2; ++round) {
        for (const auto& [key, value] : model) {
          const std::string found = next.store.Get(key);
          const bool is_newer = key == "old" && found == "newer";
          EXPECT_TRUE((found == value && !(key == "old" && finished)) || is_newer) << key << ": " << found;
        }
        EXPECT_EQ(next.store.Violation(), "");
        if (round > 0) break;
        next.store.CountKeys(next.store.versions().index().size());
        next.store.cleaning().Ask();
        next.store.Clean();
      }
    }
  };
  machine.pool->before_fence = look;
  const format::HeadSlot region = store.Published(0, slot);
  store.cleaning().Ask();
  store.Clean();
  EXPECT_EQ(store.Published(0, slot), region);
  EXPECT_NE(slot_of("in the chunk"), slot);
  const int merging = fences;
  EXPECT_GT(merging, 2);
  ASSERT_TRUE(store.Finish(held));
  finished = true;
  store.EndSession(2);
  store.Clean();
  machine.pool->before_fence = nullptr;
  EXPECT_NE(store.Published(0, slot), region);
  EXPECT_GT(fences, merging + 3);
}

// --- Room

// Regions that are let go give nothing before, so their copies must not take what others need.
TEST_F(TwoPhasesTest, CopiesOutOfHeldRegionsLeaveTheLastTwoFreeRegions) {
  for (SessionId session = 0; free_regions() > 2; ++session) {
    const Reserved held = store_->Reserve("held" + std::to_string(session), "value", session);
    ASSERT_EQ(held.code(), Code::kOk);
    FillAfter(held.outcome.address, 2);
  }
  ASSERT_EQ(free_regions(), 2U);
  CleanAll();
  EXPECT_EQ(free_regions(), 2U);
  PutHere("more");
  const uint32_t slot = SlotOf("more");
  for (int i = 0; SlotOf("more") == slot && !HasFatalFailure(); ++i) {
    ASSERT_LT(i, 1000);
    PutHere("more");
  }
  ExpectAll();
}

// Other regions of the head need the slot for their copies, and give one back.
TEST_F(TwoPhasesTest, CopiesOutOfHeldRegionsLeaveTheLastSlotOfAHead) {
  MakeStore(Wish(150, 4096));
  store_->CountKeys(store_->versions().index().size());
  const log::HeadSlots& slots = store_->versions().log().regions().slots();
  uint64_t next = 0;
  const auto key_of_head = [&] {
    while (store_->geometry().HeadOf(HashKey(Key(next))) != 0) ++next;
    return Key(next++);
  };
  const std::string hot = key_of_head();
  const Reserved held = store_->Reserve(key_of_head(), "value", kHolder);
  ASSERT_EQ(held.code(), Code::kOk);
  const uint32_t first = held.outcome.address.slot();
  PutHere(hot);
  for (bool live = true; SlotOf(hot) == first && !HasFatalFailure(); live = !live) PutHere(live ? key_of_head() : hot);
  while (!slots.IsCrowded(0) && !HasFatalFailure()) PutHere(key_of_head());
  ASSERT_GT(KeysIn(first), 3U);
  ASSERT_TRUE(slots.FindUnused(0));
  CleanAll();
  EXPECT_TRUE(slots.FindUnused(0));
  ExpectAll();
}

class HoldersTest : public TwoPhasesTest {
 protected:
  HoldersTest() : TwoPhasesTest(64) {}
};

// Each holder keeps a region from being emptied. That is all that it does: the region is merged meanwhile, and needs no
// copy when it is let go. The properties are the counts in docs/cleaning.md.
TEST_F(HoldersTest, WhatIdleHoldersLetGoIsFreeWithoutACopy) {
  for (const uint32_t holders : {1U, 8U, 32U}) {
    for (const bool chunks : {false, true}) {
      SCOPED_TRACE(testing::Message() << holders << (chunks ? " chunks" : " reservations"));
      MakeStore(Wish(64));
      store_->CountKeys(store_->versions().index().size());
      std::vector<HeadSlot> regions;
      std::vector<LogAddress> places;
      for (SessionId session = 0; session < holders; ++session) {
        const std::string key = "held" + std::to_string(session);
        if (chunks) {
          ASSERT_TRUE(store_->Delegated(key, "value", session));
          model_[key] = "value";
          places.push_back(store_->WordOf(key).new_address());
        } else {
          places.push_back(store_->Reserve(key, "value", session).outcome.address);
        }
        regions.push_back(RegionOf(places.back()));
        FillAfter(places.back(), 32);
      }
      const uint64_t cleaned_before = cleaned();
      CleanAll();
      uint64_t live = 0;
      for (const LogAddress place : places) live += KeysIn(place.slot());
      EXPECT_EQ(live, 0U);
      EXPECT_LE(cleaned() - cleaned_before, 64 - holders);

      const uint64_t copied = moves();
      const uint64_t cleaned_held = cleaned();
      for (SessionId session = 0; session < holders; ++session) store_->EndSession(session);
      store_->cleaning().Ask();
      int steps = 0;
      for (; cleaned() == cleaned_held; ++steps) ASSERT_TRUE(store_->CleanStep());
      store_->Clean();
      const std::string name = (chunks ? "chunks_" : "reservations_") + std::to_string(holders);
      RecordProperty(name + "_emptied", static_cast<int>(cleaned() - cleaned_held));
      RecordProperty(name + "_copied", static_cast<int>(moves() - copied));
      RecordProperty(name + "_steps", steps);
      EXPECT_EQ(moves(), copied);
      EXPECT_EQ(cleaned(), cleaned_held + holders);
      for (size_t i = 0; i < places.size(); ++i) EXPECT_NE(RegionOf(places[i]), regions[i]) << i;
      ExpectAll();
    }
  }
}

}  // namespace
}  // namespace erda::server
