// Functions for the words of the region table in the pool, one word for each region of all shards. They own nothing.
//
// Any thread may load. The thread of a region's shard alone stores.
#pragma once

#include <cstdint>

#include "format/log_layout.h"
#include "nvm/writer.h"

namespace erda::log {

[[nodiscard]] constexpr uint64_t RegionWordOffset(uint32_t region) {
  return format::kRegionTableOffset + region * sizeof(uint64_t);
}

[[nodiscard]] inline format::RegionWord LoadRegionWord(const nvm::Writer& nvm, uint32_t region) {
  return format::RegionWord(nvm.Load64(RegionWordOffset(region)));
}

// Stores the word. Persistent on return.
inline void StoreRegionWord(nvm::Writer& nvm, uint32_t region, format::RegionWord word) {
  nvm.Store64(RegionWordOffset(region), word.raw());
  nvm.Persist(RegionWordOffset(region), sizeof(uint64_t));
}

}  // namespace erda::log
