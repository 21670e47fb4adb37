// Options for the size and geometry of a new pool, in erda-server and erda-pool.
#pragma once

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "tools/shared/command_line.h"

namespace erda::tools {

// A further condition on an option that an earlier check has found to be a number.
inline CLI::Validator MustBe(bool (*holds)(uint64_t), const std::string& what) {
  const auto check = [holds, what](const std::string& text) {
    return holds(std::stoull(text)) ? std::string() : fmt::format("'{}' is not {}", text, what);
  };
  return CLI::Validator(check, "", "must be");
}

inline CLI::Option* AddPoolSize(CLI::App& app, uint64_t& size, const std::string& help) {
  return AddSize(app, "--size", size, help);
}

// `zero` is the meaning of 0.
inline void AddShards(CLI::App& app, uint32_t& shards, const std::string& zero) {
  AddNumber<uint32_t>(app, "--shards", shards, 0, 1024, "Shards: threads, each with its part of the keys; 0: " + zero)
      ->capture_default_str();
}

inline void AddGeometry(CLI::App& app, uint64_t& region_size, uint64_t& segment_size, uint64_t& index_entries) {
  const auto power_of_two =
      MustBe([](uint64_t size) { return (size & (size - 1)) == 0 && size <= 256 << 20; }, "a power of two up to 256M");
  AddSize(app, "--region-size", region_size, "A power of two, at most 256M; default by the pool's size")
      ->check(power_of_two)
      ->group("Geometry");
  AddSize(app, "--segment-size", segment_size,
          "A power of two, at most the region size. It bounds the largest value; default by the pool's size")
      ->check(power_of_two)
      ->group("Geometry");
  AddNumber<uint64_t>(
      app, "--index-entries", index_entries, 0, uint64_t{1} << 40,
      "Index slots at first, over all shards, 16 bytes each; default by the pool's size. The index grows by itself")
      ->group("Geometry");
}

inline void AddGrowTo(CLI::App& app, uint64_t& grow_to) {
  AddSize(app, "--grow-to", grow_to,
          "Choose the geometry of a new pool so that erda-pool resize can make it this large. By default it can become "
          "at least 16 times as large, or less where under 0.85 of it would be usable then")
      ->group("Geometry");
}

}  // namespace erda::tools
