// The segment that the cleaner copies the objects of a head to. Owns the place of the next copy. The cleaner's thread
// calls it.
#pragma once

#include <cstdint>
#include <optional>

#include "format/geometry.h"
#include "format/object.h"
#include "nvm/writer.h"
#include "server/cleaner/clean_queues.h"

namespace erda::server {

// Space for one copy.
struct CopySpace {
  format::Place place{};
  uint64_t offset = 0;  // in the pool
};

class CopyTarget {
 public:
  CopyTarget(const format::Geometry& geometry, uint32_t pool_seed) : geometry_(geometry), pool_seed_(pool_seed) {}

  // Goes to the segment of the order. If an earlier server's cleaner has copied there, goes on after its last copy that
  // an entry names. On return the rest of that segment is zeroes, persistently.
  void Open(nvm::Writer& nvm, const SegmentOrder& order);
  // Returns nothing if no segment is open, or if the segment has less than `bytes` left.
  std::optional<CopySpace> Take(uint64_t bytes);
  // Returns where the copies end in the segment, or 0 if no segment is open.
  [[nodiscard]] uint64_t end() const { return segment_ ? tail_ : 0; }

 private:
  [[nodiscard]] CopySpace SpaceAt(uint64_t in_segment) const;

  const format::Geometry& geometry_;
  const uint32_t pool_seed_;
  std::optional<SegmentOrder> segment_;
  uint64_t tail_ = 0;  // in the segment
};

}  // namespace erda::server
