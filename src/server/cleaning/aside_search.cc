#include "server/cleaning/aside_search.h"

#include <algorithm>

namespace erda::server {

namespace {

constexpr uint64_t kSearchedPerStep = 128;

}  // namespace

void AsideSearch::Begin(const log::ShardLog::LinkedRegion& region) {
  region_ = region.region;
  head_ = region.head;
  head_slot_ = region.slot;
  next_ = 0;
  has_settled_ = false;
}

bool AsideSearch::Step() {
  const index::Slot end = std::min(next_ + kSearchedPerStep, versions_.index().size());
  // The cleaner can copy a mended version now, so the region is worth another merge.
  has_settled_ |= versions_.mending().Mend(versions_.PublishPuts(), next_, end - next_);
  for (; next_ < end; ++next_) {
    has_settled_ |= versions_.moving().SetAside(versions_.PublishPuts(), next_, head_, head_slot_);
  }
  return end >= versions_.index().size();
}

}  // namespace erda::server
