// The counts of a shard's full regions, for a reader that chooses regions to clean.
//
// Owns nothing. Requires: the log outlives it. The log gives it only with the proof that all published changes are
// counted (ShardLog::counts). Each other change of an entry is counted at once, so the counts stay exact until the
// shard publishes the next put. The shard's thread calls it.
#pragma once

#include <cstdint>
#include <utility>

#include "log/region_use.h"
#include "log/tails.h"

namespace erda::log {

class RegionCounts {
 public:
  RegionCounts(RegionUse& use, const Tails& tails) : use_(use), tails_(tails) {}
  RegionCounts(const RegionCounts&) = delete;
  RegionCounts& operator=(const RegionCounts&) = delete;

  // Calls visit(LinkedRegion) for each full region.
  template <class Visit>
  void ForEachFull(Visit&& visit) const {
    use_.ForEachFull(std::forward<Visit>(visit));
  }
  // Returns a number that grows when a look for a region to clean may be worthwhile. That is so when an entry leaves an
  // address, when the writers have filled a region, or when nobody holds a full region any more.
  [[nodiscard]] uint64_t changes() const { return use_.changes() + tails_.filled_regions(); }
  // Returns a number that grows when nobody holds a full region any more.
  [[nodiscard]] uint64_t releases() const { return use_.releases(); }
  // Returns about how many bytes the objects that entries name take.
  [[nodiscard]] uint64_t bytes_live() const { return use_.bytes_live(); }

 private:
  RegionUse& use_;
  const Tails& tails_;
};

}  // namespace erda::log
