// Functions for the segment headers in the pool. They own nothing.
//
// Requires: the segment is in a region of the caller's shard. Any thread may read; the shard's thread alone writes.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/bytes.h"
#include "format/log_layout.h"
#include "log/shard_shape.h"
#include "nvm/writer.h"

namespace erda::log {

[[nodiscard]] inline format::SegmentHeader HeaderOf(const nvm::Writer& nvm, const ShardShape& shape, SegmentId id) {
  return LoadAs<format::SegmentHeader>(nvm.Bytes(shape.SegmentOffset(id), sizeof(format::SegmentHeader)));
}

// Returns whether the segment was opened since its region got this generation.
[[nodiscard]] inline format::SegmentUse UseOf(const nvm::Writer& nvm, const ShardShape& shape, SegmentId id,
                                              uint32_t generation) {
  return format::UseOfSegment(nvm.Bytes(shape.SegmentOffset(id), shape.geometry().segment_size), generation);
}

// Makes the segment look as before it was opened. Persistent on return.
inline void ForgetSegment(nvm::Writer& nvm, const ShardShape& shape, SegmentId id) {
  nvm.ZeroOut(shape.SegmentOffset(id), std::min(format::kMendedBytesMax, shape.geometry().segment_size));
  nvm.Fence();
}

}  // namespace erda::log
