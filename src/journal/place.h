// The unit in which a shard's stream is measured.
#pragma once

#include <cstdint>

namespace erda::journal {

// A number of bytes from the beginning of a shard's stream.
using Place = uint64_t;

}  // namespace erda::journal
