// A server and its clients on the simulated fabric: the production shard and client engine, driven by one seeded loop
// in virtual time. What the clients did is recorded.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "client/engine.h"
#include "fabric/sim/network.h"
#include "server/shard.h"
#include "sim/history.h"

namespace erda::sim {

// Defects that a run can be given on purpose, to see that the checker finds them.
enum class Defect : uint8_t {
  kNone,
  kStaleGet,    // now and then a get is answered from memory
  kLostPut,     // now and then a put is said to be done, and was not
  kRepeatedPut  // puts are done twice
};

struct Plan {
  uint64_t seed = 0;
  Defect defect = Defect::kNone;

  uint32_t shards = 1;
  uint32_t ports = 1;  // fabrics that the server is reached on
  uint32_t clients = 3;
  uint32_t keys = 4;
  uint32_t queue_depth = 4;
  uint32_t operations = 200;
  uint64_t index_entries = 0;  // 0: room for all
  uint64_t pool_size = 4 << 20;
  uint64_t region_size = 64 << 10;
  uint64_t segment_size = 16 << 10;
  uint32_t value_bytes_max = 6000;
  uint32_t percent_gets = 50;
  uint32_t percent_deletes = 12;  // the rest are puts
  uint32_t reservations_per_client = 64;
  std::array<format::FlushMethod, 2> flush_methods{};  // by port; of two ports, none for both or for neither
  Nanoseconds timeout{20'000'000};
  fabric::SimOptions network;

  // Of each step of the loop.
  double start_chance = 0.05;
  double next_chance = 0.3;  // that a callback starts another operation
  double server_chance = 0.2;
  double client_chance = 0.2;
  double drop_chance = 0;
  double kill_chance = 0;
  double restart_chance = 0;
  double crash_chance = 0;  // of the server, at each fence
  bool power_cuts = false;  // then what is not flushed may be lost; all puts are kPersisted

  // A plan of its own for every seed.
  static Plan Of(uint64_t seed);
  // Many keys that come and go on a network that tears everything: index slots pass from key to key under the readers.
  static Plan OfChurn(uint64_t seed);
  // An index that is almost full: entries move under the readers.
  static Plan OfFullIndex(uint64_t seed);
  // Clients that give up sooner than the network delivers, and begin something else at once.
  static Plan OfImpatience(uint64_t seed);
  // Values so long under way that readers find them missing all the time, and tell the server.
  static Plan OfReports(uint64_t seed);
  // A server whose process dies in the middle of its work, or whose power goes.
  static Plan OfCrashes(uint64_t seed);
  [[nodiscard]] std::string ToText() const;
};

struct Outcome {
  History history;
  std::string failure;  // of anything but linearizability
  uint64_t network_hash = 0;
  std::array<uint64_t, 10> codes{};  // how many operations ended with each code
  ClientStats clients;               // the sum
  uint64_t violations = 0;
  uint64_t taken_back = 0;
  uint64_t settled = 0;
  uint64_t reports = 0;
  uint64_t kills = 0;
  uint64_t restarts = 0;
  uint64_t crashes = 0;
  RecoveryReport recovered;
};

// Runs the plan in this folder, which is empty and stays so.
Outcome RunPlan(const Plan& plan, const std::string& folder);

}  // namespace erda::sim
