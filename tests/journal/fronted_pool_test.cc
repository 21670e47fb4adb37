// A pool with a journal and a front: what a start finds after a kill, a reboot, and with a disk that lags or lied.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "base/bytes.h"
#include "base/temporary_folder.h"
#include "journal/journaled_pool.h"
#include "nvm/writer.h"
#include "server/pool/formatted_pool.h"

namespace erda::journal {
namespace {

namespace fs = std::filesystem;

class FrontedPoolTest : public testing::Test {
 protected:
  static constexpr uint64_t kPoolBytes = 4 << 20;
  static constexpr uint32_t kShards = 2;
  static constexpr uint64_t kJournalBytes = (kShards * RingFile::kPartBytesMin) + 8192;

  void SetUp() override {
    auto made = server::FormattedPool::Make({.path = Path("pool"), .size = kPoolBytes}, {kPoolBytes, kShards}, true);
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    superblock_ = (*made)->superblock();
    ASSERT_TRUE((*made)->MarkOpen().ok());
    made->reset();
    const Status status =
        JournaledPool::CreateJournal(Path("journal"), superblock_, kJournalBytes, {.in_memory = true});
    ASSERT_TRUE(status.ok()) << status.ToString();
    MakeFront("front");
  }
  ~FrontedPoolTest() override { (void)Image::Remove("/dev/shm", superblock_.uuid); }

  [[nodiscard]] std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  void MakeFront(const std::string& name) const {
    std::ofstream(Path(name), std::ios::binary) << std::string(kShards * Front::kPartBytesMin, '\0');
  }
  [[nodiscard]] JournalOptions Options(const std::string& front = "front") const {
    return {.pool = Path("pool"),
            .journal = Path("journal"),
            .front = front.empty() ? "" : Path(front),
            .disk_in_memory = true};
  }
  [[nodiscard]] std::unique_ptr<JournaledPool> MustOpen(const std::string& front = "front") const {
    auto pool = JournaledPool::Open(Options(front));
    EXPECT_TRUE(pool.ok()) << pool.status().ToString();
    return pool.ok() ? *std::move(pool) : nullptr;
  }
  void ExpectRefuses(const std::string& front, Code code, const std::string& part) const {
    const Status status = JournaledPool::Open(Options(front)).status();
    EXPECT_EQ(status.code(), code) << status.ToString();
    EXPECT_NE(status.message().find(part), std::string::npos) << status.ToString();
  }
  void Reboot() { ASSERT_TRUE(Image::Remove("/dev/shm", superblock_.uuid).ok()); }
  // The disk loses what it got between the two calls.
  void KeepDisk() const { fs::copy_file(Path("journal"), Path("kept"), fs::copy_options::overwrite_existing); }
  void LoseDisk() const { fs::copy_file(Path("kept"), Path("journal"), fs::copy_options::overwrite_existing); }

  // Writes into the log's part of the pool, as a shard does, and has the medium hold it. Returns false if that takes
  // the disk.
  static bool Put(JournaledPool& pool, uint32_t shard, uint64_t number, const std::string& text) {
    nvm::Pool& of_shard = pool.OfShard(shard);
    nvm::Writer writer(of_shard);
    writer.Write(At(shard, number), AsBytes(text));
    writer.Persist(At(shard, number), text.size());
    of_shard.AskHeld(1);
    return of_shard.held() == of_shard.place();
  }
  static uint64_t At(uint32_t shard, uint64_t number) { return kPoolBytes / 2 + shard * (1 << 20) + number * 64; }
  static std::string Get(const JournaledPool& pool, uint32_t shard, uint64_t number, size_t size) {
    return std::string(AsString(pool.bytes().subspan(At(shard, number), size)));
  }

  const TemporaryFolder folder_;
  format::Superblock superblock_{};
};

TEST_F(FrontedPoolTest, RebootFindsWhatOnlyTheFrontHas) {
  for (int boot = 1; boot <= 4; ++boot) {
    {
      const auto pool = MustOpen();
      ASSERT_NE(pool, nullptr);
      EXPECT_FALSE(pool->start().had_image);
      for (int before = 1; before < boot; ++before) {
        EXPECT_EQ(Get(*pool, before % kShards, before, 5), "boot" + std::to_string(before));
      }
      EXPECT_EQ(pool->start().bytes_applied > 0, boot > 1);
      KeepDisk();
      EXPECT_TRUE(Put(*pool, boot % kShards, boot, "boot" + std::to_string(boot))) << "the front holds it at once";
    }
    LoseDisk();
    Reboot();
  }
}

TEST_F(FrontedPoolTest, KilledServerLeavesMemoryAndFront) {
  for (int life = 1; life <= 3; ++life) {
    const auto pool = MustOpen();
    ASSERT_NE(pool, nullptr);
    EXPECT_EQ(pool->start().had_image, life > 1);
    if (life > 1) {
      EXPECT_EQ(Get(*pool, 0, life - 1, 4), "life");
    }
    EXPECT_TRUE(Put(*pool, 0, life, "life"));
  }
  Reboot();
  const auto pool = MustOpen();
  ASSERT_NE(pool, nullptr);
  for (int life = 1; life <= 3; ++life) EXPECT_EQ(Get(*pool, 0, life, 4), "life");
}

// More than the front has room for, so the disk gets it meanwhile.
TEST_F(FrontedPoolTest, FrontIsUsedAgainAndAgain) {
  uint64_t by_front = 0;
  {
    const auto pool = MustOpen();
    ASSERT_NE(pool, nullptr);
    for (int i = 0; i < 40'000; ++i) by_front += Put(*pool, 0, i % 1000, std::to_string(100'000 + i)) ? 1 : 0;
    ASSERT_TRUE(pool->AwaitHeld().ok());
  }
  EXPECT_GT(by_front, 1000U);
  Reboot();
  const auto pool = MustOpen();
  ASSERT_NE(pool, nullptr);
  for (int number = 0; number < 1000; ++number) {
    ASSERT_EQ(Get(*pool, 0, number, 6), std::to_string(100'000 + 39'000 + number));
  }
}

TEST_F(FrontedPoolTest, JournalNeedsItsFront) {
  ASSERT_TRUE(Put(*MustOpen(), 0, 1, "held"));
  ExpectRefuses("", Code::kInvalidArgument, "has a front");
  MakeFront("other");
  ExpectRefuses("other", Code::kInvalidArgument, "are in another front");
  Reboot();
  ExpectRefuses("", Code::kInvalidArgument, "has a front");
  ExpectRefuses("other", Code::kInvalidArgument, "are in another front");
  const auto pool = MustOpen();
  ASSERT_NE(pool, nullptr);
  EXPECT_EQ(Get(*pool, 0, 1, 4), "held");
}

// Its memory is there, so the life goes on, and has a front from now on.
TEST_F(FrontedPoolTest, KilledServerMayGetAFront) {
  {
    const auto pool = MustOpen("");
    ASSERT_NE(pool, nullptr);
    Put(*pool, 0, 1, "disk");
    ASSERT_TRUE(pool->AwaitHeld().ok());
  }
  {
    const auto pool = MustOpen();
    ASSERT_NE(pool, nullptr);
    EXPECT_TRUE(pool->start().had_image);
    KeepDisk();
    EXPECT_TRUE(Put(*pool, 0, 2, "front"));
  }
  LoseDisk();
  Reboot();
  ExpectRefuses("", Code::kInvalidArgument, "has a front");
  const auto pool = MustOpen();
  ASSERT_NE(pool, nullptr);
  EXPECT_EQ(Get(*pool, 0, 1, 4), "disk");
  EXPECT_EQ(Get(*pool, 0, 2, 5), "front");
}

TEST_F(FrontedPoolTest, CleanCloseFreesTheFront) {
  {
    auto opened = MustOpen();
    ASSERT_NE(opened, nullptr);
    JournaledPool* const journaled = opened.get();
    auto pool = server::FormattedPool::Take(std::move(opened), {}, {.shards = 0});
    ASSERT_TRUE(pool.ok()) << pool.status().ToString();
    ASSERT_TRUE((*pool)->MarkOpen().ok());
    EXPECT_TRUE(Put(*journaled, 0, 1, "closed"));
    ASSERT_TRUE((*pool)->MarkClosed().ok());
  }
  const std::string zeroes(kShards * Front::kPartBytesMin, '\0');
  std::ifstream file(Path("front"), std::ios::binary);
  std::string header(sizeof(FrontHeader), 'x');
  file.read(header.data(), static_cast<std::streamsize>(header.size()));
  EXPECT_EQ(header, zeroes.substr(0, header.size()));
  const auto pool = MustOpen("");
  ASSERT_NE(pool, nullptr);
  EXPECT_EQ(Get(*pool, 0, 1, 6), "closed");
}

// It said that it held what it did not. The front tells.
TEST_F(FrontedPoolTest, DiskThatLiedIsNoticed) {
  {
    const auto pool = MustOpen();
    ASSERT_NE(pool, nullptr);
    KeepDisk();
    // The front begins again at what the disk holds.
    std::string most(60'000, 'x');
    for (int i = 0; i < 20; ++i) Put(*pool, 0, 0, most);
    ASSERT_TRUE(pool->AwaitHeld().ok());
    ASSERT_TRUE(Put(*pool, 0, 1, "after"));
  }
  LoseDisk();
  Reboot();
  ExpectRefuses("front", Code::kCorruption, "the disk has lost what it held");
}

// A server was cut off before the front was named. The next one makes it again.
TEST_F(FrontedPoolTest, FrontThatIsHalfMadeIsTaken) {
  {
    const auto front = Front::Open(Path("front"), kShards, true);
    ASSERT_TRUE(front.ok());
    auto rings = RingFile::Open(Path("journal"), superblock_.uuid, kShards, {.in_memory = true});
    ASSERT_TRUE(rings.ok());
    ASSERT_TRUE((*front)->Take({rings->identity(0), rings->identity(1)}, false).ok());
    nvm::Writer writer((*front)->memory());
    writer.Store64(offsetof(FrontHeader, released), UINT64_MAX);
    writer.Store64(Front::kPartBytesMin, 0);  // The magic number of the second part.
  }
  const auto pool = MustOpen();
  ASSERT_NE(pool, nullptr);
  EXPECT_TRUE(Put(*pool, 1, 1, "put"));
}

// It has this journal's secret, and another one was used since.
TEST_F(FrontedPoolTest, FrontOfAnEarlierTimeIsRefused) {
  ASSERT_NE(MustOpen(), nullptr);
  fs::copy_file(Path("front"), Path("old"));
  Reboot();
  ASSERT_TRUE(Put(*MustOpen(), 0, 1, "held"));
  ExpectRefuses("old", Code::kInvalidArgument, "is of another time of the journal");
  Reboot();
  ExpectRefuses("old", Code::kInvalidArgument, "is of another time of the journal");
  const auto pool = MustOpen();
  ASSERT_NE(pool, nullptr);
  EXPECT_EQ(Get(*pool, 0, 1, 4), "held");
}

// Another pool may have its newest bytes there and nowhere else.
TEST_F(FrontedPoolTest, CleanPoolLeavesTheFrontOfAnotherAlone) {
  std::string bytes(kShards * Front::kPartBytesMin, 'x');
  std::ofstream(Path("front"), std::ios::binary) << bytes;
  {
    std::fstream file(Path("pool"), std::ios::binary | std::ios::in | std::ios::out);
    format::Superblock clean = superblock_;
    clean.generation += 10;
    clean.clean = 1;
    clean.crc = format::SuperblockCrc(clean);
    file.write(reinterpret_cast<const char*>(&clean), sizeof(clean));
  }
  ExpectRefuses("front", Code::kInvalidArgument, "it is not empty");
  std::ifstream file(Path("front"), std::ios::binary);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), bytes);
}

TEST_F(FrontedPoolTest, FrontWithoutAWaitIsRefused) {
  JournalOptions options = Options();
  options.interval = std::chrono::milliseconds(10);
  EXPECT_EQ(JournaledPool::Open(options).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace erda::journal
