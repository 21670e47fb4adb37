// Runs rounds in which real processes are killed, and judges the data that is left.
#pragma once

#include <cstdint>
#include <string>

#include "crash/machine.h"

namespace erda::crash {

struct HarnessSettings {
  std::string folder;  // The records go there. The folder must exist.
  // If it has no program, a server runs already, and it loses its power when this program asks for that.
  MachineSettings machine;
  // If true, the machine of this program and its clients loses its power. It starts this program again with the same
  // folder.
  bool own_power = false;
  uint64_t rounds = 20;
  uint64_t minutes = 0;  // If not 0, the harness runs for this time and not for `rounds`.
  uint32_t clients = 4;
  uint64_t operations = 10'000;  // about the most that all clients do in a round
  uint64_t seed = 1;
  bool keep = false;  // keeps the records of rounds without a loss
};

// Prints a line for each event of a round, and the verdict. Returns the exit code: 0 if nothing was lost, 1 if
// something was lost, 3 if the harness could not find that out.
int Run(const HarnessSettings& settings);

}  // namespace erda::crash
