// Functions that walk the objects of one segment from header to header when a server starts. They own nothing and store
// nothing. The shard's thread alone calls them.
#pragma once

#include <cstdint>
#include <functional>

#include "format/log_layout.h"
#include "format/object.h"
#include "log/objects.h"
#include "log/shard_shape.h"
#include "nvm/writer.h"

namespace erda::log {

// The walk calls it with each object whose header is good. Such an object was reserved, and may not be settled.
using Visit = std::function<void(const format::ObjectView& header)>;

// The result of a walk: the end of the objects in a segment, and whether the bytes after it were never written.
struct Walk {
  uint64_t begin = 0;  // the mark, or the place of the first object if that is later
  uint64_t last = 0;   // the last object after the mark; 0: there is no object
  uint64_t end = 0;
  bool untouched = true;
  bool plain = true;  // true if no object in a chunk without a window was cut off
};

// Walks from the mark on. visit may be null.
[[nodiscard]] Walk WalkObjects(const nvm::Writer& nvm, const ShardShape& shape, const Objects& objects, uint32_t head,
                               uint32_t slot, SegmentId id, const Visit* visit);

// The contents of a region's tombstone slot.
struct Tombstone {
  format::ObjectView view;
  bool cut_off = false;  // the bytes are neither a tombstone nor untouched
};
[[nodiscard]] Tombstone TombstoneIn(const ShardShape& shape, const Objects& objects, uint32_t head, uint32_t slot);

}  // namespace erda::log
