#include "base/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>

namespace erda {

uint32_t Crc32c(uint32_t crc, std::span<const std::byte> bytes) {
  // ISA-L takes an int for the length, a pointer that is not const, and leaves the inversions to the caller.
  constexpr size_t kStepBytes = size_t{1} << 30;
  uint32_t state = ~crc;
  while (!bytes.empty()) {
    const size_t n = std::min(bytes.size(), kStepBytes);
    auto* data = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(bytes.data()));
    state = crc32_iscsi(data, static_cast<int>(n), state);
    bytes = bytes.subspan(n);
  }
  return ~state;
}

}  // namespace erda
