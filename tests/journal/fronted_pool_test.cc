// A pool with a journal and a front: what a start finds after a kill, a reboot, and with a disk that lags or lied.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "journal/journaled_pool_fixture.h"
#include "nvm/writer.h"
#include "server/pool/formatted_pool.h"

namespace erda::journal {
namespace {

namespace fs = std::filesystem;

class FrontedPoolTest : public JournaledPoolFixture {
 protected:
  void SetUp() override {
    JournaledPoolFixture::SetUp();
    MakeFront("front");
  }
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
  // The disk loses what it got between the two calls.
  void KeepDisk() const { fs::copy_file(Path("journal"), Path("kept"), fs::copy_options::overwrite_existing); }
  void LoseDisk() const { fs::copy_file(Path("kept"), Path("journal"), fs::copy_options::overwrite_existing); }
  // Has the medium hold the text at once. Returns false if that takes the disk.
  static bool PutHeld(JournaledPool& pool, uint32_t shard, uint64_t number, const std::string& text) {
    Put(pool, shard, number, text);
    nvm::Pool& of_shard = pool.OfShard(shard);
    of_shard.AskHeld(1);
    return of_shard.held() == of_shard.place();
  }
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
      EXPECT_TRUE(PutHeld(*pool, boot % kShards, boot, "boot" + std::to_string(boot))) << "the front holds it at once";
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
    EXPECT_TRUE(PutHeld(*pool, 0, life, "life"));
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
    for (int i = 0; i < 40'000; ++i) by_front += PutHeld(*pool, 0, i % 1000, std::to_string(100'000 + i)) ? 1 : 0;
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
  ASSERT_TRUE(PutHeld(*MustOpen(), 0, 1, "held"));
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
    PutHeld(*pool, 0, 1, "disk");
    ASSERT_TRUE(pool->AwaitHeld().ok());
  }
  {
    const auto pool = MustOpen();
    ASSERT_NE(pool, nullptr);
    EXPECT_TRUE(pool->start().had_image);
    KeepDisk();
    EXPECT_TRUE(PutHeld(*pool, 0, 2, "front"));
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
    EXPECT_TRUE(PutHeld(*journaled, 0, 1, "closed"));
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
    for (int i = 0; i < 20; ++i) PutHeld(*pool, 0, 0, most);
    ASSERT_TRUE(pool->AwaitHeld().ok());
    ASSERT_TRUE(PutHeld(*pool, 0, 1, "after"));
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
  EXPECT_TRUE(PutHeld(*pool, 1, 1, "put"));
}

// It has this journal's secret, and another one was used since.
TEST_F(FrontedPoolTest, FrontOfAnEarlierTimeIsRefused) {
  ASSERT_NE(MustOpen(), nullptr);
  fs::copy_file(Path("front"), Path("old"));
  Reboot();
  ASSERT_TRUE(PutHeld(*MustOpen(), 0, 1, "held"));
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
  MarkClean();
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
