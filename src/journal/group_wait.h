// How long the disk's thread waits for those that it has just answered, before it writes again.
//
// Clients put again when they have their answers. If the next write begins before that, half of them miss it, and wait
// for two writes. So the writer waits until about as many wait as it has seen at the same time. It does so for a part
// of the time that a write takes. The part shrinks while the wait is in vain, as for clients that think between puts.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"

namespace erda::journal {

// Belongs to the disk's thread.
class GroupWait {
 public:
  // A write has ended. `waiters`: those who wait at this moment, whether it has what they wait for or not.
  void Wrote(uint64_t waiters, Nanoseconds time) {
    expected_ = waiters - waiters / 8;
    typical_ = typical_.count() == 0 ? time : (7 * typical_ + time) / 8;
  }
  // Returns how many the next write waits for.
  [[nodiscard]] uint64_t expected() const { return expected_; }
  // Returns how long the next write waits at most. Now and then that is half a write, so that a wait that was in vain
  // for long is tried again.
  [[nodiscard]] Nanoseconds Patience() { return typical_ / (++waits_ % kTryAgain == 0 ? kPartMost : part_); }
  // The wait is over. `came`: all that it waited for are there.
  void Ended(bool came) { part_ = came ? std::max(part_ / 2, kPartMost) : std::min(part_ * 2, kPartLeast); }

 private:
  static constexpr int64_t kPartMost = 2;
  static constexpr int64_t kPartLeast = 64;
  static constexpr uint64_t kTryAgain = 32;

  uint64_t expected_ = 0;
  Nanoseconds typical_{0};  // Of a write.
  int64_t part_ = 4;
  uint64_t waits_ = 0;
};

}  // namespace erda::journal
