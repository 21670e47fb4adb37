#include "format/superblock.h"

#include <gtest/gtest.h>

#include <cstring>
#include <utility>

#include "base/bytes.h"
#include "format/fixture.h"

namespace erda::format {
namespace {

constexpr uint64_t kPoolBytes = 1 << 20;

// A pool's bytes, with room for both copies.
class SuperblockTest : public testing::Test {
 protected:
  void SetUp() override {
    auto geometry = ChooseGeometry({.pool_size = kPoolBytes});
    ASSERT_TRUE(geometry.ok()) << geometry.status().ToString();
    geometry_ = *geometry;
  }

  [[nodiscard]] std::span<std::byte> Copy(int copy) {
    return std::span(pool_).subspan(kSuperblockOffsets[copy], sizeof(Superblock));
  }
  void Write(int copy, const Superblock& superblock) {
    std::memcpy(Copy(copy).data(), &superblock, sizeof(superblock));
  }
  void WriteSealed(int copy, Superblock superblock) {
    superblock.crc = SuperblockCrc(superblock);
    Write(copy, superblock);
  }
  [[nodiscard]] Superblock Good(uint64_t generation) const { return TestSuperblock(geometry_, generation); }
  [[nodiscard]] Result<FoundSuperblock> Find() const { return FindSuperblock(pool_); }

  testing::AssertionResult Fails(Code code, std::string_view part) const {
    const auto found = Find();
    if (found.ok()) return testing::AssertionFailure() << "copy " << found->copy << " was taken";
    const Status& status = found.status();
    if (status.code() == code && status.message().find(part) != std::string_view::npos)
      return testing::AssertionSuccess();
    return testing::AssertionFailure() << status.ToString();
  }
  testing::AssertionResult Finds(int copy, uint64_t generation) const {
    const auto found = Find();
    if (!found.ok()) return testing::AssertionFailure() << found.status().ToString();
    if (found->copy == copy && found->superblock.generation == generation) return testing::AssertionSuccess();
    return testing::AssertionFailure() << "copy " << found->copy << ", generation " << found->superblock.generation;
  }

  Geometry geometry_{};
  std::vector<std::byte> pool_ = std::vector<std::byte>(kPoolBytes);
};

TEST_F(SuperblockTest, TheNewerGenerationCounts) {
  Write(0, Good(5));
  Write(1, Good(6));
  EXPECT_TRUE(Finds(1, 6));
  Write(0, Good(7));
  EXPECT_TRUE(Finds(0, 7));
  Write(1, Good(uint64_t{1} << 63));
  EXPECT_TRUE(Finds(1, uint64_t{1} << 63));
}

TEST_F(SuperblockTest, OneCopyIsEnough) {
  Write(0, Good(1));
  EXPECT_TRUE(Finds(0, 1));
  std::memset(Copy(0).data(), 0, sizeof(Superblock));
  Write(1, Good(2));
  EXPECT_TRUE(Finds(1, 2));
}

TEST_F(SuperblockTest, WrittenSuperblockIsFound) {
  Superblock superblock = Good(3);
  superblock.clean = 0;
  WriteSealed(1, superblock);
  const auto found = Find();
  ASSERT_TRUE(found.ok()) << found.status().ToString();
  superblock.crc = SuperblockCrc(superblock);
  EXPECT_EQ(Hex(BytesOf(found->superblock)), Hex(BytesOf(superblock)));
}

TEST_F(SuperblockTest, ADamagedCopyFallsBackToTheOther) {
  for (const int damaged : {0, 1}) {
    Write(damaged, Good(9));
    Write(1 - damaged, Good(8));
    FlipBit(Copy(damaged), 300);
    EXPECT_TRUE(Finds(1 - damaged, 8));
  }
}

// A server writes a copy while the other one counts. So the pool has a superblock wherever a crash cuts the write off.
TEST_F(SuperblockTest, ATornWriteOfACopyLeavesTheOther) {
  for (size_t written = 0; written <= sizeof(Superblock); ++written) {
    Write(0, Good(8));
    Write(1, Good(7));
    const Superblock next = Good(9);
    std::memcpy(Copy(1).data(), &next, written);
    const bool whole = Hex(Copy(1)) == Hex(BytesOf(next));
    EXPECT_TRUE(whole ? Finds(1, 9) : Finds(0, 8)) << written;
  }
}

TEST_F(SuperblockTest, EveryFlippedBitIsNoticed) {
  Write(0, Good(8));
  Write(1, Good(9));
  for (size_t bit = 0; bit < sizeof(Superblock) * 8; ++bit) {
    FlipBit(Copy(1), bit);
    EXPECT_TRUE(Finds(0, 8)) << "bit " << bit;
    FlipBit(Copy(1), bit);
  }
  EXPECT_TRUE(Finds(1, 9));
}

// The damaged copy may have been the newer one, and may have said that the pool is in use. A copy with a lost magic
// number once counted as never written.
TEST_F(SuperblockTest, DamagedCopyIsDistinguishedFromAnUnwrittenOne) {
  Write(0, Good(8));
  EXPECT_FALSE(Find()->other_damaged);
  Write(1, Good(9));
  EXPECT_FALSE(Find()->other_damaged);
  for (size_t bit = 0; bit < sizeof(Superblock) * 8; ++bit) {
    FlipBit(Copy(1), bit);
    ASSERT_TRUE(Finds(0, 8)) << "bit " << bit;
    EXPECT_TRUE(Find()->other_damaged) << "bit " << bit;
    FlipBit(Copy(1), bit);
  }
}

TEST_F(SuperblockTest, TwoDamagedCopiesAreCorruption) {
  Write(0, Good(8));
  Write(1, Good(9));
  FlipBit(Copy(0), 500);
  FlipBit(Copy(1), 500);
  EXPECT_TRUE(Fails(Code::kCorruption, "wrong checksum"));
}

TEST_F(SuperblockTest, OtherBytesAreNoPool) {
  EXPECT_TRUE(Fails(Code::kCorruption, "not an Erda pool"));
  std::memset(pool_.data(), 0xff, pool_.size());
  EXPECT_TRUE(Fails(Code::kCorruption, "not an Erda pool"));
  std::memcpy(Copy(0).data(), "ERDAPOOX", 8);
  EXPECT_TRUE(Fails(Code::kCorruption, "not an Erda pool"));
}

TEST_F(SuperblockTest, TheMessageIsAboutTheBetterCopy) {
  Write(1, Good(9));
  FlipBit(Copy(1), 500);
  EXPECT_TRUE(Fails(Code::kCorruption, "wrong checksum"));
  std::memcpy(Copy(0).data(), Copy(1).data(), sizeof(Superblock));
  std::memset(Copy(1).data(), 0, sizeof(Superblock));
  EXPECT_TRUE(Fails(Code::kCorruption, "wrong checksum"));
}

TEST_F(SuperblockTest, AnotherFormatVersionIsNamed) {
  Superblock superblock = Good(9);
  superblock.format_version = kMirroredVersion + 1;
  WriteSealed(0, superblock);
  WriteSealed(1, superblock);
  EXPECT_TRUE(Fails(Code::kInvalidArgument, "format version " + std::to_string(kMirroredVersion + 1)));
  // The other version may compute its checksum in another way.
  superblock.crc = 0;
  Write(0, superblock);
  Write(1, superblock);
  EXPECT_TRUE(Fails(Code::kInvalidArgument, "format version " + std::to_string(kMirroredVersion + 1)));
}

// A program that knows no journal refuses the version of a pool that has one.
TEST_F(SuperblockTest, VersionTellsWhetherThereIsAJournal) {
  for (const bool journaled : {false, true}) {
    Superblock superblock = Good(9);
    superblock.format_version = journaled ? kJournaledVersion : kFormatVersion;
    superblock.journaled = journaled ? 1 : 0;
    WriteSealed(0, superblock);
    WriteSealed(1, superblock);
    EXPECT_TRUE(Find().ok());
    superblock.journaled = journaled ? 0 : 1;
    WriteSealed(0, superblock);
    WriteSealed(1, superblock);
    EXPECT_TRUE(Fails(Code::kCorruption, "its version and its journal do not fit"));
  }
}

// A program that knows no mirrors refuses the version of a mirrored pool, with a journal and without.
TEST_F(SuperblockTest, AMirroredPoolHasItsVersion) {
  const auto mirrored = [this](MirrorRole role, uint64_t mirror_id) {
    Superblock superblock = Good(9);
    superblock.format_version = kMirroredVersion;
    superblock.mirror_role = static_cast<uint32_t>(role);
    superblock.mirror_id = mirror_id;
    superblock.epoch = 3;
    return superblock;
  };
  const auto write = [this](const Superblock& superblock) {
    WriteSealed(0, superblock);
    WriteSealed(1, superblock);
  };
  const auto expect_damaged = [&](const Superblock& superblock, std::string_view part) {
    write(superblock);
    EXPECT_TRUE(Fails(Code::kCorruption, part)) << superblock.mirror_role << ", " << superblock.mirror_id;
  };
  constexpr std::string_view kMirrors = "what it says of mirrors cannot be";
  constexpr std::string_view kJournal = "its version and its journal do not fit";
  using enum MirrorRole;
  for (const auto& [role, id] : {std::pair{kNone, 0}, {kPrimary, 0}, {kPrimary, 7}, {kFilling, 7}, {kInSync, 7}}) {
    Superblock good = mirrored(role, static_cast<uint64_t>(id));
    for (const uint32_t journaled : {0U, 1U, 2U}) {
      good.journaled = journaled;
      if (journaled > 1) {
        expect_damaged(good, kJournal);
        continue;
      }
      write(good);
      ASSERT_TRUE(Find().ok()) << Find().status().ToString();
      EXPECT_EQ(Find()->superblock.role(), role);
      EXPECT_EQ(Find()->superblock.epoch, 3U);
    }
  }
  expect_damaged(mirrored(kNone, 7), kMirrors);
  expect_damaged(mirrored(kFilling, 0), kMirrors);
  expect_damaged(mirrored(kInSync, 0), kMirrors);
  expect_damaged(mirrored(static_cast<MirrorRole>(4), 7), kMirrors);
  expect_damaged(mirrored(static_cast<MirrorRole>(UINT32_MAX), 7), kMirrors);
  // Other versions say nothing of mirrors.
  for (const uint32_t version : {kFormatVersion, kJournaledVersion}) {
    Superblock good = Good(9);
    good.format_version = version;
    good.journaled = version == kJournaledVersion ? 1 : 0;
    write(good);
    ASSERT_TRUE(Find().ok());
    Superblock bad = good;
    bad.epoch = 1;
    expect_damaged(bad, kMirrors);
    bad = good;
    bad.mirror_id = 1;
    expect_damaged(bad, kMirrors);
    bad = good;
    bad.mirror_role = static_cast<uint32_t>(kPrimary);
    expect_damaged(bad, kMirrors);
  }
}

TEST_F(SuperblockTest, AnotherSizeIsNamed) {
  Write(0, Good(9));
  pool_.resize(kPoolBytes - 4096);
  EXPECT_TRUE(Fails(Code::kInvalidArgument, "made with 1048576 bytes and now has 1044480"));
}

// A resize makes the room first, and changes the superblock after that.
TEST_F(SuperblockTest, BytesAfterThePoolDoNotBelongToIt) {
  Write(0, Good(9));
  pool_.resize(kPoolBytes + 1);
  EXPECT_TRUE(Finds(0, 9));
  EXPECT_FALSE(Find()->other_damaged);
}

// A crash in a resize may leave any part of the new copy. The pool then has the old size or the new one.
TEST_F(SuperblockTest, APoolOfTwoSizesIsTheNewerOne) {
  Superblock grown = Good(10);
  grown.geometry = *GrownGeometry(geometry_, 2 * kPoolBytes);
  Write(0, Good(9));
  pool_.resize(2 * kPoolBytes);
  EXPECT_TRUE(Finds(0, 9));
  WriteSealed(1, grown);
  EXPECT_TRUE(Finds(1, 10));
  EXPECT_EQ(Find()->superblock.geometry.pool_size, 2 * kPoolBytes);
  FlipBit(Copy(1), 500);
  EXPECT_TRUE(Finds(0, 9));
  EXPECT_EQ(Find()->superblock.geometry.pool_size, kPoolBytes);
}

TEST_F(SuperblockTest, BytesTooFewForASuperblockAreNoPool) {
  Write(0, Good(9));
  for (const size_t size : {size_t{0}, size_t{1}, size_t{127}, size_t{128}, size_t{4096}, size_t{4096 + 127}}) {
    pool_.resize(size);
    pool_.shrink_to_fit();
    EXPECT_TRUE(Fails(Code::kCorruption, "not an Erda pool")) << size;
  }
}

TEST_F(SuperblockTest, AGeometryThatDoesNotHoldIsDamageInSpiteOfTheChecksum) {
  Superblock superblock = Good(9);
  superblock.geometry.shards = 0;
  WriteSealed(0, superblock);
  superblock.geometry = geometry_;
  superblock.geometry.regions_per_shard *= 2;
  WriteSealed(1, superblock);
  EXPECT_TRUE(Fails(Code::kCorruption, "superblock is damaged: the geometry"));
}

}  // namespace
}  // namespace erda::format
