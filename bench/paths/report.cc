#include "bench/paths/report.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "bench/floors/settings.h"
#include "erda/server.h"
#include "tools/shared/command_line.h"

namespace erda::paths {

namespace {

// Medians of two runs may differ by this factor.
constexpr double kNoise = 0.95;
constexpr double kNearlyAll = 0.995;
const uint32_t kDefaultSlotBytes = ServerOptions().slot_bytes;

}  // namespace

CLI::App* AddPaths(CLI::App& app, Settings& settings) {
  CLI::App* paths = app.add_subcommand("paths", "Measure puts on each put path, by the size of their values");
  floors::AddOwnServer(*paths, settings.fabric, settings.address);
  paths->add_option("--pool", settings.pool, "dram:, a file or /dev/daxX.Y, as for erda-server; default dram:")
      ->type_name("PATH");
  tools::AddSize(*paths, "--pool-size", settings.pool_size, "The size of a new pool; default 256M");
  paths
      ->add_option("--value-bytes", settings.value_sizes,
                   "Sizes of values, one or more; default nine, from 64 to 262144")
      ->check(tools::NumberFrom<uint64_t>(0, 1 << 20))
      ->type_name("N");
  tools::AddNumber<uint64_t>(*paths, "--ops", settings.ops, 1, 1'000'000,
                             "Puts of each path and size in each round; default 500");
  tools::AddNumber<uint64_t>(*paths, "--rounds", settings.rounds, 1, 1'000'000, "Rounds; default 5");
  paths->add_option("--json", settings.json_path, "Also write the results to this file")->type_name("FILE");
  return paths;
}

std::string CheckSettings(const Settings& settings) {
  if (settings.fabric == "verbs" && settings.address.empty()) {
    return "--fabric verbs needs an --address, as verbs://10.9.0.1:7700";
  }
  return floors::CheckAddress("--address", settings.fabric, settings.address);
}

std::optional<double> Row::Median(PutPath path) const {
  for (size_t i = 0; i < kPaths.size(); ++i) {
    if (kPaths[i] == path && samples[i].count() > 0) return samples[i].median();
  }
  return std::nullopt;
}

uint64_t Report::InlineIsFastestUpTo() const {
  uint64_t up_to = 0;
  for (const Row& row : rows) {
    const auto in_request = row.Median(PutPath::kInline);
    if (!in_request) break;
    const auto slower = [&](PutPath path) { return row.Median(path).value_or(*in_request) >= *in_request * kNoise; };
    if (!slower(PutPath::kReserve) || !slower(PutPath::kDelegate)) break;
    up_to = row.value_size;
  }
  return up_to;
}

std::optional<double> Report::DelegateOverReserve() const {
  std::vector<double> ratios;
  for (const Row& row : rows) {
    const auto reserve = row.Median(PutPath::kReserve);
    const auto delegate = row.Median(PutPath::kDelegate);
    if (row.delegated_share < 0.5) continue;
    if (floors::RequestBytes(row.value_size) > kDefaultSlotBytes && reserve && delegate)
      ratios.push_back(*delegate / *reserve);
  }
  if (ratios.empty()) return std::nullopt;
  std::sort(ratios.begin(), ratios.end());
  return ratios[(ratios.size() - 1) / 2];
}

std::string ToTable(const Settings& settings, const Report& report) {
  const floors::Machine& machine = report.machine;
  std::string text = fmt::format(
      "{}: {} x {}, Linux {}\n{}, pool {} ({}, flush {})\n"
      "{} puts of each path and size in {} rounds; medians, and p99, in us\n\n{:>8}",
      machine.name, machine.cpus, machine.cpu.empty() ? "unknown CPU" : machine.cpu, machine.kernel, report.address,
      settings.pool, report.durability, report.flush_method, settings.ops * settings.rounds, settings.rounds, "value");
  for (const std::string_view name : kPathNames) text += fmt::format(" {:>10} {:>9}", name, "p99");
  text += '\n';
  for (const Row& row : report.rows) {
    text += fmt::format("{:>8}", row.value_size);
    for (const floors::Samples& samples : row.samples) {
      text += samples.count() == 0 ? fmt::format(" {:>10} {:>9}", "-", "-")
                                   : fmt::format(" {:>10.2f} {:>9.2f}", samples.median(), samples.p99());
    }
    if (row.delegated_share < kNearlyAll) text += fmt::format("  {:.0f} % delegated", 100 * row.delegated_share);
    text += '\n';
  }
  const uint64_t up_to = report.InlineIsFastestUpTo();
  text += up_to == 0 ? "\ninline is not the fastest for the smallest\n"
                     : fmt::format("\ninline is the fastest up to {} B\n", up_to);
  if (const auto ratio = report.DelegateOverReserve()) {
    text +=
        fmt::format("for what does not fit into a request of {} B, delegate takes {:.2f} times as long as reserve\n",
                    kDefaultSlotBytes, *ratio);
  }
  return text;
}

nlohmann::ordered_json ToJson(const Settings& settings, const Report& report) {
  nlohmann::ordered_json json = {
      {"machine", {{"name", report.machine.name}, {"cpu", report.machine.cpu}, {"cpus", report.machine.cpus}}},
      {"fabric", settings.fabric},
      {"address", report.address},
      {"pool", settings.pool},
      {"durability", report.durability},
      {"flush_method", report.flush_method},
      {"ops", settings.ops * settings.rounds},
      {"rounds", settings.rounds},
      {"rows", nlohmann::ordered_json::array()}};
  for (const Row& row : report.rows) {
    nlohmann::ordered_json one = {{"value_size", row.value_size}, {"delegated_share", row.delegated_share}};
    for (size_t i = 0; i < kPaths.size(); ++i) {
      const floors::Samples& samples = row.samples[i];
      if (samples.count() == 0) continue;
      one[std::string(kPathNames[i])] = {{"median_us", samples.median()}, {"p99_us", samples.p99()}};
    }
    json["rows"].push_back(one);
  }
  const uint64_t up_to = report.InlineIsFastestUpTo();
  json["inline_is_fastest_up_to"] = up_to;
  const auto ratio = report.DelegateOverReserve();
  json["delegate_over_reserve"] = ratio ? nlohmann::ordered_json(*ratio) : nlohmann::ordered_json();
  return json;
}

}  // namespace erda::paths
