// A file in tmpfs, with a name, mapped whole: memory that outlives the process that made it, but no reboot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "base/unique_fd.h"
#include "erda/status.h"

namespace erda::journal {

// Owns the descriptor and the mapping. The bytes begin at a multiple of a large page if they are as long as one.
class MemoryFile {
 public:
  // Which file of this name is wanted.
  enum class Use : uint8_t { kExisting, kExistingOrNew, kNew };

  // Opens a file that only this user may read and write, and that this user owns. Returns kNotFound if kExisting finds
  // none, and kPermissionDenied if another user made the file or may open it. In a folder that all users may write,
  // like /dev/shm, another user could have made it.
  static Result<UniqueFd> Open(const std::string& path, Use use);
  // Does the same, and locks the file until the descriptor is closed. Returns kUnavailable if another process has it
  // locked.
  static Result<UniqueFd> OpenLocked(const std::string& path, Use use);

  // Maps a file that has `size` bytes. Returns kCorruption if it has another number of them.
  static Result<MemoryFile> Map(const std::string& path, UniqueFd fd, uint64_t size);
  // Makes an empty file `size` bytes long, and maps it. Takes the memory for all of it now, in large pages where the
  // kernel can. So a full tmpfs is an error here, and not a SIGBUS later.
  static Result<MemoryFile> Make(const std::string& path, UniqueFd fd, uint64_t size);

  MemoryFile(MemoryFile&& other) noexcept : fd_(std::move(other.fd_)), bytes_(std::exchange(other.bytes_, {})) {}
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  MemoryFile& operator=(MemoryFile&&) = delete;
  ~MemoryFile();

  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }
  [[nodiscard]] int fd() const { return fd_.get(); }

 private:
  MemoryFile(UniqueFd fd, std::span<std::byte> bytes) : fd_(std::move(fd)), bytes_(bytes) {}

  UniqueFd fd_;
  std::span<std::byte> bytes_;
};

// Returns ok if the folder's file system has room for this number of bytes more, and the machine as much memory.
// Otherwise returns kResourceExhausted. Returns kInvalidArgument if the folder is not in a tmpfs.
Status CheckMemoryFor(const std::string& folder, uint64_t bytes);

}  // namespace erda::journal
