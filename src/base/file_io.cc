#include "base/file_io.h"

#include <unistd.h>

#include <cerrno>

#include "base/bytes.h"

namespace erda {

Status ReadRange(int fd, const std::string& name, uint64_t offset, std::span<std::byte> to) {
  for (uint64_t done = 0; done < to.size();) {
    const ssize_t n = ::pread(fd, to.data() + done, to.size() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus("cannot read " + name + " at offset " + std::to_string(offset + done));
    if (n == 0) return {Code::kCorruption, name + ": became shorter while it was open"};
    done += static_cast<uint64_t>(n);
  }
  return {};
}

Status WriteRange(int fd, const std::string& name, uint64_t offset, std::span<const std::byte> from) {
  for (uint64_t done = 0; done < from.size();) {
    const ssize_t n = ::pwrite(fd, from.data() + done, from.size() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      return ErrnoStatus("cannot write " + name + " at offset " + std::to_string(offset + done), n < 0 ? errno : EIO);
    }
    done += static_cast<uint64_t>(n);
  }
  return {};
}

}  // namespace erda
