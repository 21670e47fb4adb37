#include "server/cleaning/merged_regions.h"

#include <algorithm>

namespace erda::server {

namespace {

// The copies out of the regions of the list take at most this part of a shard's log, or one region if that is more.
constexpr uint64_t kShareOfLog = 32;

}  // namespace

// A put that is not published yet may stand in a chunk before the held place. The cleaner would pass it, and not look
// there again.
std::span<const HeldPlace> MergedRegions::Add(Versions& versions, const log::ShardLog::LinkedRegion& region) {
  std::vector<HeldPlace> held;
  const auto note = [&](uint32_t head, format::LogAddress address, uint64_t from, uint64_t to, bool in_chunk) {
    if (head != region.head || geometry_.SlotOf(address) != region.slot || from == to) return;
    const uint64_t at = geometry_.OffsetInRegion(address);
    held.push_back({at + from, at + to, in_chunk});
  };
  versions.ForEachHeld(versions.PublishPuts(), note);
  std::ranges::sort(held, {}, &HeldPlace::from);
  merged_.push_back({region.region, region.use.live_bytes, std::move(held)});
  copied_ += region.use.live_bytes;
  return merged_.back().held;
}

void MergedRegions::Remove(const log::ShardLog::LinkedRegion& region) {
  const auto it = std::ranges::find(merged_, region.region, &Merged::region);
  if (it == merged_.end()) return;
  copied_ -= it->copied;
  merged_.erase(it);
}

bool MergedRegions::MayCopy(uint64_t bytes) const {
  const uint64_t regions = std::max<uint64_t>(1, geometry_.regions_per_shard / kShareOfLog);
  return copied_ + bytes <= regions * geometry_.region_size;
}

const MergedRegions::Merged* MergedRegions::Find(uint32_t region) const {
  const auto it = std::ranges::find(merged_, region, &Merged::region);
  return it == merged_.end() ? nullptr : &*it;
}

}  // namespace erda::server
