// Walks the objects of one segment from header to header, as a start finds them. Functions alone: they own nothing and
// store nothing. The shard's thread alone calls them.
#pragma once

#include <cstdint>
#include <functional>

#include "format/log_layout.h"
#include "format/object.h"
#include "log/objects.h"
#include "log/shard_shape.h"
#include "nvm/writer.h"

namespace erda::log {

// Called with an object with a good header, which was reserved and may not be settled.
using Visit = std::function<void(const format::ObjectView& header)>;

// The end of the objects in a segment, and whether nothing was ever written after it.
struct Walk {
  uint64_t begin = 0;  // the mark, or where the first object is
  uint64_t last = 0;   // the last object after the mark; 0: there is none
  uint64_t end = 0;
  bool untouched = true;
  bool plain = true;  // no object was cut off in a chunk without a window
};

// Walks from the mark on. visit may be null.
[[nodiscard]] Walk WalkObjects(const nvm::Writer& nvm, const ShardShape& shape, const Objects& objects, uint32_t head,
                               uint32_t slot, SegmentId id, const Visit* visit);

// What stands in a region's tombstone slot.
struct Tombstone {
  format::ObjectView view;
  bool cut_off = false;  // neither a tombstone nor untouched
};
[[nodiscard]] Tombstone TombstoneIn(const ShardShape& shape, const Objects& objects, uint32_t head, uint32_t slot);

}  // namespace erda::log
