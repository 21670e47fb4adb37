// Full regions that the cleaner has merged although something holds them. Nothing in such a region is needed except at
// its held places. Once nothing holds it, the cleaner replicates it: it copies what settled at these places since. Then
// the region can be emptied (docs/cleaning.md, "Merge and replicate").
//
// Owns the list of these regions, and the held places of each. The cleaner reads the places of a region between the
// order and its answer. The shard's thread calls it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "format/geometry.h"
#include "log/shard_log.h"
#include "server/cleaner/clean_queues.h"
#include "server/versions/versions.h"

namespace erda::server {

class MergedRegions {
 public:
  explicit MergedRegions(const format::Geometry& geometry) : geometry_(geometry) {}

  // Adds a region whose merge begins, with the places that hold it now. Returns the places. They stay where they are
  // until Remove. REQUIRES: the region is full, and not in the list.
  std::span<const HeldPlace> Add(Versions& versions, const log::ShardLog::LinkedRegion& region);
  [[nodiscard]] bool Has(const log::ShardLog::LinkedRegion& region) const { return Find(region.region) != nullptr; }
  // Returns the places that held the region when its merge began. REQUIRES: Has(region).
  [[nodiscard]] std::span<const HeldPlace> HeldIn(const log::ShardLog::LinkedRegion& region) const {
    return Find(region.region)->held;
  }
  // Takes the region from the list, if it is there.
  void Remove(const log::ShardLog::LinkedRegion& region);

  // Returns true if copies of this many bytes more may be made while the regions of the list are not free. Such copies
  // take room, and give none before the holders let go.
  [[nodiscard]] bool MayCopy(uint64_t bytes) const;
  // Returns true if a region may have been let go since the last call of Look. releases: RegionCounts::releases().
  [[nodiscard]] bool IsDue(uint64_t releases) const { return !merged_.empty() && releases != looked_at_; }
  void Look(uint64_t releases) { looked_at_ = releases; }

 private:
  struct Merged {
    uint32_t region = 0;
    uint64_t copied = 0;  // The bytes that entries named in it when its merge began.
    std::vector<HeldPlace> held;
  };
  [[nodiscard]] const Merged* Find(uint32_t region) const;

  const format::Geometry& geometry_;
  std::vector<Merged> merged_;
  uint64_t copied_ = 0;     // of all regions in the list
  uint64_t looked_at_ = 0;  // the releases at the last Look
};

}  // namespace erda::server
