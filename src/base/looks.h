// Decides whether a thread that waits looks for its answer before it sleeps.
#pragma once

#include <cstdint>

namespace erda {

// To look pays if answers come soon. It does not pay if more threads wait than there are processors, and their answers
// need a processor, too. That is so with a NIC in software, or with a server on the same machine. Then each look in
// vain takes a processor from the work on all answers. So after some looks in vain, most waits sleep at once. One wait
// in many looks all the same, to notice when answers come soon again: a sleep takes longer than they do, and cannot
// tell. An answer that came between two looks, while other threads had the processor, counts as found. Otherwise, over
// shm with more clients than processors, half of the clients would sleep, and the server would spend its time waking
// them.
class Looks {
 public:
  static constexpr uint32_t kVainMost = 4;  // looks in vain, one after the other
  static constexpr uint32_t kWaitsPerTry = 16;

  // Begins a wait. Returns true if it looks.
  [[nodiscard]] bool Begin() { return vain_ < kVainMost || ++waits_ % kWaitsPerTry == 0; }
  // Notes how a wait that looked has ended: with its answer, or in sleep.
  void Ended(bool answered) { vain_ = answered ? 0 : vain_ + 1; }

 private:
  uint32_t vain_ = 0;
  uint32_t waits_ = 0;
};

}  // namespace erda
