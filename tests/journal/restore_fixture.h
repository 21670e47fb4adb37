// A pool with an archive, on real files, and pools that are restored of it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/server_time.h"
#include "journal/archive_folder.h"
#include "journal/base_copy.h"
#include "journal/journaled_pool_fixture.h"
#include "journal/restore.h"
#include "nvm/writer.h"
#include "server/pool/formatted_pool.h"

namespace erda::journal {

inline constexpr uint64_t kCells = 16;
inline constexpr uint64_t kCellBytes = 4096;

class RestoreTest : public JournaledPoolFixture {
 protected:
  void SetUp() override {
    JournaledPoolFixture::SetUp();
    std::filesystem::create_directory(Path("archive"));
  }

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
  // All that the disk holds goes to the archive, and the pool file has all.
  void Finish() {
    const Status status = pool_->Sync(0, pool_->size());
    ASSERT_TRUE(status.ok()) << status.ToString();
  }

  static uint64_t At(uint32_t shard, uint64_t cell) { return kPoolBytes / 2 + (shard * kCells + cell) * kCellBytes; }
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
            .journal_size = kJournalBytes,
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
    for (const std::string& path : {options.pool + ".new", options.journal})
      EXPECT_FALSE(std::filesystem::exists(path)) << path;
  }
  [[nodiscard]] std::vector<std::filesystem::path> ArchiveFiles(uint32_t shard) const {
    std::vector<std::filesystem::path> files;
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

  const TemporaryFolder memory_{"/dev/shm"};
  std::mutex mutex_;
  std::string events_;
  std::unique_ptr<JournaledPool> pool_;
};

}  // namespace erda::journal
