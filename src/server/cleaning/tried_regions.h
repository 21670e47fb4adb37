// Regions that the cleaner merged in vain, with their contents at that time. To merge one again would gain nothing
// while its contents are the same. The shard's thread calls it.
#pragma once

#include <cstdint>
#include <vector>

#include "format/geometry.h"
#include "log/shard_log.h"

namespace erda::server {

class TriedRegions {
 public:
  explicit TriedRegions(const format::Geometry& geometry) : geometry_(geometry), tried_(geometry.regions_per_shard) {}

  // Adds a region. There was no room for copies of its objects, or an entry names an object in it that could not be
  // moved.
  void Add(const log::ShardLog::LinkedRegion& region) {
    tried_[geometry_.NumberInShard(region.region)] = {region.generation, region.use.names};
  }
  [[nodiscard]] bool Has(const log::ShardLog::LinkedRegion& region) const {
    return tried_[geometry_.NumberInShard(region.region)] == State{region.generation, region.use.names};
  }
  // Forgets all regions, since there is more room.
  void Clear() { tried_.assign(tried_.size(), {}); }

 private:
  struct State {
    uint32_t generation = 0;
    uint32_t names = 0;
    bool operator==(const State&) const = default;
  };
  const format::Geometry& geometry_;
  std::vector<State> tried_;  // by the region's number in the shard
};

}  // namespace erda::server
