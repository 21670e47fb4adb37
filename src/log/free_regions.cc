#include "log/free_regions.h"

#include "format/log_layout.h"
#include "log/region_words.h"
#include "log/segment_headers.h"

namespace erda::log {

using format::RegionWord;

// The shard takes regions in turn, so that all of the medium wears alike. It must read a region's segment headers to be
// sure that the region is free. A restart does not read them: Take does, for the first free regions that it meets,
// until it has one more than `others`.
uint32_t FreeRegions::Take(uint32_t others) {
  if (count_ <= others) return kNoRegion;
  const uint32_t regions = shape_.geometry().regions_per_shard;
  uint32_t first = kNoRegion;
  uint32_t found = 0;
  for (uint32_t i = 0; i < regions && found <= others; ++i) {
    const uint32_t number = (next_ + i) % regions;
    const uint32_t region = shape_.RegionOf(number);
    const RegionWord word = LoadRegionWord(nvm_, region);
    if (!is_free_[number] || word != RegionWord::Free(word.generation())) continue;
    if (HasNewerHeader(region, word.generation())) {
      Remove(region);
    } else if (found++ == 0) {
      first = region;
    }
  }
  if (found <= others) return kNoRegion;
  next_ = shape_.NumberOf(first) + 1;
  Remove(first);
  return first;
}

uint32_t FreeRegions::Next() const {
  const uint32_t regions = shape_.geometry().regions_per_shard;
  for (uint32_t i = 0; i < regions; ++i) {
    if (const uint32_t number = (next_ + i) % regions; is_free_[number]) return shape_.RegionOf(number);
  }
  return kNoRegion;
}

void FreeRegions::Remove(uint32_t region) {
  is_free_[shape_.NumberOf(region)] = false;
  --count_;
}

// If a region's word says free, and a segment was opened since, the word is damaged. Entries may lead there, so the
// shard leaves the region as it is.
bool FreeRegions::HasNewerHeader(uint32_t region, uint32_t generation) const {
  for (const uint64_t segment : shape_.segments()) {
    if (HeaderOf(nvm_, shape_, {region, segment}).OpenedAfter(generation)) return true;
  }
  return false;
}

}  // namespace erda::log
