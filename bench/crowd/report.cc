#include "bench/crowd/report.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/shared/command_line.h"

namespace erda::crowd {

namespace {

constexpr uint64_t kSilentMost = 50'000;  // A server takes 65,536 clients.

double Micros(uint64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1000; }

double Worst(const std::vector<Step>& steps, bench::Histogram Step::*times) {
  double worst = 0;
  for (const Step& step : steps) {
    const auto least = static_cast<double>(std::max<uint64_t>((steps.front().*times).Percentile(50), 1));
    worst = std::max(worst, static_cast<double>((step.*times).Percentile(50)) / least);
  }
  return worst;
}

}  // namespace

CLI::App* AddCrowd(CLI::App& app, Settings& settings) {
  CLI::App* crowd =
      app.add_subcommand("crowd", "Measure puts and gets of one client beside many that are connected and silent");
  crowd->add_option("--silent", settings.silent, "Numbers of silent clients, ascending; default 0,100,1000,10000")
      ->delimiter(',')
      ->type_name("N,...");
  tools::AddNumber<uint64_t>(*crowd, "--operations", settings.operations, 1, 100'000'000,
                             "Operations of each kind, at each number of clients, in each round; default 20000");
  tools::AddNumber<uint64_t>(*crowd, "--rounds", settings.rounds, 1, 1000, "Rounds; default 5");
  tools::AddNumber<uint64_t>(*crowd, "--value-bytes", settings.value_bytes, 16, 4096,
                             "Bytes of each value; default 100");
  crowd->add_option("--json", settings.json_path, "Also write the results to this file")->type_name("FILE");
  return crowd;
}

std::string CheckSettings(const Settings& settings) {
  if (settings.silent.empty() || !std::ranges::is_sorted(settings.silent)) {
    return "--silent: the numbers must ascend";
  }
  if (settings.silent.back() > kSilentMost) return fmt::format("--silent: at most {} clients", kSilentMost);
  return {};
}

double Report::worst_put() const { return Worst(steps, &Step::put); }
double Report::worst_get() const { return Worst(steps, &Step::get); }

std::string ToTable(const Settings& settings, const Report& report) {
  std::string text = fmt::format("one client, values of {} bytes; {} puts and as many gets for each line\n\n",
                                 settings.value_bytes, settings.rounds * settings.operations);
  text += fmt::format("{:>14} {:>9} {:>9} {:>9} {:>9} {:>12}\n", "silent clients", "put p50", "put p99", "get p50",
                      "get p99", "server MiB");
  for (const Step& step : report.steps) {
    text += fmt::format("{:>14} {:>9.2f} {:>9.2f} {:>9.2f} {:>9.2f} {:>12}\n", step.silent,
                        Micros(step.put.Percentile(50)), Micros(step.put.Percentile(99)),
                        Micros(step.get.Percentile(50)), Micros(step.get.Percentile(99)), step.server_bytes >> 20);
  }
  text += fmt::format("\nmicroseconds; the largest median over the first one: put {:.2f}, get {:.2f}\n",
                      report.worst_put(), report.worst_get());
  return text;
}

nlohmann::ordered_json ToJson(const Settings& settings, const Report& report) {
  nlohmann::ordered_json json = {{"value_bytes", settings.value_bytes},
                                 {"operations", settings.operations},
                                 {"rounds", settings.rounds},
                                 {"worst_put", report.worst_put()},
                                 {"worst_get", report.worst_get()}};
  for (const Step& step : report.steps) {
    nlohmann::ordered_json line = {{"silent", step.silent}, {"server_bytes", step.server_bytes}};
    for (const auto& [name, times] : {std::pair("put", &step.put), {"get", &step.get}}) {
      line[name] = {{"operations", times->count()},
                    {"p50_ns", times->Percentile(50)},
                    {"p99_ns", times->Percentile(99)},
                    {"max_ns", times->max()}};
    }
    json["steps"].push_back(std::move(line));
  }
  return json;
}

}  // namespace erda::crowd
