// What a run measured, for people and for programs.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "bench/ycsb/worker.h"

namespace erda::bench {

struct Phase {
  uint64_t operations = 0;
  double seconds = 0;
  [[nodiscard]] double ops_per_second() const { return seconds > 0 ? static_cast<double>(operations) / seconds : 0.0; }
};

struct Report {
  Phase load;
  Phase run;
  Measured measured;
  uint64_t failures = 0;
  // During the run.
  uint64_t nvm_bytes_server = 0;
  uint64_t nvm_bytes_clients = 0;  // one-sided
  std::optional<double> server_cpu_seconds;
  [[nodiscard]] uint64_t nvm_bytes() const { return nvm_bytes_server + nvm_bytes_clients; }
};

[[nodiscard]] std::string ToTable(const Settings& settings, const Report& report);
[[nodiscard]] nlohmann::ordered_json ToJson(const Settings& settings, const Report& report);

}  // namespace erda::bench
