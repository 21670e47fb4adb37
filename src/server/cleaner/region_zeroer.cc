#include "server/cleaner/region_zeroer.h"

#include <algorithm>

#include "base/planted.h"

namespace erda::server {

namespace {

// A step takes a microsecond or two. A shard on the same processor may have to wait for it.
constexpr uint64_t kZeroedPerStep = 2 << 10;

}  // namespace

bool RegionZeroer::Step() {
  if (proposals_.room() == 0) return false;
  const uint32_t region = waiting_.front();
  const uint64_t bytes = std::min(kZeroedPerStep, geometry_.region_size - zeroed_);
  if (!Planted(Flaw::kNotZeroed)) nvm_.ZeroOut(geometry_.RegionOffset(region) + zeroed_, bytes);
  zeroed_ += bytes;
  if (zeroed_ < geometry_.region_size) return true;
  // Pairs with the shard's store of the free word (ShardLog::FreeEmptied): the zeroes are persistent before that store.
  nvm_.Fence();
  zeroed_ = 0;
  waiting_.pop_front();
  (void)proposals_.Push(RegionZeroed{region});
  return true;
}

}  // namespace erda::server
