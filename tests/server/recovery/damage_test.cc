// Damage beside the objects of the log must not spread. A pool that opened once opens again.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "base/test_hash.h"
#include "format/log_layout.h"
#include "server/machine.h"
#include "server/store.h"
#include "server/whole_pool.h"

namespace erda::server {
namespace {

using format::RegionWord;
using format::SegmentHeader;

class LogDamageTest : public testing::Test {
 protected:
  void Store64(uint64_t offset, uint64_t word) {
    std::memcpy(store_.pool().view().bytes.data() + offset, &word, sizeof(word));
  }
  [[nodiscard]] uint64_t Segment(uint32_t region, uint64_t segment) const {
    return store_.geometry().RegionOffset(region) + segment * store_.geometry().segment_size;
  }
  void Fill(const std::string& prefix, int puts) {
    for (int i = 0; i < puts; ++i) {
      ASSERT_EQ(store_.Inline(prefix + std::to_string(i % 20), std::string(900, 'v')).code, Code::kOk);
    }
  }
  Store store_;
};

// The segment after the damaged one is in use. If it counted as older, the shard would open it again and overwrite it.
TEST_F(LogDamageTest, SegmentWhoseFirstVersionIsTooHighIsNotReused) {
  store_.Inline("first", std::string(2800, 'f'));
  store_.Inline("second", std::string(200, 's'));
  Store64(Segment(0, 0) + offsetof(SegmentHeader, first_version), 1000);
  for (const bool crash : {false, true}) {
    crash ? store_.Recover() : store_.CloseAndReopen();
    Fill("key", 10);
    EXPECT_EQ(store_.Get("first"), std::string(2800, 'f'));
    EXPECT_EQ(store_.Get("second"), std::string(200, 's'));
  }
}

// A value that may be acknowledged is not taken back. The mark must not pass it, or the next recovery would not see it.
TEST_F(LogDamageTest, DamagedHeaderInFlightStaysDamageAfterItsWriterLeaves) {
  for (const size_t field : {offsetof(format::ObjectHeader, key_hash), offsetof(format::ObjectHeader, key_size)}) {
    const std::string key = "key" + std::to_string(field);
    store_.Inline(key, "older");
    const Reserved placed = store_.Reserve(key, "placed", 1);
    store_.Land(placed);
    store_.pool().view().bytes[store_.OffsetOf(placed) + field] ^= std::byte{4};
    store_.EndSession(1);
    EXPECT_EQ(store_.Get(key), kDamaged);
    Fill("other", 4);
    store_.Recover();
    EXPECT_EQ(store_.Get(key), kDamaged);
    store_.Inline(key, "newer");
    EXPECT_EQ(store_.Get(key), "newer");
  }
}

TEST_F(LogDamageTest, DamagedHeaderOfAnUnusedSegmentIsHarmless) {
  store_.Inline("key", "value");
  Store64(Segment(0, 2), 0x1234);
  store_.Recover();
  EXPECT_EQ(store_.Get("key"), "value");
  store_.CloseAndReopen();
  Fill("key", 20);
  store_.CloseAndReopen();
}

TEST_F(LogDamageTest, DamagedHeaderInAFreeRegionIsHarmless) {
  store_.Inline("key", "value");
  Store64(Segment(1, 2), 0x1234);
  Fill("key", 18);  // into the next region
  ASSERT_TRUE(RegionWord(LoadAs<uint64_t>(store_.pool().bytes().subspan(format::kRegionTableOffset + 8))).linked());
  store_.CloseAndReopen();
  Fill("key", 20);
  store_.CloseAndReopen();
}

// The entry is damaged, and the segment is not. So the shard takes up the pool.
TEST_F(LogDamageTest, EntryIntoAnUnusedSegmentIsDamage) {
  store_.Inline("key", "value");
  store_.Inline("other", "value");
  const auto slot = store_.versions().index().Find(HashKey("key"), [](index::Slot, const auto&) { return true; });
  const auto word = format::EntryWord::Make(true, format::LogAddress::At(0, 2 * 4096 + 64), {}, true);
  Store64(store_.geometry().FirstSlotOffset(0, *slot), word.raw());
  // An object that was cut off makes recovery look through the index.
  Store64(Segment(0, 0) + 3000, 1);
  store_.Recover();
  EXPECT_NE(store_.recovery().index_slots, 0U);
  EXPECT_EQ(store_.Get("key"), kDamaged);
  EXPECT_EQ(store_.Get("other"), "value");
}

TEST_F(LogDamageTest, UsedRegionThatLooksFreeIsNotOverwritten) {
  store_.Inline("key", "value");
  Store64(format::kRegionTableOffset, 0);
  store_.Recover();
  EXPECT_EQ(store_.Get("key"), kDamaged);
  const auto region = store_.pool().bytes().subspan(Segment(0, 0), store_.geometry().region_size);
  const std::vector<std::byte> before(region.begin(), region.end());
  for (int i = 0; i < 200; ++i)
    store_.Inline("more" + std::to_string(i % 50), std::string(900, 'v'));  // until the log is full
  EXPECT_TRUE(std::equal(region.begin(), region.end(), before.begin()));
}

// The running server and its clients use a copy of the word in DRAM. The word is damage for the next server.
TEST_F(LogDamageTest, DecayOfARegionWordDoesNotAffectTheRunningServer) {
  store_.Inline("key", "value");
  const uint64_t at = format::kRegionTableOffset;
  const auto good = LoadAs<uint64_t>(store_.pool().bytes().subspan(at));
  for (const uint64_t damage : {uint64_t{1} << 40, good, uint64_t{0xa5}}) {  // its generation, all of it, its state
    Store64(at, good ^ damage);
    const std::string key = "key" + std::to_string(damage);
    store_.Inline(key, "value");
    const Reserved never = store_.Reserve(key, "never lands", 1);
    store_.EndSession(1);
    EXPECT_EQ(store_.Get(key), "value");
    EXPECT_EQ(store_.Get("key"), "value");
  }
  const auto region = store_.pool().bytes().subspan(Segment(0, 0), store_.geometry().segment_size);
  const std::vector<std::byte> before(region.begin(), region.end());
  for (int i = 0; i < 200; ++i)
    store_.Inline("more" + std::to_string(i % 20), std::string(900, 'v'));  // until the log is full
  EXPECT_EQ(store_.Get("key"), "value");
  EXPECT_TRUE(std::equal(before.begin() + 64, before.begin() + 1400, region.begin() + 64)) << "it is linked again";
}

// Flips each bit of each word of the record. With a flipped version limit, versions could repeat, so the pool is
// refused. With a damaged number of keys, the shard counts them again. With a damaged record of moves, it looks through
// the index.
TEST_F(LogDamageTest, FlippedBitInAShardRecordIsRefusedOrHarmless) {
  for (int i = 0; i < 20; ++i) store_.Inline("key" + std::to_string(i), "value");
  store_.Close();
  nvm::Writer nvm(store_.pool());
  std::vector<uint64_t> control(format::ControlBytes(store_.geometry()) / sizeof(uint64_t));
  const auto bytes = store_.pool().view().bytes;
  const std::vector<std::byte> before(bytes.begin(), bytes.end());
  for (uint64_t bit = 0; bit < 64; ++bit) {
    for (const uint64_t field : {offsetof(format::ShardRecord, version_limit), offsetof(format::ShardRecord, keys),
                                 offsetof(format::ShardRecord, move), offsetof(format::ShardRecord, time),
                                 offsetof(format::ShardRecord, reaches), offsetof(format::ShardRecord, rest_place),
                                 offsetof(format::ShardRecord, rest_hash)}) {
      std::ranges::copy(before, bytes.begin());
      bytes[format::ShardRecordOffset(0) + field + bit / 8] ^= std::byte{1} << (bit % 8);
      for (const bool crashed : {false, true}) {
        Versions versions(nvm, store_.geometry(), Store::kPoolSeed, 0, std::as_writable_bytes(std::span(control)), {});
        const Status status = crashed ? versions.part().Look() : versions.part().Open();
        if (field == offsetof(format::ShardRecord, version_limit)) {
          EXPECT_EQ(status.code(), Code::kCorruption) << bit;
          EXPECT_NE(status.message().find("its limit of versions"), std::string_view::npos) << status.ToString();
          continue;
        }
        ASSERT_TRUE(status.ok()) << field << " " << bit << " " << status.ToString();
        if (crashed) {
          const RecoveryReport report = versions.part().Repair();
          EXPECT_EQ(report.index_slots > 0, field == offsetof(format::ShardRecord, move)) << bit;
        }
        while (!versions.growth().CountKeys(64)) {
        }
        EXPECT_EQ(versions.index().census().used(), 20U) << field << " " << bit;
        if (versions.index().mender().may_end_rest()) versions.mending().EndRest(versions.PublishPuts());
        EXPECT_EQ(versions.index().mender().flips_undone(), 0U);
        versions.mending().TellNews([&](std::string_view) { ADD_FAILURE() << field << " " << bit; });
      }
    }
  }
}

// The effect of one flipped bit of an index entry in a served pool (docs/format.md, "Flipped bits of an entry").
class FlippedEntryTest : public LogDamageTest {
 protected:
  void SetUp() override {
    store_.Inline("k", "old");
    store_.Inline("k", "new");
    store_.cleaning().on_damage = [this](std::string_view key) { told_.emplace_back(key); };
    Count();
    FindEntry();
  }
  void FindEntry() {
    const auto slot = *store_.versions().index().Find(HashKey("k"), [](index::Slot, const auto&) { return true; });
    at_ = store_.geometry().FirstSlotOffset(0, slot);
    word_ = store_.WordOf("k");
    ASSERT_TRUE(word_.settled());
  }
  void Reopen() {
    store_.Open();
    store_.cleaning().on_damage = [this](std::string_view key) { told_.emplace_back(key); };
  }
  void Count() {
    while (!store_.versions().growth().CountKeys(64)) {
    }
  }
  void Flip(uint64_t bit) { store_.pool().view().bytes[at_ + bit / 8] ^= std::byte{1} << (bit % 8); }
  // Rounds of the scrubber.
  void Scrub() {
    for (int i = 0; i < 40; ++i) {
      store_.cleaner().Scrub(8192);
      store_.Clean();
    }
  }
  [[nodiscard]] uint64_t damage_found() {
    return inspect::InspectPool(WholePool(store_.Bytes(), false), {}).value().damage_count;
  }
  // The lowest bit of each address in the word.
  [[nodiscard]] uint64_t new_address() const { return word_.new_tag() ? 32 : 1; }
  [[nodiscard]] uint64_t old_address() const { return word_.new_tag() ? 1 : 32; }

  uint64_t at_ = 0;
  format::EntryWord word_;
  std::vector<std::string> told_;
};

TEST_F(FlippedEntryTest, ServerUndoesEachFlip) {
  for (uint64_t bit = 0; bit < 128; ++bit) {
    SCOPED_TRACE("bit " + std::to_string(bit));
    Flip(bit);
    Scrub();
    EXPECT_EQ(store_.WordOf("k"), word_);
    EXPECT_EQ(store_.Get("k"), "new");
    EXPECT_EQ(damage_found(), 0U);
    EXPECT_EQ(store_.versions().index().mender().flips_undone(), bit + 1);
    EXPECT_EQ(store_.counter(format::Counter::kFlipsUndone), bit + 1);
  }
  EXPECT_TRUE(told_.empty()) << "nothing is damaged";
}

// A request of the key undoes the flip before the scrubber comes by.
TEST_F(FlippedEntryTest, RequestOfTheKeyUndoesTheFlip) {
  for (uint64_t bit = 0; bit < 128; ++bit) {
    SCOPED_TRACE("bit " + std::to_string(bit));
    Flip(bit);
    const auto present = store_.versions().judging().Judge("k", HashKey("k"));
    EXPECT_EQ(present.state, Present::State::kThere);
    EXPECT_EQ(present.address, word_.new_address());
    EXPECT_EQ(store_.versions().index().mender().flips_undone(), bit + 1);
  }
}

// A put finds the entry of its key, so that the key never has two entries. A delete stays.
TEST_F(FlippedEntryTest, AKeyWithAFlippedTagHasOneEntry) {
  for (uint64_t bit = 96; bit < 128; ++bit) {
    SCOPED_TRACE("bit " + std::to_string(bit));
    Flip(bit);
    store_.Inline("k", "newer");
    Scrub();
    EXPECT_EQ(store_.versions().index().census().used(), 1U);
    EXPECT_EQ(store_.Get("k"), "newer");
    Flip(bit);
    EXPECT_EQ(store_.Delete("k"), Code::kOk);
    Scrub();
    EXPECT_EQ(store_.Get("k"), kAbsent);
    store_.Inline("k", "new");
  }
}

// Otherwise the next put of the key would take a name from a region that does not count the key. The shard would then
// empty that region with the other key in it.
TEST_F(FlippedEntryTest, ARegionThatAnotherKeyNeedsIsNotEmptied) {
  for (const std::vector<uint64_t>& bits : {std::vector<uint64_t>{0}, {63}, {63, 64}}) {
    SCOPED_TRACE("bit " + std::to_string(bits.front()));
    store_.Inline("k", "old");
    store_.Inline("other", "value");
    Fill("key", 40);  // each of its keys twice, so that entries need nothing else in the region
    store_.Inline("k", "new");
    for (const uint64_t bit : bits) Flip(bit);
    store_.Inline("k", "newer");
    store_.cleaning().Ask();
    store_.Clean();
    EXPECT_EQ(store_.Get("other"), "value");
    EXPECT_EQ(store_.Get("k"), "newer");
  }
}

// A client may have found the old version by the flipped entry, and remember its location (I12).
TEST_F(FlippedEntryTest, AVersionThatAFlipShowedIsMarkedAsLeft) {
  const uint64_t old = store_.versions().log().OffsetOf(store_.geometry().HeadOf(HashKey("k")), word_.old_address());
  const auto bytes = store_.pool().bytes().subspan(old, sizeof(format::ObjectHeader));
  Store64(old, LoadAs<uint64_t>(bytes) & ~format::WithLeft(0));  // a power cut may have taken the mark
  ASSERT_FALSE(LoadAs<format::ObjectHeader>(bytes).left());
  Flip(63);
  Scrub();
  EXPECT_EQ(store_.WordOf("k"), word_);
  EXPECT_TRUE(LoadAs<format::ObjectHeader>(bytes).left());
}

TEST_F(FlippedEntryTest, SeveralFlipsAreReportedByKey) {
  for (const uint64_t bit : {66, 67, 70}) Flip(bit);  // in the size hint: the key is known
  Scrub();
  EXPECT_EQ(told_, std::vector<std::string>{"k"});
  told_.clear();
  Scrub();
  EXPECT_TRUE(told_.empty());
  EXPECT_EQ(store_.Get("k"), "new");
  // A put that meets the damage before the scrubber tells it, too.
  for (const uint64_t bit : {66, 67, 70}) Flip(bit);
  store_.Inline("k", "newer");
  Scrub();
  EXPECT_EQ(told_, std::vector<std::string>{"k"});
}

// The key of an entry that is gone is unknown. The next server counts the keys.
TEST_F(FlippedEntryTest, MissingEntryIsReportedWithoutAKey) {
  Store64(at_, 0);
  Scrub();
  EXPECT_EQ(told_, std::vector<std::string>{""});
  store_.Close();
  EXPECT_EQ(damage_found(), 0U);
  store_.Open();
  EXPECT_EQ(store_.Keys(), 0U);
}

// The scrubber may be off. A request that meets the damage is enough.
TEST_F(FlippedEntryTest, RequestReportsSeveralFlipsWithoutAScrubber) {
  for (const uint64_t bit : {66, 67, 70}) Flip(bit);
  store_.Inline("k", "newer");
  store_.Clean();
  EXPECT_EQ(told_, std::vector<std::string>{"k"});
}

// The medium decayed for good. So the mended entry must be on the medium, too, when the request is over.
TEST_F(FlippedEntryTest, APowerCutLeavesTheMendedEntry) {
  enum class By { kRequest, kCheckAtRest, kRequestBeforeTheCheck };
  const auto expect = [](By by, uint64_t bit) {
    SCOPED_TRACE("bit " + std::to_string(bit) + ", by " + std::to_string(static_cast<int>(by)));
    Machine machine{StoreOptions()};
    Store& store = machine.store;
    store.Inline("k", "old");
    store.Inline("k", "new");
    while (!store.versions().growth().CountKeys(64)) {
    }
    const auto slot = *store.versions().index().Find(HashKey("k"), [](index::Slot, const auto&) { return true; });
    if (by != By::kRequest) store.Close();
    machine.pool->EverythingIsDurable();
    const uint64_t at = store.geometry().FirstSlotOffset(0, slot) + bit / 8;
    const std::byte sound = machine.pool->bytes()[at];
    const std::byte flipped = sound ^ std::byte{1} << (bit % 8);
    machine.pool->Damage(at, {&flipped, 1});
    if (by != By::kRequest) store.Open();
    if (by == By::kCheckAtRest) {
      store.Clean();
    } else {
      EXPECT_EQ(store.versions().judging().Judge("k", HashKey("k")).state, Present::State::kThere);
    }
    Choices choices(*machine.pool, bit);
    for (size_t i = 0; i < choices.size(); ++i) {
      const CrashPool::Image image = choices.At(i);
      EXPECT_EQ(std::as_bytes(std::span(image))[at], sound);
    }
  };
  for (const uint64_t bit : {0, 63, 80, 100}) {
    expect(By::kRequest, bit);
    expect(By::kCheckAtRest, bit);
    if (bit >= 80) expect(By::kRequestBeforeTheCheck, bit);
  }
}

// A merge leaves out the version of the flipped entry. Its search through the index undoes the flip, and the region is
// merged again.
TEST_F(FlippedEntryTest, CleaningGainsTheSameWithAFlip) {
  std::vector<uint64_t> cleaned;
  for (const bool flips : {false, true}) {
    Store store;
    store.Inline("k", "old");
    for (int i = 0; i < 40; ++i) store.Inline("key" + std::to_string(i % 20), std::string(900, 'v'));
    store.Inline("k", "new");
    for (int i = 0; i < 20; ++i) store.Inline("key" + std::to_string(i), std::string(900, 'w'));
    while (!store.versions().growth().CountKeys(64)) {
    }
    const auto slot = *store.versions().index().Find(HashKey("k"), [](index::Slot, const auto&) { return true; });
    const uint64_t at = store.geometry().FirstSlotOffset(0, slot);
    if (flips) store.pool().view().bytes[at + 7] ^= std::byte{0x80};
    store.cleaning().Ask();
    store.Clean();
    EXPECT_EQ(store.Get("k"), "new");
    cleaned.push_back(store.counter(format::Counter::kCleanRegions));
  }
  EXPECT_GT(cleaned[0], 0U);
  EXPECT_EQ(cleaned[1], cleaned[0]);
}

TEST_F(FlippedEntryTest, NextServerUndoesEachFlipInAPoolAtRest) {
  for (uint64_t bit = 0; bit < 128; ++bit) {
    SCOPED_TRACE("bit " + std::to_string(bit));
    store_.Close();
    Flip(bit);
    EXPECT_GT(inspect::InspectPool(WholePool(store_.Bytes(), true), {}).value().damage_count, 0U);
    Reopen();
    Count();
    store_.Clean();
    EXPECT_EQ(store_.WordOf("k"), word_);
    EXPECT_EQ(store_.Get("k"), "new");
    EXPECT_EQ(damage_found(), 0U);
    EXPECT_EQ(store_.counter(format::Counter::kFlipsUndone), 1U);
    EXPECT_EQ(store_.Keys(), 1U);
  }
  EXPECT_TRUE(told_.empty());
}

TEST_F(FlippedEntryTest, FreeSlotOfAPoolAtRestIsFreeAgainAfterAFlip) {
  store_.Delete("k");
  for (const uint64_t bit : {0, 5, 40, 63, 64, 100, 127}) {
    SCOPED_TRACE("bit " + std::to_string(bit));
    store_.Close();
    Flip(bit);
    Reopen();
    Count();
    store_.Clean();
    EXPECT_EQ(LoadAs<uint64_t>(store_.pool().bytes().subspan(at_)), 0U);
    EXPECT_EQ(store_.Keys(), 0U);
    EXPECT_EQ(damage_found(), 0U);
  }
  EXPECT_TRUE(told_.empty());
}

// The server stops before it has counted the slots, or while it counts them.
TEST_F(FlippedEntryTest, ServerThatStopsEarlyUndoesAFlipInAPoolAtRest) {
  for (uint64_t bit = 0; bit < 128; ++bit) {
    SCOPED_TRACE("bit " + std::to_string(bit));
    store_.Close();
    Flip(bit);
    Reopen();
    (void)store_.versions().growth().CountKeys(bit);
    store_.Close();
    Reopen();
    EXPECT_EQ(store_.WordOf("k"), word_);
    EXPECT_EQ(store_.Get("k"), "new");
    EXPECT_EQ(damage_found(), 0U);
  }
  EXPECT_TRUE(told_.empty());
}

// A put finds the key under a flipped tag. A flip of the word is overwritten by the put. A flip of
// meta is undone although the word has changed.
TEST_F(FlippedEntryTest, PutBeforeTheCheckOfAPoolAtRestCounts) {
  for (uint64_t bit = 0; bit < 128; ++bit) {
    SCOPED_TRACE("bit " + std::to_string(bit));
    store_.Close();
    Flip(bit);
    Reopen();
    store_.Inline("k", "newer");
    Count();
    Scrub();
    EXPECT_EQ(store_.Get("k"), "newer");
    EXPECT_EQ(store_.Keys(), 1U);
    store_.CloseAndReopen();
    EXPECT_EQ(store_.Get("k"), "newer");
    EXPECT_EQ(store_.Keys(), 1U);
    EXPECT_EQ(damage_found(), 0U);
    store_.Delete("k");
    store_.Inline("k", "old");
    store_.Inline("k", "new");
    FindEntry();
  }
}

// The scrubber has settled the entry already, and the check must not flip the bit again.
TEST_F(FlippedEntryTest, AnEntryThatIsMendedBeforeTheCheckStaysMended) {
  store_.Close();
  Flip(0);
  Reopen();
  while (!store_.versions().index().census().is_complete()) {
    (void)store_.versions().growth().CountKeys(64);
    (void)store_.versions().mending().Mend(store_.versions().PublishPuts(), 0, store_.versions().index().size());
    EXPECT_TRUE(store_.versions().index().mender().rest_is_due());
  }
  store_.Clean();
  EXPECT_FALSE(store_.versions().index().mender().rest_is_due());
  EXPECT_EQ(store_.WordOf("k"), word_);
  EXPECT_TRUE(told_.empty());
}

TEST_F(FlippedEntryTest, MoreThanOneFlipInAPoolAtRestIsReported) {
  for (const std::vector<uint64_t>& bits : {std::vector<uint64_t>{63, 64}, {2, 40}, {64, 65, 66}}) {
    store_.Close();
    for (const uint64_t bit : bits) Flip(bit);
    Reopen();
    Count();
    store_.Clean();
    EXPECT_EQ(told_, std::vector<std::string>{""});
    EXPECT_EQ(store_.counter(format::Counter::kFlipsUndone), 0U);
    store_.Clean();
    EXPECT_EQ(told_.size(), 1U);
    told_.clear();
    for (const uint64_t bit : bits) Flip(bit);
    store_.CloseAndReopen();
  }
}

// The flipped address leads into another region. The shard must not empty the region that the key needs.
TEST_F(FlippedEntryTest, CleanerWaitsForTheCheckOfAPoolAtRest) {
  Fill("key", 60);
  store_.Close();
  Flip(63);
  Reopen();
  store_.cleaning().Ask();
  for (int i = 0; i < 20; ++i) {
    (void)store_.cleaning().Step();
    store_.cleaner().Step();
  }
  EXPECT_EQ(store_.counter(format::Counter::kCleanRegions), 0U);
  Count();
  EXPECT_TRUE(store_.versions().index().mender().rest_is_due());
  store_.Clean();
  EXPECT_EQ(store_.Get("k"), "new");
}

// The sum is unknown. So the next server believes the entry, unless no clean close leaves such an entry.
TEST_F(FlippedEntryTest, FlipInAPoolAtRestWithoutASumIsBelievedUnlessItIsImpossible) {
  const auto close = [&] {
    store_.Close();
    Store64(format::kShardRecordsOffset + offsetof(format::ShardRecord, rest_place), 0);
  };
  const auto expect = [&](uint64_t bit, std::string_view value, bool is_told, bool is_found) {
    SCOPED_TRACE("bit " + std::to_string(bit));
    close();
    Flip(bit);
    store_.Open();
    store_.cleaning().on_damage = [this](std::string_view key) { told_.emplace_back(key); };
    Count();
    told_.clear();
    Scrub();
    EXPECT_EQ(store_.Get("k"), value);
    EXPECT_EQ(!told_.empty(), is_told);
    if (value == kAbsent) {
      EXPECT_EQ(told_.front(), "k");
    }
    EXPECT_EQ(damage_found() > 0, is_found);
    close();
    if (store_.WordOf("k") != word_ || value != "new") Flip(bit);
    store_.Open();
    EXPECT_EQ(store_.Get("k"), "new");
  };
  expect(0, "new", false, false);   // the settled bit: settled again
  expect(63, "old", false, false);  // newtag
  for (uint64_t bit = 0; bit < 31; ++bit) {
    expect(new_address() + bit, kDamaged, true, true);
    expect(old_address() + bit, "new", false, false);
  }
  for (uint64_t bit = 64; bit < 80; ++bit) expect(bit, "new", false, false);  // the size hint
  for (uint64_t bit = 80; bit < 96; ++bit) expect(bit, "new", false, true);   // distance and depth
  for (uint64_t bit = 96; bit < 128; ++bit) expect(bit, kAbsent, true, true);
}

// The scrubber tells the damage without a key: the other key has an entry and is whole.
TEST_F(LogDamageTest, EntryToAnotherKeysVersionIsReportedWithoutAKey) {
  store_.Inline("k", "value");
  store_.Inline("other", "value");
  const auto slot = *store_.versions().index().Find(HashKey("k"), [](index::Slot, const auto&) { return true; });
  Store64(store_.geometry().FirstSlotOffset(0, slot), store_.WordOf("other").raw());
  std::vector<std::string> told;
  store_.cleaning().on_damage = [&](std::string_view key) { told.emplace_back(key); };
  for (int i = 0; i < 40; ++i) {
    store_.cleaner().Scrub(8192);
    store_.Clean();
  }
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(std::ranges::count(told, std::string()), static_cast<ptrdiff_t>(told.size()));
  EXPECT_EQ(store_.Get("other"), "value");
}

// A segment's header has the first version of the segment. With a flipped bit, the pool is refused, or nothing is lost
// and no version repeats. All keys are there, and later objects stand on free places with newer versions.
TEST_F(LogDamageTest, FlippedBitInTheFirstVersionLosesAndRepeatsNothing) {
  std::map<std::string, std::string> expected;
  // Keeps the first region unsettled after the crash. After the close it is settled, and not read.
  store_.Reserve("in flight", "v", 1);
  for (int i = 0; i < 20; ++i) {
    const std::string key = "key" + std::to_string(i);
    expected[key] = std::string(700, static_cast<char>('a' + i));
    ASSERT_EQ(store_.Inline(key, expected[key]).code, Code::kOk);
  }
  const uint64_t newest = store_.Inline("key0", expected["key0"]).header.version;
  const Reserved placed = store_.Reserve("placed", "value", 1);
  store_.Land(placed);
  expected["placed"] = "value";
  const auto bytes = store_.pool().view().bytes;
  const std::vector<std::byte> crashed(bytes.begin(), bytes.end());
  store_.Close();
  const std::vector<std::byte> closed(bytes.begin(), bytes.end());
  int refused = 0;
  for (const bool crash : {false, true}) {
    for (const uint64_t segment : {Segment(0, 0), Segment(0, 1), Segment(0, 3), Segment(1, 0)}) {
      for (uint64_t bit = 0; bit < 64; ++bit) {
        SCOPED_TRACE(testing::Message() << (crash ? "crashed" : "closed") << ", segment at " << segment << ", bit "
                                        << bit);
        std::ranges::copy(crash ? crashed : closed, bytes.begin());
        bytes[segment + offsetof(SegmentHeader, first_version) + bit / 8] ^= std::byte{1} << (bit % 8);
        {
          nvm::Writer nvm(store_.pool());
          std::vector<uint64_t> control(format::ControlBytes(store_.geometry()) / sizeof(uint64_t));
          Versions versions(nvm, store_.geometry(), Store::kPoolSeed, 0, std::as_writable_bytes(std::span(control)),
                            {});
          const Status status = crash ? versions.part().Look() : versions.part().Open();
          if (!status.ok()) {
            EXPECT_EQ(status.code(), Code::kCorruption);
            ++refused;
            continue;
          }
        }
        crash ? store_.Recover() : store_.Open();
        for (const auto& [key, value] : expected) ASSERT_EQ(store_.Get(key), value) << key;
        const Outcome next = store_.Inline("next", std::string(2000, 'n'));
        ASSERT_EQ(next.code, Code::kOk);
        ASSERT_GT(next.header.version, newest);
        for (int i = 0; i < 6; ++i) ASSERT_EQ(store_.Inline("more", std::string(1500, 'm')).code, Code::kOk);
        for (const auto& [key, value] : expected) ASSERT_EQ(store_.Get(key), value) << key;
        store_.Recover();
        for (const auto& [key, value] : expected) ASSERT_EQ(store_.Get(key), value) << key;
      }
    }
  }
  EXPECT_GT(refused, 5 * 40);
}

// Such a segment holds versions from before the flip and after it. It never counts as the writers' newest one.
TEST_F(LogDamageTest, FlippedFirstVersionOfASegmentOfCopiesLosesNothing) {
  std::map<std::string, std::string> expected;
  const auto put = [&](const std::string& key, size_t bytes) {
    expected[key] = std::string(bytes, key.back());
    ASSERT_EQ(store_.Put(key, expected[key]).code, Code::kOk);
  };
  for (int i = 0; i < 12; ++i) put("kept" + std::to_string(i), 900);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 12; ++i) put("key" + std::to_string(i), 900);
    if (round == 0) put("kept" + std::to_string(round), 900);
  }
  store_.cleaning().Ask();
  store_.Clean();
  put("newest", 100);
  const auto bytes = store_.pool().view().bytes;
  std::vector<uint64_t> copies;
  for (uint32_t region = 0; region < store_.geometry().regions_per_shard; ++region) {
    for (uint64_t segment = 0; segment < store_.geometry().segments_per_region(); ++segment) {
      const auto header = LoadAs<SegmentHeader>(bytes.subspan(Segment(region, segment)));
      const RegionWord word(LoadAs<uint64_t>(bytes.subspan(format::kRegionTableOffset + region * sizeof(uint64_t))));
      if (word.linked() && header.identity == SegmentHeader::Identity(word.generation()) && header.copies()) {
        copies.push_back(Segment(region, segment));
      }
    }
  }
  ASSERT_FALSE(copies.empty());
  const std::vector<std::byte> crashed(bytes.begin(), bytes.end());
  store_.Close();
  const std::vector<std::byte> closed(bytes.begin(), bytes.end());
  for (const bool crash : {false, true}) {
    for (const uint64_t segment : copies) {
      for (uint64_t bit = 0; bit < 64; ++bit) {
        SCOPED_TRACE(testing::Message() << (crash ? "crashed" : "closed") << ", segment at " << segment << ", bit "
                                        << bit);
        std::ranges::copy(crash ? crashed : closed, bytes.begin());
        bytes[segment + offsetof(SegmentHeader, first_version) + bit / 8] ^= std::byte{1} << (bit % 8);
        crash ? store_.Recover() : store_.Open();
        for (const auto& [key, value] : expected) ASSERT_EQ(store_.Get(key), value) << key;
        for (int i = 0; i < 6; ++i) ASSERT_EQ(store_.Put("more", std::string(1500, 'm')).code, Code::kOk);
        for (const auto& [key, value] : expected) ASSERT_EQ(store_.Get(key), value) << key;
        store_.Recover();
        for (const auto& [key, value] : expected) ASSERT_EQ(store_.Get(key), value) << key;
      }
    }
  }
}

}  // namespace
}  // namespace erda::server
