#include "journal/restore.h"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/bytes.h"
#include "base/file_io.h"
#include "base/file_system.h"
#include "format/superblock.h"
#include "journal/apply.h"
#include "journal/archive_folder.h"
#include "journal/base_copy.h"
#include "journal/new_file.h"
#include "journal/ring_file.h"

namespace erda::journal {

namespace {

std::string ShardIn(uint32_t shard, const std::string& archive) {
  return "the archive of shard " + std::to_string(shard) + " in " + archive;
}

// Applies one shard's archive to the pool file.
class ShardRestore {
 public:
  ShardRestore(const ArchiveFolder& folder, const RingIdentity& identity, const BaseEnds& ends, uint64_t until_us)
      : folder_(folder), identity_(identity), ends_(ends), until_us_(until_us), at_(ends.from) {}

  Result<Restored::Shard> Run(int fd, uint64_t pool_size) {
    const auto& firsts = folder_.FirstPlaces(identity_.shard);
    // The file that has the first place begins there or before.
    auto first = std::ranges::upper_bound(firsts, at_);
    if (first != firsts.begin()) --first;
    for (; first != firsts.end() && !is_cut_; ++first) {
      auto file = folder_.OpenFile(identity_, *first);
      if (!file.ok()) return file.status();
      if (file->header().end <= at_) continue;
      if (*first > at_) return Gap(*first);
      const Status status = file->Read([&](const ArchivedPiece& piece) { return Take(piece, fd, pool_size); });
      if (!status.ok()) return InFile(*first, status);
    }
    if (at_ < ends_.end) return TooShort();
    return Restored::Shard{at_, time_us_, is_cut_};
  }

 private:
  Status Take(const ArchivedPiece& piece, int fd, uint64_t pool_size) {
    is_cut_ |= piece.time_us > until_us_;
    if (is_cut_ || piece.end() <= at_) return {};
    // A checkpoint is at the end of a piece, and the base copy begins at one.
    if (piece.from != at_) return {Code::kCorruption, "it has no piece that begins at place " + std::to_string(at_)};
    if (auto status = ApplyToFile(piece.bytes, fd, pool_size); !status.ok()) return status;
    at_ = piece.end();
    time_us_ = piece.time_us;
    return {};
  }
  // Errors of the pool file are no errors of this file.
  [[nodiscard]] Status InFile(Place first, const Status& status) const {
    const std::string path = ArchiveFolder::PathOf(folder_.path(), identity_.shard, first);
    const bool named = status.message().find(path) != std::string_view::npos;
    if (named || status.code() != Code::kCorruption) return status;
    return {status.code(), "archive file " + path + ": " + std::string(status.message())};
  }
  [[nodiscard]] Status Gap(Place next) const {
    return {Code::kCorruption, ShardIn(identity_.shard, folder_.path()) +
                                   " has a gap: it lacks the stream from place " + std::to_string(at_) + " to " +
                                   std::to_string(next)};
  }
  [[nodiscard]] Status TooShort() const {
    const std::string needs = ", and the base copy needs it up to place " + std::to_string(ends_.end);
    if (is_cut_) {
      return {Code::kInvalidArgument,
              "the time is before the end of the base copy: " + ShardIn(identity_.shard, folder_.path()) +
                  " has then place " + std::to_string(at_) + needs};
    }
    return {Code::kNotFound, ShardIn(identity_.shard, folder_.path()) + " ends at place " + std::to_string(at_) +
                                 needs +
                                 ". A file is missing, or the server has not written it yet: that takes a minute"};
  }

  const ArchiveFolder& folder_;
  const RingIdentity identity_;
  const BaseEnds ends_;
  const uint64_t until_us_;
  Place at_;
  uint64_t time_us_ = 0;
  bool is_cut_ = false;
};

// Both copies say that the pool is in use and needs recovery. No bytes of it are in the page cache of a dead server.
Result<format::Superblock> MarkInUse(int fd, const std::string& name, uint64_t size) {
  std::vector<std::byte> front(format::kShardRecordsOffset);
  if (auto status = ReadRange(fd, name, 0, front); !status.ok()) return status;
  const auto found = format::FindSuperblock(front, size);
  if (!found.ok()) return found.status();
  format::Superblock superblock = found->superblock;
  superblock.clean = 0;
  superblock.boot = format::kNoBoot;
  // The pool is of an earlier time. So it may lack puts that the mirror's primary has acknowledged since.
  if (superblock.role() == format::MirrorRole::kInSync) {
    superblock.mirror_role = static_cast<uint32_t>(format::MirrorRole::kFilling);
  }
  for (const uint64_t offset : format::kSuperblockOffsets) {
    ++superblock.generation;
    superblock.crc = format::SuperblockCrc(superblock);
    if (auto status = WriteRange(fd, name, offset, BytesOf(superblock)); !status.ok()) return status;
  }
  return superblock;
}

Status CheckTarget(const std::string& path) {
  if (::access(path.c_str(), F_OK) != 0) return {};
  return {Code::kConflict, path + " exists already and is not overwritten; remove it, or choose another name"};
}

}  // namespace

Result<Restored> RestorePool(const RestoreOptions& options) {
  for (const std::string* path : {&options.pool, &options.journal}) {
    if (auto status = CheckTarget(*path); !status.ok()) return status;
  }
  const auto base = BaseCopy::Open(options.base);
  if (!base.ok()) return base.status();
  const BaseHeader& header = base->header();
  if (options.until_us < header.ended_us) {
    return Status(Code::kInvalidArgument, "the time is before the end of the base copy, " +
                                              std::to_string(header.ended_us / 1'000'000) + " in Unix time");
  }
  const auto folder = ArchiveFolder::Open(options.archive);
  if (!folder.ok()) return folder.status();

  auto file = NewFile::Create(options.pool, options.pool + ".new");
  if (!file.ok()) return file.status();
  const int fd = (*file)->fd();
  const std::string name = "pool " + options.pool;
  if (const int error = AllocateRange(fd, 0, header.pool_size); error != 0) {
    return ErrnoStatus("cannot allocate " + std::to_string(header.pool_size) + " bytes for " + name, error);
  }
  if (auto status = base->CopyTo(fd, name); !status.ok()) return status;
  Restored restored;
  for (uint32_t shard = 0; shard < header.shards; ++shard) {
    ShardRestore of_shard(*folder, {header.uuid, header.secret, shard}, base->ends()[shard], options.until_us);
    const auto done = of_shard.Run(fd, header.pool_size);
    if (!done.ok()) return done.status();
    restored.shards.push_back(*done);
  }
  const auto superblock = MarkInUse(fd, name, header.pool_size);
  if (!superblock.ok()) return superblock.status();
  // The pool gets its name last, so it never stands there without its journal.
  const FileDiskOptions disk{.in_memory = options.disk_in_memory};
  const auto journal =
      RingFile::Create(options.journal, superblock->uuid, superblock->geometry.shards, options.journal_size, disk);
  if (!journal.ok()) return journal.status();
  if (auto status = (*file)->Keep(); !status.ok()) {
    (void)::unlink(options.journal.c_str());
    return status;
  }
  return restored;
}

}  // namespace erda::journal
