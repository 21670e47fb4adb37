// How often a queue looks at the events of rdma_cm and at the clock. Both looks cost a system call or more, so most
// Polls make none.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/clock.h"
#include "fabric/verbs/channel_life.h"

namespace erda::fabric::verbs {

// The channels that a look at the clock concerns.
enum class LookAt : uint8_t { kNone, kNotConnected, kAll };

// The thread of the queue calls it.
class LookPace {
 public:
  // Events for connected channels are heard after at most this number of Polls.
  static constexpr uint32_t kPollsPerLook = 256;
  // The time between two looks at connected channels, and at channels that fail or connect.
  static constexpr std::chrono::seconds kLookEvery{1};
  static constexpr std::chrono::milliseconds kLookSoon{20};

  // Counts a Poll. Returns true if this one looks.
  bool CountPoll(const Population& population) {
    ++polls_;
    return population.connecting > 0 || polls_ % kPollsPerLook == 0;
  }
  // Says which channels are due for a look at this time, and counts the look.
  LookAt Look(Nanoseconds now, const Population& population) {
    if (now - looked_at_ < Period(population)) return LookAt::kNone;
    looked_at_ = now;
    if (now - looked_at_all_ < Nanoseconds(kLookEvery)) return LookAt::kNotConnected;
    looked_at_all_ = now;
    return LookAt::kAll;
  }
  // Returns the longest time between two looks.
  [[nodiscard]] static Nanoseconds Period(const Population& population) {
    return population.connecting + population.failing > 0 ? Nanoseconds(kLookSoon) : Nanoseconds(kLookEvery);
  }

 private:
  uint32_t polls_ = 0;
  Nanoseconds looked_at_{0};
  Nanoseconds looked_at_all_{0};
};

}  // namespace erda::fabric::verbs
