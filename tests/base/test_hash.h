// The hash of a key in pools that tests make by hand. Their seed is not zero, so that code which forgets the seed finds
// no key.
#pragma once

#include "base/hash.h"

namespace erda {

inline constexpr HashSeed kTestHashSeed = {0x0706050403020100, 0x0f0e0d0c0b0a0908};

[[nodiscard]] inline uint64_t HashKey(std::string_view key) { return HashKey(key, kTestHashSeed); }

}  // namespace erda
