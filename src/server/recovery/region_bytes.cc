#include "server/recovery/region_bytes.h"

#include "base/bytes.h"
#include "format/superblock.h"

namespace erda::server {

namespace {

uint64_t RegionWordOffset(uint32_t region) { return format::kRegionTableOffset + region * sizeof(uint64_t); }

}  // namespace

format::SegmentHeader RegionBytes::HeaderOf(uint32_t region, uint64_t segment) const {
  return LoadAs<format::SegmentHeader>(nvm_.Bytes(SegmentOffset(region, segment), sizeof(format::SegmentHeader)));
}

format::RegionWord RegionBytes::WordOf(uint32_t region) const {
  return format::RegionWord(nvm_.Load64(RegionWordOffset(region)));
}

void RegionBytes::StoreWord(uint32_t region, format::RegionWord word) {
  if (WordOf(region) == word) return;
  nvm_.Store64(RegionWordOffset(region), word.raw());
  nvm_.Persist(RegionWordOffset(region), sizeof(uint64_t));
}

}  // namespace erda::server
