#include "journal/memory_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/bytes.h"
#include "base/file_system.h"
#include "base/map_shared.h"
#include "nvm/pages.h"

namespace erda::journal {

namespace {

int FlagsOf(MemoryFile::Use use) {
  constexpr int kFlags = O_RDWR | O_CLOEXEC | O_NOFOLLOW;
  if (use == MemoryFile::Use::kExisting) return kFlags;
  return use == MemoryFile::Use::kNew ? kFlags | O_CREAT | O_EXCL : kFlags | O_CREAT;
}

Status CheckOwner(const std::string& path, const struct stat& info) {
  if (!S_ISREG(info.st_mode)) return {Code::kInvalidArgument, path + " is not an ordinary file"};
  if (info.st_uid != ::geteuid()) return {Code::kPermissionDenied, path + " belongs to another user"};
  if ((info.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    return {Code::kPermissionDenied, path + " can be read or changed by other users: chmod 600 mends that"};
  return {};
}

}  // namespace

Result<UniqueFd> MemoryFile::Open(const std::string& path, Use use) {
  UniqueFd fd(::open(path.c_str(), FlagsOf(use), 0600));
  if (!fd && errno == ENOENT && use == Use::kExisting) return Status(Code::kNotFound, "there is no file " + path);
  if (!fd) return ErrnoStatus("cannot open " + path);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return ErrnoStatus("cannot examine " + path);
  if (auto status = CheckOwner(path, info); !status.ok()) return status;
  return fd;
}

Result<UniqueFd> MemoryFile::OpenLocked(const std::string& path, Use use) {
  while (true) {
    auto fd = Open(path, use);
    if (!fd.ok()) return fd;
    if (::flock(fd->get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK)
        return Status(Code::kUnavailable, path + ": another server has it open; stop that server first");
      return ErrnoStatus("cannot lock " + path);
    }
    struct stat info {};
    if (::fstat(fd->get(), &info) != 0) return ErrnoStatus("cannot examine " + path);
    // A file that was removed between the two calls is another one than that of the next process to look for the name.
    if (info.st_nlink > 0) return fd;
  }
}

Result<MemoryFile> MemoryFile::Map(const std::string& path, UniqueFd fd, uint64_t size) {
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return ErrnoStatus("cannot examine " + path);
  if (std::cmp_not_equal(info.st_size, size)) {
    return Status(Code::kCorruption,
                  path + " has " + std::to_string(info.st_size) + " bytes, not " + std::to_string(size));
  }
  const std::span<std::byte> bytes = MapShared(fd.get(), size, true);
  if (bytes.empty()) return ErrnoStatus("cannot map " + path);
  return MemoryFile(std::move(fd), bytes);
}

Result<MemoryFile> MemoryFile::Make(const std::string& path, UniqueFd fd, uint64_t size) {
  if (::ftruncate(fd.get(), static_cast<off_t>(size)) != 0) return ErrnoStatus("cannot size " + path);
  auto file = Map(path, std::move(fd), size);
  if (!file.ok()) return file;
  // The large pages come first: to join small pages to a large one, the kernel would copy them. The allocation
  // makes the pages that are still missing, or fails.
  nvm::MakeLargePages(file->bytes());
  if (const int error = AllocateRange(file->fd(), 0, size); error != 0) {
    return ErrnoStatus("no memory for the " + std::to_string(size) + " bytes of " + path, error);
  }
  return file;
}

MemoryFile::~MemoryFile() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

Status CheckMemoryFor(const std::string& folder, uint64_t bytes) {
  struct statfs info {};
  if (::statfs(folder.c_str(), &info) != 0) return ErrnoStatus("cannot examine the folder " + folder);
  if (info.f_type != TMPFS_MAGIC) {
    return {Code::kInvalidArgument,
            folder + " is not in a tmpfs: the image of a pool must be in memory, for example in /dev/shm"};
  }
  const uint64_t room = static_cast<uint64_t>(info.f_bavail) * static_cast<uint64_t>(info.f_bsize);
  const bool limited = info.f_blocks != 0;
  if (limited && room < bytes) {
    return {Code::kResourceExhausted, folder + " has room for " + std::to_string(room) +
                                          " bytes, and the image of the pool needs " + std::to_string(bytes) +
                                          "; mount it with a larger size, or use another tmpfs"};
  }
  // Pages that do not fit would end programs, this one or others.
  if (const uint64_t available = nvm::AvailableMemory(); bytes > available) {
    return {Code::kResourceExhausted, "the image of the pool needs " + std::to_string(bytes) +
                                          " bytes of memory, and only " + std::to_string(available) + " are free"};
  }
  return {};
}

}  // namespace erda::journal
