// Walks a region from its first segment to its last, and finds the objects in it that entries need. A merge passes the
// held places of its order; a replicate looks at these alone. Owns the position of the walk. The cleaner's thread calls
// it.
//   (C2) The cleaner reads regions to which nothing is appended any more, and there no place that is held. It also
//   reads objects that an entry names as settled. (C3) The cleaner may miss that an entry changes. So the shard checks
//   each proposal against the entry as it is then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "format/geometry.h"
#include "format/object.h"
#include "index/read_only_index.h"
#include "nvm/writer.h"
#include "server/cleaner/clean_queues.h"

namespace erda::server {

// The rest of a step of a walk, and the work of all walks.
struct WalkBudget {
  uint64_t left = 0;    // bytes that this step may still copy, or as much other work
  uint64_t walked = 0;  // bytes that all walks have walked
};

class RegionWalk {
 public:
  enum class At : uint8_t {
    kObject,   // An object that an entry needs.
    kForgery,  // An object in a chunk that an entry names, and that shares bytes with another one. The walk has passed
               // it.
    kEnd,      // The end of the region.
    kPause     // The step is over.
  };
  struct Found {
    At at = At::kPause;
    format::ObjectView object;  // The walk has checked the label, and not the value.
    format::Place place{};
    uint64_t offset = 0;  // The object's offset in the pool.
  };

  // REQUIRES: the region is full, and only the held places of the order are held. In a replicate, nothing is. The index
  // is the cleaner's own view of the shard's.
  RegionWalk(nvm::Writer& nvm, index::ReadOnlyIndex& index, const format::Geometry& geometry, uint32_t pool_seed,
             const MergeOrder& order)
      : nvm_(nvm), index_(index), geometry_(geometry), pool_seed_(pool_seed), order_(order) {}

  [[nodiscard]] const MergeOrder& order() const { return order_; }
  // Goes on to the next object, or to the end of the region or of the step. Stays at an object until Pass.
  Found Next(WalkBudget* budget);
  // Goes past the object that Next has found. Requires: the caller has copied it, or need not copy it.
  void Pass(const format::ObjectHeader& header, WalkBudget* budget);

 private:
  // The position of the walk in its segment.
  struct Spot {
    uint64_t at = 0;
    uint64_t chunk_end = 0;  // The end of the last chunk.
    uint64_t covered = 0;    // The end of the last needed object in that chunk.
    bool lost = false;       // The walk does not know where the last object ends.
    [[nodiscard]] bool in_chunk() const { return at < chunk_end; }
  };

  // Goes past the places that this phase does not look at. Returns true if the walk is elsewhere now, or at the end.
  bool Skip();
  // Goes to this offset in the region, or to the end of a segment. Does not count as work.
  void JumpTo(uint64_t segment, uint64_t at, uint64_t chunk_end);
  void EnterSegment();
  // Goes past the bytes of a chunk up to the next granule that may begin a value. Returns false if the walk is there.
  bool PassToValue(WalkBudget* budget);
  // Looks at the header at the position of the walk. Returns true if *found is the answer of Next.
  bool LookAtHeader(Found* found, WalkBudget* budget);
  [[nodiscard]] bool IsNeeded(uint64_t key_hash, format::LogAddress address);
  // Goes past these bytes, which took as much work as the copy of `cost` bytes.
  void PassBytes(uint64_t bytes, uint64_t cost, WalkBudget* budget);
  [[nodiscard]] uint64_t at_in_region() const { return segment_ * geometry_.segment_size + spot_.at; }
  // Returns the bytes from the position of the walk to the end of its chunk or segment, or to the next held place. In a
  // replicate, to the end of the held place.
  [[nodiscard]] uint64_t Limit() const;
  // Returns the bytes from the position of the walk to the end of the segment.
  [[nodiscard]] std::span<const std::byte> bytes() const {
    return nvm_.Bytes(SegmentOffset() + spot_.at, geometry_.segment_size - spot_.at);
  }
  [[nodiscard]] uint64_t SegmentOffset() const {
    return geometry_.RegionOffset(order_.region) + segment_ * geometry_.segment_size;
  }

  nvm::Writer& nvm_;
  index::ReadOnlyIndex& index_;
  const format::Geometry& geometry_;
  const uint32_t pool_seed_;
  const MergeOrder order_;
  uint64_t segment_ = 0;
  Spot spot_;
  size_t next_held_ = 0;  // The first held place that does not end before the walk.
};

}  // namespace erda::server
