// A number of bytes from the beginning of a shard's stream.
#pragma once

#include <cstdint>

namespace erda::journal {

using Place = uint64_t;

}  // namespace erda::journal
