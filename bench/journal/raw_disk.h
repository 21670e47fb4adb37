// Durable writes to a file without Erda: the limits of the disk.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/file_system.h"
#include "base/unique_fd.h"
#include "erda/status.h"
#include "journal/aligned_buffer.h"

namespace erda::journal_bench {

// Writes from the file's start to its end, and then from its start again. All of its blocks were written before, so a
// flush has no changes of the file system to write. One thread uses it.
class RawDisk {
 public:
  static constexpr uint64_t kSmallBytes = 4096;
  static constexpr uint64_t kLargeBytes = 1 << 20;

  // Makes a file of this size in the folder. REQUIRES: kLargeBytes divides the size.
  static Result<std::unique_ptr<RawDisk>> Create(const std::string& folder, uint64_t size);

  // Returns false if the file system refused direct writes, so that the writes go through the page cache.
  [[nodiscard]] bool direct() const { return direct_; }
  // Returns true if it is no disk: a flush costs nothing.
  [[nodiscard]] bool in_memory() const { return IsInMemory(fd_.get()); }

  // Each returns when the disk has the bytes for good. A failure names the file.
  Status WriteAndFlush() { return Write(kSmallBytes, 0, true); }       // pwrite and fdatasync
  Status WriteDurably();                                               // pwritev2 with RWF_DSYNC
  Status WriteLargeAndFlush() { return Write(kLargeBytes, 0, true); }  // As the first, of kLargeBytes.

 private:
  RawDisk(std::string path, UniqueFd fd, uint64_t size)
      : path_(std::move(path)), fd_(std::move(fd)), size_(size), buffer_(kLargeBytes) {}
  Status Fill();
  Status Write(uint64_t bytes, int flags, bool flush);

  const std::string path_;
  const UniqueFd fd_;
  const uint64_t size_;
  const journal::AlignedBuffer buffer_;
  bool direct_ = false;
  uint64_t next_ = 0;  // The offset of the next write.
};

}  // namespace erda::journal_bench
