#include "bench/cleaning/report.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace erda::cleaning {

namespace {

using bench::Histogram;
using nlohmann::ordered_json;

// The largest part of its work that the cleaner may do in idle slices.
constexpr double kIdleShare = 0.02;

constexpr std::string_view NameOf(State state) { return state == State::kIdle ? "idle" : "cleaning"; }

double Microseconds(uint64_t ns) { return static_cast<double>(ns) / 1000; }

double Over(double a, double b) { return b == 0 ? 0.0 : a / b; }

std::optional<double> P99Ratio(const Histogram& cleaning, const Histogram& idle) {
  if (cleaning.count() == 0 || idle.count() == 0) return std::nullopt;
  return Over(Microseconds(cleaning.Percentile(99)), Microseconds(idle.Percentile(99)));
}

// Returns the median. For an even count, that is the mean of the two in the middle.
double Median(std::vector<double> numbers) {
  if (numbers.empty()) return 0;
  std::sort(numbers.begin(), numbers.end());
  return (numbers[(numbers.size() - 1) / 2] + numbers[numbers.size() / 2]) / 2;
}

double MedianRatio(const std::vector<Measured>& workloads, std::optional<double> (Measured::*ratio)() const) {
  std::vector<double> ratios;
  for (const Measured& workload : workloads) {
    if (const auto one = (workload.*ratio)()) ratios.push_back(*one);
  }
  return Median(std::move(ratios));
}

std::string Rows(const Measured& workload, std::string_view kind, Histogram Slices::*times) {
  if ((workload.Of(State::kIdle).*times).count() == 0) return "";
  std::string text;
  for (const State state : kStates) {
    const Histogram& of_state = workload.Of(state).*times;
    text += fmt::format("{:<10} {:<4} {:<9} {:>10}", state == State::kIdle ? workload.title : "",
                        state == State::kIdle ? kind : "", NameOf(state), of_state.count());
    for (const double percent : {50.0, 90.0, 99.0, 99.9}) {
      text += fmt::format(" {:>9.2f}", Microseconds(of_state.Percentile(percent)));
    }
    if (state == State::kCleaning) {
      text += fmt::format(" {:>7.2f}", P99Ratio(of_state, workload.Of(State::kIdle).*times).value_or(0));
    }
    text += "\n";
  }
  return text;
}

ordered_json ToJson(const Histogram& times) {
  return {{"count", times.count()},
          {"mean_us", times.mean() / 1000},
          {"p50_us", Microseconds(times.Percentile(50))},
          {"p90_us", Microseconds(times.Percentile(90))},
          {"p99_us", Microseconds(times.Percentile(99))},
          {"p999_us", Microseconds(times.Percentile(99.9))}};
}

ordered_json ToJson(const Slices& slices) {
  ordered_json json;
  if (slices.get.count() > 0) json["get"] = ToJson(slices.get);
  if (slices.put.count() > 0) json["put"] = ToJson(slices.put);
  json["seconds"] = slices.seconds;
  json["cleaner_busy"] = Over(slices.cleaner_seconds, slices.seconds);
  json["regions_cleaned"] = slices.cleaned.regions;
  json["bytes_copied"] = slices.cleaned.copied;
  json["bytes_freed"] = slices.cleaned.freed;
  json["puts_delayed"] = slices.cleaned.delayed;
  return json;
}

}  // namespace

Cleaned& Cleaned::operator+=(const Cleaned& other) {
  regions += other.regions;
  copied += other.copied;
  freed += other.freed;
  delayed += other.delayed;
  return *this;
}

Cleaned Cleaned::operator-(const Cleaned& other) const {
  return {regions - other.regions, copied - other.copied, freed - other.freed, delayed - other.delayed};
}

double Cleaned::CopiedPerFreed() const {
  return Over(static_cast<double>(copied), static_cast<double>(freed) - static_cast<double>(copied));
}

std::optional<double> Measured::GetRatio() const { return P99Ratio(Of(State::kCleaning).get, Of(State::kIdle).get); }

std::optional<double> Measured::PutRatio() const { return P99Ratio(Of(State::kCleaning).put, Of(State::kIdle).put); }

double ShardTime::PerGet() const {
  const double without = Over(shard_without, seconds_without) * seconds_with;
  return Over((shard_with - without) * 1e9, static_cast<double>(gets));
}

double Copying::ideal() const {
  const double live = static_cast<double>(share) / 100;
  return live / (1 - live);
}

double Report::GetRatio() const { return MedianRatio(workloads, &Measured::GetRatio); }
double Report::PutRatio() const { return MedianRatio(workloads, &Measured::PutRatio); }

std::string WhatIsWrong(const Report& report) {
  for (const Measured& workload : report.workloads) {
    const Cleaned& idle = workload.Of(State::kIdle).cleaned;
    const Cleaned& cleaning = workload.Of(State::kCleaning).cleaned;
    if (cleaning.copied == 0) {
      return fmt::format("the cleaner copied nothing in the cleaning slices of {}: a higher --rate keeps it busy",
                         workload.title);
    }
    if (static_cast<double>(idle.copied) > kIdleShare * static_cast<double>(cleaning.copied) ||
        static_cast<double>(idle.regions) > kIdleShare * static_cast<double>(cleaning.regions)) {
      return fmt::format("the cleaner was not idle in the idle slices of {}: it cleaned {} regions and copied {} bytes",
                         workload.title, idle.regions, idle.copied);
    }
  }
  for (const Copying& copying : report.copying) {
    if (copying.cleaned.freed > copying.cleaned.copied) continue;
    return fmt::format("with {} % live the cleaner gained nothing: --times is too small", copying.share);
  }
  return "";
}

std::string ToTable(const Settings& settings, const Report& report) {
  const floors::Machine& machine = report.machine;
  constexpr double kMiB = 1 << 20;
  std::string text = fmt::format(
      "{}: {} x {}, Linux {}\n"
      "{}, pool {} ({}, flush {}), a log of {:.0f} MiB in regions of {:.0f} MiB\n"
      "{} keys of {} B, values of {} B: {} % of the log; {} puts/s beside what is measured\n"
      "{} rounds, slices of at most {} ms\n\n",
      machine.name, machine.cpus, machine.cpu.empty() ? "unknown CPU" : machine.cpu, machine.kernel, report.address,
      settings.pool, report.durability, report.flush_method, static_cast<double>(report.log_bytes) / kMiB,
      static_cast<double>(report.region_bytes) / kMiB, report.keys, kKeyBytes, settings.value_bytes, settings.live,
      settings.rate, settings.rounds, settings.slice_ms);
  text += fmt::format("{:<10} {:<4} {:<9} {:>10} {:>9} {:>9} {:>9} {:>9} {:>7}\n", "us", "", "cleaner", "count", "p50",
                      "p90", "p99", "p99.9", "p99 x");
  for (const Measured& workload : report.workloads) {
    text += Rows(workload, "get", &Slices::get) + Rows(workload, "put", &Slices::put);
  }
  text += fmt::format("p99, cleaning over idle, median of the workloads: get {:.2f}, put {:.2f}\n\n", report.GetRatio(),
                      report.PutRatio());

  text += fmt::format("{:<10} {:<9} {:>8} {:>14} {:>12} {:>12} {:>13}\n", "", "cleaner", "seconds", "cleaner's CPU",
                      "regions", "MiB copied", "puts delayed");
  for (const Measured& workload : report.workloads) {
    for (const State state : kStates) {
      const Slices& slices = workload.Of(state);
      text += fmt::format("{:<10} {:<9} {:>8.2f} {:>12.1f} % {:>12} {:>12.1f} {:>13}\n",
                          state == State::kIdle ? workload.title : "", NameOf(state), slices.seconds,
                          100 * Over(slices.cleaner_seconds, slices.seconds), slices.cleaned.regions,
                          static_cast<double>(slices.cleaned.copied) / kMiB, slices.cleaned.delayed);
    }
  }
  text += fmt::format("\nshard's CPU time for each get: idle {:.1f} ns, cleaning {:.1f} ns\n",
                      report.shard_time[0].PerGet(), report.shard_time[1].PerGet());
  text += fmt::format("\n{:<32} {:>10} {:>22}\n", "uniform overwrites, live data", "measured", "u / (1 - u)");
  for (const Copying& copying : report.copying) {
    text += fmt::format("bytes copied per byte freed, {} % {:>10.2f} {:>22.2f}\n", copying.share,
                        copying.cleaned.CopiedPerFreed(), copying.ideal());
  }
  return text;
}

ordered_json ToJson(const Settings& settings, const Report& report) {
  const floors::Machine& machine = report.machine;
  ordered_json json = {
      {"machine",
       {{"name", machine.name},
        {"cpu", machine.cpu},
        {"cpus", machine.cpus},
        {"kernel", machine.kernel},
        {"clock", machine.clock}}},
      {"fabric", settings.fabric},
      {"address", report.address},
      {"pool", settings.pool},
      {"durability", report.durability},
      {"flush_method", report.flush_method},
      {"pool_size", settings.pool_size},
      {"log_bytes", report.log_bytes},
      {"region_bytes", report.region_bytes},
      {"key_bytes", kKeyBytes},
      {"value_bytes", settings.value_bytes},
      {"live", settings.live},
      {"keys", report.keys},
      {"rate", settings.rate},
      {"rounds", settings.rounds},
      {"slice_ms", settings.slice_ms},
      {"times", settings.times},
  };
  ordered_json ratios = {{"get_p99", report.GetRatio()}, {"put_p99", report.PutRatio()}};
  for (const Measured& workload : report.workloads) {
    const std::string name(workload.name);
    for (const State state : kStates) json["workloads"][name][std::string(NameOf(state))] = ToJson(workload.Of(state));
    if (const auto ratio = workload.GetRatio()) ratios[name]["get_p99"] = *ratio;
    if (const auto ratio = workload.PutRatio()) ratios[name]["put_p99"] = *ratio;
  }
  json["ratios"] = ratios;
  json["server_cpu_per_get"] = {{"idle_ns", report.shard_time[0].PerGet()},
                                {"cleaning_ns", report.shard_time[1].PerGet()}};
  for (const Copying& copying : report.copying) {
    json["copied_per_freed"][std::to_string(copying.share)] = {{"measured", copying.cleaned.CopiedPerFreed()},
                                                               {"ideal", copying.ideal()},
                                                               {"bytes_copied", copying.cleaned.copied},
                                                               {"bytes_freed", copying.cleaned.freed}};
  }
  return json;
}

}  // namespace erda::cleaning
