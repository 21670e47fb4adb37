// When an idle shard looks whether something arrived that nobody said was there: a while after it was busy, and what
// does not arrive ever more rarely, since each look is a checksum of the whole value.
#pragma once

#include <algorithm>
#include <chrono>

#include "base/clock.h"

namespace erda::server {

class TidyTimer {
 public:
  // At first, and at most.
  static constexpr Nanoseconds kFirst = std::chrono::milliseconds(5);
  static constexpr Nanoseconds kLast = std::chrono::seconds(1);

  // The shard was busy until now.
  void Restart(Nanoseconds now) {
    after_ = kFirst;
    since_ = now;
  }
  [[nodiscard]] bool Due(Nanoseconds now) const { return now - since_ >= after_; }
  // REQUIRES: not due.
  [[nodiscard]] Nanoseconds Left(Nanoseconds now) const { return since_ + after_ - now; }
  [[nodiscard]] Nanoseconds Since(Nanoseconds now) const { return now - since_; }
  // The shard has looked; settled: it found something.
  void Looked(Nanoseconds now, bool settled) {
    after_ = settled ? kFirst : std::min(2 * after_, kLast);
    since_ = now;
  }

 private:
  Nanoseconds after_ = kFirst;
  Nanoseconds since_{0};
};

}  // namespace erda::server
