// erda-bench paths: how long a put takes on each path, by the size of its value. From this comes what PutPath::kAuto
// chooses (docs/benchmarks/results.md, "Put paths by size").
#pragma once

#include <CLI/CLI.hpp>
#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/floors/report.h"
#include "erda/client.h"
#include "erda/status.h"

namespace erda::paths {

// As large as a server lets it be: what travels in a request, and what does not, is to be measured.
inline constexpr uint32_t kSlotBytes = 65536;

struct Settings {
  std::string fabric = "shm";
  std::string address;  // of its own server; empty with shm: a socket in a folder of its own
  std::string pool = "dram:";
  uint64_t pool_size = 256ULL << 20;
  std::vector<uint64_t> value_sizes = {64, 256, 1024, 4096, 8192, 16384, 32768, 65000, 262144};
  uint64_t ops = 500;  // of each path and size, in each round
  uint64_t rounds = 5;
  std::string json_path;
};
CLI::App* AddPaths(CLI::App& app, Settings& settings);
// What the parser cannot see. Empty if all is well.
[[nodiscard]] std::string CheckSettings(const Settings& settings);

inline constexpr std::array<PutPath, 3> kPaths = {PutPath::kInline, PutPath::kReserve, PutPath::kDelegate};
inline constexpr std::array<std::string_view, 3> kPathNames = {"inline", "reserve", "delegate"};

struct Row {
  uint64_t value_size = 0;
  std::array<floors::Samples, kPaths.size()> samples;  // none: the value is too large for that path
  double delegated_share = 0;  // of the puts of the delegate path: the others had no chunk, or fit into none
  [[nodiscard]] std::optional<double> Median(PutPath path) const;
};

struct Report {
  floors::Machine machine;
  std::string address;
  std::string durability;
  std::string flush_method;
  std::vector<Row> rows;  // in the order of their sizes
  // The largest size measured up to which, from the smallest on, no other path was faster than inline, by more than
  // runs differ. 0: none.
  [[nodiscard]] uint64_t InlineIsFastestUpTo() const;
  // The median of delegate over that of reserve, of sizes that do not fit into a request as large as it is by default,
  // and of which most puts were delegated: the median of those ratios. Nothing: no such size.
  [[nodiscard]] std::optional<double> DelegateOverReserve() const;
};

// Starts `program`, this one or another copy of it, as the server. All paths and sizes have their turn in each round.
Result<Report> Measure(const Settings& settings, const std::string& program);

[[nodiscard]] std::string ToTable(const Settings& settings, const Report& report);
[[nodiscard]] nlohmann::ordered_json ToJson(const Settings& settings, const Report& report);

}  // namespace erda::paths
