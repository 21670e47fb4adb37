// Measures how long the disk of a journal takes to hold what the shard asks for. The shard's thread calls it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "server/control/activity.h"

namespace erda::server {

// Remembers a few requests at the same time. While all places are taken, further ones are not timed.
class HoldTimer {
 public:
  HoldTimer(ActivityCounts& activity, const Clock& clock) : activity_(activity), clock_(clock) {}

  // The shard asks the medium to hold the stream up to this place. Only a later place than before is timed.
  void Asked(uint64_t place) {
    if (place <= last_ || asked_ - held_ == kMost) return;
    last_ = place;
    requests_[asked_++ % kMost] = {place, clock_.Now()};
  }
  // The medium holds the stream up to this place.
  void Held(uint64_t place) {
    if (held_ == asked_ || requests_[held_ % kMost].place > place) return;
    const Nanoseconds now = clock_.Now();
    for (; held_ != asked_ && requests_[held_ % kMost].place <= place; ++held_) {
      activity_.TimeHold(now - requests_[held_ % kMost].at);
    }
  }

 private:
  struct Request {
    uint64_t place;
    Nanoseconds at;
  };
  static constexpr size_t kMost = 16;

  ActivityCounts& activity_;
  const Clock& clock_;
  std::array<Request, kMost> requests_{};
  size_t asked_ = 0;
  size_t held_ = 0;
  uint64_t last_ = 0;
};

}  // namespace erda::server
