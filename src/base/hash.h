// The hash of a key. It is part of the pool's format: a key's place follows from it. XXH3 is stable since xxHash 0.8.
#pragma once

#include <cstdint>
#include <string_view>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace erda {

[[nodiscard]] inline uint64_t HashKey(std::string_view key) { return XXH3_64bits(key.data(), key.size()); }

// Spreads a uniform 32-bit or 64-bit number over [0, n) without a division.
constexpr uint32_t Spread32(uint32_t uniform, uint32_t n) {
  return static_cast<uint32_t>((uint64_t{uniform} * n) >> 32);
}
constexpr uint64_t Spread64(uint64_t uniform, uint64_t n) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>((static_cast<Wide>(uniform) * n) >> 64);
}

}  // namespace erda
