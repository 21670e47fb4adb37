#include "journal/archiver.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "base/bytes.h"
#include "base/start_thread.h"
#include "journal/archive_folder.h"

namespace erda::journal {

namespace {

constexpr Nanoseconds kArchiverLook = std::chrono::milliseconds(20);
// A file has at most this much of the stream, or an eighth of a small stream's memory. So the shard has the rest of the
// memory while a file is written.
constexpr uint64_t kFileBytes = 16 << 20;
// The attempts before the archive gets a gap.
constexpr uint64_t kAttempts = 2;

Nanoseconds Now() { return SteadyClock::Instance().Now(); }

std::string ArchiveOf(uint32_t shard) { return "the archive of shard " + std::to_string(shard); }

}  // namespace

Archiver::Archiver(ArchiverOptions options, UniqueFd folder)
    : options_(std::move(options)), folder_(std::move(folder)) {}

Result<std::unique_ptr<Archiver>> Archiver::Open(ArchiverOptions options, std::vector<RingIdentity> shards) {
  UniqueFd fd(::open(options.folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return ErrnoStatus("cannot open the archive's folder " + options.folder);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return ErrnoStatus("cannot lock the archive's folder " + options.folder);
    return Status(Code::kUnavailable,
                  "another server has the archive " + options.folder + "; stop it first, or choose another folder");
  }
  // A file that an earlier process named may not be in the folder on the disk yet.
  if (auto status = SyncFolder(options.folder); !status.ok()) return status;
  const auto folder = ArchiveFolder::Open(options.folder);
  if (!folder.ok()) return folder.status();
  std::unique_ptr<Archiver> archiver(new Archiver(std::move(options), std::move(fd)));
  for (const RingIdentity& identity : shards) {
    auto& shard = *archiver->shards_.emplace_back(std::make_unique<Shard>());
    shard.identity = identity;
    if (folder->FirstPlaces(identity.shard).empty()) continue;
    const auto file = folder->OpenLast(identity);
    if (!file.ok()) return file.status();
    shard.found = shard.last = file->header().end;
    shard.marks.NoteTime(file->header().last_us);
  }
  return archiver;
}

// --- The start

void Archiver::Note(uint32_t number, const Record& record) {
  Shard& shard = *shards_[number];
  shard.is_foreign |= shard.last && record.from < *shard.last && *shard.last < record.end();
  shard.marks.NoteTime(record.time_us);
  shard.marks.NoteHeld(record.end());
}

void Archiver::Store(uint32_t number, const Record& record) {
  Shard& shard = *shards_[number];
  Note(number, record);
  if (shard.is_foreign || !shard.failure.ok() || (shard.last && record.end() <= *shard.last)) return;
  shard.failure = StoreRecord(shard, record);
}

// A file has the records of one epoch.
Status Archiver::StoreRecord(Shard& shard, const Record& record) {
  if (shard.file && (shard.file->epoch() != record.epoch || shard.file->bytes() >= kFileBytes)) {
    if (auto status = Keep(shard, *shard.file); !status.ok()) return status;
    shard.last = shard.file->end();
    shard.file.reset();
  }
  if (!shard.file) {
    auto file = ArchiveFileWriter::Begin(options_.folder, shard.identity, record.epoch, record.from);
    if (!file.ok()) return file.status();
    shard.file.emplace(*std::move(file));
  }
  const std::span<const std::byte> bytes = record.bytes;
  return shard.file->Add({&bytes, 1}, record.time_us);
}

Status Archiver::Begin(uint32_t number, Place checkpoint, Place end, bool stored) {
  Shard& shard = *shards_[number];
  if (shard.is_foreign || (shard.last && *shard.last > end)) {
    return {Code::kInvalidArgument, ArchiveOf(number) + " in " + options_.folder + " ends at place " +
                                        std::to_string(*shard.last) + ", and the journal, which ends at place " +
                                        std::to_string(end) +
                                        ", has another history. Choose an empty folder, and make a new base copy"};
  }
  if (shard.file && shard.failure.ok()) shard.failure = Keep(shard, *shard.file);
  shard.file.reset();
  if (shard.found && *shard.found < checkpoint) LeaveGap(shard, *shard.found, checkpoint);
  Place place = std::max(checkpoint, shard.last.value_or(0));
  if (stored) {
    if (!shard.failure.ok()) {
      options_.event("the archive has failed: " + std::string(shard.failure.message()));
      LeaveGap(shard, place, end);
    }
    shard.failure = {};
    place = end;
  }
  shard.marks.Begin(place);
  shard.archived.store(place, std::memory_order_relaxed);  // There are no other threads yet.
  return {};
}

// --- The service

void Archiver::SetSource(uint32_t number, Source source) {
  Shard& shard = *shards_[number];
  shard.source = std::move(source);
  shard.file_bytes = std::min(kFileBytes, shard.source.stream->capacity() / 8);
}

Status Archiver::Start() {
  return StartThread(
      "erda-archive", [this] { Loop(); }, &thread_);
}

void Archiver::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Archiver::Ask() {
  {
    const std::lock_guard lock(mutex_);
    ++asked_;
  }
  changed_.notify_all();
}

Status Archiver::Finish() {
  std::unique_lock lock(mutex_);
  const uint64_t mine = ++asked_;
  ++finishing_;
  changed_.notify_all();
  changed_.wait(lock, [&] { return done_ >= mine || stops_; });
  --finishing_;
  return done_ >= mine ? done_status_ : Status(Code::kUnavailable, "the journal is closing");
}

ArchiveCounts Archiver::counts(uint32_t number) const {
  const Shard& shard = *shards_[number];
  const Place archived = shard.archived.load(std::memory_order_relaxed);  // The marks may end before it.
  return {.bytes_written = shard.bytes_written.load(std::memory_order_relaxed),
          .waiting_bytes = std::max(shard.marks.end(), archived) - archived,
          .gaps = shard.gaps.load(std::memory_order_relaxed),
          .failing = shard.failing.load(std::memory_order_relaxed)};
}

void Archiver::Loop() {
  std::unique_lock lock(mutex_);
  while (!stops_) {
    changed_.wait_for(lock, kArchiverLook, [this] { return stops_ || asked_ > done_; });
    if (stops_) break;
    const uint64_t answers = asked_;
    const bool asked = answers != done_;
    const bool finishing = finishing_ > 0;
    lock.unlock();
    bool changed = false;
    Status status;
    for (const auto& shard : shards_) {
      changed |= Look(*shard, asked, finishing);
      const bool waits = shard->archived.load(std::memory_order_relaxed) < shard->marks.end();
      if (status.ok() && waits) status = shard->failure;
    }
    if (changed) options_.changed();
    lock.lock();
    done_ = answers;
    done_status_ = std::move(status);
    changed_.notify_all();
  }
}

bool Archiver::Look(Shard& shard, bool asked, bool finishing) {
  const Place archived = shard.archived.load(std::memory_order_relaxed);
  const Place end = shard.marks.end();
  if (end <= archived) {
    shard.first_at.reset();
    return false;
  }
  if (!shard.first_at) shard.first_at = Now();
  if (!shard.failure.ok()) {
    const bool changed = (finishing || Now() >= shard.retry_at) && Write(shard);
    if (shard.failure.ok() || shard.attempts < kAttempts || !shard.source.is_low()) return changed;
    const Place skipped = shard.marks.end();
    LeaveGap(shard, shard.archived.load(std::memory_order_relaxed), skipped);
    shard.marks.Begin(skipped);
    shard.archived.store(skipped, std::memory_order_release);  // As in WriteFile: an attempt has read the bytes.
    return true;
  }
  const bool due = asked || end - archived >= shard.file_bytes || Now() - *shard.first_at >= options_.age;
  return due && Write(shard);
}

bool Archiver::Write(Shard& shard) {
  const Place end = shard.marks.end();
  const bool had_failed = !shard.failure.ok();
  Status status;
  try {
    while (status.ok() && shard.archived.load(std::memory_order_relaxed) < end) status = WriteFile(shard);
  } catch (const std::bad_alloc&) {
    status = Status(Code::kResourceExhausted, "there is no memory for a file of the archive");
  }
  shard.failure = status;
  shard.failing.store(!status.ok(), std::memory_order_relaxed);
  shard.attempts = status.ok() ? 0 : shard.attempts + 1;
  shard.retry_at = Now() + options_.retry;
  shard.first_at.reset();
  if (!status.ok() && !had_failed) {
    options_.event("the archive has failed: " + std::string(status.message()) +
                   ". Puts go on. The server tries again as long as the journal has room");
  }
  if (status.ok() && had_failed) options_.event(ArchiveOf(shard.identity.shard) + " goes on");
  return true;
}

Status Archiver::WriteFile(Shard& shard) {
  const Stream& stream = *shard.source.stream;
  const Place from = shard.archived.load(std::memory_order_relaxed);
  auto file = ArchiveFileWriter::Begin(options_.folder, shard.identity, shard.source.epoch, from);
  if (!file.ok()) return file.status();
  for (const auto& [end, time_us] : shard.marks.After(from, shard.file_bytes)) {
    while (file->end() < end) {
      const Place at = file->end();
      const Place to = end - at <= kRecordBytesMax ? end : stream.Cut(at, kRecordBytesMax);
      if (to == at) return {Code::kCorruption, "the stream in memory is damaged at place " + std::to_string(at)};
      if (auto status = file->Add(stream.Bytes(at, to), time_us); !status.ok()) return status;
    }
  }
  const Place end = file->end();
  if (auto status = Keep(shard, *file); !status.ok()) return status;
  shard.marks.Begin(end);
  // Release: pairs with the acquire of the checkpointer, which then lets the shard overwrite the bytes.
  shard.archived.store(end, std::memory_order_release);
  return {};
}

Status Archiver::Keep(Shard& shard, ArchiveFileWriter& file) {
  if (auto status = file.Finish(); !status.ok()) return status;
  shard.bytes_written.fetch_add(file.file_bytes(), std::memory_order_relaxed);
  return {};
}

void Archiver::LeaveGap(Shard& shard, Place from, Place to) {
  shard.gaps.fetch_add(1, std::memory_order_relaxed);
  options_.event(ArchiveOf(shard.identity.shard) + " has a gap: it lacks the stream from place " +
                 std::to_string(from) + " to " + std::to_string(to) + ". Make a new base copy with erda-pool backup");
}

}  // namespace erda::journal
