#include "journal/apply.h"

#include <fcntl.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "base/bytes.h"
#include "journal/entry.h"

namespace erda::journal {

namespace {

constexpr std::array<std::byte, 64 << 10> kZeroBytes{};  // A larger range is zeroed without a write.

Status Malformed() { return {Code::kCorruption, "a part of a stream has a malformed entry"}; }

// Joins writes to a file: pieces that follow each other there go into one call.
class JoinedWrites {
 public:
  explicit JoinedWrites(int fd) : fd_(fd) {}

  [[nodiscard]] const Status& status() const { return status_; }
  // Takes bytes that stay where they are until Finish.
  void Add(uint64_t offset, std::span<const std::byte> bytes) {
    if (offset != end_ || count_ == pieces_.size()) Finish();
    if (count_ == 0) begin_ = offset;
    pieces_[count_++] = {const_cast<std::byte*>(bytes.data()), bytes.size()};  // pwritev only reads.
    end_ = offset + bytes.size();
  }
  // A large range of zeroes becomes one where the file has room and no bytes: most file systems can do that. Nothing is
  // written for it then.
  void AddZeroes(uint64_t offset, uint64_t size) {
    if (size >= kZeroBytes.size()) {
      Finish();  // Earlier bytes may be in the range.
      if (ZeroRange(offset, size)) return;
    }
    while (size > 0) {
      const uint64_t part = std::min<uint64_t>(size, kZeroBytes.size());
      Add(offset, std::span(kZeroBytes).first(part));
      offset += part;
      size -= part;
    }
  }
  // Writes all that was taken, unless an earlier write failed.
  void Finish() {
    std::span<iovec> left = std::span(pieces_).first(count_);
    count_ = 0;
    while (status_.ok() && !left.empty()) {
      const ssize_t written = ::pwritev(fd_, left.data(), static_cast<int>(left.size()), static_cast<off_t>(begin_));
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) {
        status_ = ErrnoStatus("cannot write " + std::to_string(end_ - begin_) + " bytes at offset " +
                                  std::to_string(begin_) + " of the pool file",
                              written < 0 ? errno : EIO);
        return;
      }
      begin_ += static_cast<uint64_t>(written);
      left = Without(left, static_cast<size_t>(written));
    }
  }

 private:
  // Returns false if the file system cannot do that, or has no room for it. Then the zeroes are written: the file has
  // room for that in any case.
  bool ZeroRange(uint64_t offset, uint64_t size) {
    constexpr int kMode = FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE;
    while (status_.ok() && zeroes_ranges_) {
      if (::fallocate(fd_, kMode, static_cast<off_t>(offset), static_cast<off_t>(size)) == 0) return true;
      zeroes_ranges_ = errno == EINTR;
    }
    return !status_.ok();
  }
  // A write may take only a part: a signal or a full disk ends it.
  static std::span<iovec> Without(std::span<iovec> pieces, size_t written) {
    while (!pieces.empty() && written >= pieces.front().iov_len) {
      written -= pieces.front().iov_len;
      pieces = pieces.subspan(1);
    }
    if (written > 0) {
      pieces.front().iov_base = static_cast<std::byte*>(pieces.front().iov_base) + written;
      pieces.front().iov_len -= written;
    }
    return pieces;
  }

  const int fd_;
  Status status_;
  bool zeroes_ranges_ = true;  // The file system has not refused it.
  std::array<iovec, 256> pieces_{};
  size_t count_ = 0;
  uint64_t begin_ = 0;
  uint64_t end_ = 0;  // Where the last piece ends in the file.
};

}  // namespace

Status ApplyToMemory(std::span<const std::byte> stream, std::span<std::byte> pool) {
  const bool whole = ForEachEntry(stream, pool.size(), [pool](const Entry& entry) {
    std::byte* const to = pool.data() + entry.offset;
    if (entry.kind == EntryKind::kZeroes) {
      std::memset(to, 0, entry.size);
    } else {
      std::memcpy(to, entry.bytes.data(), entry.size);
    }
  });
  return whole ? Status() : Malformed();
}

Status ApplyToFile(std::span<const std::byte> stream, int fd, uint64_t pool_size) {
  JoinedWrites writes(fd);
  const bool whole = ForEachEntry(stream, pool_size, [&writes](const Entry& entry) {
    if (entry.kind == EntryKind::kZeroes) {
      writes.AddZeroes(entry.offset, entry.size);
    } else {
      writes.Add(entry.offset, entry.bytes);
    }
  });
  writes.Finish();
  if (!writes.status().ok()) return writes.status();
  return whole ? Status() : Malformed();
}

}  // namespace erda::journal
