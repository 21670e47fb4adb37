// Finds out that processors are short: that other threads use this thread's processor for whole time slices.
//
// A thread that waits offers its processor to others (sched_yield). Threads that wait for each other give it back after
// some microseconds. A thread that computes keeps it until its time slice ends, and the scheduler counts the offer as
// time that the offering thread has used. So one offer costs milliseconds, in which the awaited event has long come.
// During a shortage a thread therefore sleeps instead. The scheduler lets a thread that wakes up run soon, since it has
// time left that it may use.
//
// Reads no clock. Only one thread calls it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"

namespace erda {

class Shortage {
 public:
  // An offer that took this long perhaps met a thread that computes: time slices are 2 ms or longer by default. In a
  // crowd of threads that wait for each other, an offer may also take this long, but most are shorter.
  static constexpr Nanoseconds kLongOffer = std::chrono::milliseconds(2);
  // This many long offers begin a shortage, if they cost more than sleeps would.
  static constexpr uint32_t kLongOffers = 2;
  // A sleep costs a wait this much more than a look. So looking pays if a long offer, shared among the waits since the
  // one before, costs each wait less.
  static constexpr Nanoseconds kSleepCost = std::chrono::microseconds(40);
  // Long offers that take up to this many times as long as the short ones between them are no shortage. The threads
  // that wait for each other then use the processor for a good part of the time.
  static constexpr int kShortOffersCount = 4;
  // A shortage counts for this long. The next offers show whether it goes on; then it counts for twice the time, up to
  // kLongest. So offers during a shortage cost about a hundredth of the time.
  static constexpr Nanoseconds kFirst = std::chrono::milliseconds(100);
  static constexpr Nanoseconds kLongest = std::chrono::seconds(1);

  // Notes that a wait begins, or anything else that would be slower if the thread slept.
  void BeginWait() { ++waits_; }
  // Notes that this thread offered its processor at `from`, and ran again at `until`.
  void Offered(Nanoseconds from, Nanoseconds until) {
    const Nanoseconds taken = until - from;
    if (taken < kLongOffer) {
      short_offers_ += taken;
    } else {
      OfferedLong(taken, until);
    }
  }
  // Returns false if there surely is no shortage. If it returns true, ask Lasts.
  [[nodiscard]] bool is_short() const { return is_short_; }
  [[nodiscard]] bool Lasts(Nanoseconds now) {
    if (is_short_ && now >= ends_) {
      is_short_ = false;
      Forget();
    }
    return is_short_;
  }

 private:
  void Forget() {
    waits_ = 0;
    count_ = 0;
    short_offers_ = Nanoseconds(0);
    long_offers_ = Nanoseconds(0);
  }
  [[gnu::noinline]] void OfferedLong(Nanoseconds taken, Nanoseconds until) {
    long_offers_ += taken;
    if (++count_ < kLongOffers) return;
    const bool costs_much = long_offers_ > waits_ * kSleepCost + kShortOffersCount * short_offers_;
    Forget();
    if (!costs_much) return;
    const bool goes_on = until - ends_ < lasts_;
    lasts_ = goes_on ? std::min(2 * lasts_, kLongest) : kFirst;
    ends_ = until + lasts_;
    is_short_ = true;
  }

  bool is_short_ = false;
  // Since this thread last judged, or since the end of the last shortage.
  uint32_t waits_ = 0;
  uint32_t count_ = 0;  // Of long offers.
  Nanoseconds short_offers_{0};
  Nanoseconds long_offers_{0};
  Nanoseconds lasts_{0};
  Nanoseconds ends_{0};
};

}  // namespace erda
