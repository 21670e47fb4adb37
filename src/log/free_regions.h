// The free regions of one shard, and the choice of the one to take next.
//
// Owns the set and the order. RegionTable stores in the pool that a region is free. The shard's thread alone calls it.
#pragma once

#include <cstdint>
#include <vector>

#include "log/shard_shape.h"
#include "nvm/writer.h"

namespace erda::log {

class FreeRegions {
 public:
  FreeRegions(const nvm::Writer& nvm, const ShardShape& shape)
      : nvm_(nvm), shape_(shape), is_free_(shape.geometry().regions_per_shard) {}

  [[nodiscard]] uint32_t count() const { return count_; }
  // Requires: the region's word says that it is free.
  void Add(uint32_t region) {
    is_free_[shape_.NumberOf(region)] = true;
    ++count_;
  }
  // Takes the next region out of the set. Returns kNoRegion if fewer than `others` would be left. The caller stores
  // another word for the region.
  uint32_t Take(uint32_t others);
  // Returns the region at which the next Take begins, or kNoRegion. Reads no word.
  [[nodiscard]] uint32_t Next() const;

 private:
  void Remove(uint32_t region);
  [[nodiscard]] bool HasNewerHeader(uint32_t region, uint32_t generation) const;

  const nvm::Writer& nvm_;
  const ShardShape shape_;
  uint32_t count_ = 0;
  uint32_t next_ = 0;          // the number of the region at which the next search begins
  std::vector<bool> is_free_;  // by number
};

}  // namespace erda::log
