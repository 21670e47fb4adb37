#include "base/file_system.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

namespace erda {

namespace {

// Returns true if the file system certainly lacks room for this number of bytes of the file. A call that allocates
// finds that only after it has taken all the room that others had.
bool LacksRoom(int fd, uint64_t bytes) {
  constexpr uint64_t kBlock = 512;  // Of st_blocks.
  struct stat file {};
  struct statvfs info {};
  if (::fstat(fd, &file) != 0 || ::fstatvfs(fd, &info) != 0) return false;
  const uint64_t allocated = static_cast<uint64_t>(file.st_blocks) * kBlock;
  const bool has_limit = info.f_blocks != 0;
  return has_limit && bytes > allocated && (bytes - allocated) / info.f_frsize > info.f_bfree;
}

}  // namespace

bool IsInMemory(int fd) {
  struct statfs info {};
  return ::fstatfs(fd, &info) == 0 &&
         (info.f_type == TMPFS_MAGIC || info.f_type == RAMFS_MAGIC || info.f_type == HUGETLBFS_MAGIC);
}

// Works in pieces: a signal ends a call in the middle, and the next call must get further.
int AllocateRange(int fd, uint64_t begin, uint64_t end) {
  constexpr uint64_t kPiece = 1 << 30;
  if (LacksRoom(fd, end - begin)) return ENOSPC;
  for (uint64_t at = begin; at < end;) {
    const uint64_t size = std::min(kPiece, end - at);
    const int error = ::posix_fallocate(fd, static_cast<off_t>(at), static_cast<off_t>(size));
    if (error == EINTR) continue;
    if (error != 0) return error;
    at += size;
  }
  return 0;
}

std::string FolderOf(const std::string& path) { return std::filesystem::absolute(path).parent_path(); }

}  // namespace erda
