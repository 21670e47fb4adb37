// Results of a run, for people and for programs.
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
  // The work that the slowest thread had done when the first one finished, as a part of the first one's work.
  double slowest_share = 1;
  [[nodiscard]] double ops_per_second() const { return seconds > 0 ? static_cast<double>(operations) / seconds : 0.0; }
};

struct NvmBytes {
  uint64_t server = 0;
  uint64_t clients = 0;  // One-sided.
  [[nodiscard]] uint64_t all() const { return server + clients; }
};

struct Report {
  Phase load;
  Phase run;
  Measured measured;
  uint64_t failures = 0;
  uint64_t records = 0;  // After the run.
  // Counts during the run.
  std::optional<NvmBytes> nvm_bytes;  // Of a store in NVM.
  std::optional<double> server_cpu_seconds;
};

[[nodiscard]] std::string ToTable(const Settings& settings, const Report& report);
[[nodiscard]] nlohmann::ordered_json ToJson(const Settings& settings, const Report& report);

}  // namespace erda::bench
