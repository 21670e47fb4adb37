// Waiting without sleeping.
#pragma once

#include <sched.h>

#include <cstdint>

namespace erda {

// One step of a wait that should be short. The first steps keep the core, since an answer takes about that long. Later
// steps offer it to others: the thread that will end the wait may need this very core.
class Relax {
 public:
  // Keeps the core, and lets its second hardware thread run for a moment.
  static void Pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  void Step() {
    if (++steps_ <= kBusySteps) {
      Pause();
    } else {
      ::sched_yield();
    }
  }
  void Reset() { steps_ = 0; }
  // Steps since the last reset.
  [[nodiscard]] uint32_t steps() const { return steps_; }

 private:
  static constexpr uint32_t kBusySteps = 100;  // About 3 us.
  uint32_t steps_ = 0;
};

}  // namespace erda
