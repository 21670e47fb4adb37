// How a thread waits for what it expects.
#pragma once

// GCC 10 says 201709 for -std=c++20.
#if __cplusplus < 201709L
#error "Erda needs C++20: compile with -std=c++20 or later, in CMake with CMAKE_CXX_STANDARD 20"
#endif
#if __cplusplus >= 201709L

#include <cstdint>

namespace erda {

enum class Polling : uint8_t {
  kAdaptive = 0,  // Looks for a while, offering its core to others between looks; then sleeps.
  kBusy = 1,      // Never sleeps and never gives its core away: the least delay, for one core per thread.
  kSleep = 2,     // Sleeps as soon as nothing is there: the least CPU time, for a wake-up per wait.
};

}  // namespace erda

#endif  // C++20
