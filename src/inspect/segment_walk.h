// The walk through the objects of one segment, from header to header, up to the place where no object follows.
//
// Used for one segment, by one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "format/log_layout.h"
#include "inspect/client_chunks.h"
#include "inspect/shard_bytes.h"
#include "inspect/shard_findings.h"

namespace erda::inspect {

struct SegmentPlace {
  uint32_t head = 0;
  uint32_t head_slot = 0;
  uint32_t region = 0;
  uint64_t segment = 0;  // in the region

  [[nodiscard]] uint64_t OffsetIn(const format::Geometry& g) const {
    return g.RegionOffset(region) + segment * g.segment_size;
  }
  [[nodiscard]] std::string Name() const {
    return "segment " + std::to_string(segment) + " of region " + std::to_string(region);
  }
};

class SegmentWalk {
 public:
  // REQUIRES: the segment was opened since its region has its generation.
  SegmentWalk(const ShardBytes& bytes, const SegmentPlace& place, ClientChunks* chunks, HeadReport* head,
              ShardFindings* findings);

  // Counts objects and chunks in the head's report, and adds the segment's chunks to the chunks. Adds the damage
  // between and after the objects. Returns the bytes from the first object to the last, with the damage between them.
  uint64_t Run();

 private:
  // Offsets here are in the segment.
  [[nodiscard]] format::ObjectView ObjectAt(uint64_t at, uint64_t end) const;
  [[nodiscard]] bool EndsWalk(const format::ObjectView& object, bool in_chunk) const;
  // Returns the offset at which no object follows.
  [[nodiscard]] uint64_t WalkFrom(uint64_t at);
  // Each adds the damage from `end` on, and returns the end of the objects with that damage.
  [[nodiscard]] uint64_t CheckStatedEnd(uint64_t end);
  [[nodiscard]] uint64_t CheckRest(uint64_t end);
  void AddDamageBetween(uint64_t end);

  const ShardBytes& bytes_;
  const format::Geometry& geometry_;
  const SegmentPlace place_;
  const uint64_t offset_;  // of the segment in the pool
  const uint32_t generation_;
  const format::SegmentHeader header_;
  const std::optional<uint64_t> mark_;
  bool mark_met_ = false;  // an object, or the end of the walk, is at the mark
  ClientChunks& chunks_;
  HeadReport& head_;
  ShardFindings& findings_;
};

}  // namespace erda::inspect
