#include "journal/ring_space.h"

#include <algorithm>
#include <cassert>

namespace erda::journal {

// If the first live record is at next_, every block is live. If it is after next_, the records have begun again at the
// first block, and the free blocks end at it. If it is before next_, free blocks are at both ends of the ring.
std::optional<uint64_t> RingSpace::Find(uint64_t blocks) const {
  const bool before_end = blocks <= blocks_ - next_;
  const uint64_t room_at_front = (live_.empty() ? blocks_ : live_.front().block) - kFirstRecordBlock;
  if (live_.empty() || live_.front().block < next_) {
    if (before_end) return next_;
    if (blocks <= room_at_front) return kFirstRecordBlock;
    return {};
  }
  if (blocks <= live_.front().block - next_) return next_;
  return {};
}

uint64_t RingSpace::LongestFree() const {
  if (live_.empty()) return blocks_ - kFirstRecordBlock;
  const uint64_t front = live_.front().block;
  return front < next_ ? std::max(blocks_ - next_, front - kFirstRecordBlock) : front - next_;
}

uint64_t RingSpace::free_blocks() const {
  if (live_.empty()) return blocks_ - kFirstRecordBlock;
  const uint64_t front = live_.front().block;
  return front < next_ ? blocks_ - next_ + front - kFirstRecordBlock : front - next_;
}

void RingSpace::Take(uint64_t blocks, const Live& live) {
  assert(Find(blocks) == live.block);
  live_.push_back(live);
  next_ = live.block + blocks;
  if (next_ == blocks_) next_ = kFirstRecordBlock;
}

std::optional<RingSpace::Beginning> RingSpace::After(Place place) const {
  const auto at = std::ranges::lower_bound(live_, place, {}, &Live::end);
  if (at == live_.end() || at->end != place) return {};
  const auto following = at + 1;
  return Beginning{following == live_.end() ? next_ : following->block, at->epoch};
}

void RingSpace::Free(Place place) {
  while (!live_.empty() && live_.front().end <= place) live_.pop_front();
}

}  // namespace erda::journal
