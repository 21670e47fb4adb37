// What `erda-bench cleaning` was asked to measure.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "bench/ycsb/workload.h"
#include "format/object.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name
class App;
}

namespace erda::cleaning {

inline constexpr uint64_t kKeyBytes = sizeof(bench::Key);
// Live data, in percent of the log's bytes, at which the copying is measured.
inline constexpr std::array<uint64_t, 4> kShares = {50, 70, 80, 90};

struct Settings {
  std::string fabric = "shm";
  std::string address;  // empty with shm: a socket in a folder of its own
  std::string pool = "dram:";
  bool quick = false;
  // 0: as Complete says.
  uint64_t pool_size = 0;
  uint64_t rounds = 0;
  uint64_t slice_ms = 0;
  uint64_t times = 0;  // the log's size is overwritten at each share
  uint64_t value_bytes = 1024;
  uint64_t live = 70;      // percent of the log's bytes, while latencies are measured
  uint64_t rate = 50'000;  // puts in a second beside the measured operations
  uint64_t seed = 1;
  std::string json_path;

  // The bytes that an object takes up.
  [[nodiscard]] uint64_t object_bytes() const { return format::ObjectSpace(kKeyBytes, value_bytes); }
};

// `erda-bench cleaning`
CLI::App* AddCleaning(CLI::App& app, Settings& settings);
// Defaults for what was not given.
void Complete(Settings& settings);
// What the parser cannot see. Empty if all is well.
[[nodiscard]] std::string CheckSettings(const Settings& settings);

}  // namespace erda::cleaning
