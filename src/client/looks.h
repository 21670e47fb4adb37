// Whether a call that waits had better look for its answer before it sleeps.
#pragma once

#include <cstdint>

namespace erda::client {

// Looking pays where answers come soon. It does not where more threads wait than there are processors and what they
// wait for needs one: a NIC in software, or a server on the same machine. Then each look in vain keeps a processor from
// the answers of all, so after some of them most waits sleep at once. One in many looks all the same: so it is found
// out when answers come soon again, which a sleep, that takes longer than they do, would not tell. (An answer that came
// while others had the processor, between two looks, counts as found: else over shm, with more clients than processors,
// half of them slept, and the server spent its time waking them.)
class Looks {
 public:
  static constexpr uint32_t kVainMost = 4;  // in a row
  static constexpr uint32_t kWaitsPerTry = 16;

  // A wait begins: whether it looks.
  [[nodiscard]] bool Begin() { return vain_ < kVainMost || ++waits_ % kWaitsPerTry == 0; }
  // How a wait that looked ended: with its answer, or in sleep.
  void Ended(bool answered) { vain_ = answered ? 0 : vain_ + 1; }

 private:
  uint32_t vain_ = 0;
  uint32_t waits_ = 0;
};

}  // namespace erda::client
