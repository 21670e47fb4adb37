// Results of the cleaning measurement, for people and for programs.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/cleaning/settings.h"
#include "bench/floors/report.h"
#include "bench/ycsb/histogram.h"

namespace erda::cleaning {

enum class State : uint8_t { kIdle, kCleaning };
inline constexpr std::array<State, 2> kStates = {State::kIdle, State::kCleaning};

// Work of the cleaner during a measurement.
struct Cleaned {
  uint64_t regions = 0;
  uint64_t copied = 0;   // Bytes copied.
  uint64_t freed = 0;    // Bytes of the regions that were freed.
  uint64_t delayed = 0;  // Puts that had to wait for room.

  Cleaned& operator+=(const Cleaned& other);
  Cleaned operator-(const Cleaned& other) const;
  // Returns the bytes copied for each byte gained.
  [[nodiscard]] double CopiedPerFreed() const;
};

// All slices of one workload in one state.
struct Slices {
  bench::Histogram get;  // In nanoseconds.
  bench::Histogram put;
  Cleaned cleaned;
  double seconds = 0;
  double cleaner_seconds = 0;  // Processor time of the cleaner's thread.
};

struct Measured {
  std::string_view name;   // The name in the JSON: "ycsb_a".
  std::string_view title;  // The name for people.
  std::array<Slices, 2> slices;

  [[nodiscard]] Slices& Of(State state) { return slices[static_cast<size_t>(state)]; }
  [[nodiscard]] const Slices& Of(State state) const { return slices[static_cast<size_t>(state)]; }
  // The p99 while cleaning over the p99 while idle. nullopt if the workload has no such operations.
  [[nodiscard]] std::optional<double> GetRatio() const;
  [[nodiscard]] std::optional<double> PutRatio() const;
};

// The shard's processor time with gets and without, at the same rate of puts.
struct ShardTime {
  uint64_t gets = 0;
  double seconds_with = 0;
  double shard_with = 0;
  double seconds_without = 0;
  double shard_without = 0;
  // Returns the nanoseconds that each get adds. Noise may make it negative.
  [[nodiscard]] double PerGet() const;
};

struct Copying {
  uint64_t share = 0;  // In percent.
  Cleaned cleaned;
  [[nodiscard]] double ideal() const;
};

struct Report {
  floors::Machine machine;
  std::string address;
  std::string durability;
  std::string flush_method;
  uint64_t log_bytes = 0;
  uint64_t region_bytes = 0;
  uint64_t keys = 0;
  std::vector<Measured> workloads;
  std::array<ShardTime, 2> shard_time;  // By state.
  std::vector<Copying> copying;

  // The medians of the workloads' ratios.
  [[nodiscard]] double GetRatio() const;
  [[nodiscard]] double PutRatio() const;
};

// Returns the reason why a state was not what its name says. Returns an empty string if both were.
[[nodiscard]] std::string WhatIsWrong(const Report& report);
[[nodiscard]] std::string ToTable(const Settings& settings, const Report& report);
[[nodiscard]] nlohmann::ordered_json ToJson(const Settings& settings, const Report& report);

}  // namespace erda::cleaning
