// erda-bench crowd: measures puts and gets of one client while other clients are connected and silent.
//
// The silent clients are connections as the client library makes them, all in this process. Each round connects more of
// them step by step, measures at each number, and closes all. So each number meets the same conditions of the machine.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/ycsb/histogram.h"

namespace CLI {
class App;
}

namespace erda::crowd {

struct Settings {
  std::vector<uint64_t> silent = {0, 100, 1000, 10'000};  // numbers of silent clients, ascending
  uint64_t operations = 20'000;                           // of each kind, at each number in each round
  uint64_t rounds = 5;
  uint64_t value_bytes = 100;
  std::string json_path;
};
CLI::App* AddCrowd(CLI::App& app, Settings& settings);
// Returns an empty string if they can be measured.
[[nodiscard]] std::string CheckSettings(const Settings& settings);

struct Step {
  uint64_t silent = 0;
  bench::Histogram put;  // In nanoseconds.
  bench::Histogram get;
  uint64_t server_bytes = 0;  // Resident memory of the server's process, in the last round.
};

struct Report {
  std::vector<Step> steps;
  // The largest median of a step over that of the first step.
  [[nodiscard]] double worst_put() const;
  [[nodiscard]] double worst_get() const;
};

[[nodiscard]] std::string ToTable(const Settings& settings, const Report& report);
[[nodiscard]] nlohmann::ordered_json ToJson(const Settings& settings, const Report& report);

}  // namespace erda::crowd
