// A pool with a journal whose power is cut at every write and every sync. That is so in its creation, in a start, in
// checkpoints, in a clean close, and in the start after that. Errors come at each of these calls, too.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "base/temporary_folder.h"
#include "journal/front.h"
#include "journal/pool_lives.h"
#include "journal/simulated_files.h"

namespace erda::journal {
namespace {

// Every call, or every third one.
#ifdef ERDA_SANITIZED
constexpr uint64_t kCallStep = 3;
constexpr uint64_t kSecondCuts = 24;  // After every 24th of the first cuts.
#else
constexpr uint64_t kCallStep = 1;
constexpr uint64_t kSecondCuts = 9;
#endif
constexpr uint64_t kCallsMax = 1000;  // More would be a loop.

class PowerCutTest : public testing::Test {
 protected:
  // Makes a pool whose ring has gone nearly round, and has records that the pool file lacks. Its image is lost.
  void MakePool() {
    ASSERT_TRUE(lives_.Make().ok());
    files_.PowerCut();
    ASSERT_TRUE(lives_.Start());
    lives_.GoRound();
    lives_.End();
    Cut();
    ASSERT_TRUE(lives_.Start());
    lives_.LeaveRecords();
    lives_.End();
    Cut();
    ASSERT_EQ(lives_.broken(), "");
    disk_ = Save();
    account_ = lives_.account();
  }
  struct Saved {
    SimulatedFiles::Contents files;
    std::string front;
  };
  [[nodiscard]] virtual Saved Save() const { return {files_.Save(), {}}; }
  void Cut() {
    files_.PowerCut();
    lives_.Reboot();
  }
  virtual void Restore(const Saved& disk, const PoolLives::Account& account, uint64_t seed) {
    lives_.Reboot();
    files_.Restore(disk.files, seed);
    lives_.SetAccount(account);
  }
  // One life of a server, from a pool that MakePool has made.
  void Live() {
    if (lives_.Start()) lives_.Work();
    lives_.End();
  }
  // A start without a cut, which shows what the disk has.
  void Look() {
    if (lives_.Start()) lives_.WorkALittle();
    lives_.End();
  }

  // `least`: the life has that many calls.
  void CutALifeAndTheNextStart(uint64_t least);
  void CutALifeThatBeginsWithAClosedPool();

  SimulatedFiles files_{1};
  PoolLives lives_{files_};
  Saved disk_;
  PoolLives::Account account_;
};

void PowerCutTest::CutALifeAndTheNextStart(uint64_t least) {
  MakePool();
  uint64_t first = 0;
  uint64_t both = 0;
  for (bool ended = false; !ended; first += kCallStep) {
    ASSERT_LT(first, kCallsMax);
    SCOPED_TRACE("first cut at call " + std::to_string(first));
    Restore(disk_, account_, first);
    files_.CutAt(first);
    Live();
    ended = !files_.off();
    Cut();
    const Saved left = Save();
    const PoolLives::Account account = lives_.account();
    bool again = first % kSecondCuts == 0;
    for (uint64_t second = 0; again; second += kCallStep, ++both) {
      ASSERT_LT(second, kCallsMax);
      SCOPED_TRACE("second cut at call " + std::to_string(second));
      Restore(left, account, 1000 * first + second);
      files_.CutAt(second);
      Look();
      again = files_.off();
      Cut();
      Look();
      ASSERT_EQ(lives_.broken(), "");
    }
    Restore(left, account, first);
    Look();
    ASSERT_EQ(lives_.broken(), "");
  }
  EXPECT_GT(first, least);
  EXPECT_GT(both, 15 * first / kSecondCuts / kCallStep);
  EXPECT_GT(lives_.applied(), 0U);
  RecordProperty("first", std::to_string(first));
  RecordProperty("both", std::to_string(both));
}

TEST_F(PowerCutTest, EveryCutOfALifeAndOfTheNextStart) { CutALifeAndTheNextStart(60); }

// The superblock must say at any time whether the pool file has all of the pool.
void PowerCutTest::CutALifeThatBeginsWithAClosedPool() {
  MakePool();
  Restore(disk_, account_, 0);
  Live();
  uint64_t ended = 0;
  Cut();
  const Saved closed = Save();
  const PoolLives::Account account = lives_.account();
  for (uint64_t call = 0; ended < 8; call += kCallStep) {
    ASSERT_LT(call, kCallsMax);
    SCOPED_TRACE("cut at call " + std::to_string(call));
    Restore(closed, account, call);
    files_.CutAt(call);
    Live();
    ended += files_.off() ? 0 : 1;
    Cut();
    Look();
    ASSERT_EQ(lives_.broken(), "");
  }
}

TEST_F(PowerCutTest, EveryCutOfALifeThatBeginsWithAClosedPool) { CutALifeThatBeginsWithAClosedPool(); }

// The disk stops, and the front keeps what it got until the process knew. (front_part_test.cc cuts the front's stores.)
class FrontedPowerCutTest : public PowerCutTest {
 protected:
  FrontedPowerCutTest() {
    SetFront(std::string(PoolLives::kShards * Front::kPartBytesMin, '\0'));
    lives_.SetFront(path_);
  }
  [[nodiscard]] Saved Save() const override {
    std::ifstream file(path_, std::ios::binary);
    return {files_.Save(), std::string(std::istreambuf_iterator<char>(file), {})};
  }
  void Restore(const Saved& disk, const PoolLives::Account& account, uint64_t seed) override {
    PowerCutTest::Restore(disk, account, seed);
    SetFront(disk.front);
  }
  void SetFront(const std::string& bytes) const { std::ofstream(path_, std::ios::binary) << bytes; }

  const TemporaryFolder folder_;
  const std::string path_ = (folder_ / "front").string();
};

TEST_F(FrontedPowerCutTest, EveryCutOfALifeAndOfTheNextStart) {
  CutALifeAndTheNextStart(40);
  EXPECT_GT(lives_.held_by_front(), 300U / kCallStep);
}

TEST_F(FrontedPowerCutTest, EveryCutOfALifeThatBeginsWithAClosedPool) { CutALifeThatBeginsWithAClosedPool(); }

// The shards do not wait for the disk. So the checkpointer runs while records are written, and the stream always goes
// beyond what is held.
TEST_F(PowerCutTest, CutsWhileCheckpointsAreMade) {
  MakePool();
  uint64_t cuts = 0;
  for (uint64_t call = 12; call < 52; call += kCallStep) {
    SCOPED_TRACE("cut at call " + std::to_string(call));
    Restore(disk_, account_, call);
    files_.CutAt(call);
    if (lives_.Start()) lives_.WorkWithoutWaiting();
    lives_.End();
    cuts += files_.off() ? 1 : 0;
    Cut();
    Look();
    ASSERT_EQ(lives_.broken(), "");
  }
  EXPECT_GT(cuts, 15 / kCallStep);
}

TEST_F(PowerCutTest, EveryErrorOfALife) {
  MakePool();
  uint64_t call = 0;
  for (bool ended = false; !ended; call += kCallStep) {
    ASSERT_LT(call, kCallsMax);
    for (const bool cut : {false, true}) {
      SCOPED_TRACE("error at call " + std::to_string(call) + (cut ? ", then a power cut" : ""));
      Restore(disk_, account_, call);
      files_.FailAt(call);
      Live();
      ended = !files_.failed();
      if (cut) {
        Cut();
      } else {
        files_.Reopen();
      }
      Look();
      ASSERT_EQ(lives_.broken(), "");
    }
  }
  EXPECT_GT(call, 60U);
}

// After a cut the pool either opens and is empty, or is refused with a message. If the creation had returned, the pool
// opens.
TEST_F(PowerCutTest, EveryCutOfTheCreation) {
  uint64_t opened = 0;
  uint64_t refused = 0;
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    bool ended = false;
    for (uint64_t call = 0; !ended; call += kCallStep) {
      ASSERT_LT(call, kCallsMax);
      SCOPED_TRACE("seed " + std::to_string(seed) + ", cut at call " + std::to_string(call));
      files_.Restore({}, 100 * seed + call);
      files_.CutAt(call);
      const Status made = lives_.Make();
      ended = !files_.off();
      ASSERT_EQ(made.ok(), ended) << made.ToString();
      Cut();
      const Status there =
          JournaledPool::Open({.pool = files_.pool(), .journal = files_.journal(), .disk_in_memory = true}).status();
      if (there.ok()) {
        ++opened;
        Look();
        ASSERT_EQ(lives_.broken(), "");
      } else {
        ++refused;
        ASSERT_FALSE(ended) << there.ToString();
        const std::string message(there.message());
        EXPECT_TRUE(message.find("pool") != std::string::npos || message.find("journal") != std::string::npos)
            << message;
        EXPECT_NE(there.code(), Code::kInternal) << message;
      }
      lives_.Remove();
      ASSERT_TRUE(ended || lives_.Make().ok());
      lives_.Remove();
    }
  }
  EXPECT_GE(opened, 3U);
  EXPECT_GT(refused, 20 / kCallStep);
  RecordProperty("opened", std::to_string(opened));
  RecordProperty("refused", std::to_string(refused));
}

// The tests above must find each of these defects.
class PowerCutFlawTest : public PowerCutTest, public testing::WithParamInterface<FileFlaw> {
 protected:
  // Tries cuts at each call until a promise is broken.
  std::string FindCut() {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      bool ended = false;
      for (uint64_t call = 0; !ended && lives_.broken().empty(); ++call) {
        Restore(disk_, account_, 1000 * seed + call);
        files_.CutAt(call);
        Live();
        ended = !files_.off();
        Cut();
        Look();
      }
    }
    return lives_.broken();
  }
  std::string FindError() {
    bool ended = false;
    for (uint64_t call = 0; !ended && lives_.broken().empty(); ++call) {
      Restore(disk_, account_, call);
      files_.FailAt(call);
      Live();
      ended = !files_.failed();
      Cut();
      Look();
    }
    return lives_.broken();
  }
};

TEST_P(PowerCutFlawTest, IsFound) {
  MakePool();
  files_.Plant(GetParam());
  const std::string broken = GetParam() == FileFlaw::kIgnoresErrors ? FindError() : FindCut();
  EXPECT_NE(broken, "");
  RecordProperty("broken", broken);
}

INSTANTIATE_TEST_SUITE_P(Flaws, PowerCutFlawTest,
                         testing::Values(FileFlaw::kPoolNotSynced, FileFlaw::kRecordsNotSynced,
                                         FileFlaw::kIgnoresErrors, FileFlaw::kTakesTornRecords,
                                         FileFlaw::kWritesPoolEarly));

}  // namespace
}  // namespace erda::journal
