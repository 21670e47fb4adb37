// The wait of the shard's clock for values that clients have still to write. Their puts were judged by versions with a
// deadline, and the clock stands before the first of these deadlines (ExpiryClock::StandBefore). One client must not
// keep it there for ever.
//
// Owns only the time for which the clock has stood. The shard's thread calls it.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "server/versions/versions.h"

namespace erda::server {

class ClockWait {
 public:
  explicit ClockWait(Versions& versions) : versions_(versions) {}

  [[nodiscard]] bool waits() const { return versions_.part().clock().stands(); }
  // Adds the time to the wait. Settles values that have arrived without a message. Calls end(SessionId) for each client
  // whose value has kept the clock for too long.
  template <class End>
  void PassTime(Nanoseconds since, End&& end) {
    if (!CountTime(since)) return;
    versions_.ForEachJudged(versions_.part().clock().next_judged(), end);
  }

 private:
  // Returns true if the wait has been too long.
  [[nodiscard]] bool CountTime(Nanoseconds since);

  Versions& versions_;
  uint64_t deadline_ = 0;  // The clock stood before it at the last PassTime.
  Nanoseconds waited_{0};
};

}  // namespace erda::server
