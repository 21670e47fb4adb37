// Pools with an archive over kills and power cuts, and pools that are made of it again.
#include "journal/restore.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/server_time.h"
#include "journal/restore_fixture.h"

namespace erda::journal {
namespace {

namespace fs = std::filesystem;

TEST_F(RestoreTest, PoolIsAsItWasAtEachTime) {
  Open();
  Put(0, 0, "before");
  ASSERT_TRUE(BackUp().ok());
  std::map<uint64_t, std::string> at;  // By time.
  at[Now()] = "before";
  for (const char* text : {"a", "b", "c"}) {
    Put(0, 0, text);
    Put(1, 0, text);
    at[Now()] = text;
  }
  Finish();
  for (const auto& [time, text] : at) {
    const auto pool = Restore("at" + std::to_string(time), time);
    ASSERT_TRUE(pool);
    EXPECT_EQ(Cells(*pool, 0)[0], text);
    EXPECT_EQ(Cells(*pool, 1)[0], text == "before" ? "" : text);
  }
  EXPECT_EQ(Cells(*Restore("latest"), 1)[0], "c");
}

// The server that opens it recovers it, since it is not marked as closed.
TEST_F(RestoreTest, RestoredPoolNeedsRecoveryAndHasAJournalOfItsOwn) {
  Open();
  ASSERT_TRUE(BackUp().ok());
  Put(0, 3, "text");
  Finish();
  auto pool = Restore("new");
  ASSERT_TRUE(pool);
  auto formatted = server::FormattedPool::Take(std::move(pool), {}, {.shards = 0});
  ASSERT_TRUE(formatted.ok()) << formatted.status().ToString();
  EXPECT_TRUE((*formatted)->needs_recovery());
  EXPECT_FALSE((*formatted)->needs_verification());
  EXPECT_EQ((*formatted)->superblock().uuid, superblock_.uuid);
  EXPECT_EQ(
      JournaledPool::Open({.pool = Path("new"), .journal = Path("journal"), .disk_in_memory = true}).status().code(),
      Code::kUnavailable);
}

// Its primary may have acknowledged puts since that time.
TEST_F(RestoreTest, ARestoredMirrorIsNotInSync) {
  {
    auto opened = JournaledPool::Open({.pool = Path("pool"), .journal = Path("journal"), .disk_in_memory = true});
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    auto pool = server::FormattedPool::Take(*std::move(opened), {}, {.shards = 0}, true);
    ASSERT_TRUE(pool.ok()) << pool.status().ToString();
    ASSERT_TRUE((*pool)->MarkMirror(format::MirrorRole::kFilling, 7, 0).ok());
    ASSERT_TRUE((*pool)->MarkMirror(format::MirrorRole::kInSync, 7, 0).ok());
  }
  Open();
  ASSERT_TRUE(BackUp().ok());
  Finish();
  auto pool = Restore("new");
  ASSERT_TRUE(pool);
  for (const uint64_t at : format::kSuperblockOffsets) {
    const auto superblock = LoadAs<format::Superblock>(pool->bytes().subspan(at));
    EXPECT_EQ(superblock.role(), format::MirrorRole::kFilling);
    EXPECT_EQ(superblock.mirror_id, 7U);
  }
}

// Many lives, which end by a kill or a power cut. The archive has all that was ever put, without a gap.
TEST_F(RestoreTest, KillsAndPowerCutsLeaveNoGap) {
  Random random(1);
  std::array<std::array<std::string, kCells>, kShards> expected;
  Open();
  ASSERT_TRUE(BackUp().ok());
  for (int life = 0; life < 12; ++life) {
    for (int i = 0; i < 60; ++i) {
      const auto shard = static_cast<uint32_t>(random.Uniform(kShards));
      const uint64_t cell = random.Uniform(kCells);
      expected[shard][cell] = std::to_string(life) + "/" + std::to_string(i);
      Put(shard, cell, expected[shard][cell]);
      if (random.Chance(0.02)) Finish();
    }
    Kill();
    if (random.Chance(0.5)) Reboot();
    Open();
    for (uint32_t shard = 0; shard < kShards; ++shard) {
      for (uint64_t cell = 0; cell < kCells; ++cell) ASSERT_EQ(Cell(shard, cell), expected[shard][cell]) << life;
    }
  }
  Finish();
  EXPECT_EQ(Events(), "");
  EXPECT_GT(ArchiveFiles(0).size(), 4U);
  const auto pool = Restore("new");
  ASSERT_TRUE(pool);
  for (uint32_t shard = 0; shard < kShards; ++shard) EXPECT_EQ(Cells(*pool, shard), Cells(*pool_, shard));
}

// A client's view of its puts: each was sent and acknowledged at some time.
struct Sent {
  uint64_t sent_us;
  uint64_t acknowledged_us;
  uint64_t cell;
  std::string text;
};

// Base copies are made while shards put and checkpoints are made. Each of them, restored to any time since, has all
// puts that were acknowledged before, and none that was sent after.
TEST_F(RestoreTest, CopiesOfABusyPoolAreRestoredToAnyTime) {
  Open();
  std::array<std::vector<Sent>, kShards> history;
  std::array<std::atomic<uint64_t>, kShards> puts{};
  std::atomic<bool> stops = false;
  std::vector<std::thread> shards;
  for (uint32_t shard = 0; shard < kShards; ++shard) {
    shards.emplace_back([&, shard] {
      Random random(shard + 1);
      for (uint64_t i = 0; !stops; ++i, ++puts[shard]) {
        Sent sent{ServerTime::WallMicros(), 0, random.Uniform(kCells), std::to_string(i)};
        Put(shard, sent.cell, sent.text);
        sent.acknowledged_us = ServerTime::WallMicros();
        history[shard].push_back(std::move(sent));
      }
    });
  }
  const auto await_puts = [&](uint64_t more) {
    for (const auto& count : puts) {
      const uint64_t before = count;
      while (count < before + more) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  };
  std::vector<std::pair<std::string, uint64_t>> copies;  // And the time at which it was there.
  for (int i = 0; i < 4; ++i) {
    await_puts(40);
    const std::string name = "base" + std::to_string(i);
    EXPECT_TRUE(BackUp(name).ok());
    copies.emplace_back(name, ServerTime::WallMicros());
  }
  await_puts(100);
  stops = true;
  for (auto& thread : shards) thread.join();
  const uint64_t last = ServerTime::WallMicros();
  Finish();

  Random random(7);
  for (const auto& [copy, made] : copies) {
    fs::rename(Path(copy), Path("base"));
    for (int i = 0; i < 3; ++i) {
      const uint64_t until = made + random.Uniform(last - made + 1);
      const auto pool = Restore(copy + "-" + std::to_string(i), until);
      ASSERT_TRUE(pool);
      for (uint32_t shard = 0; shard < kShards; ++shard) {
        // A cell has the last put that was acknowledged before `until`, or one that was sent before `until` and was
        // acknowledged later. (Two of these exist when one ends and the next begins in that microsecond.)
        std::array<std::vector<std::string>, kCells> allowed;
        allowed.fill({""});
        for (const Sent& sent : history[shard]) {
          if (sent.acknowledged_us < until) {
            allowed[sent.cell] = {sent.text};
          } else if (sent.sent_us <= until) {
            allowed[sent.cell].push_back(sent.text);
          }
        }
        const auto cells = Cells(*pool, shard);
        for (uint64_t cell = 0; cell < kCells; ++cell) {
          EXPECT_NE(std::ranges::find(allowed[cell], cells[cell]), allowed[cell].end())
              << copy << ", shard " << shard << ", cell " << cell << ": " << cells[cell] << " in place of one of "
              << testing::PrintToString(allowed[cell]);
        }
      }
    }
    fs::remove(Path("base"));
  }
}

TEST_F(RestoreTest, PoolThatNobodyServesIsBackedUp) {
  Open();
  Put(0, 0, "text");
  Finish();
  Kill();
  ASSERT_TRUE(BackUp().ok());
  const auto base = BaseCopy::Open(Path("base"));
  ASSERT_TRUE(base.ok());
  EXPECT_EQ(base->ends()[0].from, base->ends()[0].end) << "the copy alone is the pool";
  fs::remove_all(Path("archive"));
  fs::create_directory(Path("archive"));
  EXPECT_EQ(Cells(*Restore("new"), 0)[0], "text");
}

}  // namespace
}  // namespace erda::journal
