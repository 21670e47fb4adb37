// A file of fixed size, used as a disk.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/unique_fd.h"
#include "erda/status.h"
#include "journal/disk.h"
#include "journal/group_flush.h"

namespace erda::journal {

struct FileDiskOptions {
  // A file system in memory is accepted. For tests: it survives no power cut.
  bool in_memory = false;
};

// Owns the open file and its lock. Reads and writes directly, without the page cache, where the file system lets it.
// After an error of Write or Flush, every later Write and Flush returns that error.
class FileDisk final : public Disk {
 public:
  // Makes a file of zeroes with this size, allocated and written. The file and its name survive a power cut. Removes
  // the file after an error. Returns kInvalidArgument if the name exists already, or if the file system is in memory,
  // and kResourceExhausted if the file system is full. REQUIRES: size is a multiple of kBlock, and not 0.
  static Result<std::unique_ptr<FileDisk>> Create(const std::string& path, uint64_t size, FileDiskOptions options = {});
  // Opens an ordinary file. Its bytes after the last whole block do not count. Returns kUnavailable if another process
  // has it open, and kInvalidArgument if it is no ordinary file, or in memory.
  static Result<std::unique_ptr<FileDisk>> Open(const std::string& path, FileDiskOptions options = {});

  Status Read(uint64_t offset, std::span<std::byte> to) override;
  Status Write(uint64_t offset, std::span<const std::byte> from) override;
  Status Flush() override;
  [[nodiscard]] uint64_t size() const override { return size_; }
  // Returns true if the page cache is left out.
  [[nodiscard]] bool direct() const { return direct_; }
  // Removes the name of the file. The owner calls it when it could not make a journal of a file that Create has made.
  void Remove();

 private:
  FileDisk(std::string path, UniqueFd fd);
  Status Begin(FileDiskOptions options);
  Status ChooseDirect();
  Status Fill(uint64_t size);

  const std::string path_;
  const UniqueFd fd_;
  uint64_t size_ = 0;
  bool direct_ = false;
  GroupFlush flush_;
};

}  // namespace erda::journal
