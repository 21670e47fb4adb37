// Rounds of real processes that are killed, and the judgement of what is left.
#pragma once

#include <cstdint>
#include <string>

namespace erda::crash {

struct HarnessSettings {
  std::string folder;      // for the records; it must be there
  std::string server;      // the program. Empty: a server is there, and loses its power when this program asks for it
  bool own_power = false;  // or this program's machine does, clients and all, and starts it again with the same folder
  std::string address;
  std::string pool;
  uint64_t rounds = 20;
  uint64_t minutes = 0;  // instead of the rounds
  uint32_t clients = 4;
  uint64_t operations = 10'000;  // of a round, at most about; of all clients
  uint64_t seed = 1;
  bool keep = false;  // the records of rounds that went well
};

// A line of what happened for each round, and the verdict. The exit code: 0 if nothing was lost, 1 if something was, 3
// if that could not be found out.
int Run(const HarnessSettings& settings);

}  // namespace erda::crash
