// erda-bench growth: measures gets and puts while the index doubles, and while it does not grow.
//
// One client puts a new key and gets an existing key in turn, one at a time, until the number of keys has doubled. The
// benchmark reads the number of index slots before and after each batch, to see whether the index grew meanwhile. So
// both states alternate with the number of keys, and have the same load.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "bench/ycsb/histogram.h"

namespace CLI {
class App;
}

namespace erda::growth {

struct Settings {
  uint64_t keys = 2'000'000;  // At the end.
  uint64_t value_bytes = 100;
  std::string address;  // Empty: shared memory.
  std::string pool = "dram:";
  std::string json_path;
};
CLI::App* AddGrowth(CLI::App& app, Settings& settings);

enum class State : uint8_t { kIdle, kGrowing };
inline constexpr std::array<std::string_view, 2> kStateNames = {"idle", "growing"};

struct Slices {
  bench::Histogram get;  // In nanoseconds.
  bench::Histogram put;
  uint64_t reads = 0;  // One-sided Reads by the gets.
};

struct Report {
  std::array<Slices, 2> slices;  // By State.
  uint64_t slots_before = 0;
  uint64_t slots_after = 0;
  // The time while growing over the time while idle.
  [[nodiscard]] double GetRatio(double percent) const;
  [[nodiscard]] double PutRatio(double percent) const;
};

[[nodiscard]] std::string ToTable(const Settings& settings, const Report& report);
[[nodiscard]] nlohmann::ordered_json ToJson(const Settings& settings, const Report& report);

}  // namespace erda::growth
