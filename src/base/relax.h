// Waiting without sleeping.
#pragma once

#include <sched.h>

#include <cstdint>

namespace erda {

// One step of a wait that is expected to be short. The first steps keep the core, since an answer takes about that
// long; further ones offer it to others: what is waited for may need this very core to run.
class Relax {
 public:
  // Keeps the core, and lets its other thread go ahead for a moment.
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
  static constexpr uint32_t kBusySteps = 100;  // about 3 us
  uint32_t steps_ = 0;
};

}  // namespace erda
