// erda-inspect's findings, exactly: in pools that a store made, and in the same pools after damage.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "base/printable.h"
#include "base/random.h"
#include "base/test_hash.h"
#include "format/log_layout.h"
#include "server/crash_pool.h"
#include "server/whole_pool.h"

namespace erda::server {
namespace {

using inspect::Damage;
using inspect::PoolReport;
using inspect::ShardReport;
using inspect::SuperblockCopy;
using CopyState = SuperblockCopy::State;
using Bytes = std::vector<std::byte>;

class InspectTest : public testing::Test {
 protected:
  InspectTest() {
    auto pool = std::make_unique<CrashPool>(StoreOptions().wish.pool_size);
    pool_ = pool.get();
    store_ = std::make_unique<Store>(StoreOptions(), std::move(pool));
  }

  [[nodiscard]] Bytes Crashed() const { return WholePool(store_->Bytes(), false); }
  [[nodiscard]] Bytes Closed() const {
    store_->Close();
    return WholePool(store_->Bytes(), true);
  }
  // Adds 1 to one byte.
  static void Change(Bytes* bytes, uint64_t at) {
    (*bytes)[at] = static_cast<std::byte>(std::to_integer<int>((*bytes)[at]) + 1);
  }
  static PoolReport Inspect(const Bytes& bytes, bool verify = true, size_t listed = 1000) {
    const Bytes before = bytes;
    auto report = inspect::InspectPool(bytes, {verify, listed});
    EXPECT_TRUE(report.ok()) << report.status().ToString();
    EXPECT_TRUE(bytes == before);
    EXPECT_EQ((*report).shards.size(), 1U);
    return *std::move(report);
  }
  static ShardReport InspectSound(const Bytes& bytes) {
    const PoolReport report = Inspect(bytes);
    EXPECT_EQ(report.damage_count, 0U);
    for (const Damage& damage : report.damage) ADD_FAILURE() << damage.what;
    return report.shards.front();
  }
  // Expects one piece of damage, with and without verified values, and returns it.
  static Damage InspectDamaged(const Bytes& bytes) {
    const PoolReport report = Inspect(bytes);
    EXPECT_EQ(report.damage_count, 1U);
    for (const Damage& damage : report.damage) SCOPED_TRACE(damage.what);
    EXPECT_EQ(Inspect(bytes, false).damage_count, 1U);
    return report.damage.empty() ? Damage() : report.damage.front();
  }
  [[nodiscard]] uint64_t OffsetOf(const Outcome& outcome) const {
    return store_->OffsetOf({outcome, "", "", 0, false});
  }
  [[nodiscard]] uint64_t SlotOf(std::string_view key) const {
    return *store_->versions().index().Find(HashKey(key), [](index::Slot, const format::IndexEntry&) { return true; });
  }
  [[nodiscard]] uint64_t EntryOffset(std::string_view key) const {
    return store_->geometry().FirstSlotOffset(0, SlotOf(key));
  }

  CrashPool* pool_ = nullptr;
  std::unique_ptr<Store> store_;
};

TEST_F(InspectTest, StoresHaveTheSeedOfTheTestUuid) { EXPECT_EQ(format::PoolSeed(kStoreUuid), Store::kPoolSeed); }

// A client states wrong sizes in the headers of its objects. They hide no damage of another client's value.
TEST_F(InspectTest, ForgedSizesInAChunkHideNoDamageElsewhere) {
  const Outcome victim = store_->Inline("victim", "a value that gets damaged");
  const auto key_of = [](int i) { return "forged" + std::to_string(i); };
  for (int i = 0; i < 60; ++i) ASSERT_TRUE(store_->Delegated(key_of(i), "a value")) << i;
  const format::Geometry& g = store_->geometry();
  for (const bool to_the_segments_end : {false, true}) {
    Bytes bytes = Crashed();
    for (int i = 0; i < 60; ++i) {
      const std::string key = key_of(i);
      const format::LogAddress address = store_->WordOf(key).new_address();
      const uint64_t at = store_->OffsetOfKey(key);
      format::ObjectHeader header{};
      std::memcpy(&header, bytes.data() + at, sizeof(header));
      const uint64_t room = g.segment_size - g.OffsetInRegion(address) % g.segment_size;
      const uint64_t more = room - SpaceOf(header);
      header.value_size += static_cast<uint32_t>(to_the_segments_end ? more : std::min<uint64_t>(more, 256));
      header.header_crc = format::HeaderCrc(store_->versions().log().PlaceOf(0, address), header, key);
      std::memcpy(bytes.data() + at, &header, sizeof(header));
    }
    Change(&bytes, OffsetOf(victim) + format::ValueOffset(format::LabelSize(6, false)));
    const PoolReport report = Inspect(bytes);
    const auto tells = [&](std::string_view key, std::string_view what) {
      return std::ranges::any_of(report.damage, [&](const Damage& damage) {
        return (key.empty() || damage.key == key) && damage.what.find(what) != std::string::npos;
      });
    };
    EXPECT_TRUE(tells("victim", "the value is damaged"));
    EXPECT_FALSE(tells("", "several entries of the index lead to one object"));
    EXPECT_LE(report.shards.front().live_bytes, report.shards.front().object_bytes);
    EXPECT_TRUE(to_the_segments_end || tells("", "state more bytes than it has"));
  }
}

TEST_F(InspectTest, CleanPoolIsReportedInFull) {
  store_->Inline("a", "first");
  store_->Inline("a", "second");
  store_->Inline("b", std::string(1000, 'b'));
  store_->Inline("c", "gone");
  store_->Delete("c");
  const Bytes bytes = Closed();
  const PoolReport report = Inspect(bytes);
  EXPECT_FALSE(report.needs_recovery);
  EXPECT_EQ(report.superblocks[0].state, CopyState::kOlder);
  EXPECT_EQ(report.superblocks[1].state, CopyState::kCounts);
  EXPECT_EQ(report.superblock.generation, 2U);

  const ShardReport shard = InspectSound(bytes);
  const uint64_t live = format::ObjectSpace(1, 6) + format::ObjectSpace(1, 1000);
  const uint64_t dead = format::ObjectSpace(1, 5) + format::ObjectSpace(1, 4);
  EXPECT_EQ(shard.keys, 2U);
  EXPECT_EQ(shard.used_slots, 2U);
  EXPECT_EQ(shard.keys_at_close, 2U);
  EXPECT_EQ(shard.index_slots, 128U);
  EXPECT_EQ(shard.unsettled(), 0U);
  EXPECT_EQ(shard.live_bytes, live);
  EXPECT_EQ(shard.dead_bytes(), dead);
  EXPECT_EQ(shard.object_bytes, live + dead);
  EXPECT_EQ(shard.log_bytes, 8U * 16384);
  EXPECT_EQ(shard.regions_linked, 1U);
  EXPECT_EQ(shard.regions_free, 7U);
  EXPECT_EQ(shard.verified, 2U);
  EXPECT_EQ(shard.verified_bytes, live);
  EXPECT_FALSE(shard.move.has_value());
  ASSERT_EQ(shard.heads.size(), 1U);
  EXPECT_EQ(shard.heads[0].objects, 4U);
  EXPECT_EQ(shard.heads[0].segments.open, 1U);
  EXPECT_EQ(shard.heads[0].segments.sealed, 0U);
  EXPECT_EQ(shard.heads[0].segments.settled, 0U);
  EXPECT_EQ(Inspect(bytes, false).shards[0].verified, 0U);
}

TEST_F(InspectTest, NewPoolIsSoundAndEmpty) {
  const ShardReport shard = InspectSound(Closed());
  EXPECT_EQ(shard.used_slots, 0U);
  EXPECT_EQ(shard.object_bytes, 0U);
  EXPECT_EQ(shard.regions_free, 8U);
}

TEST_F(InspectTest, SegmentsAreCountedByTheirStates) {
  const auto value = [](char c) { return std::string(1900, c); };
  const Reserved in_flight = store_->Reserve("in flight", value('x'));
  for (const char* key : {"a", "b", "c", "d"})
    store_->Inline(key, value(*key));  // one in a segment, then two, then two
  ShardReport shard = InspectSound(Crashed());
  EXPECT_EQ(shard.heads[0].segments.sealed, 1U);
  EXPECT_EQ(shard.heads[0].segments.settled, 1U);
  EXPECT_EQ(shard.heads[0].segments.open, 1U);
  EXPECT_TRUE(store_->Finish(in_flight));
  shard = InspectSound(Closed());
  EXPECT_EQ(shard.heads[0].segments.sealed, 0U);
  EXPECT_EQ(shard.heads[0].segments.settled, 2U);
  EXPECT_EQ(shard.dead_bytes(), 0U);
}

TEST_F(InspectTest, VersionsInFlightAreReported) {
  store_->Inline("older", "stays");
  const Reserved torn = store_->Reserve("older", "torn");
  store_->LandPart(torn, 5);
  (void)store_->Reserve("new", "never lands");
  store_->Land(store_->Reserve("landed", "whole"));
  store_->Inline("deleted", "value");
  int fences = 2;
  pool_->before_fence = [&] {
    if (--fences == 0) throw Crash();  // the tombstone is published, and the entry not yet free
  };
  EXPECT_THROW(store_->Delete("deleted"), Crash);
  const Bytes bytes = Crashed();
  EXPECT_TRUE(Inspect(bytes).needs_recovery);
  const ShardReport shard = InspectSound(bytes);
  EXPECT_EQ(shard.unsettled(), 4U);
  EXPECT_EQ(shard.not_whole, 2U);
  EXPECT_EQ(shard.whole, 1U);
  EXPECT_EQ(shard.tombstones, 1U);
  EXPECT_EQ(shard.keys, 3U);
  EXPECT_EQ(shard.used_slots, 4U);
  EXPECT_EQ(shard.dead_bytes(), 0U);  // the tombstone is not in the log, and the key's value may come back
  // No clean close leaves these versions in flight.
  EXPECT_GE(Inspect(WholePool(store_->Bytes(), true)).damage_count, 3U);
}

TEST_F(InspectTest, DamagedValueIsFoundByVerifyingAndNamedByKey) {
  const Outcome put = store_->Inline("key", "value");
  store_->Inline("other", "value");
  Bytes bytes = Closed();
  Change(&bytes, OffsetOf(put) + format::ValueOffset(3));
  EXPECT_EQ(Inspect(bytes, false).damage_count, 0U);
  const PoolReport report = Inspect(bytes);
  ASSERT_EQ(report.damage_count, 1U);
  EXPECT_EQ(report.damage[0].key, "key");
  EXPECT_EQ(report.damage[0].what, "the value is damaged");
  EXPECT_EQ(report.damage[0].slot, SlotOf("key"));
  EXPECT_EQ(report.damage[0].head, 0U);
  EXPECT_EQ(report.damage[0].address, put.address.raw());
  EXPECT_EQ(report.shards[0].verified, 1U);
  EXPECT_EQ(Inspect(bytes, true, 0).damage_count, 1U);
  EXPECT_TRUE(Inspect(bytes, true, 0).damage.empty());
}

TEST_F(InspectTest, DamagedOldValueOfAnUnfinishedPutIsNamedByKey) {
  const Outcome old = store_->Inline("key", "value");
  (void)store_->Reserve("key", "never lands");
  Bytes bytes = Crashed();
  EXPECT_EQ(Inspect(bytes).damage_count, 0U);
  Change(&bytes, OffsetOf(old) + format::ValueOffset(3));
  ASSERT_EQ(Inspect(bytes).damage_count, 1U);
  EXPECT_EQ(Inspect(bytes).damage[0].key, "key");
  EXPECT_EQ(Inspect(bytes, false).damage_count, 0U);
}

TEST_F(InspectTest, DamagedMarkIsReported) {
  const Outcome put = store_->Inline("key", "value");
  Bytes bytes = Closed();
  Change(&bytes, OffsetOf(put) - put.address.offset_in_slot() + offsetof(format::SegmentHeader, mark));
  ASSERT_EQ(Inspect(bytes).damage_count, 1U);
  EXPECT_EQ(Inspect(bytes).damage[0].what, "segment 0 of region 0 has a damaged mark");
  EXPECT_EQ(Inspect(bytes).shards[0].heads[0].objects, 1U);
}

TEST_F(InspectTest, MarkInTheMiddleOfAnObjectIsReported) {
  const Outcome put = store_->Inline("key", "value");
  Bytes bytes = Closed();
  const uint64_t mark = format::SegmentHeader::Mark(put.address.offset_in_slot() + 16);
  const uint64_t at = OffsetOf(put) - put.address.offset_in_slot() + offsetof(format::SegmentHeader, mark);
  std::memcpy(bytes.data() + at, &mark, sizeof(mark));
  ASSERT_EQ(Inspect(bytes).damage_count, 1U);
  EXPECT_EQ(Inspect(bytes).damage[0].what, "segment 0 of region 0 has a mark where no object begins");
}

TEST_F(InspectTest, MissingObjectsBeforeTheMarkAreReported) {
  store_->Inline("first", "value");
  const Outcome put = store_->Inline("key", "value");
  const Outcome last = store_->Inline("last", "value");
  Bytes bytes = Closed();
  std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(OffsetOf(put)), 96, std::byte{0});
  const PoolReport report = Inspect(bytes);
  ASSERT_EQ(report.damage_count, 3U);  // both keys, and this
  EXPECT_EQ(report.shards[0].heads[0].objects, 1U);
  EXPECT_EQ(report.shards[0].object_bytes, 3U * 48);
  EXPECT_EQ(report.shards[0].cut_off, 0U);
  EXPECT_EQ(last.address.offset_in_slot(), put.address.offset_in_slot() + 48);
}

TEST_F(InspectTest, DamagedHeaderIsNamedByTheKeyAfterIt) {
  store_->Inline("first", "value");
  const Outcome put = store_->Inline("key", "value");
  store_->Inline("last", "value");
  Bytes bytes = Crashed();
  Change(&bytes, OffsetOf(put) + offsetof(format::ObjectHeader, version));
  const Damage damage = InspectDamaged(bytes);
  EXPECT_EQ(damage.key, "key");
  EXPECT_EQ(damage.what, "the object's header or key is damaged");
  const ShardReport shard = Inspect(bytes).shards[0];
  EXPECT_EQ(shard.cut_off, 1U);  // A walk through the log sees a cut-off object.
  EXPECT_EQ(shard.object_bytes, 3U * 48);
  EXPECT_EQ(shard.live_bytes, 2U * 48);
  // After a clean close nothing is cut off, so this counts as damage, too.
  EXPECT_EQ(Inspect(WholePool(store_->BytesOfImage(bytes), true)).damage_count, 3U);  // that, this, the count of keys
}

TEST_F(InspectTest, DamagedKeyIsNamedByItsPlace) {
  const Outcome put = store_->Inline("key", "value");
  Bytes bytes = Crashed();
  Change(&bytes, OffsetOf(put) + format::kLabelOffset);
  const Damage damage = InspectDamaged(bytes);
  EXPECT_FALSE(damage.key.has_value());
  EXPECT_EQ(damage.slot, SlotOf("key"));
  EXPECT_EQ(damage.address, put.address.raw());
}

TEST_F(InspectTest, DamagedEntriesAreReportedWithTheirFault) {
  store_->Inline("key", "value");
  const uint64_t at = EntryOffset("key");
  const auto with = [&](format::EntryWord word, auto change_meta) {
    Bytes bytes = Crashed();
    auto entry = LoadAs<format::IndexEntry>(std::span(bytes).subspan(at));
    entry.word = word.raw();
    entry.meta = change_meta(entry.entry_meta()).raw();
    std::memcpy(bytes.data() + at, &entry, sizeof(entry));
    return InspectDamaged(bytes);
  };
  using format::EntryMeta;
  using format::EntryWord;
  using format::LogAddress;
  const EntryWord word = store_->WordOf("key");
  const auto same = [](EntryMeta meta) { return meta; };
  EXPECT_EQ(with(EntryWord(1), same).what, "the entry leads nowhere");
  EXPECT_EQ(with(EntryWord::Make(true, LogAddress::At(0, 0x1000000), {}, true), same).what,
            "the entry leads out of the log");
  EXPECT_EQ(with(EntryWord::Make(true, LogAddress::At(31, 4096), {}, true), same).what,
            "the entry leads out of the log");
  EXPECT_EQ(with(EntryWord::Make(true, LogAddress(word.new_address().raw() + 1), {}, true), same).what,
            "the object's header or key is damaged");
  EXPECT_EQ(with(word, [](EntryMeta meta) { return EntryMeta(meta.raw() ^ (uint64_t{1} << 40)); }).what,
            "the entry leads to another key's object");
  EXPECT_EQ(with(word, [](EntryMeta meta) { return meta.WithDistance(meta.distance() + 1); }).key, "key");
  EXPECT_EQ(with(word, [](EntryMeta meta) { return EntryMeta(meta.raw() ^ (uint64_t{200} << 24)); }).what,
            "the entry's depth is larger than its block's");
}

TEST_F(InspectTest, EntriesThatShareAnObjectAreReported) {
  store_->Inline("key", "value");
  store_->Inline("other", "value");
  Bytes bytes = Crashed();
  // Every slot leads to one large object. The inspection reads it only a few times.
  const auto entry = LoadAs<format::IndexEntry>(std::span(bytes).subspan(EntryOffset("key")));
  for (uint64_t slot = 0; slot < 128; ++slot) {
    std::memcpy(bytes.data() + store_->geometry().FirstSlotOffset(0, slot), &entry, sizeof(entry));
  }
  const PoolReport report = Inspect(bytes);
  EXPECT_EQ(report.damage_count, 127U);
  EXPECT_EQ(report.shards[0].used_slots, 128U);
}

TEST_F(InspectTest, DamagedStructuresAreReportedWithTheirFault) {
  const Outcome put = store_->Inline("key", "value");
  const uint64_t segment = store_->geometry().RegionOffset(0);
  const auto changed = [&](uint64_t at) {
    Bytes bytes = Crashed();
    Change(&bytes, at);
    return Inspect(bytes).damage;
  };
  EXPECT_EQ(changed(segment).at(0).what, "segment 0 of region 0 has a damaged header");
  EXPECT_EQ(changed(segment + offsetof(format::SegmentHeader, state)).at(0).what,
            "segment 0 of region 0 has an unknown state");
  EXPECT_EQ(changed(segment + offsetof(format::SegmentHeader, first_version) + 7).at(0).what,
            "segment 0 of region 0 has versions over the shard's limit");
  EXPECT_EQ(changed(format::kRegionTableOffset + 1).at(0).what,
            "the region table is damaged: region 0 cannot be head slot 0 of head 1");
  EXPECT_EQ(changed(format::kShardRecordsOffset + offsetof(format::ShardRecord, keys) + 2).at(0).what,
            "the shard's record has a damaged number of keys");
  EXPECT_EQ(changed(format::kShardRecordsOffset + offsetof(format::ShardRecord, move)).at(0).what,
            "the shard's record names a move in its index that cannot be");
  // The header is zeroes, as in a bad block that was mended.
  Bytes bytes = Crashed();
  std::fill_n(bytes.begin() + static_cast<ptrdiff_t>(segment), 64, std::byte{0});
  EXPECT_EQ(Inspect(bytes).damage.at(0).what, "segment 0 of region 0 has objects and no header");
  (void)put;
}

TEST_F(InspectTest, StateOfEachSuperblockCopyIsReported) {
  store_->Inline("key", "value");
  const Bytes clean = Closed();
  Bytes bytes = clean;
  Change(&bytes, format::kSuperblockOffsets[1] + 40);
  PoolReport report = Inspect(bytes);
  EXPECT_TRUE(report.needs_recovery);  // the damaged copy may have said that the pool is in use
  EXPECT_EQ(report.superblocks[0].state, CopyState::kCounts);
  EXPECT_EQ(report.superblocks[1].state, CopyState::kNotValid);
  EXPECT_EQ(report.damage_count, 0U);

  std::fill_n(bytes.begin() + format::kSuperblockOffsets[1], sizeof(format::Superblock), std::byte{0});
  report = Inspect(bytes);
  EXPECT_FALSE(report.needs_recovery);
  EXPECT_EQ(report.superblocks[1].state, CopyState::kNeverWritten);

  Change(&bytes, 40);
  EXPECT_EQ(inspect::InspectPool(bytes, {}).status().code(), Code::kCorruption);
}

TEST_F(InspectTest, GarbageIsNoPool) {
  Random random(1);
  for (int i = 0; i < 2000; ++i) {
    Bytes bytes(random.Uniform(20'000));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.Next());
    EXPECT_FALSE(inspect::InspectPool(bytes, {true}).ok());
  }
  EXPECT_FALSE(inspect::InspectPool({}, {true}).ok());
}

// Thousands of pools: first a few bits or words after the superblocks change, then garbage stands there.
TEST_F(InspectTest, InspectionSurvivesRandomDamage) {
  for (int i = 0; i < 60; ++i) store_->Inline("key" + std::to_string(i % 40), std::string(i * 16, 'v'));
  (void)store_->Reserve("key1", "never lands");
  const Bytes sound = Crashed();
  const auto used = static_cast<uint64_t>(
      sound.rend() - std::find_if(sound.rbegin(), sound.rend(), [](std::byte b) { return b != std::byte{0}; }));
  Random random(2);
  int damaged = 0;
  for (int i = 0; i < 4000; ++i) {
    Bytes bytes = sound;
    for (uint64_t n = random.Between(1, 8); n > 0; --n) {
      // Half of the changes hit the structures.
      const uint64_t end = random.Chance(0.5) ? store_->geometry().regions_offset : used;
      const uint64_t at = AlignDown(random.Between(format::kShardRecordsOffset, end - 8), 8);
      const uint64_t word = random.Chance(0.5)
                                ? random.Next()
                                : LoadAs<uint64_t>(std::span(bytes).subspan(at)) ^ (uint64_t{1} << random.Uniform(64));
      std::memcpy(bytes.data() + at, &word, sizeof(word));
    }
    damaged += Inspect(bytes, random.Chance(0.5)).damage_count != 0 ? 1 : 0;
  }
  EXPECT_GT(damaged, 1000);
  for (int i = 0; i < 50; ++i) {
    Bytes bytes = sound;
    for (uint64_t at = format::kShardRecordsOffset; at < bytes.size(); ++at) bytes[at] = std::byte(random.Next());
    EXPECT_GT(Inspect(bytes).damage_count, 100U);
  }
}

TEST(PrintableTest, AnyBytesBecomePrintable) {
  EXPECT_EQ(erda::Printable("plain key-1~"), "plain key-1~");
  EXPECT_EQ(erda::Printable(std::string("a\n\\\0\xff", 5)), "a\\x0a\\\\\\x00\\xff");
}

}  // namespace
}  // namespace erda::server
