// Time is passed in: protocol code reads no clock of its own, so that the simulator can turn it.
#pragma once

#include <chrono>
#include <cstdint>

namespace erda {

using Nanoseconds = std::chrono::nanoseconds;

class Clock {
 public:
  virtual ~Clock() = default;
  // Never goes back. Only differences mean anything.
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
