#include "server/pool/formatted_pool.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"
#include "base/temporary_folder.h"
#include "server/crash_pool.h"

namespace erda::server {
namespace {

using format::kSuperblockOffsets;
using format::Superblock;

constexpr uint64_t kPoolBytes = 1 << 20;

class FormattedPoolTest : public testing::Test {
 protected:
  FormattedPoolTest() {
    options_.path = folder_ / "pool";
    options_.size = kPoolBytes;
    wish_.shards = 2;
  }

  Result<std::unique_ptr<FormattedPool>> Open() { return FormattedPool::Open(options_, wish_); }
  // Opens the pool and closes it cleanly.
  void OpenAndClose() {
    auto pool = Open();
    ASSERT_TRUE(pool.ok()) << pool.status().ToString();
    EXPECT_TRUE((*pool)->MarkOpen().ok());
    EXPECT_TRUE((*pool)->MarkClosed().ok());
  }
  void ExpectError(Code code, const std::string& part) {
    const auto before = std::filesystem::exists(options_.path) ? ReadFile() : std::vector<char>();
    const auto pool = Open();
    ASSERT_FALSE(pool.ok());
    EXPECT_EQ(pool.status().code(), code) << pool.status().ToString();
    EXPECT_NE(pool.status().message().find(part), std::string_view::npos) << pool.status().ToString();
    EXPECT_NE(pool.status().message().find(options_.path), std::string_view::npos) << pool.status().ToString();
    const auto after = std::filesystem::exists(options_.path) ? ReadFile() : std::vector<char>();
    EXPECT_TRUE(before == after) << "a pool that was refused was changed";
  }
  [[nodiscard]] std::vector<char> ReadFile() const {
    std::ifstream file(options_.path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void WriteFile(const std::vector<char>& bytes) const {
    std::ofstream file(options_.path, std::ios::binary | std::ios::trunc);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  static Superblock CopyIn(const std::vector<char>& bytes, size_t copy) {
    return LoadAs<Superblock>(std::as_bytes(std::span(bytes)).subspan(kSuperblockOffsets[copy]));
  }
  [[nodiscard]] Superblock Copy(size_t copy) const { return CopyIn(ReadFile(), copy); }
  // Changes a superblock in the file, and corrects its checksum.
  template <class Change>
  void Edit(size_t copy, Change&& change) {
    std::vector<char> bytes = ReadFile();
    Superblock superblock = CopyIn(bytes, copy);
    change(superblock);
    superblock.crc = format::SuperblockCrc(superblock);
    std::memcpy(bytes.data() + kSuperblockOffsets[copy], &superblock, sizeof(superblock));
    WriteFile(bytes);
  }

  const TemporaryFolder folder_;
  nvm::PoolOptions options_;
  format::GeometryWish wish_;
};

TEST_F(FormattedPoolTest, ANewPoolIsCreatedAndOpensAgainAsTheSame) {
  std::array<uint8_t, 16> uuid{};
  uint32_t seed = 0;
  {
    auto pool = Open();
    ASSERT_TRUE(pool.ok()) << pool.status().ToString();
    EXPECT_TRUE((*pool)->pool().created());
    EXPECT_EQ((*pool)->geometry().shards, 2U);
    EXPECT_EQ((*pool)->geometry().pool_size, kPoolBytes);
    uuid = (*pool)->superblock().uuid;
    seed = (*pool)->seed();
  }
  EXPECT_NE(uuid, (std::array<uint8_t, 16>{}));
  options_.size = 0;  // takes the existing size
  auto pool = Open();
  ASSERT_TRUE(pool.ok()) << pool.status().ToString();
  EXPECT_FALSE((*pool)->pool().created());
  EXPECT_EQ((*pool)->superblock().uuid, uuid);
  EXPECT_EQ((*pool)->seed(), seed);
}

TEST_F(FormattedPoolTest, TwoPoolsHaveDifferentUuids) {
  options_.path = "dram:";
  auto first = Open();
  auto second = Open();
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_NE((*first)->superblock().uuid, (*second)->superblock().uuid);
}

TEST_F(FormattedPoolTest, EachPoolHasADifferentHashSeedAndKeepsIt) {
  HashSeed seed{};
  {
    const auto pool = Open();
    ASSERT_TRUE(pool.ok()) << pool.status().ToString();
    seed = (*pool)->superblock().hash_seed;
  }
  EXPECT_NE(seed[0], 0U);
  EXPECT_NE(seed[1], 0U);
  {
    const auto again = Open();
    ASSERT_TRUE(again.ok()) << again.status().ToString();
    EXPECT_EQ((*again)->superblock().hash_seed, seed);
  }
  options_.path = "dram:";
  const auto other = Open();
  ASSERT_TRUE(other.ok()) << other.status().ToString();
  EXPECT_NE((*other)->superblock().hash_seed[0], seed[0]);
  EXPECT_NE((*other)->superblock().hash_seed[1], seed[1]);
}

TEST_F(FormattedPoolTest, OpenChangesNothingBeforeTheMark) {
  OpenAndClose();
  const auto before = ReadFile();
  ASSERT_TRUE(Open().ok());
  EXPECT_TRUE(ReadFile() == before);
}

TEST_F(FormattedPoolTest, PoolNeedsRecoveryUntilItIsClosed) {
  {
    auto pool = Open();
    ASSERT_TRUE(pool.ok());
    EXPECT_FALSE((*pool)->needs_recovery());
    EXPECT_TRUE((*pool)->MarkOpen().ok());
  }
  const auto before = ReadFile();
  for (int i = 0; i < 3; ++i) {
    auto pool = Open();
    ASSERT_TRUE(pool.ok()) << pool.status().ToString();
    EXPECT_TRUE((*pool)->needs_recovery());
    EXPECT_TRUE(ReadFile() == before) << "it is not marked by being looked at";
    EXPECT_TRUE((*pool)->MarkOpen().ok());  // the server dies again
    pool->reset();
    ASSERT_TRUE(Open().ok());
    EXPECT_TRUE((*Open())->needs_recovery());
    WriteFile(before);
  }
  auto pool = Open();
  ASSERT_TRUE(pool.ok());
  EXPECT_TRUE((*pool)->MarkOpen().ok());
  EXPECT_TRUE((*pool)->MarkClosed().ok());
  pool->reset();
  EXPECT_FALSE((*Open())->needs_recovery());
}

TEST_F(FormattedPoolTest, APoolThatWasClosedOpensAgainAnyNumberOfTimes) {
  for (int i = 0; i < 5; ++i) OpenAndClose();
  EXPECT_TRUE(Open().ok());
}

TEST_F(FormattedPoolTest, MarksAlternateBetweenTheCopies) {
  auto pool = Open();
  ASSERT_TRUE(pool.ok());
  for (uint64_t generation = 2; generation < 8; ++generation) {
    const bool open = generation % 2 == 0;
    const auto before = ReadFile();
    if (open) {
      EXPECT_TRUE((*pool)->MarkOpen().ok());
    } else {
      EXPECT_TRUE((*pool)->MarkClosed().ok());
    }
    const auto found = format::FindSuperblock((*pool)->pool().bytes());
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(found->superblock.generation, generation);
    EXPECT_EQ(found->superblock.clean, open ? 0U : 1U);
    const auto other = static_cast<size_t>(1 - found->copy);
    const Superblock kept = Copy(other);
    EXPECT_EQ(kept.generation, generation - 1);
    const Superblock kept_before = CopyIn(before, other);
    EXPECT_EQ(std::memcmp(&kept, &kept_before, sizeof(kept)), 0);
  }
}

TEST_F(FormattedPoolTest, AnotherNumberOfShardsIsRefused) {
  OpenAndClose();
  wish_.shards = 3;
  ExpectError(Code::kInvalidArgument, "made with 2 shards, not the 3 asked for");
  wish_.shards = 0;  // takes the existing shards
  auto pool = Open();
  ASSERT_TRUE(pool.ok());
  EXPECT_EQ((*pool)->geometry().shards, 2U);
}

TEST_F(FormattedPoolTest, AnotherSizeIsRefused) {
  OpenAndClose();
  options_.size = 2 * kPoolBytes;
  ExpectError(Code::kInvalidArgument, std::to_string(2 * kPoolBytes));
  std::filesystem::resize_file(options_.path, kPoolBytes / 2);
  options_.size = 0;
  ExpectError(Code::kInvalidArgument, "was made with " + std::to_string(kPoolBytes));
}

// A power cut may come after the file has grown, and before the pool has.
TEST_F(FormattedPoolTest, BytesAfterThePoolAreLeftAlone) {
  OpenAndClose();
  std::filesystem::resize_file(options_.path, 2 * kPoolBytes);
  for (const uint64_t size : {uint64_t{0}, kPoolBytes}) {
    options_.size = size;
    auto pool = Open();
    ASSERT_TRUE(pool.ok()) << pool.status().ToString();
    EXPECT_FALSE((*pool)->needs_recovery());
    EXPECT_EQ((*pool)->geometry().pool_size, kPoolBytes);
    EXPECT_EQ((*pool)->pool().size(), kPoolBytes);
    EXPECT_EQ((*pool)->pool().view().bytes.size(), kPoolBytes);
  }
  EXPECT_EQ(std::filesystem::file_size(options_.path), 2 * kPoolBytes);
  options_.size = 2 * kPoolBytes;
  ExpectError(Code::kInvalidArgument, "it has " + std::to_string(kPoolBytes) + " bytes, not the");
}

TEST_F(FormattedPoolTest, MakeRefusesAnExistingPool) {
  auto made = FormattedPool::Make(options_, wish_);
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  EXPECT_EQ((*made)->geometry().shards, 2U);
  made->reset();
  const auto before = ReadFile();
  for (const uint64_t size : {kPoolBytes, 2 * kPoolBytes}) {
    options_.size = size;
    const auto again = FormattedPool::Make(options_, wish_);
    EXPECT_EQ(again.status().code(), Code::kConflict) << again.status().ToString();
  }
  EXPECT_TRUE(ReadFile() == before);
}

// --- Growth

TEST_F(FormattedPoolTest, APoolGrowsInPlaceAgainAndAgain) {
  OpenAndClose();
  options_.size = 0;
  const auto made = (*Open())->geometry();
  const auto before = ReadFile();
  for (const uint64_t size : {kPoolBytes + 1, 2 * kPoolBytes, 5 * kPoolBytes - 8, 20 * kPoolBytes}) {
    {
      auto pool = Open();
      ASSERT_TRUE(pool.ok()) << pool.status().ToString();
      const uint64_t generation = (*pool)->superblock().generation;
      const Status grown = (*pool)->Grow(size);
      ASSERT_TRUE(grown.ok()) << grown.ToString();
      EXPECT_EQ((*pool)->superblock().generation, generation + 2);
      EXPECT_EQ((*pool)->pool().size(), size);
      EXPECT_TRUE((*pool)->MarkOpen().ok());
      EXPECT_TRUE((*pool)->MarkClosed().ok());
    }
    auto pool = Open();
    ASSERT_TRUE(pool.ok()) << pool.status().ToString();
    EXPECT_FALSE((*pool)->needs_recovery());
    const format::Geometry& g = (*pool)->geometry();
    EXPECT_EQ(g.pool_size, size);
    EXPECT_EQ(g.regions_per_shard, (size - g.regions_offset) / g.region_size / 2);
    EXPECT_EQ(std::filesystem::file_size(options_.path), size);
    for (const size_t copy : {0, 1}) EXPECT_EQ(Copy(copy).geometry.pool_size, size) << copy;
  }
  EXPECT_GT((*Open())->geometry().more_layers, 0U);
  const auto after = ReadFile();
  EXPECT_TRUE(std::equal(before.begin() + format::kShardRecordsOffset, before.end(),
                         after.begin() + format::kShardRecordsOffset))
      << "nothing moved";
  EXPECT_TRUE(IsZero(std::as_bytes(std::span(after)).subspan(made.regions_offset)));
}

TEST_F(FormattedPoolTest, AGrowthThatIsRefusedChangesNothing) {
  OpenAndClose();
  options_.size = 0;
  const auto expect_refused = [&](uint64_t size, Code code, const std::string& part) {
    const auto before = ReadFile();
    const Status grown = (*Open())->Grow(size);
    EXPECT_EQ(grown.code(), code) << grown.ToString();
    EXPECT_NE(grown.message().find(part), std::string_view::npos) << grown.ToString();
    EXPECT_TRUE(ReadFile() == before);
  };
  for (const uint64_t size : {uint64_t{0}, kPoolBytes / 2, kPoolBytes}) {
    expect_refused(size, Code::kInvalidArgument, "only grows");
  }
  const uint64_t limit = format::GrowthLimit((*Open())->geometry());
  expect_refused(limit + 1, Code::kInvalidArgument, "can grow to");
  EXPECT_TRUE((*Open())->MarkOpen().ok());  // the server dies
  expect_refused(2 * kPoolBytes, Code::kConflict, "needs recovery");
  options_.path = "dram:";
  options_.size = kPoolBytes;
  EXPECT_EQ((*Open())->Grow(2 * kPoolBytes).code(), Code::kInvalidArgument);
}

// An earlier attempt to grow, or another program, may have left bytes after the pool. They do not count as zeroes.
TEST_F(FormattedPoolTest, NewRegionsAreZeroed) {
  OpenAndClose();
  std::vector<char> bytes = ReadFile();
  bytes.resize(3 * kPoolBytes / 2, 'x');
  WriteFile(bytes);
  options_.size = 0;
  ASSERT_TRUE((*Open())->Grow(2 * kPoolBytes).ok());
  const auto after = ReadFile();
  EXPECT_EQ(after.size(), 2 * kPoolBytes);
  EXPECT_TRUE(IsZero(std::as_bytes(std::span(after)).subspan(kPoolBytes)));
}

TEST_F(FormattedPoolTest, ACreationThatFailsLeavesNoFile) {
  wish_.shards = 60;
  ExpectError(Code::kInvalidArgument, "shards");
  EXPECT_FALSE(std::filesystem::exists(options_.path));
  wish_.shards = 2;
  wish_.region_size = 12345;
  ExpectError(Code::kInvalidArgument, "12345");
  EXPECT_FALSE(std::filesystem::exists(options_.path));
}

TEST_F(FormattedPoolTest, OtherFilesAreRefusedAndKept) {
  WriteFile(std::vector<char>(kPoolBytes, 'x'));
  ExpectError(Code::kCorruption, "not an Erda pool");
  WriteFile(std::vector<char>(kPoolBytes, 0));
  ExpectError(Code::kCorruption, "not an Erda pool");
  options_.size = 0;
  WriteFile(std::vector<char>(100, 0));
  ExpectError(Code::kCorruption, "not an Erda pool");
}

TEST_F(FormattedPoolTest, ANewerFormatVersionIsRefusedByName) {
  OpenAndClose();
  for (const size_t copy : {0, 1}) Edit(copy, [](Superblock& sb) { sb.format_version = 99; });
  ExpectError(Code::kInvalidArgument, "version 99");
}

TEST_F(FormattedPoolTest, InconsistentGeometryIsRefused) {
  OpenAndClose();
  for (const size_t copy : {0, 1}) Edit(copy, [](Superblock& sb) { sb.geometry.regions_per_shard = 100'000; });
  ExpectError(Code::kCorruption, "damaged");
}

// The device may hold another pool or anything. Zeroes after a log's end tell where it ends.
TEST(FormattedDeviceTest, NewPoolOnADeviceHasNoOldBytes) {
  CrashPool::Image image(kPoolBytes / sizeof(uint64_t), 0xa5a5a5a5a5a5a5a5);
  std::fill_n(image.begin(), format::kShardRecordsOffset / sizeof(uint64_t), 0);
  auto device = std::make_unique<CrashPool>(std::move(image));
  const CrashPool& bytes = *device;
  const nvm::PoolOptions options{"device", kPoolBytes, std::chrono::nanoseconds(0)};
  auto pool = FormattedPool::Take(std::move(device), options, {});
  ASSERT_TRUE(pool.ok()) << pool.status().ToString();
  EXPECT_FALSE((*pool)->needs_recovery());
  const CrashPool::Image after = bytes.AfterPowerCut([] { return false; });
  const auto behind = std::as_bytes(std::span(after)).subspan(format::kShardRecordsOffset);
  EXPECT_TRUE(IsZero(behind)) << "persistently";
}

TEST_F(FormattedPoolTest, OneGoodSuperblockCopyIsEnough) {
  OpenAndClose();
  const auto whole = ReadFile();
  const auto found = format::FindSuperblock(std::as_bytes(std::span(whole)));
  ASSERT_TRUE(found.ok());
  for (size_t byte = 0; byte < sizeof(Superblock); ++byte) {
    // Damage to the copy that does not count. It could be the newer one, written by a server that died.
    auto bytes = whole;
    bytes[kSuperblockOffsets[1 - found->copy] + byte] ^= 0x10;
    WriteFile(bytes);
    {
      const auto pool = Open();
      ASSERT_TRUE(pool.ok()) << "byte " << byte << ", " << pool.status().ToString();
      EXPECT_EQ((*pool)->superblock().generation, found->superblock.generation);
      EXPECT_TRUE((*pool)->needs_recovery()) << "byte " << byte;
    }
    // Damage to the copy that counts leaves the earlier one. It says that the pool was in use.
    bytes = whole;
    bytes[kSuperblockOffsets[found->copy] + byte] ^= 0x10;
    WriteFile(bytes);
    const auto pool = Open();
    ASSERT_TRUE(pool.ok()) << "byte " << byte << ", " << pool.status().ToString();
    EXPECT_EQ((*pool)->superblock().generation, found->superblock.generation - 1);
    EXPECT_TRUE((*pool)->needs_recovery()) << "byte " << byte;
  }
}

// A torn write of a superblock may keep any of its words. The copy before it counts until the new one is complete.
TEST_F(FormattedPoolTest, ATornSuperblockLeavesTheOtherCopy) {
  OpenAndClose();
  for (const bool closing : {false, true}) {
    std::vector<char> before;
    std::vector<char> after;
    {
      auto pool = Open();
      ASSERT_TRUE(pool.ok()) << pool.status().ToString();
      if (closing) {
        EXPECT_TRUE((*pool)->MarkOpen().ok());
      }
      before = ReadFile();
      if (closing) {
        EXPECT_TRUE((*pool)->MarkClosed().ok());
      } else {
        EXPECT_TRUE((*pool)->MarkOpen().ok());
      }
      after = ReadFile();
    }
    std::vector<size_t> changed;  // words
    for (size_t at = 0; at < before.size(); at += 8) {
      if (std::memcmp(&before[at], &after[at], 8) != 0) changed.push_back(at);
    }
    ASSERT_GE(changed.size(), 2U);
    ASSERT_LE(changed.size(), 6U);
    for (uint32_t arrived = 0; arrived < (1U << changed.size()); ++arrived) {
      auto bytes = before;
      for (size_t i = 0; i < changed.size(); ++i) {
        if ((arrived >> i) & 1) std::memcpy(&bytes[changed[i]], &after[changed[i]], 8);
      }
      // The pool is clean before or after the write. A torn copy means recovery, to be safe.
      const bool clean = closing ? bytes == after : bytes == before;
      WriteFile(bytes);
      const auto pool = Open();
      ASSERT_TRUE(pool.ok()) << "words " << arrived << ", " << pool.status().ToString();
      EXPECT_EQ((*pool)->needs_recovery(), !clean) << "words " << arrived;
    }
    WriteFile(closing ? after : before);
  }
}

TEST_F(FormattedPoolTest, OneServerAtATime) {
  auto pool = Open();
  ASSERT_TRUE(pool.ok());
  ExpectError(Code::kUnavailable, "another server");
}

// The power is cut at each fence, with any part of the bytes that are not durable. The result is the whole old pool or
// the whole new one. The new space held no zeroes before, and is zeroes now. Then the pool grows again, to its end.
TEST(GrowingDeviceTest, APowerCutLeavesTheOldPoolOrTheNewOne) {
  struct Ends {};
  constexpr uint64_t kBefore = 256 << 10;
  constexpr uint64_t kAfter = 320 << 10;
  constexpr uint64_t kDevice = 384 << 10;
  CrashPool::Image blank(kDevice / sizeof(uint64_t), 0xa5a5a5a5a5a5a5a5);
  std::fill_n(blank.begin(), format::kShardRecordsOffset / sizeof(uint64_t), 0);
  const auto take = [](CrashPool::Image image, uint64_t size, CrashPool** medium) {
    auto device = std::make_unique<CrashPool>(std::move(image));
    *medium = device.get();
    const nvm::PoolOptions options{"device", size, std::chrono::nanoseconds(0)};
    return FormattedPool::Take(std::move(device), options, {.shards = 0, .region_size = 4096, .segment_size = 4096});
  };
  CrashPool* medium = nullptr;
  {
    auto made = take(std::move(blank), kBefore, &medium);
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    blank = medium->AfterPowerCut([] { return false; });
  }
  const CrashPool::Image& small = blank;
  int old_ones = 0;
  int new_ones = 0;
  bool ended = false;
  for (size_t fence = 0; !ended; ++fence) {
    auto pool = take(small, 0, &medium);
    ASSERT_TRUE(pool.ok()) << pool.status().ToString();
    medium->before_fence = [left = fence]() mutable {
      if (left-- == 0) throw Ends();
    };
    try {
      ASSERT_TRUE((*pool)->Grow(kAfter).ok());
      ended = true;
    } catch (const Ends&) {
    }
    medium->before_fence = nullptr;
    Random random(fence);
    for (int choice = 0; choice < 60; ++choice) {
      const double kept = choice % 3 == 0 ? 1.0 : choice % 3 == 1 ? 0.0 : 0.5;
      const CrashPool::Image image = medium->AfterPowerCut(random, kept);
      CrashPool* next_medium = nullptr;
      auto next = take(image, 0, &next_medium);
      ASSERT_TRUE(next.ok()) << "fence " << fence << ", " << next.status().ToString();
      const format::Geometry& g = (*next)->geometry();
      ASSERT_TRUE(g.pool_size == kBefore || g.pool_size == kAfter) << g.pool_size;
      const bool is_new = g.pool_size == kAfter;
      ++(is_new ? new_ones : old_ones);
      ASSERT_TRUE(!ended || (is_new && !(*next)->needs_recovery()));
      const auto bytes = std::as_bytes(std::span(image)).first(g.pool_size);
      ASSERT_TRUE(IsZero(bytes.subspan(format::kShardRecordsOffset))) << "fence " << fence;
      if ((*next)->needs_recovery()) {
        EXPECT_TRUE((*next)->MarkClosed().ok());
      }
      auto again = take(next_medium->AfterPowerCut([] { return false; }), 0, &next_medium);
      ASSERT_TRUE(again.ok());
      ASSERT_TRUE((*again)->Grow(kDevice).ok());
      ASSERT_TRUE(IsZero((*again)->pool().bytes().subspan(format::kShardRecordsOffset)));
      ASSERT_EQ((*again)->Grow(2 * kDevice).code(), Code::kInvalidArgument);
    }
  }
  EXPECT_GT(old_ones, 60);
  EXPECT_GT(new_ones, 60);
}

// A server that died while it marked the pool left its superblock in the caches. The next server takes that copy for
// the one that counts. The copy must be on the medium before the server overwrites the other one, since the power may
// be cut then.
TEST(SuperblockTest, APowerCutAfterAProcessDeathLeavesOneCopy) {
  struct Ends {};
  const nvm::PoolOptions options{"pool", 0, std::chrono::nanoseconds(0)};
  const auto format = [] {
    auto geometry = format::ChooseGeometry({kPoolBytes, 1, 0, 0, 0});
    Superblock superblock{};
    superblock.magic = format::kPoolMagic;
    superblock.format_version = format::kFormatVersion;
    superblock.geometry = *geometry;
    superblock.generation = 1;
    superblock.clean = 1;
    superblock.crc = format::SuperblockCrc(superblock);
    CrashPool::Image image(kPoolBytes / sizeof(uint64_t));
    std::memcpy(image.data(), &superblock, sizeof(superblock));
    return image;
  };
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    CrashPool::Images images{format(), format()};
    for (int start = 0; start < 6; ++start) {
      auto pool = std::make_unique<CrashPool>(std::move(images), nvm::Durability::kPowerSafe);
      CrashPool& medium = *pool;
      auto formatted = FormattedPool::Take(std::move(pool), options, {0, 0, 0, 0, 0});
      ASSERT_TRUE(formatted.ok()) << "seed " << seed << ", start " << start << ", " << formatted.status().ToString();
      medium.before_fence = [&] {
        if (random.Chance(0.5)) throw Ends();
      };
      EXPECT_ANY_THROW({
        for (;;) EXPECT_TRUE((*formatted)->MarkOpen().ok());
      });
      if (random.Chance(0.5)) {
        images = medium.AfterProcessEnd([] { return false; });
      } else {
        images.cached = medium.AfterPowerCut(random, 0.5);
        images.durable = images.cached;
      }
    }
  }
}

}  // namespace
}  // namespace erda::server
