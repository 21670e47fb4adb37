#include "client/location_cache.h"

namespace erda::client {

void LocationCache::ConfirmWay(uint64_t key_hash) {
  Way* way = WayOf(key_hash);
  if (way == nullptr) return;
  if (way->trust() < kTrustMax) way->set_trust(way->trust() + 1);
  if (way != SetOf(key_hash).ways.data()) std::swap(*way, *(way - 1));
}

void LocationCache::Refute(uint64_t key_hash) {
  if (Way* way = WayOf(key_hash)) way->set_trust(way->trust() / 2);
}

void LocationCache::Store(uint64_t key_hash, const Location& location) {
  if (sets_.empty()) return;
  const uint64_t granules = (location.object_bytes + format::kGranuleBytes - 1) / format::kGranuleBytes;
  if (granules > kGranulesMax) return Erase(key_hash);
  Way* way = WayOf(key_hash);
  uint32_t trust = 1;
  if (way != nullptr) {
    const bool same = way->address == location.address.raw() && way->generation == location.generation;
    trust = same && way->trust() == 0 ? 1 : way->trust();
  } else {
    auto& ways = SetOf(key_hash).ways;
    way = ways.data();
    while (way != &ways.back() && way->address != 0) ++way;
  }
  *way = {CheckOf(key_hash), location.address.raw(), location.generation,
          static_cast<uint32_t>(granules << kGranulesShift) | (location.expires ? kExpiresBit : 0) | trust};
}

void LocationCache::Erase(uint64_t key_hash) {
  if (Way* way = WayOf(key_hash)) *way = Way{};
}

}  // namespace erda::client
