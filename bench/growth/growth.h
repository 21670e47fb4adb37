// erda-bench growth: what gets and puts take while the index doubles, beside the same while it does not.
//
// One client does a put of a new key and a get of some key that is there, in turn, one at a time, until there are twice
// as many keys. Whether the index grew meanwhile is told by its slots, before and behind each batch of them. So both
// states alternate with the number of keys, and have the same load.
#pragma once

#include <CLI/CLI.hpp>
#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "bench/ycsb/histogram.h"
#include "erda/status.h"

namespace erda::growth {

struct Settings {
  uint64_t keys = 2'000'000;  // at the end
  uint64_t value_bytes = 100;
  std::string address;  // empty: shared memory
  std::string pool = "dram:";
  std::string json_path;
};
CLI::App* AddGrowth(CLI::App& app, Settings& settings);

enum class State : uint8_t { kIdle, kGrowing };
inline constexpr std::array<std::string_view, 2> kStateNames = {"idle", "growing"};

struct Slices {
  bench::Histogram get;  // nanoseconds
  bench::Histogram put;
  uint64_t reads = 0;  // one-sided, by the gets
};

struct Report {
  std::array<Slices, 2> slices;  // by State
  uint64_t slots_before = 0;
  uint64_t slots_after = 0;
  // Growing over idle.
  [[nodiscard]] double GetRatio(double percent) const;
  [[nodiscard]] double PutRatio(double percent) const;
};

// Starts `program`, this one or another copy of it, as the server.
Result<Report> Measure(const Settings& settings, const std::string& program);

[[nodiscard]] std::string ToTable(const Settings& settings, const Report& report);
[[nodiscard]] nlohmann::ordered_json ToJson(const Settings& settings, const Report& report);

}  // namespace erda::growth
