#include "server/pool/pool_opening.h"

#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

namespace erda::server {

namespace {

constexpr uint64_t kJournalBytes = 1 << 30;

format::GeometryWish WishOf(const ServerOptions& options) {
  return {options.pool_size, options.shards, options.region_size, options.segment_size, options.index_entries, 0,
          options.grow_to};
}

nvm::PoolOptions FileOf(const ServerOptions& options) {
  const auto writers =
      options.pool_writes == PoolWrites::kNobody ? SharedMemory::Writers::kOwner : SharedMemory::Writers::kPeers;
  return {options.pool, options.pool_size, options.nvm_write_latency, writers, options.populate};
}

}  // namespace

// The pool comes first: it has the numbers that the journal needs. If a power cut comes between the two, the pool says
// that its journal is missing.
Status MakeJournaledPool(const nvm::PoolOptions& options, const format::GeometryWish& wish, const std::string& journal,
                         uint64_t size, journal::FileDiskOptions disk) {
  const auto pool = FormattedPool::Make(options, wish, true);
  if (!pool.ok()) return pool.status();
  Status status =
      journal::JournaledPool::CreateJournal(journal, (*pool)->superblock(), size != 0 ? size : kJournalBytes, disk);
  if (!status.ok()) (*pool)->pool().RemoveIfCreated();
  return status;
}

Result<OpenedPool> OpenPoolOf(const ServerOptions& options, std::function<void(const Status&)> failed,
                              std::function<void(const std::string&)> archive_event) {
  if (options.journal.empty() && !options.archive.empty()) {
    return Status(Code::kInvalidArgument,
                  "archive " + options.archive + " needs a journal: only a pool with a journal has an archive");
  }
  if (options.journal.empty() && !options.journal_front.empty()) {
    return Status(Code::kInvalidArgument,
                  "front " + options.journal_front + " needs a journal, and the pool has no journal");
  }
  if (options.journal.empty()) {
    auto pool = FormattedPool::Open(FileOf(options), WishOf(options));
    if (!pool.ok()) return pool.status();
    return OpenedPool{*std::move(pool)};
  }
  if (options.pool == "dram:") {
    return Status(Code::kInvalidArgument, "pool dram: cannot have a journal: it is gone when the server stops");
  }
  std::error_code none;
  // It comes before the pool is made, so that a wrong name leaves no pool.
  if (!options.archive.empty() && !std::filesystem::is_directory(options.archive, none)) {
    return Status(Code::kInvalidArgument,
                  "cannot open the archive's folder " + options.archive + ": there is no such folder; make it first");
  }
  if (options.pool_size != 0 && !std::filesystem::exists(options.pool, none)) {
    nvm::PoolOptions file = FileOf(options);
    file.populate = false;  // The server works in memory.
    const Status made = MakeJournaledPool(file, WishOf(options), options.journal, options.journal_size,
                                          {.in_memory = options.journal_on_tmpfs});
    if (!made.ok()) return made;
  }
  auto opened = journal::JournaledPool::Open({.pool = options.pool,
                                              .journal = options.journal,
                                              .memory = options.journal_memory,
                                              .front = options.journal_front,
                                              .disk_in_memory = options.journal_on_tmpfs,
                                              .interval = options.journal_interval,
                                              .archive = options.archive,
                                              .archive_event = std::move(archive_event),
                                              .failed = std::move(failed)});
  if (!opened.ok()) return opened.status();
  journal::JournaledPool* const journaled = opened->get();
  auto pool = FormattedPool::Take(*std::move(opened), FileOf(options), WishOf(options));
  if (!pool.ok()) return pool.status();
  return OpenedPool{*std::move(pool), journaled};
}

}  // namespace erda::server
