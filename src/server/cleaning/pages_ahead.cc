#include "server/cleaning/pages_ahead.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/bytes.h"
#include "base/map_shared.h"
#include "format/index_entry.h"

namespace erda::server {

namespace {

// Bytes that the log grows between two looks.
constexpr uint64_t kBetweenLooks = 512 << 10;

}  // namespace

PagesAhead::PagesAhead(const log::ShardLog& log, const format::Geometry& geometry, uint32_t shard,
                       nvm::LargePages large_pages, const Clock& clock, CleanQueues& queues)
    : log_(log),
      geometry_(geometry),
      shard_(shard),
      queues_(queues),
      large_pages_(large_pages),
      clock_(clock),
      heads_(geometry.heads_per_shard) {}

// Entries stand at random places of the index, so nearly each new key would find a new page. On a disk these stay
// small: with large ones a sync would write most of the index for a few changed entries.
void PagesAhead::Begin() {
  if (large_pages_ == nvm::LargePages::kNone) return;
  if (large_pages_ == nvm::LargePages::kInMemory)
    (void)Push({geometry_.FirstSlotOffset(shard_, 0), geometry_.index_slots * sizeof(format::IndexEntry)});
  Look();
}

void PagesAhead::Look() {
  const uint32_t first = shard_ * geometry_.heads_per_shard;
  if (KeepsPace()) {
    for (uint32_t i = 0; i < heads_.size(); ++i) LookAt(first + i, &heads_[i]);
  }
  due_ = log_.tails().appended() + kBetweenLooks;
  queues_.pages.appended.store(log_.tails().appended(), std::memory_order_relaxed);
}

bool PagesAhead::KeepsPace() {
  if (large_pages_ == nvm::LargePages::kInMemory) return true;
  const Nanoseconds now = clock_.Now();
  const uint64_t appended = log_.tails().appended();
  const double seconds = std::chrono::duration<double>(now - std::exchange(looked_at_, now)).count();
  const auto bytes = static_cast<double>(appended - std::exchange(looked_after_, appended));
  return bytes > 0 && bytes >= seconds * static_cast<double>(kPaceOnDisk * heads_.size());
}

bool PagesAhead::Enlarge(Reached* at, uint64_t from) {
  if (large_pages_ != nvm::LargePages::kOnDisk || at->enlarged || from >= geometry_.region_size) return true;
  at->enlarged = Push({.offset = geometry_.RegionOffset(at->region) + from,
                       .bytes = geometry_.region_size - from,
                       .work = PageOrder::Work::kEnlarge});
  return at->enlarged;
}

void PagesAhead::LookAt(uint32_t head, Reached* at) {
  const log::Tails& tails = log_.tails();
  const log::SegmentId open = tails.OpenSegment(head);
  uint64_t end = geometry_.region_size;  // Without a segment, only the next region counts.
  if (!open.none()) {
    if (at->region != open.region) *at = next_.region == open.region ? next_ : Reached{open.region, 0};
    end = (open.segment + 1) * geometry_.segment_size - tails.RoomLeft(head);
    at->bytes = std::max(at->bytes, AlignDown(end, kLargePage));
    if (!Enlarge(at, end) || !Order(at, end, end + kAhead)) return;
  }
  if (end + kAhead <= geometry_.region_size) return;
  const uint32_t next = log_.regions().next_free();
  if (next == log::kNoRegion) return;
  if (next_.region != next) next_ = {next, 0};
  if (!Enlarge(&next_, 0)) return;
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
