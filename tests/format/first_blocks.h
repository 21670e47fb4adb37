// The home of a key in an index that has not grown.
#pragma once

#include <cstdint>

#include "format/index_layout.h"

namespace erda::format {

inline uint64_t FirstHome(const Geometry& geometry, uint64_t key_hash) {
  return IndexLayout(geometry, geometry.ShardOf(key_hash), {}).HomeOf(key_hash);
}

}  // namespace erda::format
