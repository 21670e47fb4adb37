// How long an idle shard looks for work before it sleeps. Waking up costs more than a request does, tens of
// microseconds or hundreds; so where work comes soon after the shard went to sleep, it looks longer next time, and
// sleeps sooner again when work does not come.
#pragma once

#include <algorithm>

#include "base/clock.h"

namespace erda::server {

class SpinTime {
 public:
  // At most so many times as long as it was told.
  static constexpr int kLongest = 20;

  explicit SpinTime(Nanoseconds least) : least_(least), now_(least) {}
  [[nodiscard]] Nanoseconds now() const { return now_; }
  // Work came to a shard that slept, so long after the last.
  void CameAfter(Nanoseconds idle) {
    now_ = idle <= kLongest * least_ ? std::min(2 * idle, kLongest * least_) : least_;
  }

 private:
  Nanoseconds least_;
  Nanoseconds now_;
};

}  // namespace erda::server
