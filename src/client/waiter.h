// Lets a synchronous call wait for its operation: the call looks, or it sleeps.
//
// Owns its experience of how long answers take. Requires: all operations of the engine end by their deadline. Only the
// client's thread calls it.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>

#include "base/clock.h"
#include "base/relax.h"
#include "client/engine.h"
#include "client/looks.h"
#include "erda/client.h"

namespace erda::client {

class Waiter {
 public:
  Waiter(Engine& engine, Polling polling) : engine_(engine), polling_(polling) {}

  // Returns how often calls have slept.
  [[nodiscard]] uint64_t sleeps() const { return sleeps_; }

  // Polls until done() is true, which happens at the latest at the operation's deadline. If a callback of the caller
  // throws meanwhile, WaitFor throws that exception once done() is true.
  template <class Done>
  void WaitFor(Done&& done) {
    std::exception_ptr thrown;
    Relax relax;
    Nanoseconds idle_since{0};
    enum class Wait : uint8_t { kNone, kLooks, kSleeps } wait = Wait::kNone;
    while (!done()) {
      size_t finished = 0;
      try {
        finished = engine_.Poll();
      } catch (...) {
        thrown = std::current_exception();
      }
      if (finished > 0 || engine_.went_on()) {
        if (wait == Wait::kLooks) looks_.Ended(true);
        wait = Wait::kNone;
        relax.Reset();
        idle_since = Nanoseconds(0);
        continue;
      }
      if (polling_ == Polling::kBusy) {
        Relax::Pause();
        continue;
      }
      if (wait == Wait::kNone) wait = polling_ == Polling::kAdaptive && looks_.Begin() ? Wait::kLooks : Wait::kSleeps;
      if (wait == Wait::kLooks) {
        relax.Step();
        if (relax.steps() % kLooksPerClock != 0) continue;
        const Nanoseconds now = SteadyClock::Instance().Now();
        if (idle_since.count() == 0) idle_since = now;
        if (now - idle_since <= kSpin) continue;
        looks_.Ended(false);
        wait = Wait::kSleeps;
      }
      ++sleeps_;
      engine_.Wait(kSleep);
    }
    if (thrown) std::rethrow_exception(thrown);
  }

 private:
  // How long a call looks for its completion before it sleeps, and its number of looks between two looks at the clock.
  static constexpr std::chrono::microseconds kSpin{50};
  static constexpr uint32_t kLooksPerClock = 64;
  // A sleeping call wakes up at this interval to look at its deadline.
  static constexpr std::chrono::milliseconds kSleep{10};

  Engine& engine_;
  const Polling polling_;
  Looks looks_;
  uint64_t sleeps_ = 0;
};

}  // namespace erda::client
