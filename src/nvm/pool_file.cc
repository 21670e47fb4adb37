#include "nvm/pool_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/bytes.h"

namespace erda::nvm {

Status InPath(const std::string& path, Code code, const std::string& what) {
  return {code, "pool " + path + ": " + what};
}

// Opens and locks before it reads anything, so that no other process has the pool open.
Result<UniqueFd> OpenLocked(const std::string& path, uint64_t size, bool* created) {
  *created = false;
  int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) {
    if (size == 0) return InPath(path, Code::kInvalidArgument, "does not exist; give a size to create it");
    fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_CREAT | O_EXCL, 0600);
    *created = fd >= 0;
  }
  if (fd < 0) return ErrnoStatus("cannot open pool " + path);
  UniqueFd lock(fd);
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK)
      return InPath(path, Code::kUnavailable, "another server has it open; stop that server first");
    return ErrnoStatus("cannot lock pool " + path);
  }
  return lock;
}

// Returns the number of bytes of a file. Returns 0 for a device, whose size libpmem finds when it maps it.
Result<uint64_t> ExistingSize(const std::string& path, int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return ErrnoStatus("cannot examine pool " + path);
  if (S_ISCHR(info.st_mode)) return uint64_t{0};
  if (!S_ISREG(info.st_mode)) return InPath(path, Code::kInvalidArgument, "is neither a file nor a DAX device");
  return static_cast<uint64_t>(info.st_size);
}

}  // namespace erda::nvm
