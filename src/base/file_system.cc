#include "base/file_system.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

namespace erda {

bool IsInMemory(int fd) {
  struct statfs info {};
  return ::fstatfs(fd, &info) == 0 &&
         (info.f_type == TMPFS_MAGIC || info.f_type == RAMFS_MAGIC || info.f_type == HUGETLBFS_MAGIC);
}

// Works in pieces: a signal ends a call in the middle, and the next call must get further.
int AllocateRange(int fd, uint64_t begin, uint64_t end) {
  constexpr uint64_t kPiece = 1 << 30;
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
