// Reads and stores region words and segment headers in the pool, for the verification of a shard. Owns nothing. The
// thread that starts the shard calls it.
#pragma once

#include <cstdint>

#include "format/geometry.h"
#include "format/log_layout.h"
#include "nvm/writer.h"

namespace erda::server {

class RegionBytes {
 public:
  RegionBytes(nvm::Writer& nvm, const format::Geometry& geometry) : nvm_(nvm), geometry_(geometry) {}

  [[nodiscard]] uint64_t SegmentOffset(uint32_t region, uint64_t segment) const {
    return geometry_.RegionOffset(region) + segment * geometry_.segment_size;
  }
  [[nodiscard]] format::SegmentHeader HeaderOf(uint32_t region, uint64_t segment) const;
  [[nodiscard]] format::RegionWord WordOf(uint32_t region) const;
  // Persistent on return.
  void StoreWord(uint32_t region, format::RegionWord word);

 private:
  nvm::Writer& nvm_;
  const format::Geometry& geometry_;
};

}  // namespace erda::server
