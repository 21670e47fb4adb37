// Has the kernel write a file to its disk piece by piece, while other threads flush the same disk.
//
// A flush waits for all that the disk was sent. A step of a checkpoint ends with a sync. If that sent the whole step at
// once, a flush of the ring would wait for it. Here that took 7 ms for 16 MiB, and a flush alone takes 0.07 ms. With
// pieces, it waits for one or two of them.
//
// Belongs to the thread that writes the file.
#pragma once

#include <fcntl.h>

#include <cstdint>
#include <string>

#include "base/unique_fd.h"

namespace erda::journal {

class Writeback {
 public:
  // A smaller piece would keep a disk waiting that takes some milliseconds for each request.
  static constexpr uint64_t kPieceBytes = 256 << 10;

  // `fd` is the file. It is opened a second time. The kernel tells an error once to each opening of a file, and syncs
  // of `fd` must get each error. If the file cannot be opened again, as without /proc, nothing is written early.
  explicit Writeback(int fd)
      : fd_(::open(("/proc/self/fd/" + std::to_string(fd)).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}

  // This many bytes were written to the file, which are in the kernel's cache. Returns when the disk has the piece
  // before this one. It has no flush, and no promise: a sync of `fd` gives that.
  void Wrote(uint64_t bytes) {
    bytes_ += bytes;
    if (!fd_ || bytes_ < kPieceBytes) return;
    bytes_ = 0;
    (void)::sync_file_range(fd_.get(), 0, 0, SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE);
  }

 private:
  const UniqueFd fd_;
  uint64_t bytes_ = 0;  // Since the last piece.
};

}  // namespace erda::journal
