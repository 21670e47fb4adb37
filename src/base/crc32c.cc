#include "base/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace erda {

namespace {

#if defined(__x86_64__)
// ISA-L folds several strands of a long piece together. What is short (headers, keys, small values) is done sooner by
// the processor's own instruction, one word after the other.
constexpr size_t kShortBytes = 256;

__attribute__((target("sse4.2"))) uint32_t ShortState(uint32_t state, const std::byte* bytes, size_t size) {
  uint64_t wide = state;
  for (; size >= sizeof(uint64_t); size -= sizeof(uint64_t), bytes += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes, sizeof(word));
    wide = _mm_crc32_u64(wide, word);
  }
  auto narrow = static_cast<uint32_t>(wide);
  if (size >= sizeof(uint32_t)) {
    uint32_t word = 0;
    std::memcpy(&word, bytes, sizeof(word));
    narrow = _mm_crc32_u32(narrow, word);
    size -= sizeof(word);
    bytes += sizeof(word);
  }
  for (; size > 0; --size, ++bytes) narrow = _mm_crc32_u8(narrow, std::to_integer<uint8_t>(*bytes));
  return narrow;
}

const bool kHasInstruction = __builtin_cpu_supports("sse4.2") != 0;
#endif

}  // namespace

uint32_t Crc32c(uint32_t crc, std::span<const std::byte> bytes) {
  uint32_t state = ~crc;
#if defined(__x86_64__)
  if (bytes.size() <= kShortBytes && kHasInstruction) return ~ShortState(state, bytes.data(), bytes.size());
#endif
  // ISA-L takes an int for the length, a pointer that is not const, and leaves the inversions to the caller.
  constexpr size_t kStepBytes = size_t{1} << 30;
  while (!bytes.empty()) {
    const size_t n = std::min(bytes.size(), kStepBytes);
    auto* data = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(bytes.data()));
    state = crc32_iscsi(data, static_cast<int>(n), state);
    bytes = bytes.subspan(n);
  }
  return ~state;
}

}  // namespace erda
