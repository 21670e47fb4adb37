// Chooses the region of a shard to merge or to replicate next, and the ones that can be emptied at once. Decides by the
// log's counts alone, and changes nothing. See docs/cleaning.md, "When a region is cleaned, and which one". The shard's
// thread calls it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "format/geometry.h"
#include "log/shard_log.h"
#include "server/cleaning/merged_regions.h"
#include "server/cleaning/tried_regions.h"

namespace erda::server {

// The present goals of cleaning.
struct CleaningGoal {
  std::optional<uint32_t> asked = std::nullopt;  // A client asked to clean the regions up to this generation.
  bool few_free = false;                         // The shard has few free regions, or none.
  bool put_needs_region = false;                 // A put waits for a free region.
  bool put_needs_slot = false;                   // A put waits for a free slot in a crowded head.
};

struct RegionChoice {
  std::vector<log::ShardLog::LinkedRegion> unneeded;  // Nothing names or holds them. If any, only these count.
  std::optional<log::ShardLog::LinkedRegion> merged;  // To replicate: it is merged, and nothing holds it any more.
  std::optional<log::ShardLog::LinkedRegion> best;    // To merge: nothing holds it.
  // The held region to merge if `best` has no value. The merge frees nothing before the holders release the region.
  std::optional<log::ShardLog::LinkedRegion> best_held;
  bool held = false;          // Another region would be worthwhile if nobody held it.
  bool crowded_held = false;  // One of these held regions is in a crowded head.
  bool gains_slot = false;    // A region in a crowded head is worthwhile.
};

[[nodiscard]] RegionChoice ChooseRegion(log::ShardLog& log, const log::RegionCounts& counts,
                                        const format::Geometry& geometry, const TriedRegions& tried,
                                        const MergedRegions& merged, const CleaningGoal& goal);

}  // namespace erda::server
