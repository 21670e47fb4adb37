#include "journal/file_disk.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <limits>
#include <utility>

#include "base/bytes.h"
#include "base/file_io.h"
#include "base/file_system.h"
#include "journal/aligned_buffer.h"

namespace erda::journal {

namespace {

// A new file is filled in pieces of this size.
constexpr uint64_t kFillPiece = 1 << 20;

Status InJournal(const std::string& path, Code code, const std::string& what) {
  return {code, "journal " + path + ": " + what};
}

Status SyncFolderOf(const std::string& path) {
  const std::string folder = FolderOf(path);
  const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) {
    return ErrnoStatus("cannot write " + folder + ", the folder of the new journal, to its disk");
  }
  return {};
}

}  // namespace

FileDisk::FileDisk(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}

Result<std::unique_ptr<FileDisk>> FileDisk::Create(const std::string& path, uint64_t size, FileDiskOptions options) {
  assert(size > 0 && size % kBlock == 0);
  if (std::cmp_greater(size, std::numeric_limits<off_t>::max())) {
    return InJournal(path, Code::kInvalidArgument, "cannot have " + std::to_string(size) + " bytes");
  }
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd && errno == EEXIST) {
    return InJournal(path, Code::kInvalidArgument,
                     "exists already and is not overwritten; remove it, or choose another name");
  }
  if (!fd) return ErrnoStatus("cannot create journal " + path);
  std::unique_ptr<FileDisk> disk(new FileDisk(path, std::move(fd)));
  Status status = disk->Begin(options);
  if (status.ok()) status = disk->Fill(size);
  if (!status.ok()) {
    disk->Remove();
    return status;
  }
  return disk;
}

Result<std::unique_ptr<FileDisk>> FileDisk::Open(const std::string& path, FileDiskOptions options) {
  // O_NONBLOCK: a pipe is no journal, and the open must not wait for it.
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return ErrnoStatus("cannot open journal " + path);
  std::unique_ptr<FileDisk> disk(new FileDisk(path, std::move(fd)));
  if (auto status = disk->Begin(options); !status.ok()) return status;
  return disk;
}

Status FileDisk::Begin(FileDiskOptions options) {
  struct stat info {};
  if (::fstat(fd_.get(), &info) != 0) return ErrnoStatus("cannot examine journal " + path_);
  if (!S_ISREG(info.st_mode)) return InJournal(path_, Code::kInvalidArgument, "is not an ordinary file");
  if (!options.in_memory && IsInMemory(fd_.get())) {
    return InJournal(path_, Code::kInvalidArgument,
                     "is in memory, which survives no power cut; choose a name on a disk");
  }
  if (::flock(fd_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK)
      return InJournal(path_, Code::kUnavailable, "another server has it open; stop that server first");
    return ErrnoStatus("cannot lock journal " + path_);
  }
  size_ = AlignDown(static_cast<uint64_t>(info.st_size), kBlock);
  return ChooseDirect();
}

// Some file systems refuse O_DIRECT, and some refuse only the reads that follow.
Status FileDisk::ChooseDirect() {
  const AlignedBuffer buffer(kBlock);
  const int flags = ::fcntl(fd_.get(), F_GETFL);
  direct_ = flags >= 0 && ::fcntl(fd_.get(), F_SETFL, flags | O_DIRECT) == 0 &&
            ::pread(fd_.get(), buffer.bytes().data(), kBlock, 0) >= 0;
  if (direct_) return {};
  if (flags < 0 || ::fcntl(fd_.get(), F_SETFL, flags & ~O_DIRECT) != 0) {
    return ErrnoStatus("cannot use journal " + path_);
  }
  // The page cache may have pages that it failed to write for an earlier process, and calls them clean. The reader
  // must see what the disk has in their place.
  if (::fdatasync(fd_.get()) != 0) return ErrnoStatus("cannot write journal " + path_ + " to its disk");
  (void)::posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_DONTNEED);
  return {};
}

// Allocated blocks that were never written are marked so, and the first write to each of them also changes that mark.
// So a flush would have more to write. Zeroes written now make all later flushes equal.
Status FileDisk::Fill(uint64_t size) {
  if (const int error = AllocateRange(fd_.get(), 0, size); error != 0) {
    return ErrnoStatus("cannot allocate " + std::to_string(size) + " bytes for journal " + path_, error);
  }
  size_ = size;
  const AlignedBuffer zeroes(std::min(kFillPiece, size));
  for (uint64_t at = 0; at < size; at += kFillPiece) {
    if (auto status = Write(at, zeroes.bytes().first(std::min(kFillPiece, size - at))); !status.ok()) return status;
  }
  if (auto status = Flush(); !status.ok()) return status;
  return SyncFolderOf(path_);
}

Status FileDisk::Read(uint64_t offset, std::span<std::byte> to) {
  assert(offset <= size_ && to.size() <= size_ - offset);
  return ReadRange(fd_.get(), "journal " + path_, offset, to);
}

Status FileDisk::Write(uint64_t offset, std::span<const std::byte> from) {
  assert(offset <= size_ && from.size() <= size_ - offset);
  if (auto status = flush_.failure(); !status.ok()) return status;
  Status status = WriteRange(fd_.get(), "journal " + path_, offset, from);
  return status.ok() ? status : flush_.Fail(std::move(status));
}

Status FileDisk::Flush() {
  return flush_.Flush([this] {
    return ::fdatasync(fd_.get()) == 0 ? Status() : ErrnoStatus("cannot write journal " + path_ + " to its disk");
  });
}

void FileDisk::Remove() { ::unlink(path_.c_str()); }

}  // namespace erda::journal
