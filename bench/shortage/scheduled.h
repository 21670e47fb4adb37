// The scheduler's counts of a process: processor time, sleeps, and how often its threads lost their processors.
#pragma once

#include <cstdint>

namespace erda::shortage {

struct Scheduled {
  double seconds = 0;      // Processor time.
  uint64_t sleeps = 0;     // Voluntary context switches.
  uint64_t preempted = 0;  // Involuntary context switches.
};

// Sums over all threads of the process that live now. Zero if the process is gone.
[[nodiscard]] Scheduled ScheduledOf(int pid);

[[nodiscard]] inline Scheduled operator-(const Scheduled& a, const Scheduled& b) {
  return {a.seconds - b.seconds, a.sleeps - b.sleeps, a.preempted - b.preempted};
}

}  // namespace erda::shortage
