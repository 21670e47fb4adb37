#include "bench/journal/raw_disk.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <utility>

#include "base/bytes.h"

namespace erda::journal_bench {

Result<std::unique_ptr<RawDisk>> RawDisk::Create(const std::string& folder, uint64_t size) {
  std::string path = folder + "/raw";
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!fd) return ErrnoStatus("cannot create " + path);
  std::unique_ptr<RawDisk> disk(new RawDisk(std::move(path), std::move(fd), size));
  const int flags = ::fcntl(disk->fd_.get(), F_GETFL);
  disk->direct_ = flags >= 0 && ::fcntl(disk->fd_.get(), F_SETFL, flags | O_DIRECT) == 0;
  if (auto status = disk->Fill(); !status.ok()) return status;
  return disk;
}

Status RawDisk::Fill() {
  for (uint64_t at = 0; at < size_; at += kLargeBytes) {
    if (auto status = Write(kLargeBytes, 0, false); !status.ok()) return status;
  }
  return ::fdatasync(fd_.get()) == 0 ? Status() : ErrnoStatus("cannot flush " + path_);
}

Status RawDisk::WriteDurably() { return Write(kSmallBytes, RWF_DSYNC, false); }

Status RawDisk::Write(uint64_t bytes, int flags, bool flush) {
  if (next_ + bytes > size_) next_ = 0;
  const iovec part{buffer_.bytes().data(), bytes};
  const ssize_t written = ::pwritev2(fd_.get(), &part, 1, static_cast<off_t>(next_), flags);
  if (written < 0) return ErrnoStatus("cannot write " + path_);
  if (std::cmp_not_equal(written, bytes)) return {Code::kResourceExhausted, path_ + ": the disk is full"};
  next_ += bytes;
  return !flush || ::fdatasync(fd_.get()) == 0 ? Status() : ErrnoStatus("cannot flush " + path_);
}

}  // namespace erda::journal_bench
