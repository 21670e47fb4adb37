#include "server/cleaning/pages_ahead.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/map_shared.h"
#include "format/index_entry.h"

namespace erda::server {

namespace {

// Bytes that the log grows between two looks.
constexpr uint64_t kBetweenLooks = 512 << 10;

}  // namespace

PagesAhead::PagesAhead(const log::ShardLog& log, const format::Geometry& geometry, uint32_t shard,
                       bool takes_large_pages, CleanQueues& queues)
    : log_(log),
      geometry_(geometry),
      shard_(shard),
      queues_(queues),
      takes_large_pages_(takes_large_pages),
      heads_(geometry.heads_per_shard) {}

// Entries stand at random places of the index, so nearly each new key would find a new page.
void PagesAhead::Begin() {
  if (!takes_large_pages_) return;
  (void)Push({geometry_.FirstSlotOffset(shard_, 0), geometry_.index_slots * sizeof(format::IndexEntry)});
  Look();
}

void PagesAhead::Look() {
  const uint32_t first = shard_ * geometry_.heads_per_shard;
  for (uint32_t i = 0; i < heads_.size(); ++i) LookAt(first + i, &heads_[i]);
  due_ = log_.tails().appended() + kBetweenLooks;
  queues_.pages.appended.store(log_.tails().appended(), std::memory_order_relaxed);
}

void PagesAhead::LookAt(uint32_t head, Reached* at) {
  const log::Tails& tails = log_.tails();
  const log::SegmentId open = tails.OpenSegment(head);
  uint64_t end = geometry_.region_size;  // Without a segment, only the next region counts.
  if (!open.none()) {
    if (at->region != open.region) *at = next_.region == open.region ? next_ : Reached{open.region, 0};
    end = (open.segment + 1) * geometry_.segment_size - tails.RoomLeft(head);
    at->bytes = std::max(at->bytes, AlignDown(end, kLargePage));
    if (!Order(at, end, end + kAhead)) return;
  }
  if (end + kAhead <= geometry_.region_size) return;
  const uint32_t next = log_.regions().next_free();
  if (next == log::kNoRegion) return;
  if (next_.region != next) next_ = {next, 0};
  // The log reaches byte 0 of the next region after the rest of this one.
  (void)Order(&next_, end - geometry_.region_size, end + kAhead - geometry_.region_size);
}

// Before the first put the log is near to no byte.
bool PagesAhead::Order(Reached* at, uint64_t end, uint64_t until) {
  until = std::min(AlignUp(until, kLargePage), geometry_.region_size);
  if (until <= at->bytes) return true;
  const uint64_t appended = log_.tails().appended();
  const uint64_t reached_at = appended == 0 ? PageOrder::kNever : appended + at->bytes - end;
  if (!Push({geometry_.RegionOffset(at->region) + at->bytes, until - at->bytes, reached_at})) return false;
  at->bytes = until;
  return true;
}

bool PagesAhead::Push(const PageOrder& order) {
  const bool pushed = queues_.pages.queue.Push(order);
  if (pushed) queues_.bell.Ring();
  return pushed;
}

}  // namespace erda::server
