// How a thread waits for an event.
#pragma once

// GCC 10 says 201709 for -std=c++20.
#if __cplusplus < 201709L
#error "Erda needs C++20: compile with -std=c++20 or later, in CMake with CMAKE_CXX_STANDARD 20"
#endif
#if __cplusplus >= 201709L

#include <cstdint>

namespace erda {

enum class Polling : uint8_t {
  kAdaptive = 0,  // Looks for some time and offers its core to others between looks; then sleeps.
  // Never sleeps, and never gives its core away. The shortest delay, at the cost of one core for each thread.
  kBusy = 1,
  kSleep = 2,  // Sleeps as soon as it finds nothing. The least CPU time, at the cost of a wake-up for each wait.
};

}  // namespace erda

#endif  // C++20
