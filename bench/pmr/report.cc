#include "bench/pmr/report.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <system_error>

#include "bench/floors/settings.h"
#include "tools/shared/command_line.h"

namespace erda::pmr_bench {

namespace {

constexpr double kMiB = 1 << 20;

double MiBPerSecond(const Row& row, size_t path) {
  return row.ops_per_second[path].median() * static_cast<double>(row.bytes) / kMiB;
}

// `cell` returns the text of a path that was measured at this size.
template <class Cell>
std::string Table(const Report& report, std::string_view what, Cell&& cell) {
  std::string text = fmt::format("{:<24}", what);
  for (const std::string_view name : kPathNames) text += fmt::format(" {:>18}", name);
  text += '\n';
  for (const Row& row : report.rows) {
    text += fmt::format("{:>24}", row.bytes);
    for (size_t path = 0; path < kPaths; ++path) {
      text += fmt::format(" {:>18}", row.us[path].count() == 0 ? std::string("-") : cell(row, path));
    }
    text += '\n';
  }
  return text;
}

}  // namespace

CLI::App* AddPmr(CLI::App& app, Settings& settings) {
  CLI::App* pmr = app.add_subcommand("pmr", "Measure four ways to make bytes persistent at a server");
  floors::AddOwnServer(*pmr, settings.fabric, settings.address);
  pmr->add_option("--folder", settings.folder, "A folder on the disk to measure")->required()->type_name("DIR");
  pmr->add_option("--nvm", settings.nvm, "dram:, /dev/daxX.Y or a file, whose bytes are lost; default dram:")
      ->type_name("PATH");
  pmr->add_option("--region", settings.region,
                  "dram:, or pmr: and a PCI resource, or as --nvm, whose bytes are lost; default dram:")
      ->type_name("PATH");
  static const std::map<std::string, Flush> kFlushes = {
      {"auto", Flush::kAuto}, {"read", Flush::kRead}, {"server", Flush::kServer}};
  pmr->add_option("--flush", settings.flush, "What follows a one-sided Write: read, server or auto; default auto")
      ->transform(CLI::CheckedTransformer(kFlushes))
      ->type_name("METHOD");
  pmr->add_option("--value-bytes", settings.sizes, "Sizes, one or more; default six, from 64 to 65536")
      ->check(tools::NumberFrom<uint64_t>(8, kBytesMax))
      ->type_name("N");
  tools::AddNumber<uint64_t>(*pmr, "--ops", settings.ops, 1, 1'000'000,
                             "Operations of each path and size in each round, one at a time; default 500");
  tools::AddNumber<uint64_t>(*pmr, "--rounds", settings.rounds, 1, 1000, "Rounds; default 5");
  tools::AddNumber<uint64_t>(*pmr, "--clients", settings.clients, 1, 64, "Clients at once, for throughput; default 4");
  tools::AddNumber<uint64_t>(*pmr, "--milliseconds", settings.milliseconds, 1, 600'000,
                             "The time of each figure of throughput in each round; default 300");
  pmr->add_option("--json", settings.json_path, "Also write the results to this file")->type_name("FILE");
  return pmr;
}

std::string CheckSettings(const Settings& settings) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(settings.folder, ignored)) return "--folder: " + settings.folder + " is no folder";
  if (settings.fabric == "verbs" && settings.address.empty()) {
    return "--fabric verbs needs an --address, as verbs://10.9.0.1:7700";
  }
  return floors::CheckAddress("--address", settings.fabric, settings.address);
}

std::string ToTable(const Settings& settings, const Report& report) {
  const floors::Machine& machine = report.machine;
  std::string text = fmt::format(
      "{}: {} x {}, Linux {}\n{}{}{}; a one-sided Write is flushed by {}\n"
      "disk {}: {}{}\nNVM {} ({}), region {} ({})\n{} operations of each path and size in {} rounds\n\n",
      machine.name, machine.cpus, machine.cpu.empty() ? "unknown CPU" : machine.cpu, machine.kernel, report.address,
      report.device.empty() ? "" : ", ", report.device, report.flush == "read" ? "a Read" : "the server",
      settings.folder, report.disk_direct ? "direct writes" : "writes through the page cache",
      report.disk_in_memory ? ", in memory: nothing here tells of a disk" : "", settings.nvm, report.nvm_durability,
      settings.region, report.region_durability, settings.ops * settings.rounds, settings.rounds);
  text += Table(report, "us: median / p99", [](const Row& row, size_t path) {
    return fmt::format("{:.2f} / {:.2f}", row.us[path].median(), row.us[path].p99());
  });
  text += '\n' + Table(report, fmt::format("MiB/s, {} clients", settings.clients),
                       [](const Row& row, size_t path) { return fmt::format("{:.1f}", MiBPerSecond(row, path)); });
  for (size_t path = 0; path < kPaths; ++path) {
    if (!report.not_measured[path].empty()) {
      text += fmt::format("\n{} cannot be measured: {}\n", kPathNames[path], report.not_measured[path]);
    }
  }
  return text;
}

nlohmann::ordered_json ToJson(const Settings& settings, const Report& report) {
  nlohmann::ordered_json json = {
      {"machine", {{"name", report.machine.name}, {"cpu", report.machine.cpu}, {"cpus", report.machine.cpus}}},
      {"fabric", settings.fabric},
      {"address", report.address},
      {"device", report.device},
      {"flush", report.flush},
      {"disk", {{"direct", report.disk_direct}, {"in_memory", report.disk_in_memory}}},
      {"nvm", {{"path", settings.nvm}, {"durability", report.nvm_durability}}},
      {"region", {{"path", settings.region}, {"durability", report.region_durability}}},
      {"ops", settings.ops * settings.rounds},
      {"rounds", settings.rounds},
      {"clients", settings.clients},
      {"not_measured", nlohmann::ordered_json::object()},
      {"rows", nlohmann::ordered_json::array()}};
  for (size_t path = 0; path < kPaths; ++path) {
    if (!report.not_measured[path].empty()) {
      json["not_measured"][std::string(kPathNames[path])] = report.not_measured[path];
    }
  }
  for (const Row& row : report.rows) {
    nlohmann::ordered_json one = {{"bytes", row.bytes}};
    for (size_t path = 0; path < kPaths; ++path) {
      if (row.us[path].count() == 0) continue;
      one[std::string(kPathNames[path])] = {{"mean_us", row.us[path].mean()},
                                            {"median_us", row.us[path].median()},
                                            {"p99_us", row.us[path].p99()},
                                            {"ops_per_second", row.ops_per_second[path].median()},
                                            {"mib_per_second", MiBPerSecond(row, path)}};
    }
    json["rows"].push_back(std::move(one));
  }
  return json;
}

}  // namespace erda::pmr_bench
