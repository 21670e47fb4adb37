// Settings of `erda-bench cleaning`.
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
// Shares of live data, in percent of the log's bytes, at which the copying is measured.
inline constexpr std::array<uint64_t, 4> kShares = {50, 70, 80, 90};

struct Settings {
  std::string fabric = "shm";
  std::string address;  // Empty with shm: a socket in a temporary folder.
  std::string pool = "dram:";
  bool quick = false;
  // 0: Complete chooses a value.
  uint64_t pool_size = 0;
  uint64_t rounds = 0;
  uint64_t slice_ms = 0;
  uint64_t times = 0;  // At each share, the log's size is overwritten this number of times.
  uint64_t value_bytes = 1024;
  uint64_t live = 70;      // Percent of the log's bytes, while latencies are measured.
  uint64_t rate = 50'000;  // Puts in a second beside the measured operations.
  uint64_t seed = 1;
  std::string json_path;

  // Returns the bytes of an object in the log.
  [[nodiscard]] uint64_t object_bytes() const { return format::ObjectSpace(kKeyBytes, value_bytes); }
};

// Adds the subcommand `erda-bench cleaning`.
CLI::App* AddCleaning(CLI::App& app, Settings& settings);
// Sets defaults where no value was given.
void Complete(Settings& settings);
// Checks what the parser cannot check. Returns an empty string if all is well.
[[nodiscard]] std::string CheckSettings(const Settings& settings);

}  // namespace erda::cleaning
