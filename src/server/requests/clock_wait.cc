#include "server/requests/clock_wait.h"

namespace erda::server {

namespace {

// How long the clock may stand for one deadline: as long as other requests may wait for a writer (WriterQueue).
constexpr Nanoseconds kClockAwaitedMax = std::chrono::seconds(3);
// Reservations that one PassTime looks at.
constexpr size_t kSweepStep = 64;

}  // namespace

// The first interval may have begun before the clock stood, so it does not count.
bool ClockWait::CountTime(Nanoseconds since) {
  if (waits()) (void)versions_.Sweep(kSweepStep);
  const uint64_t deadline = waits() ? versions_.part().clock().next_judged() : 0;
  if (deadline != deadline_ || deadline == 0) {
    deadline_ = deadline;
    waited_ = Nanoseconds(0);
    return false;
  }
  waited_ += since;
  return waited_ >= kClockAwaitedMax;
}

}  // namespace erda::server
