// The processor's counters of instructions and cache misses, where the kernel lets this process use them.
//
// Owns the descriptors of the counters. They count the thread that has made them, and no instruction of the kernel.
// That thread alone calls it.
#pragma once

#include <cstdint>
#include <string>

#include "base/unique_fd.h"

namespace erda::micro {

class HardwareCounters {
 public:
  struct Counts {
    uint64_t instructions = 0;
    uint64_t cache_misses = 0;
  };

  HardwareCounters();
  // Returns the reason why nothing is counted. Empty: the counters count.
  [[nodiscard]] const std::string& refusal() const { return refusal_; }
  // Begin sets the counters to zero and starts them. End stops them. Requires: the counters count.
  void Begin();
  [[nodiscard]] Counts End();

 private:
  UniqueFd instructions_;  // Leads the group of both.
  UniqueFd cache_misses_;
  std::string refusal_;
};

}  // namespace erda::micro
