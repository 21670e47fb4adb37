// What a client knows of the server's time: not before and not after, by what the server once said, and by its own
// clock since.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/clock.h"

namespace erda::client {

class TimeBounds {
 public:
  // The server said so between these two readings of the client's clock.
  void Learn(Nanoseconds asked, Nanoseconds answered, uint64_t micros) {
    asked_ = asked;
    answered_ = answered;
    said_ = std::chrono::microseconds(micros);
  }
  // Of a deadline in milliseconds, at this reading of the client's clock. Neither may be so.
  [[nodiscard]] bool HasPassed(uint64_t deadline, Nanoseconds now) const {
    if (now < answered_) return false;
    return MillisOf(said_ + (now - answered_) - DriftIn(now - answered_)) >= deadline;
  }
  [[nodiscard]] bool HasNotPassed(uint64_t deadline, Nanoseconds now) const {
    return MillisOf(said_ + (now - asked_) + DriftIn(now - asked_)) < deadline;
  }

 private:
  // Two clocks of which each may be slewed by 500 ppm, and that go wrong by themselves.
  static constexpr Nanoseconds DriftIn(Nanoseconds since) { return since / 800; }
  static constexpr uint64_t MillisOf(Nanoseconds time) {
    return static_cast<uint64_t>(std::chrono::floor<std::chrono::milliseconds>(time).count());
  }

  Nanoseconds asked_{0};
  Nanoseconds answered_{0};
  Nanoseconds said_{0};
};

}  // namespace erda::client
