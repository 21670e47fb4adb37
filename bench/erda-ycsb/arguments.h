// The command line of erda-ycsb, and the property files that it names.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "bench/ycsb/worker.h"
#include "tools/shared/client_options.h"

namespace erda::bench {

inline constexpr const char* kProgram = "erda-ycsb";

struct Output {
  std::string json_path;
  int server_pid = 0;  // 0: no processor time was asked for.
  bool quiet = false;
  bool hold = false;  // Wait for a line of standard input before the run.
};

struct Arguments {
  Settings settings;
  Output output;
  std::chrono::milliseconds wait = tools::kDefaultWait;
};

// Returns the exit code if the program is done: after --help, or after a message about a wrong command line.
[[nodiscard]] std::optional<int> ReadArguments(int argc, char** argv, Arguments& arguments);

}  // namespace erda::bench
