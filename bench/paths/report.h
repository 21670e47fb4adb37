// erda-bench paths: measures the time of a put on each path, by the size of its value. PutPath::kAuto chooses by these
// results (docs/benchmarks/results.md, "Put paths by size").
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/floors/report.h"
#include "erda/client.h"

namespace CLI {
class App;
}

namespace erda::paths {

// The largest that a server allows: values up to this size travel in a request, and larger ones do not.
inline constexpr uint32_t kSlotBytes = 65536;

struct Settings {
  std::string fabric = "shm";
  std::string address;  // Of the benchmark's server. Empty with shm: a socket in a temporary folder.
  std::string pool = "dram:";
  uint64_t pool_size = 256ULL << 20;
  std::vector<uint64_t> value_sizes = {64, 256, 1024, 4096, 8192, 16384, 32768, 65000, 262144};
  uint64_t ops = 500;  // For each path and size, in each round.
  uint64_t rounds = 5;
  std::string json_path;
};
CLI::App* AddPaths(CLI::App& app, Settings& settings);
// Checks what the parser cannot check. Returns an empty string if all is well.
[[nodiscard]] std::string CheckSettings(const Settings& settings);

inline constexpr std::array<PutPath, 3> kPaths = {PutPath::kInline, PutPath::kReserve, PutPath::kDelegate};
inline constexpr std::array<std::string_view, 3> kPathNames = {"inline", "reserve", "delegate"};

struct Row {
  uint64_t value_size = 0;
  std::array<floors::Samples, kPaths.size()> samples;  // Empty if the value is too large for that path.
  // The share of delegated puts on the delegate path. The others had no chunk, or fit into none.
  double delegated_share = 0;
  [[nodiscard]] std::optional<double> Median(PutPath path) const;
};

struct Report {
  floors::Machine machine;
  std::string address;
  std::string durability;
  std::string flush_method;
  std::vector<Row> rows;  // In the order of their sizes.
  // Returns the largest measured size up to which inline was fastest. No other path may be faster there by more than
  // runs differ. Returns 0 if there is no such size.
  [[nodiscard]] uint64_t InlineIsFastestUpTo() const;
  // Returns the median of the ratios of delegate over reserve, each of medians. It covers sizes that do not fit into a
  // request of the default size, and of which most puts were delegated. Returns nothing without such a size.
  [[nodiscard]] std::optional<double> DelegateOverReserve() const;
};

[[nodiscard]] std::string ToTable(const Settings& settings, const Report& report);
[[nodiscard]] nlohmann::ordered_json ToJson(const Settings& settings, const Report& report);

}  // namespace erda::paths
