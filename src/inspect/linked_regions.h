// The regions of a shard as the region table has them: by head slot those of the log, by run those of the index.
//
// Owns a copy of these facts. It finds each contradiction in the shard's part of the table. It never changes after its
// construction, so any thread may then ask it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "format/log_layout.h"
#include "inspect/shard_bytes.h"
#include "inspect/shard_findings.h"

namespace erda::inspect {

class LinkedRegions {
 public:
  static constexpr uint32_t kNoRegion = UINT32_MAX;

  // Reads the region table, counts the shard's regions in its report, and adds the damage.
  LinkedRegions(const ShardBytes& bytes, ShardFindings* findings);

  // Returns kNoRegion if no region is in that head slot.
  [[nodiscard]] uint32_t RegionIn(uint64_t head_in_shard, uint32_t head_slot) const {
    return regions_[head_in_shard * geometry_.slots_per_head() + head_slot];
  }
  // Returns kNoRegion if no entry of the shard can lead there.
  [[nodiscard]] uint32_t RegionAt(uint32_t head, format::LogAddress address) const;
  // Returns the region of each run of the index plus 1, or 0, as in a control block.
  [[nodiscard]] std::span<const uint32_t> runs() const { return runs_; }

 private:
  // Each finds the place of a region whose word is of that kind.
  void AddFree(uint32_t region, format::RegionWord word, ShardFindings* findings);
  void AddRun(uint32_t region, format::RegionWord word, ShardFindings* findings);
  void AddLinked(uint32_t region, format::RegionWord word, ShardFindings* findings);

  const ShardBytes& bytes_;
  const format::Geometry& geometry_;
  std::vector<uint32_t> runs_;
  std::vector<uint32_t> regions_;  // by head of the shard and head slot
};

}  // namespace erda::inspect
