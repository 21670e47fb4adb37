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

// Takes a range of addresses that is too long by a large page, maps the file inside it, and gives the rest back. A
// device with pages of 1 GiB refuses such an address, and knows a better one.
std::span<std::byte> MapShared(int fd, size_t size, bool writable) {
  const int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
  if (size < kLargePage) return MapAnywhere(fd, size, protection);
  const size_t taken = size + kLargePage;
  void* range = ::mmap(nullptr, taken, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) return {};
  auto* const begin = static_cast<std::byte*>(range);
  const size_t before = AlignUp(reinterpret_cast<uintptr_t>(begin), kLargePage) - reinterpret_cast<uintptr_t>(begin);
  std::byte* const at = begin + before;
  if (::mmap(at, size, protection, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
    ::munmap(range, taken);
    return MapAnywhere(fd, size, protection);
  }
  // A mapping ends at a page, also one of fewer bytes.
  if (before > 0) ::munmap(begin, before);
  const size_t used = before + AlignUp(size, kSmallPage);
  if (used < taken) ::munmap(begin + used, taken - used);
  return {at, size};
}

}  // namespace erda
