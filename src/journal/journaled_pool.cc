#include "journal/journaled_pool.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/bytes.h"
#include "base/file_io.h"
#include "base/file_system.h"
#include "base/server_time.h"
#include "nvm/pool_file.h"

namespace erda::journal {

namespace {

constexpr uint64_t kSuperblocksBytes = format::kShardRecordsOffset;
constexpr Nanoseconds kLazy = std::chrono::milliseconds(100);
// A shard that waits for room looks again after this time in any case.
constexpr Nanoseconds kRoomLook = std::chrono::milliseconds(10);

Result<format::FoundSuperblock> ReadSuperblock(const std::string& path, int fd, uint64_t size) {
  std::vector<std::byte> front(std::min(size, kSuperblocksBytes));
  if (auto status = ReadRange(fd, "pool " + path, 0, front); !status.ok()) return status;
  const auto found = format::FindSuperblock(front, size);
  if (!found.ok()) return nvm::InPath(path, found.status().code(), std::string(found.status().message()));
  if (found->superblock.journaled == 0) {
    return nvm::InPath(path, Code::kInvalidArgument,
                       "was made without a journal; to give it one, dump it, and load it into a new pool");
  }
  return *found;
}

}  // namespace

// --- Making and opening

Status JournaledPool::CreateJournal(const std::string& path, const format::Superblock& superblock, uint64_t size,
                                    FileDiskOptions options) {
  return RingFile::Create(path, superblock.uuid, superblock.geometry.shards, size, options).status();
}

JournaledPool::JournaledPool(JournalOptions options, UniqueFd file, const format::FoundSuperblock& found,
                             RingFile rings)
    : options_(std::move(options)),
      file_(std::move(file), options_.pool),
      superblock_(found.superblock),
      rings_(std::move(rings)),
      health_([this] { image_->MarkBroken(); },
              [this](const Status& status) {
                TellShards();
                options_.failed(status);
              }),
      clean_(found.superblock.clean == 1 && !found.other_damaged) {}

Result<std::unique_ptr<JournaledPool>> JournaledPool::Open(JournalOptions options) {
  bool created = false;
  auto file = nvm::OpenLocked(options.pool, 0, &created);
  if (!file.ok()) return file.status();
  const auto size = nvm::ExistingSize(options.pool, file->get());
  if (!size.ok()) return size.status();
  if (!options.disk_in_memory && IsInMemory(file->get())) {
    return nvm::InPath(options.pool, Code::kInvalidArgument,
                       "is in memory, and a pool with a journal must be on a disk; choose a name there");
  }
  const auto found = ReadSuperblock(options.pool, file->get(), *size);
  if (!found.ok()) return found.status();
  auto rings = RingFile::Open(options.journal, found->superblock.uuid, found->superblock.geometry.shards,
                              {.in_memory = options.disk_in_memory});
  if (!rings.ok()) return rings.status();

  if (!options.front.empty() && options.interval.count() != 0) {
    return Status(Code::kInvalidArgument,
                  "front " + options.front + ": has no purpose if answers do not wait for the journal");
  }

  std::unique_ptr<JournaledPool> pool(
      new JournaledPool(std::move(options), *std::move(file), *found, *std::move(rings)));
  if (!pool->options_.front.empty()) {
    auto front = Front::Open(pool->options_.front, found->superblock.geometry.shards, pool->options_.disk_in_memory);
    if (!front.ok()) return front.status();
    pool->front_ = *std::move(front);
  }
  if (auto status = pool->OpenArchive(); !status.ok()) return status;
  auto started = Starting({pool->options_, pool->superblock_, pool->clean_, pool->file_, pool->rings_,
                           pool->front_.get(), pool->archiver_.get()})
                     .Run();
  if (!started.ok()) return started.status();
  pool->image_ = std::move(started->image);
  pool->start_ = started->how;
  Status status = pool->MakeShards(std::move(started->rings));
  if (status.ok()) status = pool->StartThreads();
  if (!status.ok()) return status;
  return pool;
}

Status JournaledPool::OpenArchive() {
  if (options_.archive.empty()) return {};
  auto opened = Archiver::Open({.folder = options_.archive,
                                .changed =
                                    [this] {
                                      checkpointer_->Ask();
                                      TellShards();
                                    },
                                .event = options_.archive_event},
                               rings_.identities());
  if (!opened.ok()) return opened.status();
  archiver_ = *std::move(opened);
  return {};
}

// --- The shards and the threads

Status JournaledPool::MakeShards(std::vector<Ring> rings) {
  bytes_ = image_->pool().view().bytes;
  durability_ = nvm::Durability::kPowerSafe;
  const bool always = options_.interval.count() == 0;
  std::vector<Checkpointer::Source> sources;
  for (uint32_t number = 0; number < rings.size(); ++number) {
    auto stream = Stream::Open(image_->StreamMemory(number), superblock_.uuid, number);
    if (!stream.ok()) return stream.status();
    auto& shard = *shards_.emplace_back(std::make_unique<Shard>());
    shard.stream = std::make_unique<Stream>(*std::move(stream));
    const uint64_t epoch = rings[number].epoch();
    ArchiveMarks* const marks = archiver_ ? &archiver_->marks(number) : nullptr;
    const RingWriter::Hooks hooks{.micros =
                                      [marks] {
                                        const uint64_t micros = ServerTime::WallMicros();
                                        if (marks != nullptr) marks->NoteTime(micros);
                                        return micros;
                                      },
                                  .held =
                                      [this, number, marks] {
                                        if (marks != nullptr) marks->NoteHeld(shards_[number]->writer->held().load());
                                        Tell(number);
                                      },
                                  .full = [this] { AskCheckpoint(); }};
    shard.writer = std::make_unique<RingWriter>(*shard.stream, std::move(rings[number]),
                                                always ? kLazy : options_.interval, health_, hooks);
    RingWriter* const writer = shard.writer.get();
    if (front_) {
      shard.front = std::make_unique<ShardFront>(front_->memory(), front_->part(number), *shard.stream, writer->held(),
                                                 health_, [writer] { writer->Ask(); });
    }
    const auto await_room = [this, writer] {
      writer->Ask();
      AskCheckpoint();
      writer->AwaitNews(kRoomLook);
    };
    shard.pool =
        std::make_unique<CapturedPool>(image_->pool(), *shard.stream,
                                       CapturedPool::Medium{.held = always ? &writer->held() : nullptr,
                                                            .health = &health_,
                                                            .await_room = await_room,
                                                            .await_held = [writer] { return writer->AwaitHeld(); },
                                                            .ask = [writer](uint64_t waiters) { writer->Ask(waiters); },
                                                            .front = shard.front.get()});
    sources.push_back({shard.stream.get(), writer, archiver_ ? &archiver_->archived(number) : nullptr});
    if (!archiver_) continue;
    const auto is_low = [stream = shard.stream.get(), writer] {
      const nvm::JournalCounts counts = writer->counts();
      return stream->room() < stream->capacity() / 8 || counts.ring_used_bytes > counts.ring_bytes / 8 * 7;
    };
    archiver_->SetSource(number, {shard.stream.get(), epoch, is_low});
  }
  checkpointer_ = std::make_unique<Checkpointer>(file_, size(), std::move(sources), health_, [this] { TellShards(); });
  return {};
}

Status JournaledPool::StartThreads() {
  for (const auto& shard : shards_) {
    if (auto status = shard->writer->Start(); !status.ok()) return status;
  }
  if (auto status = checkpointer_->Start(); !status.ok()) return status;
  return archiver_ ? archiver_->Start() : Status();
}

JournaledPool::~JournaledPool() {
  // In this order: the archiver asks the checkpointer, and a checkpoint needs the writers.
  if (archiver_) archiver_->Stop();
  if (checkpointer_) checkpointer_->Stop();
  for (const auto& shard : shards_) {
    if (shard->writer) shard->writer->Stop();
  }
  // After a failure no later process may go on with the image.
  if (image_ && (clean_ || !health_.ok())) (void)image_->Remove();
  if (front_ && clean_) front_->Clear();
}

// A checkpoint goes no further than the archive.
void JournaledPool::AskCheckpoint() {
  if (archiver_) archiver_->Ask();
  checkpointer_->Ask();
}

void JournaledPool::Tell(uint32_t number) {
  Shard& shard = *shards_[number];
  const std::lock_guard lock(shard.mutex);
  if (shard.tell) shard.tell(CountsOf(number));
}

void JournaledPool::TellShards() {
  for (uint32_t number = 0; number < shards_.size(); ++number) {
    shards_[number]->writer->Tell();
    Tell(number);
  }
}

void JournaledPool::OnHeld(uint32_t shard, TellHeld tell) {
  {
    const std::lock_guard lock(shards_[shard]->mutex);
    shards_[shard]->tell = std::move(tell);
  }
  Tell(shard);
}

nvm::JournalCounts JournaledPool::CountsOf(uint32_t number) const {
  nvm::JournalCounts counts = shards_[number]->writer->counts();
  if (const ShardFront* const front = shards_[number]->front.get(); front != nullptr) {
    counts.front_bytes = front->bytes();
    counts.front_used_bytes = front->end() - std::min(front->end(), counts.held_bytes);
    counts.front_full_times = front->full_times();
    counts.held_bytes = std::max(counts.held_bytes, front->end());
  }
  if (number == 0) {
    counts.checkpoints = checkpointer_->made();
    counts.checkpoint_at_ms = checkpointer_->made_at_ms();
    counts.error_number = health_.error_number();
  }
  if (archiver_) {
    const ArchiveCounts archive = archiver_->counts(number);
    counts.archive_bytes_written = archive.bytes_written;
    counts.archive_waiting_bytes = archive.waiting_bytes;
    counts.archive_gaps = archive.gaps;
    counts.archive_failing = archive.failing;
  }
  return counts;
}

// --- The pool

MemoryView JournaledPool::view() const { return image_->pool().view(); }

Status JournaledPool::Widen(uint64_t /*kept*/, uint64_t /*size*/) {
  return nvm::InPath(options_.pool, Code::kInvalidArgument,
                     "has a journal, and grows only while no server has it open; erda-pool resize makes it larger");
}

Status JournaledPool::AwaitHeld() {
  for (const auto& shard : shards_) {
    if (auto status = shard->writer->AwaitHeld(); !status.ok()) return status;
  }
  return {};
}

// The writer tells that more is held before it notes that for the archive.
Status JournaledPool::FinishArchive() {
  if (!archiver_) return {};
  for (uint32_t number = 0; number < shards_.size(); ++number) {
    archiver_->marks(number).NoteHeld(shards_[number]->writer->held().load(std::memory_order_acquire));
  }
  return archiver_->Finish();
}

Status JournaledPool::Sync(uint64_t offset, uint64_t size) {
  if (auto status = AwaitHeld(); !status.ok()) return status;
  if (offset == 0 && size == this->size()) {
    if (auto status = FinishArchive(); !status.ok()) return status;
    return checkpointer_->Run();
  }
  if (offset < kSuperblocksBytes) return SyncSuperblocks();
  return {};
}

// Writes one copy after the other, and the older one first. A power cut may tear the copy that is written. Then the
// other one is whole.
Status JournaledPool::SyncSuperblocks() {
  if (!health_.ok()) return health_.failure();
  const auto generation = [this](int copy) {
    return LoadAs<format::Superblock>(bytes_.subspan(format::kSuperblockOffsets[copy])).generation;
  };
  const int older = generation(0) <= generation(1) ? 0 : 1;
  for (const int copy : {older, 1 - older}) {
    const uint64_t at = format::kSuperblockOffsets[copy];
    std::array<std::byte, sizeof(format::Superblock)> there{};
    if (auto status = ReadRange(file_.fd(), "pool " + options_.pool, at, there); !status.ok()) return status;
    const auto wanted = bytes_.subspan(at, there.size());
    if (std::ranges::equal(there, wanted)) continue;
    clean_ = false;
    Status status = WriteRange(file_.fd(), "pool " + options_.pool, at, wanted);
    if (status.ok()) status = file_.Sync();
    if (!status.ok()) {
      health_.Fail(status);
      return status;
    }
  }
  clean_ = LoadAs<format::Superblock>(bytes_.subspan(format::kSuperblockOffsets[1 - older])).clean == 1;
  // The image has no purpose any more. Until the next mark, a kill loses nothing that is not in the file.
  return clean_ ? image_->Remove() : Status();
}

}  // namespace erda::journal
