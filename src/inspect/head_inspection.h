// The inspection of one head's log: its regions, and in them segment by segment. The order of segments and their
// versions is judged here, and the objects of a segment by SegmentWalk.
//
// Used for one head, by one thread.
#pragma once

#include <cstdint>

#include "inspect/client_chunks.h"
#include "inspect/linked_regions.h"
#include "inspect/segment_walk.h"
#include "inspect/shard_bytes.h"
#include "inspect/shard_findings.h"

namespace erda::inspect {

class HeadInspection {
 public:
  // REQUIRES: the report has the shard's version limit.
  HeadInspection(const ShardBytes& bytes, const LinkedRegions& regions, ClientChunks* chunks, ShardFindings* findings)
      : bytes_(bytes), regions_(regions), chunks_(*chunks), findings_(*findings) {}

  // Adds the head's report to that of the shard, its chunks to the chunks, and the damage to the findings.
  void Inspect(uint32_t head_in_shard);

 private:
  void LookAtSegment(const SegmentPlace& place);
  [[nodiscard]] bool CheckOpened(const SegmentPlace& place, const format::SegmentHeader& header);
  void CountState(const SegmentPlace& place, const format::SegmentHeader& header);
  void CheckVersions(const SegmentPlace& place, const format::SegmentHeader& header);

  const ShardBytes& bytes_;
  const LinkedRegions& regions_;
  ClientChunks& chunks_;
  ShardFindings& findings_;

  HeadReport head_;
  // Of the region that is inspected now:
  bool opened_all_ = true;      // No segment so far was found unopened.
  uint64_t versions_from_ = 0;  // The first version of the last segment so far; 0 before the first segment.
  // Of all segments of the head so far that are not for copies:
  bool any_ = false;          // There is one.
  uint64_t newest_from_ = 0;  // The first version of the newest one.
  bool newest_is_open_ = false;
};

}  // namespace erda::inspect
