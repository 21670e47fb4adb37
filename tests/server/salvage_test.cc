// Salvage takes values out of pools that a store made, after many kinds of damage.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string>

#include "base/crc32c.h"
#include "base/random.h"
#include "format/log_layout.h"
#include "inspect/checksum_back.h"
#include "inspect/salvage.h"
#include "server/crash_pool.h"
#include "server/machine.h"
#include "server/whole_pool.h"

namespace erda::server {
namespace {

using format::IndexEntry;
using format::ObjectHeader;
using inspect::FrameSource;
using inspect::SalvagedValue;
using inspect::SalvageOptions;
using inspect::SalvageReport;
using Bytes = std::vector<std::byte>;
using Contents = std::map<std::string, std::string>;

struct Salvaged {
  Contents values;   // All values.
  Contents named;    // Those that the index names.
  Contents unnamed;  // Those that the index does not name.
  std::map<std::string, uint64_t> deadlines;
  SalvageReport report;
  Status status;
};

Salvaged Salvage(const Bytes& bytes, const SalvageOptions& options = {}) {
  Salvaged salvaged;
  const Bytes before = bytes;
  auto report = inspect::Salvage(bytes, options, [&](const SalvagedValue& value) {
    const std::string key(value.key);
    EXPECT_FALSE(salvaged.values.contains(key)) << key;
    salvaged.values[key] = AsString(value.value);
    (value.named ? salvaged.named : salvaged.unnamed)[key] = AsString(value.value);
    if (value.deadline != 0) salvaged.deadlines[key] = value.deadline;
    return Status();
  });
  EXPECT_TRUE(bytes == before);
  if (report.ok()) {
    salvaged.report = *std::move(report);
    EXPECT_EQ(salvaged.report.keys(), salvaged.values.size());
  } else {
    salvaged.status = report.status();
  }
  return salvaged;
}

class SalvageTest : public testing::Test {
 protected:
  SalvageTest() {
    auto pool = std::make_unique<CrashPool>(StoreOptions().wish.pool_size);
    pool_ = pool.get();
    store_ = std::make_unique<Store>(StoreOptions(), std::move(pool));
  }

  [[nodiscard]] const format::Geometry& g() const { return store_->geometry(); }
  [[nodiscard]] Bytes Crashed() const { return WholePool(store_->Bytes(), false); }
  [[nodiscard]] uint64_t OffsetOf(const Outcome& outcome) const {
    return store_->OffsetOf({outcome, "", "", 0, false});
  }
  Outcome Put(const std::string& key, const std::string& value) {
    values_[key] = value;
    return store_->Inline(key, value);
  }
  void Delete(const std::string& key) {
    values_.erase(key);
    deleted_.insert(key);
    ASSERT_EQ(store_->Delete(key), Code::kOk);
  }
  // Fills some regions with keys. Puts most of them twice, and deletes some.
  void Fill() {
    for (int round = 0; round < 2; ++round) {
      for (int i = 0; i < 30; ++i) {
        if (round == 0 || i % 5 != 0)
          Put("key" + std::to_string(i), "value" + std::to_string(100 * round + i) + std::string(300, 'v'));
      }
    }
    for (int i = 0; i < 3; ++i) Delete("key" + std::to_string(i));
  }
  static void Zero(Bytes* bytes, uint64_t from, uint64_t to) {
    std::fill(bytes->begin() + static_cast<ptrdiff_t>(from), bytes->begin() + static_cast<ptrdiff_t>(to), std::byte{0});
  }
  static void Flip(Bytes* bytes, uint64_t at) { (*bytes)[at] ^= std::byte{1}; }
  void ZeroIndex(Bytes* bytes) const { Zero(bytes, g().index_offset, g().regions_offset); }
  void ZeroTable(Bytes* bytes) const { Zero(bytes, format::kRegionTableOffset, g().index_offset); }
  static void ZeroSuperblocks(Bytes* bytes) { Zero(bytes, 0, format::kShardRecordsOffset); }
  void ZeroSegmentHeaders(Bytes* bytes) const {
    for (uint64_t at = g().regions_offset; at < bytes->size(); at += g().segment_size) {
      Zero(bytes, at, at + sizeof(format::SegmentHeader));
    }
  }
  [[nodiscard]] SalvageOptions Made() const {
    SalvageOptions options;
    options.made = StoreOptions().wish;
    return options;
  }
  // Writes header and value of a key with good checksums, as a client can that has read the pool.
  void Forge(Bytes* bytes, uint64_t offset, const std::string& key, const std::string& value, uint64_t version) const {
    ObjectHeader header{};
    header.key_size = static_cast<uint16_t>(key.size());
    header.kind = static_cast<uint8_t>(format::ObjectKind::kValue);
    header.value_size = static_cast<uint32_t>(value.size());
    header.version = version;
    header.key_hash = LoadAs<ObjectHeader>(std::span(*bytes).subspan(first_offset_)).key_hash;
    const auto table = std::span(*bytes).subspan(format::kRegionTableOffset);
    const auto region = static_cast<uint32_t>((offset - g().regions_offset) / g().region_size);
    const format::RegionWord word(LoadAs<uint64_t>(table.subspan(region * sizeof(uint64_t))));
    const auto address = g().AddressOf(word.SlotIn(g()), (offset - g().regions_offset) % g().region_size);
    header.header_crc =
        format::HeaderCrc({Store::kPoolSeed, word.HeadIn(g()), address, word.generation()}, header, key);
    const uint32_t checksum = format::ObjectChecksum(header, AsBytes(value));
    std::memcpy(bytes->data() + offset, &header, sizeof(header));
    std::memcpy(bytes->data() + offset + format::kLabelOffset, key.data(), key.size());
    std::memcpy(bytes->data() + offset + format::ChecksumOffset(key.size()), &checksum, sizeof(checksum));
    std::memcpy(bytes->data() + offset + format::ValueOffset(key.size()), value.data(), value.size());
  }

  CrashPool* pool_ = nullptr;
  std::unique_ptr<Store> store_;
  Contents values_;  // the values that gets find
  std::set<std::string> deleted_;
  uint64_t first_offset_ = 0;  // of an object of the forged key
};

TEST_F(SalvageTest, ChecksumRunsBackwards) {
  Random random(1);
  for (int i = 0; i < 200; ++i) {
    std::string bytes(random.Between(0, 100), '\0');
    for (char& c : bytes) c = static_cast<char>(random.Next());
    const auto before = static_cast<uint32_t>(random.Next());
    EXPECT_EQ(inspect::Crc32cBefore(Crc32c(before, AsBytes(bytes)), AsBytes(bytes)), before);
  }
}

// CoveredBytes returns the bytes that format::HeaderCrc covers, with a deadline and without.
TEST_F(SalvageTest, CoveredBytesAreThoseOfTheHeaderCrc) {
  for (const bool expires : {false, true}) {
    ObjectHeader header{};
    header.key_size = 3;
    header.kind = 1;
    header.flags = ObjectHeader::kLeft | (expires ? ObjectHeader::kExpiresFlag : 0);
    header.value_size = 5;
    header.previous = 6;
    header.version = 7;
    header.key_hash = 8;
    const uint64_t deadline = expires ? 12345 : 0;
    const format::LogAddress address = format::LogAddress::At(3, 64);
    const inspect::CoveredBytes covered(header, "key", deadline, 9, address, 10);
    EXPECT_EQ(Crc32c(0x5eed, covered.all()), format::HeaderCrc({0x5eed, 9, address, 10}, header, "key", deadline));
  }
}

TEST_F(SalvageTest, SoundPoolIsTakenAsGetsReadIt) {
  Fill();
  for (const Salvaged& salvaged : {Salvage(Crashed()), (store_->Close(), Salvage(WholePool(store_->Bytes(), true)))}) {
    EXPECT_TRUE(salvaged.named == values_);
    for (const auto& [key, value] : salvaged.unnamed) EXPECT_TRUE(deleted_.contains(key)) << key;
    EXPECT_TRUE(salvaged.report.complete());
    EXPECT_EQ(salvaged.report.source, FrameSource::kSuperblock);
  }
}

TEST_F(SalvageTest, ExpiryIsKept) {
  store_->PutFor(5000);
  Put("key", "value");
  const Salvaged salvaged = Salvage(Crashed());
  EXPECT_EQ(salvaged.values, values_);
  EXPECT_EQ(salvaged.deadlines.at("key"), store_->time().DeadlineIn(5000));
}

// Salvage finds the geometry in the older superblock, or in one that is damaged elsewhere. Or it takes the options, or
// looks for structures. Objects tell the seed.
TEST_F(SalvageTest, ValuesAreFoundWithoutSuperblocks) {
  Fill();
  Bytes bytes = Crashed();
  Flip(&bytes, format::kSuperblockOffsets[1] + 20);
  EXPECT_TRUE(Salvage(bytes).named == values_);
  EXPECT_EQ(Salvage(bytes).report.source, FrameSource::kSuperblock);
  Flip(&bytes, format::kSuperblockOffsets[0] + 20);  // the uuid
  const Salvaged damaged = Salvage(bytes);
  EXPECT_TRUE(damaged.named == values_);
  EXPECT_EQ(damaged.report.source, FrameSource::kDamagedSuperblock);
  Bytes without_table = bytes;
  ZeroTable(&without_table);
  Flip(&without_table, format::kSuperblockOffsets[0] + 20);
  Flip(&without_table, format::kSuperblockOffsets[0] + 32);  // the generation
  EXPECT_TRUE(Salvage(without_table).named == values_);
  ZeroSuperblocks(&bytes);
  const Salvaged by_options = Salvage(bytes, Made());
  EXPECT_TRUE(by_options.named == values_);
  EXPECT_EQ(by_options.report.source, FrameSource::kOptions);
  EXPECT_TRUE(by_options.report.complete());
  EXPECT_EQ(Salvage(bytes).status.code(), Code::kCorruption);  // these sizes are no defaults
  SalvageOptions wrong = Made();
  wrong.made->region_size = 3;
  EXPECT_EQ(Salvage(bytes, wrong).status.code(), Code::kInvalidArgument);
}

// Pools until 2026-11-26 have a larger index, and regions elsewhere.
TEST_F(SalvageTest, AnOlderPoolIsFoundByDefaultsAndByItsOptions) {
  StoreOptions older;
  older.wish = {.pool_size = 130 << 20, .roomy_index = true};
  Store store(older);
  EXPECT_NE(store.geometry().regions_offset, format::ChooseGeometry({.pool_size = 130 << 20})->regions_offset);
  ASSERT_EQ(store.Inline("key", "value").code, Code::kOk);
  const auto stored = store.pool().bytes();
  Bytes bytes(stored.begin(), stored.end());
  ZeroSuperblocks(&bytes);
  const Salvaged by_defaults = Salvage(bytes);
  EXPECT_EQ(by_defaults.values.at("key"), "value");
  EXPECT_EQ(by_defaults.report.source, FrameSource::kDefaults);
  SalvageOptions options;
  options.made = format::GeometryWish{.region_size = store.geometry().region_size};
  EXPECT_EQ(Salvage(bytes, options).values.at("key"), "value");
}

TEST_F(SalvageTest, OtherFormatVersionIsRefused) {
  Fill();
  Bytes bytes = Crashed();
  for (const uint64_t offset : format::kSuperblockOffsets) {
    auto superblock = LoadAs<format::Superblock>(std::span(bytes).subspan(offset));
    superblock.format_version = format::kFormatVersion - 1;
    superblock.crc = format::SuperblockCrc(superblock);
    std::memcpy(bytes.data() + offset, &superblock, sizeof(superblock));
  }
  EXPECT_EQ(Salvage(bytes).status.code(), Code::kInvalidArgument);
}

TEST_F(SalvageTest, ValuesAreFoundWithoutARegionTable) {
  Fill();
  Bytes bytes = Crashed();
  ZeroTable(&bytes);
  const Salvaged salvaged = Salvage(bytes);
  EXPECT_TRUE(salvaged.named == values_);  // the index leads to the regions that salvage finds
  EXPECT_EQ(salvaged.report.regions_found, salvaged.report.regions_read);
  EXPECT_GT(salvaged.report.regions_found, 1U);
}

// Region words of other regions are wrong, and salvage finds the regions by their segments.
TEST_F(SalvageTest, ValuesAreFoundDespiteSwappedRegionWords) {
  Fill();
  Bytes bytes = Crashed();
  std::swap_ranges(bytes.begin() + format::kRegionTableOffset, bytes.begin() + format::kRegionTableOffset + 8,
                   bytes.begin() + format::kRegionTableOffset + 8);
  EXPECT_TRUE(Salvage(bytes).named == values_);
}

TEST_F(SalvageTest, ValuesAreFoundWithoutSegmentHeaders) {
  Fill();
  Bytes bytes = Crashed();
  ZeroSegmentHeaders(&bytes);
  const Salvaged with_table = Salvage(bytes);
  EXPECT_TRUE(with_table.named == values_);
  EXPECT_GT(with_table.report.segments_damaged, 0U);
  ZeroTable(&bytes);
  EXPECT_TRUE(Salvage(bytes).named == values_);
}

// The log keeps only the last tombstone of a region. So deleted values may come back, and salvage calls them unnamed.
TEST_F(SalvageTest, LostIndexBringsBackDeletedValuesUnnamed) {
  Fill();
  Bytes bytes = Crashed();
  ZeroIndex(&bytes);
  const Salvaged salvaged = Salvage(bytes);
  for (const auto& [key, value] : values_) EXPECT_EQ(salvaged.values.at(key), value) << key;
  EXPECT_EQ(salvaged.unnamed, salvaged.values);
  EXPECT_EQ(salvaged.report.named, 0U);
  EXPECT_GE(salvaged.report.deleted, 1U);
  EXPECT_EQ(salvaged.values.size(), values_.size() + 3 - salvaged.report.deleted);
}

// All structures are lost but those that the pool's identity needs.
TEST_F(SalvageTest, ValuesAreFoundWithoutSuperblocksAndIndex) {
  Fill();
  Bytes bytes = Crashed();
  ZeroSuperblocks(&bytes);
  ZeroIndex(&bytes);
  const Salvaged salvaged = Salvage(bytes, Made());
  for (const auto& [key, value] : values_) EXPECT_EQ(salvaged.values.at(key), value) << key;
}

TEST_F(SalvageTest, HoleInTheLogCostsOnlyTheValuesInIt) {
  Fill();
  const Bytes sound = Crashed();
  const uint64_t used = g().RegionOffset(3);
  for (uint64_t at = g().regions_offset; at < used; at += 1024) {
    for (const bool with_index : {true, false}) {
      Bytes bytes = sound;
      Zero(&bytes, at, at + 1024);
      if (!with_index) ZeroIndex(&bytes);
      const Salvaged salvaged = Salvage(bytes);
      size_t missing = 0;
      for (const auto& [key, value] : values_) {
        const auto found = salvaged.values.find(key);
        missing += found == salvaged.values.end() ? 1 : 0;
        // Without the index, salvage cannot know that a newer version existed.
        if (with_index && found != salvaged.values.end()) {
          EXPECT_EQ(found->second, value) << key;
        }
      }
      EXPECT_LE(missing, 4U) << at;  // as many as 1 KiB touches
      if (with_index) {
        EXPECT_EQ(missing, salvaged.report.damaged) << at;
      }
    }
  }
}

TEST_F(SalvageTest, TruncatedFileGivesItsValues) {
  Fill();
  Bytes bytes = Crashed();
  bytes.resize(g().RegionOffset(1) + 5000);
  const Salvaged salvaged = Salvage(bytes);
  EXPECT_EQ(salvaged.report.missing_bytes, g().pool_size - bytes.size());
  EXPECT_FALSE(salvaged.values.empty());
  for (const auto& [key, value] : salvaged.named) EXPECT_EQ(value, values_.at(key));
}

TEST_F(SalvageTest, DamagedNewestVersionIsNamedAndLeftOut) {
  Put("key", "older");
  const Outcome newest = Put("key", "newest");
  Put("other", "value");
  for (const uint64_t at : {format::ValueOffset(3), offsetof(ObjectHeader, version)}) {  // the value, then the header
    Bytes bytes = Crashed();
    Flip(&bytes, OffsetOf(newest) + at);
    const Salvaged salvaged = Salvage(bytes);
    EXPECT_EQ(salvaged.values, (Contents{{"other", "value"}}));
    EXPECT_EQ(salvaged.report.damaged, 1U);
    EXPECT_EQ(salvaged.report.lost.front().key, "key");
    EXPECT_FALSE(salvaged.report.complete());
    SalvageOptions options;
    options.older = true;
    const Salvaged older = Salvage(bytes, options);
    EXPECT_EQ(older.values, (Contents{{"key", "older"}, {"other", "value"}}));
    EXPECT_EQ(older.report.older, 1U);
    EXPECT_EQ(older.report.damaged, 0U);
  }
}

// An old index, as from a page that did not reach the disk. Later objects of the server count.
TEST_F(SalvageTest, IndexOfAnEarlierTimeHidesNoLaterValue) {
  Put("changed", "old");
  Put("same", "value");
  const Bytes before = Crashed();
  Put("changed", "new");
  Put("added", "later");
  Bytes bytes = Crashed();
  std::copy(before.begin() + static_cast<ptrdiff_t>(g().index_offset),
            before.begin() + static_cast<ptrdiff_t>(g().regions_offset),
            bytes.begin() + static_cast<ptrdiff_t>(g().index_offset));
  const Salvaged salvaged = Salvage(bytes);
  EXPECT_EQ(salvaged.values, values_);
  EXPECT_EQ(salvaged.unnamed, (Contents{{"added", "later"}}));
  // The present index with the earlier log.
  const Bytes now = Crashed();
  Bytes other = before;
  std::copy(now.begin() + static_cast<ptrdiff_t>(g().index_offset),
            now.begin() + static_cast<ptrdiff_t>(g().regions_offset),
            other.begin() + static_cast<ptrdiff_t>(g().index_offset));
  const Salvaged lost = Salvage(other);
  EXPECT_EQ(lost.values, (Contents{{"same", "value"}}));
  EXPECT_EQ(lost.report.damaged, 2U);
}

TEST_F(SalvageTest, VersionsInFlightAreSalvagedAsInRecovery) {
  Put("older", "stays");
  store_->LandPart(store_->Reserve("older", "torn"), 5);
  (void)store_->Reserve("new", "never lands");
  store_->Land(store_->Reserve("landed", "whole"));
  values_["landed"] = "whole";
  Put("deleted", "value");
  int fences = 2;
  pool_->before_fence = [&] {
    if (--fences == 0) throw Crash();  // the tombstone is published, and the entry not yet free
  };
  EXPECT_THROW(store_->Delete("deleted"), Crash);
  values_.erase("deleted");
  const Salvaged salvaged = Salvage(Crashed());
  EXPECT_EQ(salvaged.values, values_);
  EXPECT_EQ(salvaged.report.deleted, 1U);
  EXPECT_TRUE(salvaged.report.complete());
}

TEST_F(SalvageTest, ForgedHeaderInAChunkDoesNotWin) {
  const Outcome first = Put("key", "acknowledged");
  first_offset_ = OffsetOf(first);
  const auto put = store_->Delegated("mine", "a value of the hostile client");
  ASSERT_TRUE(put.has_value());
  values_["mine"] = "a value of the hostile client";
  Bytes bytes = Crashed();
  const uint64_t behind = OffsetOf(*put) + format::SpaceOf(put->header);
  Forge(&bytes, behind, "key", "forged", 1 << 19);
  const Salvaged salvaged = Salvage(bytes);
  EXPECT_EQ(salvaged.values, values_);
  EXPECT_EQ(salvaged.report.doubtful, 1U);
  SalvageOptions options;
  options.newest = true;
  EXPECT_EQ(Salvage(bytes, options).values.at("key"), "forged");
  // A newer version of the server does not let the forged one win.
  Put("key", "newer");
  Bytes later = Crashed();
  Forge(&later, behind, "key", "forged", 1 << 19);
  std::copy(bytes.begin() + static_cast<ptrdiff_t>(g().index_offset),
            bytes.begin() + static_cast<ptrdiff_t>(g().regions_offset),
            later.begin() + static_cast<ptrdiff_t>(g().index_offset));
  EXPECT_EQ(Salvage(later).values.at("key"), "newer");
}

// A header whose size reaches out of its chunk hides no objects of other clients.
TEST_F(SalvageTest, HeaderThatReachesOutOfItsChunkHidesNothing) {
  const Outcome first = Put("key", "acknowledged");
  first_offset_ = OffsetOf(first);
  const auto put = store_->Delegated("mine", "value");
  ASSERT_TRUE(put.has_value());
  const Outcome last = Put("behind", "the chunk");
  values_["mine"] = "value";
  Bytes bytes = Crashed();
  const uint64_t behind = OffsetOf(*put) + format::SpaceOf(put->header);
  ASSERT_LT(behind, OffsetOf(last));
  // The forged object is whole: its value has all bytes that it covers, also the object of another client.
  const uint64_t end = OffsetOf(last) + format::SpaceOf(last.header);
  const auto covered = std::span(bytes).subspan(behind + format::ValueOffset(3), end - behind - format::ValueOffset(3));
  Forge(&bytes, behind, "key", std::string(AsString(covered)), 1 << 19);
  EXPECT_EQ(Salvage(bytes).values, values_);
  ZeroIndex(&bytes);
  EXPECT_EQ(Salvage(bytes).values, values_);
}

// A value contains a sound object, and the header of the value's object is damaged.
TEST_F(SalvageTest, HeaderInsideAValueDoesNotWin) {
  const Outcome first = Put("key", "acknowledged");
  first_offset_ = OffsetOf(first);
  const Outcome carrier = Put("carrier", std::string(500, 'c'));
  Bytes bytes = Crashed();
  Forge(&bytes, AlignUp(OffsetOf(carrier) + 100, 16), "key", "forged", 1 << 19);
  Flip(&bytes, OffsetOf(carrier) + offsetof(ObjectHeader, version));
  const Salvaged salvaged = Salvage(bytes);
  EXPECT_EQ(salvaged.values, (Contents{{"key", "acknowledged"}}));
  EXPECT_EQ(salvaged.report.doubtful, 1U);
  EXPECT_EQ(salvaged.report.damaged, 1U);
}

TEST_F(SalvageTest, CopyWithTheSameVersionStandsInForADamagedOriginal) {
  const Outcome put = Put("key", "value");
  const Outcome last = Put("last", "value");
  first_offset_ = OffsetOf(put);
  Bytes bytes = Crashed();
  Flip(&bytes, OffsetOf(put) + format::ValueOffset(3));
  EXPECT_EQ(Salvage(bytes).report.damaged, 1U);
  Forge(&bytes, OffsetOf(last) + format::SpaceOf(last.header), "key", "value", put.header.version);
  EXPECT_EQ(Salvage(bytes).named, values_);
}

// No shard gives out version 0, but a client can write such a header into its chunk.
TEST_F(SalvageTest, ForgedVersionZeroThatIsNotWholeIsUnfinished) {
  const Outcome put = Put("key", "value");
  const Outcome last = Put("last", "value");
  first_offset_ = OffsetOf(put);
  Bytes bytes = Crashed();
  const uint64_t forged = OffsetOf(last) + format::SpaceOf(last.header);
  Forge(&bytes, forged, "key", "forged", 0);
  Flip(&bytes, forged + format::ValueOffset(3));
  Zero(&bytes, OffsetOf(put), OffsetOf(put) + format::SpaceOf(put.header));
  ZeroIndex(&bytes);
  const Salvaged salvaged = Salvage(bytes);
  EXPECT_EQ(salvaged.values, (Contents{{"last", "value"}}));
  EXPECT_EQ(salvaged.report.unfinished, 1U);
  ASSERT_EQ(salvaged.report.lost.size(), 1U);
  EXPECT_EQ(salvaged.report.lost[0].key, "key");
  EXPECT_EQ(salvaged.report.lost[0].offset, forged);
}

TEST_F(SalvageTest, ForgedVersionZeroIsOlderThanADamagedOne) {
  const Outcome put = Put("key", "value");
  const Outcome last = Put("last", "value");
  first_offset_ = OffsetOf(put);
  Bytes bytes = Crashed();
  Flip(&bytes, OffsetOf(put) + format::ValueOffset(3));
  Forge(&bytes, OffsetOf(last) + format::SpaceOf(last.header), "key", "forged", 0);
  EXPECT_EQ(Salvage(bytes).values, (Contents{{"last", "value"}}));
  SalvageOptions options;
  options.older = true;
  const Salvaged salvaged = Salvage(bytes, options);
  EXPECT_EQ(salvaged.values, (Contents{{"key", "forged"}, {"last", "value"}}));
  EXPECT_EQ(salvaged.report.older, 1U);
}

TEST_F(SalvageTest, ValuesOfACleanedPoolAreFound) {
  for (int i = 0; i < 60; ++i) Put("key" + std::to_string(i % 20), "value" + std::to_string(i) + std::string(600, 'v'));
  store_->cleaning().Begin();
  store_->Clean();
  EXPECT_EQ(Salvage(Crashed()).values, values_);
  Bytes bytes = Crashed();
  ZeroIndex(&bytes);
  ZeroTable(&bytes);
  const Salvaged salvaged = Salvage(bytes);
  for (const auto& [key, value] : values_) EXPECT_EQ(salvaged.values.at(key), value) << key;
}

// Power cuts at any fence, and pages of each kind from another time. Values that were acknowledged before both stay.
TEST_F(SalvageTest, PagesOfTwoTimesKeepCommonAcknowledgedValues) {
  Random random(3);
  for (int round = 0; round < 300; ++round) {
    Machine machine{StoreOptions()};
    Contents values;
    const auto put = [&](int i, const char* what) {
      const std::string key = "key" + std::to_string(i);
      values[key] = what + std::to_string(i) + std::string(100 + 7 * i, 'v');
      ASSERT_EQ(machine.store.Inline(key, values[key]).code, Code::kOk);
    };
    for (int i = 0; i < 20; ++i) put(i, "first");
    const Bytes before = WholePool(machine.store.Bytes(), true);
    const Contents old = values;
    for (int i = 0; i < 20; i += 2) put(i, "second");
    const Bytes after = WholePool(machine.store.Bytes(), true);
    Bytes mixed = before;
    for (uint64_t at = 0; at < mixed.size(); at += 4096) {
      const auto from = after.begin() + static_cast<ptrdiff_t>(at);
      if (random.Chance(0.5)) std::copy(from, from + 4096, mixed.begin() + static_cast<ptrdiff_t>(at));
    }
    const Salvaged salvaged = Salvage(mixed);
    ASSERT_TRUE(salvaged.status.ok());
    for (const auto& [key, value] : salvaged.values) {
      EXPECT_TRUE(value == values.at(key) || value == old.at(key)) << key;
    }
    // Salvage reports each missing value.
    EXPECT_GE(salvaged.values.size() + salvaged.report.damaged, values.size());
  }
}

TEST_F(SalvageTest, FlippedBitsNeverGiveAnotherValue) {
  Fill();
  const Bytes sound = Crashed();
  Random random(5);
  for (int round = 0; round < 500; ++round) {
    Bytes bytes = sound;
    for (uint64_t n = random.Between(1, 60); n > 0; --n) {
      bytes[random.Between(0, bytes.size() - 1)] ^= static_cast<std::byte>(1 << random.Between(0, 7));
    }
    const Salvaged salvaged = Salvage(bytes, round % 2 == 0 ? SalvageOptions{} : Made());
    for (const auto& [key, value] : salvaged.values) {
      EXPECT_TRUE(value.starts_with("value") && value.ends_with(std::string(300, 'v'))) << key;
      if (values_.contains(key) && !salvaged.unnamed.contains(key)) {
        EXPECT_EQ(value, values_.at(key)) << key;
      }
    }
  }
}

}  // namespace
}  // namespace erda::server
