// Pools with an archive over kills and power cuts, and pools that are made of it again.
#include "journal/restore.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"
#include "base/server_time.h"
#include "base/temporary_folder.h"
#include "journal/archive_folder.h"
#include "journal/base_copy.h"
#include "journal/journaled_pool.h"
#include "journal/watched_folder.h"
#include "nvm/writer.h"
#include "server/pool/formatted_pool.h"

namespace erda::journal {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kSize = 4 << 20;
constexpr uint32_t kShardCount = 2;
constexpr uint64_t kCells = 16;
constexpr uint64_t kCellBytes = 4096;
constexpr uint64_t kRingsBytes = (kShardCount * RingFile::kPartBytesMin) + 8192;

class RestoreTest : public testing::Test {
 protected:
  RestoreTest() {
    fs::create_directory(Path("archive"));
    auto made = server::FormattedPool::Make({.path = Path("pool"), .size = kSize}, {kSize, kShardCount}, true);
    EXPECT_TRUE(made.ok()) << made.status().ToString();
    superblock_ = (*made)->superblock();
    EXPECT_TRUE((*made)->MarkOpen().ok());  // As the server does before its shards write.
    made->reset();
    EXPECT_TRUE(JournaledPool::CreateJournal(Path("journal"), superblock_, kRingsBytes, {.in_memory = true}).ok());
  }
  ~RestoreTest() override {
    pool_.reset();
    Reboot();
  }

  [[nodiscard]] std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  void Open(const std::string& archive = "archive") {
    auto pool = JournaledPool::Open({.pool = Path("pool"),
                                     .journal = Path("journal"),
                                     .disk_in_memory = true,
                                     .archive = archive.empty() ? "" : Path(archive),
                                     .archive_event = [this](const std::string& line) {
                                       const std::lock_guard lock(mutex_);
                                       events_ += line + "\n";
                                     }});
    ASSERT_TRUE(pool.ok()) << pool.status().ToString();
    pool_ = *std::move(pool);
  }
  // The process is killed. Its memory stays.
  void Kill() { pool_.reset(); }
  // A power cut takes the memory.
  void Reboot() { EXPECT_TRUE(Image::Remove("/dev/shm", superblock_.uuid).ok()); }
  // All that the disk holds goes to the archive, and the pool file has all.
  void Finish() {
    const Status status = pool_->Sync(0, pool_->size());
    ASSERT_TRUE(status.ok()) << status.ToString();
  }

  static uint64_t At(uint32_t shard, uint64_t cell) { return kSize / 2 + (shard * kCells + cell) * kCellBytes; }
  // A put: its shard flushes it, and it is acknowledged.
  void Put(uint32_t shard, uint64_t cell, const std::string& text) {
    nvm::Pool& pool = pool_->OfShard(shard);
    nvm::Writer writer(pool);
    const std::string padded = text + std::string(kCellBytes - text.size(), '.');
    writer.Write(At(shard, cell), AsBytes(padded));
    writer.Persist(At(shard, cell), padded.size());
    ASSERT_TRUE(pool.AwaitHeld().ok());
  }
  // Returns the texts of all cells of a shard of a pool.
  static std::vector<std::string> Cells(const nvm::Pool& pool, uint32_t shard) {
    std::vector<std::string> cells;
    for (uint64_t cell = 0; cell < kCells; ++cell) {
      const std::string_view bytes = AsString(pool.bytes().subspan(At(shard, cell), kCellBytes));
      cells.emplace_back(bytes.substr(0, std::min(bytes.find('.'), bytes.find('\0'))));
    }
    return cells;
  }
  [[nodiscard]] std::string Cell(uint32_t shard, uint64_t cell) const { return Cells(*pool_, shard)[cell]; }

  Status BackUp(const std::string& to = "base") {
    return MakeBaseCopy(Path("pool"), Path("journal"), Path(to)).status();
  }
  [[nodiscard]] RestoreOptions Options(const std::string& to, uint64_t until_us = UINT64_MAX) const {
    return {.base = Path("base"),
            .archive = Path("archive"),
            .pool = Path(to),
            .journal = Path(to + ".journal"),
            .journal_size = kRingsBytes,
            .until_us = until_us,
            .disk_in_memory = true};
  }
  // Restores, and opens the pool in another folder of memory. Returns null after an error.
  std::unique_ptr<JournaledPool> Restore(const std::string& to, uint64_t until_us = UINT64_MAX) {
    const auto restored = RestorePool(Options(to, until_us));
    EXPECT_TRUE(restored.ok()) << restored.status().ToString();
    if (!restored.ok()) return nullptr;
    EXPECT_TRUE(Image::Remove(memory_.path().string(), superblock_.uuid).ok());  // Of another restored pool.
    auto pool = JournaledPool::Open({.pool = Path(to),
                                     .journal = Path(to + ".journal"),
                                     .memory = memory_.path().string(),
                                     .disk_in_memory = true});
    EXPECT_TRUE(pool.ok()) << pool.status().ToString();
    return pool.ok() ? *std::move(pool) : nullptr;
  }
  void ExpectRefused(const RestoreOptions& options, Code code, const std::string& words) {
    const Status status = RestorePool(options).status();
    EXPECT_EQ(status.code(), code) << status.ToString();
    EXPECT_NE(status.message().find(words), std::string::npos) << status.ToString();
    for (const std::string& path : {options.pool + ".new", options.journal}) EXPECT_FALSE(fs::exists(path)) << path;
  }
  [[nodiscard]] std::vector<fs::path> ArchiveFiles(uint32_t shard) const {
    std::vector<fs::path> files;
    const auto folder = ArchiveFolder::Open(Path("archive"));
    for (const Place first : folder->FirstPlaces(shard)) {
      files.emplace_back(ArchiveFolder::PathOf(Path("archive"), shard, first));
    }
    return files;
  }
  static uint64_t Now() {
    // A put before and one after have other times.
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const uint64_t now = ServerTime::WallMicros();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return now;
  }
  [[nodiscard]] std::string Events() {
    const std::lock_guard lock(mutex_);
    return events_;
  }

  const TemporaryFolder folder_;
  const TemporaryFolder memory_{"/dev/shm"};
  format::Superblock superblock_{};
  std::mutex mutex_;
  std::string events_;
  std::unique_ptr<JournaledPool> pool_;
};

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

// Many lives, which end by a kill or a power cut. The archive has all that was ever put, without a gap.
TEST_F(RestoreTest, KillsAndPowerCutsLeaveNoGap) {
  Random random(1);
  std::array<std::array<std::string, kCells>, kShardCount> expected;
  Open();
  ASSERT_TRUE(BackUp().ok());
  for (int life = 0; life < 12; ++life) {
    for (int i = 0; i < 60; ++i) {
      const auto shard = static_cast<uint32_t>(random.Uniform(kShardCount));
      const uint64_t cell = random.Uniform(kCells);
      expected[shard][cell] = std::to_string(life) + "/" + std::to_string(i);
      Put(shard, cell, expected[shard][cell]);
      if (random.Chance(0.02)) Finish();
    }
    Kill();
    if (random.Chance(0.5)) Reboot();
    Open();
    for (uint32_t shard = 0; shard < kShardCount; ++shard) {
      for (uint64_t cell = 0; cell < kCells; ++cell) ASSERT_EQ(Cell(shard, cell), expected[shard][cell]) << life;
    }
  }
  Finish();
  EXPECT_EQ(Events(), "");
  EXPECT_GT(ArchiveFiles(0).size(), 4U);
  const auto pool = Restore("new");
  ASSERT_TRUE(pool);
  for (uint32_t shard = 0; shard < kShardCount; ++shard) EXPECT_EQ(Cells(*pool, shard), Cells(*pool_, shard));
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
  std::array<std::vector<Sent>, kShardCount> history;
  std::array<std::atomic<uint64_t>, kShardCount> puts{};
  std::atomic<bool> stops = false;
  std::vector<std::thread> shards;
  for (uint32_t shard = 0; shard < kShardCount; ++shard) {
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
      for (uint32_t shard = 0; shard < kShardCount; ++shard) {
        std::array<std::string, kCells> sure;   // Acknowledged before.
        std::array<std::string, kCells> maybe;  // Under way at that time: there is at most one.
        std::array<std::string, kCells> next;   // For the message: the first one that was sent after it.
        for (const Sent& sent : history[shard]) {
          if (sent.acknowledged_us < until) sure[sent.cell] = sent.text;
          if (sent.acknowledged_us >= until && sent.sent_us <= until) maybe[sent.cell] = sent.text;
          if (sent.sent_us > until && next[sent.cell].empty()) {
            next[sent.cell] = sent.text + " was sent " + std::to_string(sent.sent_us - until) + " us later";
          }
        }
        const auto cells = Cells(*pool, shard);
        for (uint64_t cell = 0; cell < kCells; ++cell) {
          const bool right = cells[cell] == sure[cell] || (!maybe[cell].empty() && cells[cell] == maybe[cell]);
          EXPECT_TRUE(right) << copy << ", shard " << shard << ", cell " << cell << ": " << cells[cell]
                             << " in place of " << sure[cell] << "; " << next[cell];
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

TEST_F(RestoreTest, MissingForeignAndDamagedFilesAreNamed) {
  Open();
  ASSERT_TRUE(BackUp().ok());
  for (const char* text : {"a", "b", "c"}) {
    Put(0, 0, text);
    Finish();
  }
  const auto files = ArchiveFiles(0);
  ASSERT_GE(files.size(), 3U);
  const auto without = [&](const fs::path& file, Code code, const std::string& words) {
    fs::rename(file, Path("aside"));
    ExpectRefused(Options("new"), code, words);
    fs::rename(Path("aside"), file);
  };
  without(files[1], Code::kCorruption, "the archive of shard 0 in " + Path("archive") + " has a gap");
  without(files[0], Code::kCorruption, "has a gap: it lacks the stream from place 0");
  const uint64_t size = fs::file_size(files[1]);
  fs::copy_file(files[1], Path("whole"));
  fs::resize_file(files[1], size - 1);
  ExpectRefused(Options("new"), Code::kCorruption, files[1].string());
  fs::copy_file(Path("whole"), files[1], fs::copy_options::overwrite_existing);
  {
    std::fstream file(files[1], std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(size - 3));
    file.put('\x55');
    file.put('\x55');
  }
  ExpectRefused(Options("new"), Code::kCorruption, files[1].string());
  fs::copy_file(Path("whole"), files[1], fs::copy_options::overwrite_existing);
  RestoreOptions nowhere = Options("new");
  nowhere.archive = Path("no");
  ExpectRefused(nowhere, Code::kInvalidArgument, Path("no"));
  EXPECT_EQ(Cells(*Restore("new"), 0)[0], "c");
}

TEST_F(RestoreTest, ArchiveOfAnotherPoolIsRefused) {
  Open();
  Put(0, 0, "text");
  ASSERT_TRUE(BackUp().ok());
  Finish();
  Kill();
  // The restored pool has the same number, and another journal.
  fs::create_directory(Path("other"));
  ASSERT_TRUE(RestorePool(Options("new")).ok());
  auto other = JournaledPool::Open({.pool = Path("new"),
                                    .journal = Path("new.journal"),
                                    .memory = memory_.path().string(),
                                    .disk_in_memory = true,
                                    .archive = Path("archive")});
  EXPECT_EQ(other.status().code(), Code::kInvalidArgument) << other.status().ToString();
  EXPECT_NE(other.status().message().find("another journal of the pool"), std::string::npos);
  other = JournaledPool::Open({.pool = Path("new"),
                               .journal = Path("new.journal"),
                               .memory = memory_.path().string(),
                               .disk_in_memory = true,
                               .archive = Path("other")});
  ASSERT_TRUE(other.ok()) << other.status().ToString();
  nvm::Writer writer((*other)->OfShard(0));
  writer.Write(At(0, 0), AsBytes("x"));
  writer.Persist(At(0, 0), 1);
  ASSERT_TRUE((*other)->Sync(0, (*other)->size()).ok());
  other->reset();
  RestoreOptions mixed = Options("third");
  mixed.archive = Path("other");
  ExpectRefused(mixed, Code::kInvalidArgument, "another journal of the pool");
}

TEST_F(RestoreTest, TargetsAndTimesAreChecked) {
  Open();
  Put(0, 0, "text");
  const uint64_t early = Now();
  Put(0, 0, "later");
  ASSERT_TRUE(BackUp().ok());
  EXPECT_EQ(BackUp().code(), Code::kConflict) << "it exists";
  Finish();
  ExpectRefused(Options("new", early), Code::kInvalidArgument, "before the end of the base copy");
  std::ofstream(Path("new")) << "something";
  EXPECT_EQ(RestorePool(Options("new")).status().code(), Code::kConflict);
  std::ofstream(Path("fresh.journal")) << "something";
  EXPECT_EQ(RestorePool(Options("fresh")).status().code(), Code::kConflict);
  EXPECT_FALSE(fs::exists(Path("fresh")));
  RestoreOptions small = Options("small");
  small.journal_size = 1 << 20;
  ExpectRefused(small, Code::kInvalidArgument, "too few");
  EXPECT_FALSE(fs::exists(Path("small")));
}

TEST_F(RestoreTest, DamagedBaseCopyIsNamed) {
  Open();
  Put(0, 0, "text");
  ASSERT_TRUE(BackUp().ok());
  Finish();
  const uint64_t size = fs::file_size(Path("base"));
  const auto flip = [&](uint64_t at) {
    std::fstream file(Path("base"), std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(static_cast<std::streamoff>(at));
    const int byte = file.get();
    file.seekp(static_cast<std::streamoff>(at));
    file.put(static_cast<char>(byte ^ 1));
  };
  for (uint64_t at :
       {uint64_t{0}, uint64_t{9}, uint64_t{20}, uint64_t{50}, uint64_t{100}, uint64_t{4000}, size / 2, size - 1}) {
    flip(at);
    const Status status = RestorePool(Options("new")).status();
    EXPECT_FALSE(status.ok()) << at;
    EXPECT_NE(status.message().find(Path("base")), std::string::npos) << status.ToString();
    EXPECT_FALSE(fs::exists(Path("new")));
    flip(at);
  }
  fs::resize_file(Path("base"), size - 1);
  ExpectRefused(Options("new"), Code::kCorruption, "it was written with");
  fs::resize_file(Path("base"), 10);
  ExpectRefused(Options("new"), Code::kCorruption, "too short");
}

// The archive's disk is full until the ring is. Puts go on all the time.
TEST_F(RestoreTest, FullArchiveLeavesAGapAndStopsNoPut) {
  Open();
  Put(0, 0, "before");
  ASSERT_TRUE(BackUp().ok());
  {
    WatchedFolder watched(Path("archive"));
    watched.SetFull(true);
    for (int i = 0; i < 1500; ++i) Put(0, static_cast<uint64_t>(i) % kCells, std::to_string(i));
  }
  Put(0, 0, "after");
  Finish();
  EXPECT_NE(Events().find("the archive has failed"), std::string::npos) << Events();
  EXPECT_NE(Events().find("the archive of shard 0 has a gap"), std::string::npos) << Events();
  ExpectRefused(Options("new"), Code::kCorruption, "has a gap");
  // A new base copy ends that.
  fs::rename(Path("base"), Path("old"));
  ASSERT_TRUE(BackUp().ok());
  Put(0, 1, "more");
  Finish();
  const auto pool = Restore("new");
  ASSERT_TRUE(pool);
  EXPECT_EQ(Cells(*pool, 0), Cells(*pool_, 0));
}

// A close that cannot archive leaves all in the journal, and the next server archives it.
TEST_F(RestoreTest, FullArchiveAtTheEndLeavesNoGap) {
  Open();
  ASSERT_TRUE(BackUp().ok());
  Put(0, 0, "text");
  {
    WatchedFolder watched(Path("archive"));
    watched.SetFull(true);
    EXPECT_EQ(pool_->Sync(0, pool_->size()).code(), Code::kResourceExhausted);
    Kill();
  }
  Reboot();
  Open();
  EXPECT_EQ(Cell(0, 0), "text");
  EXPECT_EQ(Cells(*Restore("new"), 0)[0], "text");
}

// The disk of the archive is full when the server starts after a power cut: the ring's records are lost to the archive.
TEST_F(RestoreTest, FullArchiveAtAStartIsAGap) {
  Open();
  ASSERT_TRUE(BackUp().ok());
  Put(0, 0, "text");
  Kill();
  Reboot();
  {
    WatchedFolder watched(Path("archive"));
    watched.SetFull(true);
    Open();
  }
  EXPECT_EQ(Cell(0, 0), "text");
  EXPECT_NE(Events().find("the archive of shard 0 has a gap"), std::string::npos) << Events();
  Put(0, 0, "more");
  Finish();
  ExpectRefused(Options("new"), Code::kCorruption, "has a gap");
}

TEST_F(RestoreTest, ServerWithoutTheArchiveLeavesAGap) {
  Open();
  ASSERT_TRUE(BackUp().ok());
  Put(0, 0, "text");
  Finish();
  Kill();
  Open("");
  Put(0, 0, "unseen");
  Finish();
  Kill();
  Open();
  EXPECT_NE(Events().find("the archive of shard 0 has a gap"), std::string::npos) << Events();
  Put(0, 0, "more");
  Finish();
  ExpectRefused(Options("new"), Code::kCorruption, "has a gap");
}

TEST_F(RestoreTest, ArchiveThatEndsTooEarlyIsNamed) {
  Open();
  Put(0, 0, "text");
  ASSERT_TRUE(BackUp().ok());
  ExpectRefused(Options("new"), Code::kNotFound, "and the base copy needs it up to place");
}

}  // namespace
}  // namespace erda::journal
