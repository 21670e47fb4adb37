#include "bench/ycsb/report.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

namespace erda::bench {

namespace {

double Microseconds(uint64_t ns) { return static_cast<double>(ns) / 1000.0; }

std::string Row(const char* name, const Histogram& times) {
  if (times.count() == 0) return "";
  std::string row = fmt::format("{:<4} {:>12} {:>10.2f}", name, times.count(), times.mean() / 1000.0);
  for (const double percent : {50.0, 90.0, 99.0, 99.9}) {
    row += fmt::format(" {:>10.2f}", Microseconds(times.Percentile(percent)));
  }
  return row + fmt::format(" {:>10.2f}\n", Microseconds(times.max()));
}

double PerOperation(double sum, const Phase& phase) {
  return phase.operations == 0 ? 0.0 : sum / static_cast<double>(phase.operations);
}

std::string Row(const char* name, const Phase& phase) {
  return fmt::format("{:<4} {:>12} operations {:>10.2f} s {:>12.0f} ops/s\n", name, phase.operations, phase.seconds,
                     phase.ops_per_second());
}

nlohmann::ordered_json ToJson(const Phase& phase) {
  return {{"seconds", phase.seconds}, {"ops_per_second", phase.ops_per_second()}};
}

nlohmann::ordered_json ToJson(const Histogram& times) {
  return {{"count", times.count()},         {"p50_ns", times.Percentile(50)},    {"p90_ns", times.Percentile(90)},
          {"p99_ns", times.Percentile(99)}, {"p999_ns", times.Percentile(99.9)}, {"max_ns", times.max()},
          {"mean_ns", times.mean()}};
}

}  // namespace

std::string ToTable(const Settings& settings, const Report& report) {
  const Workload& workload = settings.workload;
  std::string text = settings.scheme == "erda" ? "" : fmt::format("scheme {}\n", settings.scheme);
  text += settings.writers > 0 ? fmt::format("{} of the threads update, the others get", settings.writers)
                               : fmt::format("workload {}: {}", workload.name, MixOf(workload));
  if (workload.distribution == Distribution::kUniform) text += ", uniform";
  text += fmt::format("\n{} records, values of {} bytes, {} thread{}, depth {}\n\n", settings.records,
                      settings.value_size, settings.threads, settings.threads == 1 ? "" : "s", settings.depth);
  if (settings.load) text += Row("load", report.load);
  if (!settings.run) return text;
  text += Row("run", report.run);
  if (settings.threads > 1) {
    text += fmt::format("When the fastest thread was through, the slowest had done {:.2f} of its share.\n",
                        report.run.slowest_share);
  }
  text += fmt::format("\n{:<4} {:>12} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}\n", "us", "count", "mean", "p50", "p90",
                      "p99", "p99.9", "max");
  const Measured& measured = report.measured;
  text += Row("get", measured.get) + Row("put", measured.put) + Row("rmw", measured.rmw);
  if (report.nvm_bytes) {
    text += fmt::format("\nNVM bytes written: {}, {:.1f} for each operation\n", report.nvm_bytes->all(),
                        PerOperation(static_cast<double>(report.nvm_bytes->all()), report.run));
  }
  if (report.server_cpu_seconds) {
    text += fmt::format("server's processor time: {:.3f} s, {:.3f} us for each operation\n", *report.server_cpu_seconds,
                        PerOperation(*report.server_cpu_seconds * 1e6, report.run));
  }
  if (measured.not_found > 0) text += fmt::format("\n{} gets found nothing\n", measured.not_found);
  return text;
}

nlohmann::ordered_json ToJson(const Settings& settings, const Report& report) {
  nlohmann::ordered_json json = {{"scheme", settings.scheme},
                                 {"workload", settings.WorkloadOf(0).name},
                                 {"distribution", NameOf(settings.workload.distribution)},
                                 {"records", settings.records},
                                 {"warm_up", settings.warm_up},
                                 {"operations", settings.operations},
                                 {"value_size", settings.value_size},
                                 {"threads", settings.threads},
                                 {"depth", settings.depth},
                                 {"writers", settings.writers},
                                 {"load", ToJson(report.load)},
                                 {"run", ToJson(report.run)},
                                 {"records_after", report.records},
                                 {"not_found", report.measured.not_found},
                                 {"failures", report.failures}};
  auto& run = json["run"];
  run["operations"] = report.run.operations;
  run["slowest_share"] = report.run.slowest_share;
  run["get"] = ToJson(report.measured.get);
  run["put"] = ToJson(report.measured.put);
  if (settings.WorkloadOf(0).rmw_percent > 0) run["rmw"] = ToJson(report.measured.rmw);
  if (report.nvm_bytes) {
    run["nvm_bytes"] = report.nvm_bytes->all();
    run["nvm_bytes_server"] = report.nvm_bytes->server;
    run["nvm_bytes_clients"] = report.nvm_bytes->clients;
  }
  if (report.server_cpu_seconds) run["server_cpu_seconds"] = *report.server_cpu_seconds;
  return json;
}

}  // namespace erda::bench
