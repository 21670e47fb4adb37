// A pool with a journal: a pool file, an image of it in memory, and a ring on a disk for each shard's stream
// (docs/journal.md). The server works in the image. Each flush of a shard goes to its ring, and is held there. A
// checkpointer brings the pool file up to that.
//
// The superblocks are in no stream: Sync writes them to the file by itself. If the file says that the pool was closed
// cleanly, the file has all of the pool, and the rings have nothing that it lacks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "erda/status.h"
#include "format/superblock.h"
#include "journal/archiver.h"
#include "journal/captured_pool.h"
#include "journal/checkpointer.h"
#include "journal/front.h"
#include "journal/health.h"
#include "journal/image.h"
#include "journal/journal_options.h"
#include "journal/ring_file.h"
#include "journal/ring_writer.h"
#include "journal/shard_front.h"
#include "journal/starting.h"
#include "journal/stream.h"
#include "journal/synced_file.h"
#include "nvm/pool.h"

namespace erda::journal {

class JournaledPool final : public nvm::Pool {
 public:
  // Makes the journal of a new pool. Returns errors as RingFile::Create does. REQUIRES: no server has the pool open.
  static Status CreateJournal(const std::string& path, const format::Superblock& superblock, uint64_t size,
                              FileDiskOptions options);
  // Opens the pool and its journal, and starts the threads. Finds the image that an earlier process left, or makes one
  // from the pool file and the rings.
  // Returns kInvalidArgument if the pool has no journal, or if journal or image belong to another pool, and
  // kCorruption if the journal is damaged. Returns kInvalidArgument, too, if the front is not that of the journal.
  // Returns kResourceExhausted if the memory has no room for the pool, and kUnavailable if another process has one of
  // the files open.
  static Result<std::unique_ptr<JournaledPool>> Open(JournalOptions options);
  ~JournaledPool() override;

  [[nodiscard]] MemoryView view() const override;
  [[nodiscard]] nvm::Durability vouched() const override {
    return options_.interval.count() == 0 ? nvm::Durability::kPowerSafe : nvm::Durability::kProcessSafe;
  }
  [[nodiscard]] bool created() const override { return false; }
  [[nodiscard]] nvm::LargePages large_pages() const override { return image_->pool().large_pages(); }
  void RemoveIfCreated() override {}
  Status Widen(uint64_t kept, uint64_t size) override;
  // All of the pool: returns ok if the pool file has all of the streams. The superblocks: writes them to the file. Any
  // other part: waits until it is held.
  Status Sync(uint64_t offset, uint64_t size) override;
  [[nodiscard]] bool holds_later() const override { return true; }
  // Waits for all streams.
  Status AwaitHeld() override;
  [[nodiscard]] bool failed() const override { return !health_.ok(); }
  [[nodiscard]] int error_number() const override { return health_.error_number(); }
  [[nodiscard]] nvm::Pool& OfShard(uint32_t shard) override { return *shards_[shard]->pool; }

  void OnHeld(uint32_t shard, TellHeld tell) override;
  [[nodiscard]] const JournalStart& start() const { return start_; }
  // Returns the failure of the disk, or ok.
  [[nodiscard]] Status failure() const { return health_.failure(); }

 private:
  struct Shard {
    std::unique_ptr<Stream> stream;
    std::unique_ptr<RingWriter> writer;
    std::unique_ptr<ShardFront> front;  // Null: the pool has none.
    std::unique_ptr<CapturedPool> pool;
    std::mutex mutex;  // Of `tell`.
    TellHeld tell;
  };

  JournaledPool(JournalOptions options, UniqueFd file, const format::FoundSuperblock& found, RingFile rings);
  Status OpenArchive();
  Status MakeShards(std::vector<Ring> rings);
  Status StartThreads();
  void AskCheckpoint();
  // Brings all that is held into the archive.
  Status FinishArchive();
  void Tell(uint32_t number);
  void TellShards();
  [[nodiscard]] nvm::JournalCounts CountsOf(uint32_t number) const;
  Status SyncSuperblocks();

  void FlushRange(const std::byte* /*begin*/, size_t /*size*/) override {}
  void Drain() override {}

  const JournalOptions options_;
  SyncedFile file_;
  const format::Superblock superblock_;  // As Open found it.
  RingFile rings_;
  std::unique_ptr<Front> front_;  // Null: the pool has none.
  std::unique_ptr<Image> image_;
  Health health_;
  std::unique_ptr<Archiver> archiver_;  // Null: no archive. The writers' threads use it.
  std::vector<std::unique_ptr<Shard>> shards_;
  std::unique_ptr<Checkpointer> checkpointer_;
  JournalStart start_;
  bool clean_;  // The file says that the pool was closed cleanly.
};

}  // namespace erda::journal
