// Memory that a process can give to another one: anonymous, backed by a sealed memfd.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/unique_fd.h"
#include "erda/status.h"

namespace erda {

// Memory, and the descriptors that give another process the same bytes. Does not own them.
struct MemoryView {
  std::span<std::byte> bytes;
  int fd = -1;            // Maps for reading and writing. `bytes` begin at the file's start.
  int fd_read_only = -1;  // Maps for reading only. It was opened without the right to write.
};

class SharedMemory {
 public:
  // Creates zeroed memory. It is sealed against shrinking and growing, so that no peer can take pages away from a
  // reader. Only its owner can open it (mode 0600): another user has no more rights than the descriptor that it gets.
  // kOwner: no process can map it for writing any more, with any descriptor.
  enum class Writers : uint8_t { kPeers, kOwner };
  static Result<SharedMemory> Create(const std::string& name, size_t size, Writers writers = Writers::kPeers);
  // Maps a memfd that a peer sent. Refuses a memfd that the peer could still shrink, and one that does not have `size`
  // bytes.
  static Result<SharedMemory> Map(UniqueFd fd, size_t size, bool writable);

  SharedMemory() = default;
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory();

  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }
  [[nodiscard]] MemoryView view() const { return {bytes_, fd_.get(), fd_read_only_.get()}; }
  // Keeps the mapping, and closes the descriptors: no other process can get the memory any more.
  void DropDescriptors() {
    fd_.reset();
    fd_read_only_.reset();
  }

 private:
  SharedMemory(std::span<std::byte> bytes, UniqueFd fd, UniqueFd fd_read_only);

  std::span<std::byte> bytes_;
  UniqueFd fd_;
  UniqueFd fd_read_only_;
};

}  // namespace erda
