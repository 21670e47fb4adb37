#include "client/staging.h"

#include <algorithm>

#include "base/bytes.h"

namespace erda::client {

void Staging::Reset(uint64_t bytes, uint32_t places_max) {
  bytes_ = AlignDown(std::min<uint64_t>(bytes, UINT32_MAX), kGranule);  // a request has 32 bits for a place
  taken_.clear();
  taken_.reserve(places_max);
}

std::optional<uint32_t> Staging::Take(uint64_t bytes) {
  if (bytes > bytes_) return std::nullopt;
  const uint64_t needed = std::max(AlignUp(bytes, kGranule), kGranule);
  uint64_t begin = 0;
  auto before = taken_.begin();
  for (; before != taken_.end() && before->begin - begin < needed; ++before) begin = before->end;
  if (begin + needed > bytes_) return std::nullopt;
  taken_.insert(before, {begin, begin + needed});
  return static_cast<uint32_t>(begin);
}

void Staging::GiveBack(uint32_t at) {
  const auto place = std::ranges::lower_bound(taken_, at, {}, &Place::begin);
  if (place != taken_.end() && place->begin == at) taken_.erase(place);  // otherwise the connection has ended meanwhile
}

}  // namespace erda::client
