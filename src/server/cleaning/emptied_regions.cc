#include "server/cleaning/emptied_regions.h"

namespace erda::server {

using format::Counter;

namespace {

// Orders to zero that may be open at a time. The queue has room for more.
constexpr uint64_t kOrdersMax = 8;

}  // namespace

void EmptiedRegions::TakeUp() {
  for (const auto& emptied : log_.regions().emptied()) waiting_.push_back(emptied.region);
  OrderZeroes();
}

// (C6)
void EmptiedRegions::Empty(const log::ShardLog::LinkedRegion& region) {
  log_.Empty(region.head, region.slot);
  waiting_.push_back(region.region);
  OrderZeroes();
  counters_.Add(Counter::kCleanRegions);
  counters_.Add(Counter::kCleanBytesFreed, geometry_.region_size);
}

void EmptiedRegions::Free(uint32_t region) {
  log_.FreeEmptied(region);
  --ordered_;
  OrderZeroes();
  counters_.Set(Counter::kFreeRegions, log_.regions().free_regions());
}

void EmptiedRegions::OrderZeroes() {
  while (!waiting_.empty() && ordered_ < kOrdersMax) {
    queues_.Send(ZeroOrder{waiting_.back()});
    waiting_.pop_back();
    ++ordered_;
  }
}

}  // namespace erda::server
