#include "bench/bytes/report.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "tools/shared/command_line.h"

namespace erda::bytes {

CLI::App* AddBytes(CLI::App& app, Settings& settings) {
  CLI::App* bytes = app.add_subcommand("bytes", "Count the bytes that Erda and the two other schemes write to NVM");
  bytes->add_option("--value-bytes", settings.value_sizes, "Sizes of values, one or more; default 16 64 256 1024 4096")
      ->check(tools::NumberFrom<uint64_t>(0, 16000))
      ->type_name("N");
  tools::AddNumber<uint64_t>(*bytes, "--keys", settings.keys, 1, 1'000'000,
                             "Keys; each is created, updated and deleted once; default 1000");
  bytes->add_option("--json", settings.json_path, "Also write the results to this file")->type_name("FILE");
  return bytes;
}

// "N is the size of one key-value pair. Size(key) is the size of the key."
uint64_t PaperBytes(bool erda, Kind kind, uint64_t key_bytes, uint64_t value_bytes) {
  const uint64_t pair = key_bytes + value_bytes;
  switch (kind) {
    case Kind::kCreate:
      return erda ? key_bytes + 10 + pair : key_bytes + 12 + 2 * pair;
    case Kind::kUpdate:
      return erda ? 9 + pair : 4 + 2 * pair;
    case Kind::kDelete:
      return erda ? key_bytes + 9 : key_bytes + 8;
  }
  return 0;
}

Ratio Report::ErdaOver(std::string_view scheme, uint64_t value_size, Kind kind) const {
  const auto i = static_cast<size_t>(kind);
  double erda = 0;
  double erda_paper = 0;
  int paths = 0;
  const Row* other = nullptr;
  for (const Row& row : rows) {
    if (row.value_size != value_size) continue;
    if (row.scheme == scheme) other = &row;
    if (row.scheme != "erda") continue;
    erda += row.counted[i];
    erda_paper = static_cast<double>(row.paper[i]);
    ++paths;
  }
  if (other == nullptr || paths == 0 || other->counted[i] <= 0) return {};
  return {erda / paths / other->counted[i], erda_paper / static_cast<double>(other->paper[i])};
}

std::string ToTable(const Report& report) {
  std::string text = fmt::format(
      "NVM bytes for each operation, keys of {} bytes: counted (by table 1 of the paper)\n\n", report.key_size);
  text += fmt::format("{:>6} {:<14} {:>18} {:>18} {:>18}\n", "value", "", kKindNames[0], kKindNames[1], kKindNames[2]);
  for (const Row& row : report.rows) {
    text += fmt::format("{:>6} {:<14}", row.value_size, row.path.empty() ? row.scheme : row.scheme + ", " + row.path);
    for (size_t i = 0; i < kKinds.size(); ++i) {
      text += fmt::format(" {:>18}", fmt::format("{:.1f} ({})", row.counted[i], row.paper[i]));
    }
    text += '\n';
    if (row.scheme != "raw") continue;
    text += fmt::format("{:>6} {:<14}", "", "erda/redo");
    for (const Kind kind : kKinds) {
      const Ratio ratio = report.ErdaOver("redo", row.value_size, kind);
      text += fmt::format(" {:>18}", fmt::format("{:.3f} ({:.3f})", ratio.counted, ratio.paper));
    }
    text += "\n\n";
  }
  return text;
}

nlohmann::ordered_json ToJson(const Settings& settings, const Report& report) {
  nlohmann::ordered_json json = {
      {"key_size", report.key_size}, {"keys", settings.keys}, {"rows", nlohmann::ordered_json::array()}};
  for (const Row& row : report.rows) {
    nlohmann::ordered_json one = {{"scheme", row.scheme}, {"value_size", row.value_size}};
    if (!row.path.empty()) one["path"] = row.path;
    for (size_t i = 0; i < kKinds.size(); ++i) {
      one[std::string(kKindNames[i])] = {{"counted", row.counted[i]}, {"paper", row.paper[i]}};
    }
    json["rows"].push_back(one);
  }
  for (const uint64_t value_size : settings.value_sizes) {
    nlohmann::ordered_json ratios = {{"value_size", value_size}};
    for (const char* scheme : {"redo", "raw"}) {
      for (size_t i = 0; i < kKinds.size(); ++i) {
        const Ratio ratio = report.ErdaOver(scheme, value_size, kKinds[i]);
        ratios[fmt::format("erda_over_{}", scheme)][std::string(kKindNames[i])] = {{"counted", ratio.counted},
                                                                                   {"paper", ratio.paper}};
      }
    }
    json["ratios"].push_back(ratios);
  }
  return json;
}

}  // namespace erda::bytes
