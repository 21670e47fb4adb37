// The free regions of one shard: how many there are, and which one is taken next.
//
// Owns the count and the order. The region words in the pool say which regions are free; RegionTable stores them.
// The shard's thread alone calls it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "log/shard_shape.h"
#include "nvm/writer.h"

namespace erda::log {

class FreeRegions {
 public:
  FreeRegions(const nvm::Writer& nvm, const ShardShape& shape)
      : nvm_(nvm), shape_(shape), unusable_(shape.geometry().regions_per_shard) {}

  [[nodiscard]] uint32_t count() const { return count_; }
  // Counts one more. Requires: the region's word says that it is free.
  void Add() { ++count_; }
  // Returns the next free region, and counts it no more. Returns kNoRegion if fewer than `others` would be left.
  // Requires: the caller stores another word for the region. generations: of the shard's regions, by number; 0 where
  // the region is not linked.
  uint32_t Take(uint32_t others, std::span<const uint32_t> generations);

 private:
  [[nodiscard]] bool HasNewerHeader(uint32_t region, uint32_t generation) const;

  const nvm::Writer& nvm_;
  const ShardShape shape_;
  uint32_t count_ = 0;
  uint32_t next_ = 0;           // the number of the region at which the next search begins
  std::vector<bool> unusable_;  // by number: the word says free, and a segment's header contradicts it
};

}  // namespace erda::log
