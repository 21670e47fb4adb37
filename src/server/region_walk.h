// Walks a region from its first segment to its last, and finds the objects in it that entries need. Owns where the walk
// is. The cleaner's thread calls it.
//   (C2) The cleaner reads regions to which nothing is appended any more, and objects that an entry names as settled.
//   (C3) The cleaner may miss that an entry changes. So the shard checks each proposal against the entry as it is then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "format/geometry.h"
#include "format/object.h"
#include "index/index.h"
#include "nvm/writer.h"
#include "server/clean_queues.h"

namespace erda::server {

// How far a step of a walk still goes, and how far all walks have gone.
struct WalkBudget {
  uint64_t left = 0;    // of this step
  uint64_t walked = 0;  // bytes in all
};

class RegionWalk {
 public:
  enum class At : uint8_t {
    kObject,   // an object that an entry needs
    kForgery,  // an object in a chunk that an entry names, and that shares bytes with another one; it is passed
    kEnd,      // the end of the region
    kPause     // the step is over
  };
  struct Found {
    At at = At::kPause;
    format::ObjectView object;  // the label is checked, and the value is not
    format::Place place{};
    uint64_t offset = 0;  // of the object in the pool
  };

  // REQUIRES: the region is full, and no client holds it. The index is the cleaner's own view of the shard's.
  RegionWalk(nvm::Writer& nvm, index::Index& index, const format::Geometry& geometry, uint32_t pool_seed,
             const MergeOrder& order)
      : nvm_(nvm), index_(index), geometry_(geometry), pool_seed_(pool_seed), order_(order) {}

  [[nodiscard]] const MergeOrder& order() const { return order_; }
  // Goes on to what comes next. Stays at an object until that is passed.
  Found Next(WalkBudget* budget);
  // Next has found this object, and it is copied, or need not be.
  void Pass(const format::ObjectHeader& header, WalkBudget* budget);

 private:
  // Where the walk is in its segment.
  struct Spot {
    uint64_t at = 0;
    uint64_t chunk_end = 0;  // of the last chunk
    uint64_t covered = 0;    // the end of the last needed object in that chunk
    bool lost = false;       // the walk does not know where the last object ends
    [[nodiscard]] bool in_chunk() const { return at < chunk_end; }
  };

  void EnterSegment();
  // Takes a look at the header at hand. Returns true if *found is the answer of Next.
  bool LookAtHeader(Found* found, WalkBudget* budget);
  [[nodiscard]] bool IsNeeded(uint64_t key_hash, format::LogAddress address);
  // Passes these bytes, which took as much work as `cost` bytes.
  void PassBytes(uint64_t bytes, uint64_t cost, WalkBudget* budget);
  // From where the walk is to the end of the segment.
  [[nodiscard]] std::span<const std::byte> bytes() const {
    return nvm_.Bytes(SegmentOffset() + spot_.at, geometry_.segment_size - spot_.at);
  }
  [[nodiscard]] uint64_t SegmentOffset() const {
    return geometry_.RegionOffset(order_.region) + segment_ * geometry_.segment_size;
  }

  nvm::Writer& nvm_;
  index::Index& index_;
  const format::Geometry& geometry_;
  const uint32_t pool_seed_;
  const MergeOrder order_;
  uint64_t segment_ = 0;
  Spot spot_;
};

}  // namespace erda::server
