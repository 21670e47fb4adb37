// Two threads that meet at the same instant again and again, to expose the reordering of a processor.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>

#include "base/relax.h"

namespace erda::fabric {

// Two threads that take their steps together. Their delays shift against each other.
class Meeting {
 public:
  // `delay` is the length of one step of a thread's delay, in turns of an empty loop.
  explicit Meeting(uint32_t rounds, uint32_t delay = 4) : rounds_(rounds), delay_(delay) {}

  // Runs one step of each thread, then `judge` in the first thread. Ends when `judge` returns false.
  void Run(const std::function<void()>& first, const std::function<void()>& second,
           const std::function<bool(uint32_t)>& judge) {
    std::thread other([&] {
      for (uint32_t round = 1; round <= rounds_; ++round) {
        for (Relax relax; begin_.load(std::memory_order_acquire) != round; relax.Step()) {
          if (stop_.load(std::memory_order_relaxed)) return;
        }
        met_.store(round, std::memory_order_release);
        Delay(round / kDelays % kDelays);
        second();
        end_.store(round, std::memory_order_release);
      }
    });
    for (uint32_t round = 1; round <= rounds_; ++round) {
      begin_.store(round, std::memory_order_release);
      // The other thread may have slept: it tells when it is here.
      for (Relax relax; met_.load(std::memory_order_acquire) != round;) relax.Step();
      Delay(round % kDelays);
      first();
      for (Relax relax; end_.load(std::memory_order_acquire) != round;) relax.Step();
      if (!judge(round)) break;
    }
    stop_.store(true, std::memory_order_relaxed);
    other.join();
  }

 private:
  static constexpr uint32_t kDelays = 50;
  void Delay(uint32_t steps) const {
    for (uint32_t i = 0; i < delay_ * steps; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  const uint32_t rounds_;
  const uint32_t delay_;
  alignas(64) std::atomic<uint32_t> begin_{0};
  alignas(64) std::atomic<uint32_t> met_{0};
  alignas(64) std::atomic<uint32_t> end_{0};
  alignas(64) std::atomic<bool> stop_{false};
};

}  // namespace erda::fabric
