// Waiting without sleeping.
#pragma once

#include <sched.h>

#include <cstdint>

#include "base/clock.h"
#include "base/looks.h"
#include "base/shortage.h"

namespace erda {

// Offers this thread's core to others. Lets `shortage` know how long they used it.
inline void OfferCore(Shortage& shortage) {
  const Nanoseconds from = SteadyClock::Instance().Now();
  ::sched_yield();
  shortage.Offered(from, SteadyClock::Instance().Now());
}

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

  static constexpr uint32_t kBusySteps = 100;  // About 3 us.

 private:
  uint32_t steps_ = 0;
};

// The steps of one wait after the other. If the thread that brings the events needs this very core, the steps that keep
// it are in vain. After some such waits most waits offer the core at once.
class WaitSteps {
 public:
  // Begins a wait. Requires: the wait before has ended.
  void Begin() {
    keeps_ = looks_.Begin();
    steps_ = keeps_ ? 0 : Relax::kBusySteps;
  }
  // Ends the wait, since its event has come.
  void End() {
    if (keeps_) looks_.Ended(keeps_core());
    keeps_ = false;
  }
  // Returns true if the next step keeps the core. A wait that has gone over to sleep returns false.
  [[nodiscard]] bool keeps_core() const { return steps_ < Relax::kBusySteps; }
  // Lets `shortage` know if the step offers the core.
  void Step(Shortage& shortage) {
    if (++steps_ <= Relax::kBusySteps) {
      Relax::Pause();
    } else {
      OfferCore(shortage);
    }
  }
  [[nodiscard]] uint32_t steps() const { return steps_; }

 private:
  Looks looks_;
  bool keeps_ = false;
  uint32_t steps_ = 0;
};

}  // namespace erda
