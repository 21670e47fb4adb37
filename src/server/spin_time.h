// Decides how long an idle shard looks for work before it sleeps. Waking up costs tens or hundreds of microseconds,
// which is more than a request costs. So if work comes soon after the shard went to sleep, the shard looks longer next
// time. If no work comes, it sleeps sooner again. One thread uses it, the shard's.
#pragma once

#include <algorithm>

#include "base/clock.h"

namespace erda::server {

class SpinTime {
 public:
  // The longest time, in multiples of the least one.
  static constexpr int kLongest = 20;

  explicit SpinTime(Nanoseconds least) : least_(least), now_(least) {}
  [[nodiscard]] Nanoseconds now() const { return now_; }
  // Notes that work came to a shard that slept, this long after the last work.
  void CameAfter(Nanoseconds idle) {
    now_ = idle <= kLongest * least_ ? std::clamp(2 * idle, least_, kLongest * least_) : least_;
  }

 private:
  Nanoseconds least_;
  Nanoseconds now_;
};

}  // namespace erda::server
