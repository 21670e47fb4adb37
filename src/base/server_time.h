// The server's clock, by which values expire: microseconds of Unix time. It takes the wall clock when the server
// starts, and goes on from there by a clock that never jumps (docs/protocol.md, "Expiry").
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/clock.h"

namespace erda {

class ServerTime {
 public:
  // No deadline is later: some nine thousand years, in milliseconds.
  static constexpr uint64_t kDeadlineMax = uint64_t{1} << 48;
  static constexpr uint64_t kMicrosMax = kDeadlineMax * 1000;

  ServerTime(const Clock& clock, uint64_t micros, uint64_t not_before = 0)
      : clock_(clock), begin_(clock.Now()), micros_(micros), not_before_(not_before) {}
  // From the wall clock on, but not before what the pool has noted. The note of a server that died is up to note_ahead
  // ahead: then the time stands still until the wall clock is there, so that crashes do not add up. A note further
  // ahead means that the wall clock was set back, and the time goes on from the note.
  static ServerTime From(const Clock& clock, uint64_t wall, uint64_t noted, uint64_t note_ahead) {
    const bool set_back = noted > wall && noted - wall > note_ahead;
    return {clock, set_back ? noted : wall, noted};
  }
  // The wall clock, from the first call on.
  static const ServerTime& OfThisMachine() {
    static const ServerTime time(SteadyClock::Instance(), WallMicros());
    return time;
  }
  static uint64_t WallMicros() {
    const auto since = std::chrono::system_clock::now().time_since_epoch();
    return static_cast<uint64_t>(std::chrono::floor<std::chrono::microseconds>(since).count());
  }

  [[nodiscard]] uint64_t Micros() const {
    const auto since = std::chrono::floor<std::chrono::microseconds>(clock_.Now() - begin_);
    return std::max(micros_ + static_cast<uint64_t>(since.count()), not_before_);
  }
  // Of a version; 0: it has none.
  [[nodiscard]] bool Passed(uint64_t deadline) const { return deadline != 0 && Micros() / 1000 >= deadline; }
  // So many milliseconds from now, or a little later.
  [[nodiscard]] uint64_t DeadlineIn(uint64_t ttl) const {
    return std::min((Micros() + 999) / 1000 + std::min(ttl, kDeadlineMax), kDeadlineMax);
  }

 private:
  const Clock& clock_;
  const Nanoseconds begin_;
  const uint64_t micros_;
  const uint64_t not_before_;
};

}  // namespace erda
