#include "bench/journal/report.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "bench/journal/raw_disk.h"
#include "tools/shared/command_line.h"

namespace erda::journal_bench {

namespace {

constexpr double kMicrosInSecond = 1e6;

double Micros(uint64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1000; }

std::string Line(std::string_view what, const floors::Samples& samples) {
  return fmt::format("{:<58} {:>10.1f} {:>10.1f} {:>10.1f}\n", what, samples.mean(), samples.median(), samples.p99());
}
std::string Line(std::string_view what, const bench::Histogram& times) {
  return fmt::format("{:<58} {:>10.2f} {:>10.2f} {:>10.2f}\n", what, times.mean() / 1000, Micros(times.Percentile(50)),
                     Micros(times.Percentile(99)));
}

std::string DiskTable(const Disk& disk) {
  std::string text = fmt::format("{:<58} {:>10} {:>10} {:>10}\n", "us", "mean", "median", "p99");
  text += Line("the disk: 4 KiB and fdatasync", disk.flushed);
  text += Line("the disk: 4 KiB with RWF_DSYNC", disk.durable);
  text += Line("the disk: 1 MiB and fdatasync, one after the other", disk.sequential);
  return text;
}

std::string Verdicts(const Settings& settings, const Report& report) {
  std::string text = fmt::format("\n{:<58} {:>10}\n", "", "ratio");
  const auto add = [&text](const std::string& what, double ratio) {
    text += fmt::format("{:<58} {:>10.2f}\n", what, ratio);
  };
  add("put of one client / durable write of 4 KiB, medians", report.median_put_over_write());
  add("the same, means", report.mean_put_over_write());
  const Load& most = report.loads.back();
  add(fmt::format("bytes put / the disk's sequential bytes, {} x {}", most.clients, most.depth),
      report.share_of_disk(most, settings.value_bytes));
  for (const Load& load : report.loads) {
    add(fmt::format("bytes written to the disk / bytes put, {} x {}", load.clients, load.depth),
        load.written_per_put());
  }
  add("get p99, journal busy / idle", report.get_busy_over_idle());
  return text;
}

nlohmann::ordered_json JsonOf(const floors::Samples& samples, std::string_view unit) {
  const std::string end(unit);
  return {{"count", samples.count()},
          {"mean_" + end, samples.mean()},
          {"median_" + end, samples.median()},
          {"p99_" + end, samples.p99()}};
}
nlohmann::ordered_json JsonOf(const bench::Histogram& times) {
  return {{"count", times.count()},
          {"mean_us", times.mean() / 1000},
          {"p50_us", Micros(times.Percentile(50))},
          {"p99_us", Micros(times.Percentile(99))}};
}

}  // namespace

CLI::App* AddJournal(CLI::App& app, Settings& settings) {
  CLI::App* journal =
      app.add_subcommand("journal", "Measure a pool with a journal beside the durable writes of its disk");
  journal->add_option("--folder", settings.folder, "A folder on the disk to measure")->required()->type_name("DIR");
  journal->add_flag("--disk-only", settings.disk_only, "Measure only the disk");
  tools::AddSize(*journal, "--pool-size", settings.pool_size, "The size of the pool; default 256M");
  tools::AddSize(*journal, "--journal-size", settings.journal_size, "The size of the journal; default 256M");
  tools::AddNumber<uint64_t>(*journal, "--value-bytes", settings.value_bytes, 16, 1 << 20,
                             "Bytes of each value; default 1024");
  tools::AddNumber<uint64_t>(*journal, "--keys", settings.keys, 1, 100'000'000, "Keys that are put; default 20000");
  tools::AddNumber<uint64_t>(*journal, "--clients", settings.clients, 2, 256, "Clients at once; default 16");
  tools::AddNumber<uint64_t>(*journal, "--depth", settings.depth, 2, 256,
                             "Puts in flight of each client, for many puts; default 16");
  tools::AddNumber<uint64_t>(*journal, "--rounds", settings.rounds, 1, 1000, "Rounds; default 5");
  tools::AddNumber<uint64_t>(*journal, "--milliseconds", settings.milliseconds, 1, 600'000,
                             "The time of each figure in each round; default 2000");
  journal->add_option("--json", settings.json_path, "Also write the results to this file")->type_name("FILE");
  return journal;
}

std::string CheckSettings(const Settings& settings) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(settings.folder, ignored)) return "--folder: " + settings.folder + " is no folder";
  return {};
}

double Disk::median_write_us() const { return std::min(flushed.median(), durable.median()); }
double Disk::mean_write_us() const { return std::min(flushed.mean(), durable.mean()); }

double Disk::bytes_per_second() const {
  return static_cast<double>(RawDisk::kLargeBytes) * kMicrosInSecond / sequential.mean();
}

double Load::written_per_put() const {
  return static_cast<double>(bytes_written) / static_cast<double>(std::max<uint64_t>(bytes_put, 1));
}

double Report::share_of_disk(const Load& load, uint64_t value_bytes) const {
  return load.puts_per_second.median() * static_cast<double>(value_bytes) / disk.bytes_per_second();
}

double Report::get_busy_over_idle() const {
  return static_cast<double>(get_busy.Percentile(99)) /
         static_cast<double>(std::max<uint64_t>(get_idle.Percentile(99), 1));
}

std::string ToTable(const Settings& settings, const Report& report) {
  const floors::Machine& machine = report.machine;
  const Disk& disk = report.disk;
  std::string text = fmt::format(
      "{}: {} x {}, Linux {}\n{}: {}{}\n{} rounds, {} ms of each figure in each\n\n", machine.name, machine.cpus,
      machine.cpu.empty() ? "unknown CPU" : machine.cpu, machine.kernel, settings.folder,
      disk.direct ? "direct writes" : "writes through the page cache",
      disk.in_memory ? ", in memory: nothing here tells of a disk" : "", settings.rounds, settings.milliseconds);
  text += DiskTable(disk);
  if (!settings.disk_only) {
    text += Line("put of one client, in turn with the first two", report.put_us);
    for (const Load& load : report.loads) {
      text += Line(fmt::format("put, {} x {} in flight", load.clients, load.depth), load.put);
    }
    text += Line("get, nothing is put", report.get_idle);
    text += Line("get, another client puts", report.get_busy);
  }
  text += fmt::format("\nthe disk, 1 MiB after the other: {:.0f} MiB/s\n",
                      disk.bytes_per_second() / static_cast<double>(RawDisk::kLargeBytes));
  if (settings.disk_only) return text;
  for (const Load& load : report.loads) {
    text += fmt::format("puts of {} B in a second, {} x {} in flight: {:.0f}\n", settings.value_bytes, load.clients,
                        load.depth, load.puts_per_second.median());
  }
  text +=
      fmt::format("restart after a kill, pool of {} MiB: {:.0f} ms with the image, {:.0f} ms without it\n",
                  settings.pool_size >> 20, report.restart_with_image.median(), report.restart_without_image.median());
  return text + Verdicts(settings, report);
}

nlohmann::ordered_json ToJson(const Settings& settings, const Report& report) {
  const Disk& disk = report.disk;
  nlohmann::ordered_json json = {
      {"machine", {{"name", report.machine.name}, {"cpu", report.machine.cpu}, {"cpus", report.machine.cpus}}},
      {"rounds", settings.rounds},
      {"milliseconds", settings.milliseconds},
      {"disk",
       {{"direct", disk.direct},
        {"in_memory", disk.in_memory},
        {"flushed", JsonOf(disk.flushed, "us")},
        {"durable", JsonOf(disk.durable, "us")},
        {"sequential", JsonOf(disk.sequential, "us")},
        {"bytes_per_second", disk.bytes_per_second()}}}};
  if (settings.disk_only) return json;
  json["durability"] = report.durability;
  json["value_bytes"] = settings.value_bytes;
  json["put"] = JsonOf(report.put_us, "us");
  for (const Load& load : report.loads) {
    nlohmann::ordered_json one = {{"clients", load.clients},
                                  {"depth", load.depth},
                                  {"puts_per_second", load.puts_per_second.median()},
                                  {"share_of_disk", report.share_of_disk(load, settings.value_bytes)},
                                  {"bytes_put", load.bytes_put},
                                  {"bytes_written", load.bytes_written},
                                  {"written_per_put", load.written_per_put()}};
    one["put"] = JsonOf(load.put);
    json["loads"].push_back(std::move(one));
  }
  json["get_idle"] = JsonOf(report.get_idle);
  json["get_busy"] = JsonOf(report.get_busy);
  json["restart_with_image"] = JsonOf(report.restart_with_image, "ms");
  json["restart_without_image"] = JsonOf(report.restart_without_image, "ms");
  json["ratios"] = {{"median_put_over_write", report.median_put_over_write()},
                    {"mean_put_over_write", report.mean_put_over_write()},
                    {"get_busy_over_idle", report.get_busy_over_idle()}};
  return json;
}

}  // namespace erda::journal_bench
