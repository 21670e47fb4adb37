// Regions that were merged in vain, with what was in them then. To merge one again would gain nothing, as long as it
// holds the same. The shard's thread calls it.
#pragma once

#include <cstdint>
#include <vector>

#include "format/geometry.h"
#include "log/shard_log.h"

namespace erda::server {

class TriedRegions {
 public:
  explicit TriedRegions(const format::Geometry& geometry) : geometry_(geometry), tried_(geometry.regions_per_shard) {}

  // There was no room to copy to, or an entry names something there that could not be moved.
  void Add(const log::ShardLog::LinkedRegion& region) {
    tried_[geometry_.NumberInShard(region.region)] = {region.generation, region.use.names};
  }
  [[nodiscard]] bool Has(const log::ShardLog::LinkedRegion& region) const {
    return tried_[geometry_.NumberInShard(region.region)] == State{region.generation, region.use.names};
  }
  // There is more room.
  void Clear() { tried_.assign(tried_.size(), {}); }

 private:
  struct State {
    uint32_t generation = 0;
    uint32_t names = 0;
    bool operator==(const State&) const = default;
  };
  const format::Geometry& geometry_;
  std::vector<State> tried_;  // by region of the shard
};

}  // namespace erda::server
