// One process of a measurement: it puts, gets or computes until the board says stop.
#pragma once

#include <cstdint>
#include <string>

#include "erda/polling.h"

namespace CLI {
class App;
}

namespace erda::shortage {

// The hidden subcommand by which the program starts itself as a worker.
inline constexpr const char* kWorkCommand = "shortage-work";
inline constexpr uint64_t kKeys = 1000;

struct WorkSettings {
  std::string kind;  // put, get or compute.
  std::string address;
  std::string board;
  uint64_t place = 0;
  std::string polling = "adaptive";
  uint64_t value_bytes = 64;
  uint64_t per_second = 0;  // Of puts; 0: one after the other.
  int processor = -1;       // The only one that it uses; -1: any.
};
CLI::App* AddWork(CLI::App& app, WorkSettings& settings);

// Prints one line on stdout when it begins or if it fails, and one at the end: JSON. Returns the exit code.
int Work(const WorkSettings& settings);

}  // namespace erda::shortage
