// The words of a shard's control block by which readers know the shape of its index (format/control_block.h).
//
// Owns nothing: it points into the control block. Requires: the control block outlives it. The shard's thread stores
// the words. Any thread and any client may read them at the same time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "format/geometry.h"

namespace erda::index {

struct Published {
  uint64_t* displacements = nullptr;
  uint64_t* blocks = nullptr;
  uint64_t* reaches = nullptr;
  std::span<uint32_t> runs;

  // control: the shard's control block.
  static Published In(std::span<std::byte> control, const format::Geometry& geometry);
};

}  // namespace erda::index
