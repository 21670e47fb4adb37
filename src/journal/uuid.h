// The number by which the parts of a journal name their pool.
#pragma once

#include <array>
#include <cstdint>

namespace erda::journal {

// That of the pool's superblock.
using Uuid = std::array<uint8_t, 16>;

}  // namespace erda::journal
