// Ends the wait of operations that have waited for too long.
//
// Owns the time of the next look. Closes the connection of an operation that got no answer in time. Only the client's
// thread calls it, at the end of each Poll.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "client/connections.h"
#include "client/operations.h"

namespace erda::client {

class Deadlines {
 public:
  Deadlines(Nanoseconds timeout, const Clock& clock, Operations& operations, Connections& connections)
      : timeout_(timeout), clock_(clock), operations_(operations), connections_(connections) {}

  // Notes that a Poll ends, idle if nothing had completed. Looks at the clock in few Polls, and rarely while operations
  // complete, since a look has a cost.
  void OnPoll(bool idle) {
    const uint32_t between = (idle ? kIdlePollsPerCheck : kBusyPollsPerCheck) - 1;  // all ones, which saves a division
    if (operations_.in_flight() > 0 && (++polls_ & between) == 0) Check();
  }
  // Returns the time after which a Poll must look again.
  [[nodiscard]] Nanoseconds between_checks() const { return timeout_ / kChecksPerTimeout; }
  // Notes that time has passed: the next Poll looks at the clock.
  void OnWait() { polls_ = UINT32_MAX; }

 private:
  // The number of looks in one timeout, and the largest number of Polls between two looks.
  static constexpr int64_t kChecksPerTimeout = 16;
  static constexpr uint32_t kBusyPollsPerCheck = 256;
  static constexpr uint32_t kIdlePollsPerCheck = 8;

  void Check();

  const Nanoseconds timeout_;
  const Clock& clock_;
  Operations& operations_;
  Connections& connections_;
  uint32_t polls_ = 0;
  Nanoseconds next_check_{0};
};

}  // namespace erda::client
