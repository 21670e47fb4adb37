#include "base/map_shared.h"

#include <sys/mman.h>

#include <cstdint>

#include "base/bytes.h"

namespace erda {

namespace {

std::span<std::byte> MapAnywhere(int fd, size_t size, int protection) {
  void* at = ::mmap(nullptr, size, protection, MAP_SHARED, fd, 0);
  return at == MAP_FAILED ? std::span<std::byte>() : std::span(static_cast<std::byte*>(at), size);
}

}  // namespace

// Finds room that is too long by a large page, leaves it again, and asks for the aligned address in it. The kernel
// chooses another address if a thread has mapped something there since. It also does if a device with pages of 1 GiB
// refuses the address. Nothing is unmapped after that: it could be another thread's.
std::span<std::byte> MapShared(int fd, size_t size, bool writable) {
  const int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
  if (size < kLargePage) return MapAnywhere(fd, size, protection);
  const size_t taken = size + kLargePage;
  void* const room = ::mmap(nullptr, taken, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return {};
  ::munmap(room, taken);
  const auto address = reinterpret_cast<uintptr_t>(room);
  std::byte* const aligned = static_cast<std::byte*>(room) + (AlignUp(address, kLargePage) - address);
  void* const at = ::mmap(aligned, size, protection, MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0);
  return at == MAP_FAILED ? MapAnywhere(fd, size, protection) : std::span(static_cast<std::byte*>(at), size);
}

}  // namespace erda
