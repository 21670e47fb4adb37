// A clock as an object. Protocol code gets the time from its caller and reads no clock, so that the simulator can set
// it.
#pragma once

#include <chrono>
#include <cstdint>

namespace erda {

using Nanoseconds = std::chrono::nanoseconds;

class Clock {
 public:
  virtual ~Clock() = default;
  // Never goes back. Only differences between two readings have a meaning.
  [[nodiscard]] virtual Nanoseconds Now() const = 0;
};

class SteadyClock final : public Clock {
 public:
  [[nodiscard]] Nanoseconds Now() const override { return std::chrono::steady_clock::now().time_since_epoch(); }
  static const SteadyClock& Instance() {
    static const SteadyClock clock;
    return clock;
  }
};

}  // namespace erda
