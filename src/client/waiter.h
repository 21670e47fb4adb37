// Lets a synchronous call wait for its operation: the call looks, or it sleeps.
//
// Owns its experience of how long answers take. Requires: all operations of the engine end by their deadline. Only the
// client's thread calls it.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>

#include "base/clock.h"
#include "base/looks.h"
#include "base/relax.h"
#include "base/shortage.h"
#include "client/engine.h"
#include "erda/client.h"

namespace erda::client {

class Waiter {
 public:
  Waiter(Engine& engine, Polling polling) : engine_(engine), polling_(polling) {}

  // Returns how often calls have slept.
  [[nodiscard]] uint64_t sleeps() const { return sleeps_; }

  // Returns how many operations have finished while calls waited.
  [[nodiscard]] uint64_t finished() const { return finished_; }

  // Polls until done() is true, which happens at the latest at the operation's deadline. If a callback of the caller
  // throws meanwhile, WaitFor throws that exception once done() is true.
  template <class Done>
  void WaitFor(Done&& done) {
    WaitUntil(done, [] { return kSleep; });
  }

  // The same for a wait that may end without an operation: it never sleeps longer than left().
  template <class Done, class Left>
  void WaitUntil(Done&& done, Left&& left) {
    std::exception_ptr thrown;
    Nanoseconds idle_since{0};
    enum class Wait : uint8_t { kNone, kLooks, kSleeps } wait = Wait::kNone;
    while (!done()) {
      size_t finished = 0;
      try {
        finished = engine_.Poll();
      } catch (...) {
        thrown = std::current_exception();
        finished = engine_.event_loop().finished();
      }
      finished_ += finished;
      if (finished > 0 || engine_.event_loop().went_on()) {
        if (wait == Wait::kLooks) {
          looks_.Ended(true);
          steps_.End();
        }
        wait = Wait::kNone;
        idle_since = Nanoseconds(0);
        continue;
      }
      if (polling_ == Polling::kBusy) {
        Relax::Pause();
        continue;
      }
      if (wait == Wait::kNone) wait = BeginToLook() ? Wait::kLooks : Wait::kSleeps;
      if (wait == Wait::kLooks) {
        const bool offers_no_more = shortage_.is_short() && !steps_.keeps_core();
        if (!offers_no_more) {
          steps_.Step(shortage_);
          if (steps_.steps() % kLooksPerClock != 0) continue;
        }
        const Nanoseconds now = SteadyClock::Instance().Now();
        if (idle_since.count() == 0) idle_since = now;
        if (offers_no_more && !shortage_.Lasts(now)) continue;
        if (now - idle_since <= kSpin && !offers_no_more) continue;
        if (!offers_no_more) looks_.Ended(false);
        steps_.End();
        wait = Wait::kSleeps;
      }
      ++sleeps_;
      engine_.event_loop().Wait(std::min<Nanoseconds>(left(), kSleep));
    }
    if (thrown) std::rethrow_exception(thrown);
  }

 private:
  // How long a call looks for its completion before it sleeps, and its number of looks between two looks at the clock.
  static constexpr std::chrono::microseconds kSpin{50};
  static constexpr uint32_t kLooksPerClock = 64;
  // A sleeping call wakes up at this interval to look at its deadline.
  static constexpr std::chrono::milliseconds kSleep{10};

  // Begins a wait. Returns true if it looks for its completion, and false if it sleeps at once.
  [[nodiscard]] bool BeginToLook() {
    shortage_.BeginWait();
    if (polling_ != Polling::kAdaptive || !looks_.Begin()) return false;
    steps_.Begin();
    return true;
  }

  Engine& engine_;
  const Polling polling_;
  Looks looks_;
  WaitSteps steps_;
  Shortage shortage_;
  uint64_t sleeps_ = 0;
  uint64_t finished_ = 0;
};

}  // namespace erda::client
