// erda-bench bytes: NVM bytes for each create, update and delete, counted, beside table 1 of the paper.
#pragma once

#include <CLI/CLI.hpp>
#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "erda/status.h"

namespace erda::bytes {

struct Settings {
  std::vector<uint64_t> value_sizes = {16, 64, 256, 1024, 4096};
  uint64_t keys = 1000;
  std::string json_path;
};
CLI::App* AddBytes(CLI::App& app, Settings& settings);

enum class Kind : uint8_t { kCreate, kUpdate, kDelete };
inline constexpr std::array<Kind, 3> kKinds = {Kind::kCreate, Kind::kUpdate, Kind::kDelete};
inline constexpr std::array<std::string_view, 3> kKindNames = {"create", "update", "delete"};

// Table 1, for a key and a value of so many bytes. erda: else both compared schemes, which have the same.
[[nodiscard]] uint64_t PaperBytes(bool erda, Kind kind, uint64_t key_bytes, uint64_t value_bytes);

struct Row {
  std::string scheme;  // "erda", "redo", "raw"
  std::string path;    // of Erda's puts; else empty
  uint64_t value_size = 0;
  // For each operation, by Kind.
  std::array<double, 3> counted{};
  std::array<uint64_t, 3> paper{};
};
// Erda's over another's, counted and by the paper.
struct Ratio {
  double counted = 0;
  double paper = 0;
};

struct Report {
  uint64_t key_size = 0;
  std::vector<Row> rows;
  // The mean of both of Erda's paths; nothing was measured: 0.
  [[nodiscard]] Ratio ErdaOver(std::string_view scheme, uint64_t value_size, Kind kind) const;
};

// Starts servers in this process, each with a new pool in memory.
Result<Report> Measure(const Settings& settings);

[[nodiscard]] std::string ToTable(const Report& report);
[[nodiscard]] nlohmann::ordered_json ToJson(const Settings& settings, const Report& report);

}  // namespace erda::bytes
