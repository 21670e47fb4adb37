// Fills emptied regions with zeroes, in small steps. Owns the list of the regions that wait for that. The cleaner's
// thread calls it.
//   (C5) The cleaner writes zeroes into a region only when the shard has ordered so. The shard orders it for a region
//        that it has emptied.
#pragma once

#include <cstdint>
#include <deque>

#include "format/geometry.h"
#include "nvm/writer.h"
#include "server/cleaner/clean_queues.h"

namespace erda::server {

class RegionZeroer {
 public:
  RegionZeroer(nvm::Writer& nvm, const format::Geometry& geometry, ProposalQueue& proposals)
      : nvm_(nvm), geometry_(geometry), proposals_(proposals) {}

  void Add(uint32_t region) { waiting_.push_back(region); }
  [[nodiscard]] bool has_work() const { return !waiting_.empty(); }
  // Zeroes a few KiB of the first region. When all of the region is zeroes, persistently, sends RegionZeroed. Returns
  // false if the queue of proposals is full. REQUIRES: has_work().
  bool Step();

 private:
  nvm::Writer& nvm_;
  const format::Geometry& geometry_;
  ProposalQueue& proposals_;
  std::deque<uint32_t> waiting_;
  uint64_t zeroed_ = 0;  // bytes of the first region that are zeroes
};

}  // namespace erda::server
