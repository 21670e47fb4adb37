#include "bench/floors/report.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <thread>

#include "base/bytes.h"
#include "base/unique_fd.h"

namespace erda::floors {

namespace {

struct Row {
  Figure figure;
  std::string text;
};

std::vector<Row> Rows(const Settings& settings, const Report& report) {
  const uint64_t value = settings.value_bytes;
  return {
      {Figure::kRawRead64, fmt::format("raw Read of {} B", kSmallReadBytes)},
      {Figure::kRawReadObject, fmt::format("raw Read of {} B, an object", ObjectReadBytes(value))},
      {Figure::kGetCold, "get, cold"},
      {Figure::kRawPingPong,
       fmt::format("raw WriteImm of {} B, and of {} B back", RequestBytes(value), sizeof(format::Reply))},
      {Figure::kRawPutWork, "the same, with the bare work of a put"},
      {Figure::kPutInline, "put, inline"},
      {Figure::kRawWriteFlush,
       fmt::format("raw Write of {} B, flushed: {}", value + format::kChecksumBytes, report.flush_method)},
      {Figure::kPutReserve, "put, reserve"},
      {Figure::kDelete, "delete"},
      {Figure::kGetWarm, "get, warm"},
      {Figure::kRawReadsDeep, fmt::format("raw Reads of {} B, {} in flight", ObjectReadBytes(value), kDeep)},
      {Figure::kGetsDeep, fmt::format("gets, warm, {} in flight", kDeep)},
      {Figure::kMemoryWork, "the work in memory of a get"},
      {Figure::kRawWriteAsk, fmt::format("raw Write of {} B, WriteImm after it, and back", kLargeBytes)},
      {Figure::kPutDelegate, fmt::format("put of {} B, delegated", kLargeBytes)},
      {Figure::kPutTrusted, "the same, pool in dram:"},
      {Figure::kPutGuarded, fmt::format("the same, with the least rights: {}", report.least_rights)},
  };
}

std::string FirstLineWith(const std::string& path, const std::string& begin) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with(begin)) return line;
  }
  return "";
}

nlohmann::ordered_json OrNull(const std::optional<double>& number) {
  return number ? nlohmann::ordered_json(*number) : nlohmann::ordered_json();
}

}  // namespace

std::string_view NameOf(Figure figure) {
  constexpr std::array<std::string_view, kFigures> kNames = {
      "raw_read_64",     "raw_read_object", "get_cold",     "raw_ping_pong", "raw_put_work",   "put_inline",
      "raw_write_flush", "put_reserve",     "delete",       "get_warm",      "raw_reads_deep", "gets_deep",
      "memory_work",     "raw_write_ask",   "put_delegate", "put_trusted",   "put_guarded"};
  return kNames[static_cast<size_t>(figure)];
}

double Samples::Percentile(double percent) const {
  std::vector<double> sorted = us_;
  const double rank = std::ceil(percent / 100 * static_cast<double>(sorted.size()) - 1e-9);
  const auto at = std::clamp(static_cast<size_t>(std::max(rank, 1.0)), size_t{1}, sorted.size()) - 1;
  const auto nth = sorted.begin() + static_cast<std::ptrdiff_t>(at);
  std::nth_element(sorted.begin(), nth, sorted.end());
  return *nth;
}

double Samples::mean() const { return std::reduce(us_.begin(), us_.end()) / static_cast<double>(us_.size()); }

Machine ThisMachine() {
  Machine machine;
  utsname names{};
  if (::uname(&names) == 0) {
    machine.name = names.nodename;
    machine.kernel = names.release;
  }
  const std::string model = FirstLineWith("/proc/cpuinfo", "model name");
  const size_t colon = model.find(": ");
  if (colon != std::string::npos) machine.cpu = model.substr(colon + 2);
  machine.cpus = std::thread::hardware_concurrency();
  machine.clock = FirstLineWith("/sys/devices/system/clocksource/clocksource0/current_clocksource", "");
  return machine;
}

double Ratios::worst() const { return std::max({get_cold, get_warm, put_inline, put_reserve, put_delegate}); }

Ratios Report::ratios(const Settings& settings) const {
  const double ping_pong = Median(Figure::kRawPingPong);
  Ratios ratios;
  ratios.get_cold = Median(Figure::kGetCold) / (Median(Figure::kRawRead64) + Median(Figure::kRawReadObject));
  ratios.get_warm = Median(Figure::kGetWarm) / Median(Figure::kRawReadObject);
  ratios.put_bare = Median(Figure::kRawPutWork) / ping_pong;
  ratios.put_inline = Median(Figure::kPutInline) / ping_pong;
  ratios.put_reserve = Median(Figure::kPutReserve) / (ping_pong + Median(Figure::kRawWriteFlush));
  ratios.put_delegate = Median(Figure::kPutDelegate) / Median(Figure::kRawWriteAsk);
  ratios.trust = Median(Figure::kPutGuarded) / Median(Figure::kPutTrusted);
  ratios.get_rate = Median(Figure::kRawReadsDeep) / Median(Figure::kGetsDeep);
  if (settings.fabric == "shm") ratios.get_memory = Median(Figure::kGetWarm) / Median(Figure::kMemoryWork);
  return ratios;
}

std::optional<double> Report::ib_read_lat_ratio() const {
  if (!ib_read_lat_us) return std::nullopt;
  return Median(Figure::kRawRead64) / *ib_read_lat_us;
}

std::string ToTable(const Settings& settings, const Report& report) {
  const Machine& machine = report.machine;
  std::string text = fmt::format(
      "{}: {} x {}, Linux {}, clock {} ({:.0f} ns a look)\n"
      "{}, pool {} ({}, flush {}), keys of {} B, values of {} B\n"
      "{} operations of each kind in {} rounds, timed in blocks of {}\n\n",
      machine.name, machine.cpus, machine.cpu.empty() ? "unknown CPU" : machine.cpu, machine.kernel, machine.clock,
      report.clock_ns, report.address, settings.pool, report.durability, report.flush_method, kKeyBytes,
      settings.value_bytes, report.plan.ops(), report.plan.rounds, report.plan.block_ops);
  text += fmt::format("{:<52} {:>10} {:>10}\n", "us", "median", "p99");
  for (const Row& row : Rows(settings, report)) {
    const Samples& samples = report.Of(row.figure);
    text += fmt::format("{:<52} {:>10.3f} {:>10.3f}\n", row.text, samples.median(), samples.p99());
  }
  const Ratios ratios = report.ratios(settings);
  text += fmt::format("\n{:<52} {:>10}\n", "over the floor", "ratio");
  const auto add = [&text](const std::string& what, double ratio) {
    text += fmt::format("{:<52} {:>10.2f}\n", what, ratio);
  };
  add("get, warm / raw Read of an object", ratios.get_warm);
  add("get, cold / (raw Read of 64 B + of an object)", ratios.get_cold);
  add("put, inline / raw WriteImm and back", ratios.put_inline);
  add("  of which with the bare work of a put", ratios.put_bare);
  add("put, reserve / (raw WriteImm and back + raw Write)", ratios.put_reserve);
  add("put, delegated / (raw Write + WriteImm and back)", ratios.put_delegate);
  add(fmt::format("put, delegated: {} / anywhere", report.least_rights), ratios.trust);
  if (ratios.get_memory) add("get, warm / its work in memory", *ratios.get_memory);
  add(fmt::format("gets in a second / raw Reads in a second, {} in flight", kDeep), ratios.get_rate);
  if (report.ib_read_lat_us) {
    text += fmt::format("\nib_read_lat of 64 B: {:.3f} us; the raw Read takes {:.2f} times that\n",
                        *report.ib_read_lat_us, report.ib_read_lat_ratio().value());
  } else {
    text += fmt::format("\nib_read_lat: {}\n", report.ib_read_lat_note);
  }
  return text;
}

nlohmann::ordered_json ToJson(const Settings& settings, const Report& report) {
  const Machine& machine = report.machine;
  nlohmann::ordered_json json = {
      {"machine",
       {{"name", machine.name},
        {"cpu", machine.cpu},
        {"cpus", machine.cpus},
        {"kernel", machine.kernel},
        {"clock", machine.clock},
        {"clock_ns", report.clock_ns}}},
      {"fabric", settings.fabric},
      {"address", report.address},
      {"pool", settings.pool},
      {"durability", report.durability},
      {"flush_method", report.flush_method},
      {"least_rights", report.least_rights},
      {"key_bytes", kKeyBytes},
      {"value_size", settings.value_bytes},
      {"delegated_value_size", kLargeBytes},
      {"depth", kDeep},
      {"ops", report.plan.ops()},
      {"rounds", report.plan.rounds},
      {"block_ops", report.plan.block_ops},
  };
  for (size_t i = 0; i < kFigures; ++i) {
    const Samples& samples = report.samples[i];
    json["figures"][std::string(NameOf(static_cast<Figure>(i)))] = {
        {"median_us", samples.median()}, {"p99_us", samples.p99()}, {"blocks", samples.count()}};
  }
  const Ratios ratios = report.ratios(settings);
  json["ratios"] = {
      {"get_warm", ratios.get_warm}, {"get_cold", ratios.get_cold},       {"put_inline", ratios.put_inline},
      {"put_bare", ratios.put_bare}, {"put_reserve", ratios.put_reserve}, {"put_delegate", ratios.put_delegate},
      {"trust", ratios.trust},       {"get_rate", ratios.get_rate},       {"get_memory", OrNull(ratios.get_memory)}};
  json["ib_read_lat_us"] = OrNull(report.ib_read_lat_us);
  json["ib_read_lat_ratio"] = OrNull(report.ib_read_lat_ratio());
  if (!report.ib_read_lat_note.empty()) json["ib_read_lat_note"] = report.ib_read_lat_note;
  return json;
}

Status WriteFileAtomically(const std::string& path, const std::string& content) {
  std::string name = path + ".XXXXXX";
  UniqueFd file(::mkostemp(name.data(), O_CLOEXEC));
  if (!file) return ErrnoStatus("cannot write " + path);
  const auto fail = [&] {
    auto status = ErrnoStatus("cannot write " + path);
    ::unlink(name.c_str());
    return status;
  };
  for (size_t done = 0; done < content.size();) {
    const ssize_t n = ::write(file.get(), content.data() + done, content.size() - done);
    if (n < 0) return fail();
    done += static_cast<size_t>(n);
  }
  // mkostemp makes the file readable for its owner alone. Everyone may read results.
  constexpr mode_t kMode = 0644;
  if (::fchmod(file.get(), kMode) != 0 || std::rename(name.c_str(), path.c_str()) != 0) return fail();
  return {};
}

}  // namespace erda::floors
