// erda-server with a journal: kills, stops and the flags.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <ios>
#include <string>

#include "journal/checkpoint_block.h"
#include "journal/disk.h"
#include "programs/fixture.h"

namespace erda {
namespace {

namespace fs = std::filesystem;

constexpr std::streamoff kBlock = journal::Disk::kBlock;

class JournalProgramTest : public ProgramsTest {
 protected:
  // A folder in memory that ends with the test.
  JournalProgramTest() { fs::create_directory(memory_); }
  ~JournalProgramTest() override { fs::remove_all(memory_); }

  [[nodiscard]] Words Flags(const Words& more = {}) const {
    Words flags = {"--journal", Path("journal") + ",size=8M", "--journal-memory", memory_, "--journal-on-tmpfs"};
    flags.insert(flags.end(), more.begin(), more.end());
    return flags;
  }
  // Returns the later epoch of the checkpoint's two copies.
  [[nodiscard]] uint64_t EpochOfFirstRing() const {
    std::ifstream file(Path("journal"), std::ios::binary);
    uint64_t epoch = 0;
    for (const std::streamoff copy : {2 * kBlock, 3 * kBlock}) {  // The file's header has the two blocks before.
      journal::CheckpointBlock block{};
      file.seekg(copy).read(reinterpret_cast<char*>(&block), sizeof(block));
      EXPECT_EQ(block.magic, journal::kCheckpointMagic);
      epoch = std::max(epoch, block.epoch);
    }
    return epoch;
  }
  // The machine starts again: only the disk is left.
  void Reboot() {
    fs::remove_all(memory_);
    fs::create_directory(memory_);
  }

  const std::string memory_ = "/dev/shm/" + fs::path(Path("")).parent_path().filename().string();
};

TEST_F(JournalProgramTest, KilledServerLosesNothing) {
  for (int life = 0; life < 3; ++life) {
    const auto server = StartServer(Flags());
    EXPECT_NE(server->out().find("(power-safe)"), std::string::npos) << server->out();
    for (int before = 0; before < life; ++before) {
      EXPECT_EQ(Cli({"get", "key" + std::to_string(before)}).out, "value" + std::to_string(before) + "\n");
    }
    ExpectFine(Cli({"put", "key" + std::to_string(life), "value" + std::to_string(life)}));
    server->Signal(SIGKILL);
    (void)server->Wait();
  }
}

// The disk has all that was acknowledged.
TEST_F(JournalProgramTest, PowerCutLosesNothing) {
  for (int life = 0; life < 3; ++life) {
    const auto server = StartServer(Flags());
    for (int before = 0; before < life; ++before) {
      EXPECT_EQ(Cli({"get", "key" + std::to_string(before)}).out, "value" + std::to_string(before) + "\n");
    }
    ExpectFine(Cli({"put", "key" + std::to_string(life), "value" + std::to_string(life)}));
    server->Signal(SIGKILL);
    (void)server->Wait();
    Reboot();
  }
}

// A new epoch tells the records of this life from those that an earlier one left in the ring.
TEST_F(JournalProgramTest, EachStartAfterAPowerCutBeginsAnEpoch) {
  uint64_t last = 0;
  for (int life = 0; life < 3; ++life) {
    const auto server = StartServer(Flags());
    const uint64_t epoch = EpochOfFirstRing();
    EXPECT_GT(epoch, last);
    last = epoch;
    server->Signal(SIGKILL);
    (void)server->Wait();
    Reboot();
  }
}

// The front has what the disk lacks.
TEST_F(JournalProgramTest, PowerCutLosesNothingThatTheFrontHas) {
  std::ofstream(Path("front"), std::ios::binary) << std::string(4 << 20, '\0');
  const Words flags = Flags({"--journal-front", Path("front")});
  StopServer(*StartServer(flags));
  for (int life = 0; life < 3; ++life) {
    const auto server = StartServer(flags);
    for (int before = 0; before < life; ++before) {
      EXPECT_EQ(Cli({"get", "key" + std::to_string(before)}).out, "value" + std::to_string(before) + "\n");
    }
    ExpectFine(Cli({"put", "key" + std::to_string(life), "value" + std::to_string(life)}));
    server->Signal(SIGKILL);
    (void)server->Wait();
    Reboot();
    ExpectRefused(ServerWith(Flags({"--pool", Pool(), "--listen", Address()})), 2, "has a front");
  }
}

TEST_F(JournalProgramTest, StoppedServerLeavesThePoolFileAlone) {
  {
    const auto server = StartServer(Flags());
    ExpectFine(Cli({"put", "key", "value"}));
    EXPECT_FALSE(fs::is_empty(memory_));
    StopServer(*server);
  }
  EXPECT_TRUE(fs::is_empty(memory_));
  ExpectFine(Run("erda-pool", {"check", Pool()}));
  ExpectRefused(ServerWith({"--pool", Pool(), "--listen", Address()}), 2, "it has a journal");
  const auto server = StartServer(Flags());
  EXPECT_EQ(server->out().find("recovered"), std::string::npos) << server->out();
  EXPECT_EQ(Cli({"get", "key"}).out, "value\n");
  StopServer(*server);
}

TEST_F(JournalProgramTest, PoolGrowsWhileNoServerHasIt) {
  StopServer(*StartServer(Flags()));
  ExpectFine(Run("erda-pool", {"resize", Pool(), "--size", "96M"}));
  const auto server = StartServerWith(Flags({"--pool", Pool(), "--size", "96M", "--listen", Address()}));
  ExpectFine(Cli({"put", "key", "value"}));
  StopServer(*server);
}

TEST_F(JournalProgramTest, SyncSaysWhetherAnswersWait) {
  const auto often = StartServer(Flags({"--sync", "10ms"}));
  EXPECT_NE(often->out().find("its journal is written every 10 ms"), std::string::npos) << often->out();
  StopServer(*often);
  const auto never = StartServer(Flags({"--sync", "never"}));
  EXPECT_NE(never->out().find("when the server stops (--sync never)"), std::string::npos) << never->out();
  StopServer(*never);
  // The settings in use, as a file, promise the same.
  Words check = Flags({"--pool", Pool(), "--listen", Address(), "--check"});
  EXPECT_NE(Run("erda-server", check).out.find("sync = 'always'"), std::string::npos) << Run("erda-server", check).out;
  const auto always = StartServer(Flags({"--sync", "always"}));
  EXPECT_NE(always->out().find("(power-safe)"), std::string::npos) << always->out();
  StopServer(*always);
  ExpectRefused(ServerWith({"--pool", Path("other"), "--size", "64M", "--listen", Address(), "--sync", "always"}), 2,
                "--sync always needs a journal");
  EXPECT_FALSE(fs::exists(Path("other")));
  for (const char* wrong : {"", ",size=1G", "journal,size=", "journal,size=x", "journal,size=0"}) {
    ExpectRefused(ServerWith({"--pool", Pool(), "--listen", Address(), "--journal", wrong}), 2, "is not a journal");
  }
}

}  // namespace
}  // namespace erda
