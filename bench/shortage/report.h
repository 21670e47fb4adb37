// erda-bench shortage: measures a client that puts, while other processes want the same processors.
//
// The other processes either get all the time, or compute all the time. Gets over shm need no server, so both kinds
// always want a processor. Each measurement starts new processes. All servers are measured in turn in each round.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "erda/polling.h"

namespace CLI {
class App;
}

namespace erda::shortage {

// The processes beside the writer.
struct Busy {
  uint64_t processes = 0;
  bool read = false;    // They get values. Otherwise they compute.
  bool pinned = false;  // Each keeps to one processor, in turn.
};

struct Settings {
  std::vector<std::string> busy = {"0", "2r", "2", "2p", "4", "8", "16"};
  std::vector<std::string> also;  // Running servers: ADDRESS=PID.
  Polling polling = Polling::kAdaptive;
  uint64_t updates_per_second = 0;  // 0: one after the other.
  uint64_t seconds = 1;             // Of each measurement.
  uint64_t rounds = 3;
  uint64_t value_bytes = 64;
  std::string json_path;
};
CLI::App* AddShortage(CLI::App& app, Settings& settings);
// Reads "2r": an empty result if the text is wrong.
[[nodiscard]] std::vector<Busy> ParseBusy(const std::vector<std::string>& texts);
// Returns an empty string if they can be measured.
[[nodiscard]] std::string CheckSettings(const Settings& settings);

// One server beside one number of busy processes. The figures are medians of the rounds.
struct Line {
  std::string server;  // Its address's beginning: shm, redis.
  std::string busy;
  double updates = 0;     // In a second.
  double p50_us = 0;      // Of an update.
  double p99_us = 0;      // Of an update.
  double gets = 0;        // In a second, of all readers. 0 if none reads.
  double gets_alone = 0;  // The same without the writer.
  double busy_share = 0;  // Processor time of the busy processes beside the writer, as a part of what they had alone.
  double writer_us = 0;   // Processor time of an update.
  double server_us = 0;   // Processor time of an update.
  double writer_sleeps = 0;  // Sleeps in an update.
  double server_sleeps = 0;  // Sleeps in an update.
  double preempted = 0;      // How often writer and server lost their processors, in an update.
};

struct Report {
  std::vector<Line> lines;
};

[[nodiscard]] std::string ToTable(const Settings& settings, const Report& report);
[[nodiscard]] nlohmann::ordered_json ToJson(const Settings& settings, const Report& report);

}  // namespace erda::shortage
