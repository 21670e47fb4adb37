#include "bench/growth/report.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "tools/shared/command_line.h"

namespace erda::growth {

namespace {

constexpr std::array<double, 3> kPercents = {50, 99, 99.9};

double RatioOf(const bench::Histogram& growing, const bench::Histogram& idle, double percent) {
  const uint64_t least = idle.Percentile(percent);
  return least == 0 ? 0 : static_cast<double>(growing.Percentile(percent)) / static_cast<double>(least);
}

double Micros(uint64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1000; }

}  // namespace

CLI::App* AddGrowth(CLI::App& app, Settings& settings) {
  CLI::App* growth = app.add_subcommand("growth", "Measure gets and puts while the index grows, and while it does not");
  tools::AddNumber<uint64_t>(*growth, "--keys", settings.keys, 10'000, 100'000'000,
                             "Keys at the end; half of them are there at first; default 2000000");
  tools::AddNumber<uint64_t>(*growth, "--value-bytes", settings.value_bytes, 0, 4096,
                             "Bytes of each value; default 100");
  growth
      ->add_option("--address", settings.address,
                   "Where the command's server listens, such as verbs://10.9.0.1:7700; default over shared memory")
      ->type_name("ADDRESS");
  growth->add_option("--pool", settings.pool, "A new file, or dram:, the default")->type_name("POOL");
  growth->add_option("--json", settings.json_path, "Also write the results to this file")->type_name("FILE");
  return growth;
}

double Report::GetRatio(double percent) const { return RatioOf(slices[1].get, slices[0].get, percent); }
double Report::PutRatio(double percent) const { return RatioOf(slices[1].put, slices[0].put, percent); }

std::string ToTable(const Settings& settings, const Report& report) {
  std::string text =
      fmt::format("{} to {} keys, values of {} bytes: {} slots of the index at first, {} at the end\n\n",
                  settings.keys / 2, settings.keys, settings.value_bytes, report.slots_before, report.slots_after);
  text += fmt::format("{:<14} {:>10} {:>9} {:>9} {:>9} {:>9}\n", "microseconds", "operations", "p50", "p99", "p99.9",
                      "most");
  const auto line = [&](std::string_view name, std::string_view state, const bench::Histogram& times) {
    text += fmt::format("{:<14} {:>10}", fmt::format("{}, {}", name, state), times.count());
    for (const double percent : kPercents) text += fmt::format(" {:>9.2f}", Micros(times.Percentile(percent)));
    text += fmt::format(" {:>9.2f}\n", Micros(times.max()));
  };
  for (size_t i = 0; i < kStateNames.size(); ++i) line("get", kStateNames[i], report.slices[i].get);
  for (size_t i = 0; i < kStateNames.size(); ++i) line("put", kStateNames[i], report.slices[i].put);
  text += fmt::format("\ngrowing over idle, p99: get {:.2f}, put {:.2f}\n", report.GetRatio(99), report.PutRatio(99));
  for (size_t i = 0; i < kStateNames.size(); ++i) {
    const Slices& slices = report.slices[i];
    const double gets = static_cast<double>(std::max<uint64_t>(slices.get.count(), 1));
    text += fmt::format("Reads for each get, {}: {:.4f}\n", kStateNames[i], static_cast<double>(slices.reads) / gets);
  }
  return text;
}

nlohmann::ordered_json ToJson(const Settings& settings, const Report& report) {
  nlohmann::ordered_json json = {{"keys", settings.keys},
                                 {"value_bytes", settings.value_bytes},
                                 {"slots_before", report.slots_before},
                                 {"slots_after", report.slots_after},
                                 {"get_p99_growing_over_idle", report.GetRatio(99)},
                                 {"put_p99_growing_over_idle", report.PutRatio(99)}};
  for (size_t i = 0; i < kStateNames.size(); ++i) {
    const Slices& slices = report.slices[i];
    for (const auto& [name, times] : {std::pair("get", &slices.get), {"put", &slices.put}}) {
      json[std::string(kStateNames[i])][name] = {{"operations", times->count()},
                                                 {"p50_ns", times->Percentile(50)},
                                                 {"p99_ns", times->Percentile(99)},
                                                 {"p999_ns", times->Percentile(99.9)},
                                                 {"max_ns", times->max()}};
    }
    json[std::string(kStateNames[i])]["reads"] = slices.reads;
  }
  return json;
}

}  // namespace erda::growth
