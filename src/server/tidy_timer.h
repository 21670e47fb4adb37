// Decides when an idle shard looks for values that arrived without a message. The first look comes kFirst after the
// shard was busy. If a value does not arrive, the looks get rarer, since each one computes the checksum of the whole
// value. One thread uses it, the shard's.
#pragma once

#include <algorithm>
#include <chrono>

#include "base/clock.h"

namespace erda::server {

class TidyTimer {
 public:
  // The first interval, and the longest one.
  static constexpr Nanoseconds kFirst = std::chrono::milliseconds(5);
  static constexpr Nanoseconds kLast = std::chrono::seconds(1);

  // Notes that the shard was busy until now.
  void Restart(Nanoseconds now) {
    after_ = kFirst;
    since_ = now;
  }
  [[nodiscard]] bool Due(Nanoseconds now) const { return now - since_ >= after_; }
  // Returns the time until the next look. REQUIRES: it is not due.
  [[nodiscard]] Nanoseconds Left(Nanoseconds now) const { return since_ + after_ - now; }
  [[nodiscard]] Nanoseconds Since(Nanoseconds now) const { return now - since_; }
  // Notes that the shard has looked. settled: it has settled a version.
  void Looked(Nanoseconds now, bool settled) {
    after_ = settled ? kFirst : std::min(2 * after_, kLast);
    since_ = now;
  }

 private:
  Nanoseconds after_ = kFirst;
  Nanoseconds since_{0};
};

}  // namespace erda::server
