// The server's clock, by which values expire: microseconds of Unix time. It reads the wall clock when the server
// starts, and then follows a clock that never jumps (docs/protocol.md, "Expiry").
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/clock.h"

namespace erda {

class ServerTime {
 public:
  // The latest deadline: about nine thousand years, in milliseconds.
  static constexpr uint64_t kDeadlineMax = uint64_t{1} << 48;
  static constexpr uint64_t kMicrosMax = kDeadlineMax * 1000;

  ServerTime(const Clock& clock, uint64_t micros, uint64_t not_before = 0)
      : clock_(clock), begin_(clock.Now()), micros_(micros), not_before_(not_before) {}
  // Begins at the wall clock, but not before the time that the pool has noted. The note of a server that died may be up
  // to note_ahead ahead of the wall clock. Then the time stands still until the wall clock reaches it, so that crashes
  // do not add up. A note further ahead means that the wall clock was set back; then the time continues from the note.
  static ServerTime From(const Clock& clock, uint64_t wall, uint64_t noted, uint64_t note_ahead) {
    const bool set_back = noted > wall && noted - wall > note_ahead;
    return {clock, set_back ? noted : wall, noted};
  }
  // Returns the time that began at the wall clock with the first call.
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
  // Returns true if the deadline of a version has passed. 0: the version has none.
  [[nodiscard]] bool Passed(uint64_t deadline) const { return deadline != 0 && Micros() / 1000 >= deadline; }
  // Returns the deadline that is `ttl` milliseconds from now, or a little later.
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
