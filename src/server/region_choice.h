// Which region of a shard is merged next, and which ones can be emptied at once (docs/cleaning.md, "When a region is
// cleaned, and which one"). Decides from the log's counts alone, and changes nothing. The shard's thread calls it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "format/geometry.h"
#include "log/shard_log.h"
#include "server/tried_regions.h"

namespace erda::server {

// What cleaning is for at the moment.
struct CleaningGoal {
  std::optional<uint32_t> asked = std::nullopt;  // a client asked to clean the regions up to this generation
  bool few_free = false;                         // the shard has few free regions, or none
  bool put_needs_region = false;                 // a put waits for a free region
  bool put_needs_slot = false;                   // a put waits for a free slot in a crowded head
};

struct RegionChoice {
  std::vector<log::ShardLog::LinkedRegion> unneeded;  // nothing names or holds them; if there are any, only these count
  std::optional<log::ShardLog::LinkedRegion> best;    // to merge
  bool held = false;                                  // another region would be worthwhile, if nobody held it
  bool crowded_held = false;                          // such a region is in a crowded head
  bool gains_slot = false;                            // a region in a crowded head is worthwhile
};

// REQUIRES: all entries are counted, and all that was published.
[[nodiscard]] RegionChoice ChooseRegion(log::ShardLog& log, const format::Geometry& geometry, const TriedRegions& tried,
                                        const CleaningGoal& goal);

}  // namespace erda::server
