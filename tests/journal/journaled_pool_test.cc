// A pool with its journal on real files: what a server finds after a stop, a kill, and a reboot.
#include "journal/journaled_pool.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"
#include "base/writes_fail.h"
#include "journal/journaled_pool_fixture.h"
#include "nvm/writer.h"
#include "server/pool/formatted_pool.h"

namespace erda::journal {
namespace {

namespace fs = std::filesystem;

class JournaledPoolTest : public JournaledPoolFixture {
 protected:
  [[nodiscard]] JournalOptions Options() const {
    return {.pool = Path("pool"), .journal = Path("journal"), .disk_in_memory = true};
  }
  [[nodiscard]] static std::unique_ptr<JournaledPool> MustOpen(const JournalOptions& options) {
    auto pool = JournaledPool::Open(options);
    EXPECT_TRUE(pool.ok()) << pool.status().ToString();
    return pool.ok() ? *std::move(pool) : nullptr;
  }
  std::string InFile(uint32_t shard, uint64_t number, size_t size) const {
    std::ifstream file(Path("pool"), std::ios::binary);
    file.seekg(static_cast<std::streamoff>(At(shard, number)));
    std::string text(size, '\0');
    file.read(text.data(), static_cast<std::streamsize>(size));
    return text;
  }
};

TEST_F(JournaledPoolTest, KilledServerLeavesItsMemory) {
  {
    const auto pool = MustOpen(Options());
    ASSERT_NE(pool, nullptr);
    EXPECT_FALSE(pool->start().had_image);
    Put(*pool, 0, 1, "held");
    ASSERT_TRUE(pool->AwaitHeld().ok());
    Put(*pool, 1, 2, "fenced");
  }
  const auto pool = MustOpen(Options());
  ASSERT_NE(pool, nullptr);
  EXPECT_TRUE(pool->start().had_image);
  EXPECT_EQ(Get(*pool, 0, 1, 4), "held");
  EXPECT_EQ(Get(*pool, 1, 2, 6), "fenced");
  // All that was only in memory at the kill gets held now.
  ASSERT_TRUE(pool->AwaitHeld().ok());
}

TEST_F(JournaledPoolTest, RebootFindsWhatWasHeld) {
  for (int boot = 1; boot <= 5; ++boot) {
    {
      const auto pool = MustOpen(Options());
      ASSERT_NE(pool, nullptr);
      for (int before = 1; before < boot; ++before) {
        EXPECT_EQ(Get(*pool, before % kShards, before, 5), "boot" + std::to_string(before));
      }
      EXPECT_EQ(pool->start().bytes_applied > 0, boot > 1);
      Put(*pool, boot % kShards, boot, "boot" + std::to_string(boot));
      ASSERT_TRUE(pool->AwaitHeld().ok());
      // J6: the file has nothing before a checkpoint.
      EXPECT_EQ(InFile(boot % kShards, boot, 5), std::string(5, '\0'));
    }
    Reboot();
  }
}

TEST_F(JournaledPoolTest, SyncBringsTheFileUpToTheStreams) {
  const auto pool = MustOpen(Options());
  ASSERT_NE(pool, nullptr);
  Put(*pool, 0, 1, "zero");
  Put(*pool, 1, 1, "one");
  ASSERT_TRUE(pool->nvm::Pool::Sync().ok());
  EXPECT_EQ(InFile(0, 1, 4), "zero");
  EXPECT_EQ(InFile(1, 1, 3), "one");
}

TEST_F(JournaledPoolTest, CleanCloseLeavesThePoolInTheFile) {
  {
    auto opened = MustOpen(Options());
    ASSERT_NE(opened, nullptr);
    JournaledPool* const journaled = opened.get();
    auto pool = server::FormattedPool::Take(std::move(opened), {}, {.shards = 0});
    ASSERT_TRUE(pool.ok()) << pool.status().ToString();
    EXPECT_TRUE((*pool)->needs_recovery());
    ASSERT_TRUE((*pool)->MarkOpen().ok());
    Put(*journaled, 0, 1, "closed");
    ASSERT_TRUE((*pool)->MarkClosed().ok());
    EXPECT_EQ(Image::Open({superblock_.uuid, kPoolBytes, kShards, 0}).status().code(), Code::kNotFound)
        << "a server that was stopped leaves no memory";
  }
  EXPECT_EQ(InFile(0, 1, 6), "closed");
  const auto pool = MustOpen(Options());
  ASSERT_NE(pool, nullptr);
  EXPECT_FALSE(pool->start().had_image);
  EXPECT_EQ(pool->start().bytes_applied, 0U);
  EXPECT_EQ(Get(*pool, 0, 1, 6), "closed");
}

// A superblock that says "in use" must be on the disk before the first change: the file lacks what comes then.
TEST_F(JournaledPoolTest, MarksAreInTheFileAtOnce) {
  auto opened = MustOpen(Options());
  auto pool = server::FormattedPool::Take(std::move(opened), {}, {.shards = 0});
  ASSERT_TRUE(pool.ok());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE((*pool)->MarkOpen().ok());
    EXPECT_EQ(server::FormattedPool::Open({.path = Path("pool")}, {.shards = 0}, true).status().code(),
              Code::kUnavailable)
        << "the file is locked";
    fs::copy_file(Path("pool"), Path("copy"), fs::copy_options::overwrite_existing);
    const auto copy = server::FormattedPool::Open({.path = Path("copy")}, {.shards = 0}, true);
    EXPECT_EQ(copy.status().code(), Code::kConflict) << copy.status().ToString();
    ASSERT_TRUE((*pool)->MarkClosed().ok());
    fs::copy_file(Path("pool"), Path("copy"), fs::copy_options::overwrite_existing);
    EXPECT_TRUE(server::FormattedPool::Open({.path = Path("copy")}, {.shards = 0}, true).ok());
  }
}

// A clean mark takes the memory away. A role of a clean pool that was opened must not be such a mark.
TEST_F(JournaledPoolTest, RolesAmongMirrorsAreInTheFileAndLeaveTheMemory) {
  MarkClean();
  {
    auto opened = MustOpen(Options());
    ASSERT_NE(opened, nullptr);
    JournaledPool* const journaled = opened.get();
    auto pool = server::FormattedPool::Take(std::move(opened), {}, {.shards = 0}, true);
    ASSERT_TRUE(pool.ok()) << pool.status().ToString();
    EXPECT_FALSE((*pool)->needs_recovery());
    ASSERT_TRUE((*pool)->MarkMirror(format::MirrorRole::kFilling, 7, 0).ok());
    ASSERT_TRUE((*pool)->MarkMirror(format::MirrorRole::kInSync, 7, 0).ok());
    Put(*journaled, 1, 2, "fenced");
  }
  {
    auto opened = MustOpen(Options());
    ASSERT_NE(opened, nullptr);
    EXPECT_TRUE(opened->start().had_image);
    EXPECT_EQ(Get(*opened, 1, 2, 6), "fenced");
    auto pool = server::FormattedPool::Take(std::move(opened), {}, {.shards = 0}, true);
    ASSERT_TRUE(pool.ok()) << pool.status().ToString();
    EXPECT_TRUE((*pool)->superblock().is_mirror());
    ASSERT_TRUE((*pool)->MarkOpen().ok());
    ASSERT_TRUE((*pool)->MarkClosed().ok());
  }
  // A program that needs no journal promotes the closed mirror. Then a server with both files opens it.
  {
    auto pool = server::FormattedPool::Open({.path = Path("pool")}, {.shards = 0}, true);
    ASSERT_TRUE(pool.ok()) << pool.status().ToString();
    ASSERT_TRUE((*pool)->Promote(false).ok());
  }
  auto opened = MustOpen(Options());
  ASSERT_NE(opened, nullptr);
  EXPECT_EQ(Get(*opened, 1, 2, 6), "fenced");
  auto pool = server::FormattedPool::Take(std::move(opened), {}, {.shards = 0});
  ASSERT_TRUE(pool.ok()) << pool.status().ToString();
  EXPECT_TRUE((*pool)->needs_recovery());
  EXPECT_EQ((*pool)->superblock().format_version, format::kMirroredVersion);
  EXPECT_EQ((*pool)->superblock().journaled, 1U);
  EXPECT_EQ((*pool)->superblock().epoch, 1U);
}

TEST_F(JournaledPoolTest, StreamsMayBeLongerThanAllMemory) {
  Random random(1);
  std::vector<std::string> last(1000, std::string(64, '\0'));
  {
    const auto pool = MustOpen(Options());
    ASSERT_NE(pool, nullptr);
    for (int i = 0; i < 200'000; ++i) {  // 19 MiB of entries
      const uint64_t number = random.Uniform(1000);
      last[number] = std::to_string(i);
      last[number].resize(64, 'x');
      Put(*pool, 0, number, last[number]);
    }
    ASSERT_TRUE(pool->AwaitHeld().ok());
  }
  Reboot();
  const auto pool = MustOpen(Options());
  ASSERT_NE(pool, nullptr);
  for (uint64_t number = 0; number < 1000; ++number) ASSERT_EQ(Get(*pool, 0, number, 64), last[number]) << number;
}

// --- What does not fit together

// Its server was killed after the mark, or never served. The pool may have grown since.
TEST_F(JournaledPoolTest, MemoryOfAPoolThatWasClosedIsRemoved) {
  {
    const auto pool = MustOpen(Options());
    Put(*pool, 0, 1, "early");
    ASSERT_TRUE(pool->nvm::Pool::Sync().ok());
  }
  ASSERT_TRUE(Image::Open({superblock_.uuid, kPoolBytes, kShards, 0}).ok());
  MarkClean();
  const auto pool = MustOpen(Options());
  ASSERT_NE(pool, nullptr);
  EXPECT_FALSE(pool->start().had_image);
  EXPECT_EQ(Get(*pool, 0, 1, 5), "early");
}

// A copy of the two files, taken after a kill, finds the image of the original. It may have gone on with it.
TEST_F(JournaledPoolTest, MemoryThatWasUsedForACopyIsRefused) {
  {
    const auto pool = MustOpen(Options());
    Put(*pool, 0, 1, "early");
    ASSERT_TRUE(pool->AwaitHeld().ok());
  }
  fs::copy_file(Path("pool"), Path("copy"));
  fs::copy_file(Path("journal"), Path("copied journal"));
  {
    JournalOptions copy = Options();
    copy.pool = Path("copy");
    copy.journal = Path("copied journal");
    const auto pool = MustOpen(copy);
    ASSERT_NE(pool, nullptr);
    ASSERT_TRUE(pool->nvm::Pool::Sync().ok());
  }
  EXPECT_EQ(JournaledPool::Open(Options()).status().code(), Code::kInvalidArgument)
      << "the original's file lacks what the image has no more";
  Reboot();
  const auto pool = MustOpen(Options());
  ASSERT_NE(pool, nullptr);
  EXPECT_EQ(Get(*pool, 0, 1, 5), "early");
}

TEST_F(JournaledPoolTest, MemoryOfAnEarlierLifeIsNotUsed) {
  {
    const auto pool = MustOpen(Options());
    Put(*pool, 0, 1, "early");
    ASSERT_TRUE(pool->AwaitHeld().ok());
  }
  const fs::path aside = fs::path("/dev/shm") / ("erda-test-" + std::to_string(::getpid()));
  fs::create_directory(aside);
  {
    JournalOptions elsewhere = Options();
    elsewhere.memory = aside.string();
    const auto pool = MustOpen(elsewhere);
    ASSERT_NE(pool, nullptr);
    EXPECT_FALSE(pool->start().had_image);
    EXPECT_EQ(Get(*pool, 0, 1, 5), "early");
    Put(*pool, 0, 1, "later");
    ASSERT_TRUE(pool->AwaitHeld().ok());
  }
  fs::remove_all(aside);
  const auto pool = MustOpen(Options());
  ASSERT_NE(pool, nullptr);
  EXPECT_FALSE(pool->start().had_image) << "the first folder has memory of before";
  EXPECT_EQ(Get(*pool, 0, 1, 5), "later");
}

TEST_F(JournaledPoolTest, MemoryOfALaterStateIsRefused) {
  fs::copy_file(Path("journal"), Path("old journal"));
  fs::copy_file(Path("pool"), Path("old pool"));
  {
    const auto pool = MustOpen(Options());
    Put(*pool, 0, 1, "later");
    ASSERT_TRUE(pool->nvm::Pool::Sync().ok());
  }
  fs::rename(Path("old journal"), Path("journal"));
  fs::rename(Path("old pool"), Path("pool"));
  const auto refused = JournaledPool::Open(Options());
  EXPECT_EQ(refused.status().code(), Code::kInvalidArgument);
  EXPECT_NE(refused.status().message().find("another journal"), std::string_view::npos) << refused.status().ToString();
  Reboot();
  EXPECT_TRUE(JournaledPool::Open(Options()).ok());
}

TEST_F(JournaledPoolTest, PoolAndJournalMustFit) {
  // Without its journal.
  const auto plain = server::FormattedPool::Open({.path = Path("pool")}, {.shards = 0});
  EXPECT_EQ(plain.status().code(), Code::kInvalidArgument);
  EXPECT_NE(plain.status().message().find("it has a journal"), std::string_view::npos) << plain.status().ToString();
  // The journal of another pool.
  format::Superblock other = superblock_;
  other.uuid[0] ^= 1;
  ASSERT_TRUE(JournaledPool::CreateJournal(Path("other"), other, kJournalBytes, {.in_memory = true}).ok());
  JournalOptions options = Options();
  options.journal = Path("other");
  EXPECT_EQ(JournaledPool::Open(options).status().code(), Code::kInvalidArgument);
  options.journal = Path("none");
  EXPECT_FALSE(JournaledPool::Open(options).ok());
  // A pool without a journal.
  ASSERT_TRUE(server::FormattedPool::Make({.path = Path("plain"), .size = kPoolBytes}, {kPoolBytes, kShards}).ok());
  options.pool = Path("plain");
  options.journal = Path("journal");
  const auto without = JournaledPool::Open(options);
  EXPECT_EQ(without.status().code(), Code::kInvalidArgument);
  EXPECT_NE(without.status().message().find("without a journal"), std::string_view::npos);
}

TEST_F(JournaledPoolTest, OneServerAtATime) {
  const auto pool = MustOpen(Options());
  ASSERT_NE(pool, nullptr);
  EXPECT_EQ(JournaledPool::Open(Options()).status().code(), Code::kUnavailable);
}

TEST_F(JournaledPoolTest, CountsAreToldWithEachChange) {
  std::mutex mutex;
  nvm::JournalCounts counts;
  const auto pool = MustOpen(Options());
  ASSERT_NE(pool, nullptr);
  const auto told = [&] {
    const std::lock_guard lock(mutex);
    return counts;
  };
  pool->OnHeld(0, [&](const nvm::JournalCounts& now) {
    const std::lock_guard lock(mutex);
    counts = now;
  });
  const nvm::JournalCounts first = told();
  EXPECT_GT(first.ring_bytes, 0U) << "told at once";
  EXPECT_EQ(first.checkpoints, 0U);
  EXPECT_EQ(first.checkpoint_at_ms, 0U);
  const auto wait_until = [&](const std::function<bool(const nvm::JournalCounts&)>& done) {
    for (int i = 0; i < 60'000 && !done(told()); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return done(told());
  };
  Put(*pool, 0, 1, "held");
  ASSERT_TRUE(pool->AwaitHeld().ok());
  EXPECT_TRUE(wait_until([&](const nvm::JournalCounts& now) {
    return now.held_bytes == pool->OfShard(0).place() && now.stream_bytes == now.held_bytes &&
           now.bytes_written >= first.bytes_written + 4096 && now.flushes > first.flushes &&
           (now.ring_used_bytes == first.ring_used_bytes + 4096 || now.checkpoints > 0);
  }));
  ASSERT_TRUE(pool->nvm::Pool::Sync().ok()) << "makes a checkpoint";
  EXPECT_TRUE(wait_until([](const nvm::JournalCounts& now) {
    return now.checkpoints >= 1 && now.checkpoint_at_ms > 0 && now.ring_used_bytes == 0;
  }));
  pool->OnHeld(0, {});
}

// --- A disk that fails

TEST_F(JournaledPoolTest, FailureOfTheDiskIsForGood) {
  std::atomic<int> failures = 0;
  std::atomic<int> told = 0;
  JournalOptions options = Options();
  options.failed = [&](const Status& /*status*/) { ++failures; };
  {
    const auto pool = MustOpen(options);
    std::atomic<bool> told_failure = false;
    std::atomic<int> told_error = 0;
    pool->OnHeld(0, [&](const nvm::JournalCounts& counts) {
      if (counts.failed) told_failure = true;
      told_error = counts.error_number;
      ++told;
    });
    Put(*pool, 0, 1, "held");
    ASSERT_TRUE(pool->AwaitHeld().ok());
    const int before = told;
    {
      const WritesFail fails;
      Put(*pool, 0, 2, "lost");
      EXPECT_FALSE(pool->AwaitHeld().ok());
    }
    // A thread that waits may hear of it first.
    for (int i = 0; i < 60'000 && (failures == 0 || told == before); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(failures, 1);
    EXPECT_GT(told, before) << "the shard must hear of it";
    EXPECT_TRUE(told_failure);
    EXPECT_EQ(told_error, EFBIG);
    EXPECT_TRUE(pool->failed());
    EXPECT_TRUE(pool->OfShard(0).failed());
    EXPECT_TRUE(pool->OfShard(1).failed()) << "shards share the disk";
    EXPECT_EQ(pool->error_number(), EFBIG);
    EXPECT_EQ(pool->OfShard(1).error_number(), EFBIG);
    Put(*pool, 0, 3, "more");
    EXPECT_FALSE(pool->AwaitHeld().ok());
    EXPECT_FALSE(pool->nvm::Pool::Sync().ok());
    EXPECT_EQ(failures, 1);
    EXPECT_EQ(Get(*pool, 0, 2, 4), "lost") << "reads go on";
    pool->OnHeld(0, {});
  }
  const auto pool = MustOpen(Options());
  ASSERT_NE(pool, nullptr);
  EXPECT_FALSE(pool->start().had_image) << "the memory may have lost flushes";
  EXPECT_EQ(Get(*pool, 0, 1, 4), "held");
  EXPECT_EQ(Get(*pool, 0, 2, 4), std::string(4, '\0'));
}

// A flush that is dropped must not count as held: the stream's memory is full when the pool file fails.
TEST_F(JournaledPoolTest, DroppedFlushIsNeverHeld) {
  const auto pool = MustOpen(Options());
  nvm::Pool& shard = pool->OfShard(0);
  const WritesFail fails;
  const std::string text(64 << 10, 'x');
  nvm::Writer writer(shard);
  writer.Write(kPoolBytes / 2, AsBytes(text));
  for (int i = 0; i < 200; ++i) writer.Persist(kPoolBytes / 2, text.size());  // 12 MiB
  EXPECT_TRUE(shard.failed());
  EXPECT_LT(shard.held(), shard.place());
  EXPECT_FALSE(shard.AwaitHeld().ok());
  // A short flush would find room, and would leave a hole before it.
  writer.Persist(kPoolBytes / 2, 8);
  EXPECT_LT(shard.held(), shard.place());
  EXPECT_FALSE(pool->AwaitHeld().ok());
}

TEST_F(JournaledPoolTest, ThreadsThatWaitDuringAFailureEnd) {
  for (int round = 0; round < 20; ++round) {
    const auto pool = MustOpen(Options());
    ASSERT_NE(pool, nullptr);
    const WritesFail fails;
    std::vector<std::thread> threads;
    for (uint32_t shard = 0; shard < kShards; ++shard) {
      threads.emplace_back([&pool, shard] {
        Put(*pool, shard, 1, "lost");
        EXPECT_FALSE(pool->OfShard(shard).AwaitHeld().ok());
        EXPECT_FALSE(pool->nvm::Pool::Sync().ok());
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

TEST_F(JournaledPoolTest, FailureOfThePoolFileIsOneOfTheJournal) {
  {
    const auto pool = MustOpen(Options());
    Put(*pool, 0, 1, "held");
    ASSERT_TRUE(pool->AwaitHeld().ok());
    const WritesFail fails;
    EXPECT_FALSE(pool->nvm::Pool::Sync().ok());
    EXPECT_TRUE(pool->failed());
    EXPECT_EQ(pool->OfShard(0).error_number(), EFBIG);
  }
  const auto pool = MustOpen(Options());
  ASSERT_NE(pool, nullptr);
  EXPECT_EQ(Get(*pool, 0, 1, 4), "held");
}

}  // namespace
}  // namespace erda::journal
