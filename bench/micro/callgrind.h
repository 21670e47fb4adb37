// Tells callgrind which instructions to count. Does nothing in a run without callgrind.
#pragma once

#include <valgrind/callgrind.h>

#include <string>

namespace erda::micro {

class Callgrind {
 public:
  // Returns true if this process runs under callgrind, or another tool of valgrind.
  [[nodiscard]] static bool runs() { return RUNNING_ON_VALGRIND != 0; }
  // Begins to count from zero. Requires: callgrind was started with --instr-atstart=no.
  [[gnu::always_inline]] static void Begin() { CALLGRIND_START_INSTRUMENTATION; }
  // Ends the count, and lets callgrind write it to a file that names the work.
  [[gnu::always_inline]] static void End(const std::string& work) {
    CALLGRIND_STOP_INSTRUMENTATION;
    CALLGRIND_DUMP_STATS_AT(work.c_str());
  }
};

}  // namespace erda::micro
