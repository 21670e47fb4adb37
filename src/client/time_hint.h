// What a client knows of the server's time: not before and not after, by what the server once said, and by its own
// clock since.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/clock.h"
#include "base/server_time.h"

namespace erda::client {

class TimeBounds {
 public:
  // The server said so between these two readings of the client's clock.
  void Learn(Nanoseconds asked, Nanoseconds answered, uint64_t micros) {
    asked_ = asked;
    answered_ = answered;
    said_ = std::min(micros, ServerTime::kMicrosMax);
  }
  // Of a deadline in milliseconds, at this reading of the client's clock. Neither may be so.
  [[nodiscard]] bool HasPassed(uint64_t deadline, Nanoseconds now) const {
    if (now < answered_) return false;
    const Nanoseconds since = now - answered_;
    return (said_ + MicrosIn(since - DriftIn(since))) / 1000 >= deadline;
  }
  [[nodiscard]] bool HasNotPassed(uint64_t deadline, Nanoseconds now) const {
    const Nanoseconds since = now - asked_;
    // What the server said was rounded down, and so is this.
    return (said_ + MicrosIn(since + DriftIn(since)) + 2) / 1000 < deadline;
  }

 private:
  // Two clocks of which each may be slewed by 500 ppm, and that go wrong by themselves.
  static constexpr Nanoseconds DriftIn(Nanoseconds since) { return since / 800; }
  static constexpr uint64_t MicrosIn(Nanoseconds time) {
    return static_cast<uint64_t>(std::chrono::floor<std::chrono::microseconds>(time).count());
  }

  Nanoseconds asked_{0};
  Nanoseconds answered_{0};
  uint64_t said_ = 0;  // microseconds
};

}  // namespace erda::client
