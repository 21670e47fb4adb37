// erda-bench bytes: counts the NVM bytes of each create, update and delete, and compares them with table 1 of the
// paper.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

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

// Returns the bytes of table 1 for a key and a value of these sizes. If `erda` is false, returns the bytes of the
// compared schemes, which are the same for both.
[[nodiscard]] uint64_t PaperBytes(bool erda, Kind kind, uint64_t key_bytes, uint64_t value_bytes);

struct Row {
  std::string scheme;  // "erda", "redo" or "raw".
  std::string path;    // The path of Erda's puts; empty for the other schemes.
  uint64_t value_size = 0;
  // For each operation, by Kind.
  std::array<double, 3> counted{};
  std::array<uint64_t, 3> paper{};
};
// Erda's bytes over another scheme's, as counted and by the paper.
struct Ratio {
  double counted = 0;
  double paper = 0;
};

struct Report {
  uint64_t key_size = 0;
  std::vector<Row> rows;
  // Returns the mean of both of Erda's paths. Returns 0 if nothing was measured.
  [[nodiscard]] Ratio ErdaOver(std::string_view scheme, uint64_t value_size, Kind kind) const;
};

[[nodiscard]] std::string ToTable(const Report& report);
[[nodiscard]] nlohmann::ordered_json ToJson(const Settings& settings, const Report& report);

}  // namespace erda::bytes
