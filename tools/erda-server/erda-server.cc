// erda-server: owns a pool and serves it until a signal.
#include <fmt/core.h>
#include <fmt/format.h>
#include <signal.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "erda/server.h"
#include "erda/status.h"
#include "format/durability.h"
#include "tools/erda-server/bus_error.h"
#include "tools/erda-server/log.h"
#include "tools/erda-server/metrics.h"
#include "tools/erda-server/notify.h"
#include "tools/erda-server/settings.h"
#include "tools/erda-server/watch.h"
#include "tools/shared/command_line.h"
#include "tools/shared/event_log.h"
#include "tools/shared/serving.h"

namespace {

using erda::tools::Fail;
using erda::tools::LogLevel;
using erda::tools::ReadSettings;
using erda::tools::Settings;

constexpr const char* kProgram = "erda-server";
std::string Describe(const erda::RecoveryReport& report) {
  return fmt::format(
      "recovered in {:.1f} ms: {} objects and {} index slots looked at; {} unsettled, of which {} settled, {} taken "
      "back, {} dropped, {} deletes finished, {} damaged; {} moves undone, {} regions unlinked",
      std::chrono::duration<double, std::milli>(report.time).count(), report.objects, report.index_slots,
      report.unsettled, report.settled, report.taken_back, report.dropped, report.deletes_finished, report.damaged,
      report.moves_undone, report.regions_unlinked);
}

constexpr const char* kMayBeMissing =
    "the machine lost power or its kernel crashed while the pool was open: acknowledged puts may be missing";

// Returns a line about the failures that a pool in a file survives.
std::string Survives(const erda::ServerOptions& options) {
  const std::string synced =
      !options.journal.empty() && options.journal_interval >= std::chrono::hours(24)
          ? "its journal is written when memory gets short and when the server stops (--sync never)"
      : !options.journal.empty()
          ? fmt::format("its journal is written every {} ms, and a power cut takes what came since",
                        options.journal_interval.count())
      : options.sync.count() == 0
          ? "nothing is synced before the server stops (--sync never)"
          : fmt::format("it is synced every {} ms, which bounds the loss and promises nothing", options.sync.count());
  return fmt::format("pool {} is process-safe: {}; {}", options.pool,
                     erda::format::DurabilityMeaning(erda::format::Durability::kProcessSafe), synced);
}

// Tells systemd the state, if it has started the server. The server serves even if systemd cannot be told.
void TellManager(const char* state) {
  if (!erda::tools::Notify(state))
    Fail(kProgram, fmt::format("cannot tell systemd by NOTIFY_SOCKET: {}", std::strerror(errno)), 0);
}

// Prints a line on stdout, for the user or script that starts the server, and writes it to a log file.
void Say(erda::tools::Log& log, const std::string& line) {
  fmt::print("{}: {}\n", kProgram, line);
  if (log.to_file()) log.Write(LogLevel::kInfo, line);
}

int FailAndLog(erda::tools::Log& log, const std::string& why, int exit_code) {
  if (log.to_file()) log.Write(LogLevel::kError, why);
  return Fail(kProgram, why, exit_code);
}

// Logs once for each level that the pool fills.
class PoolWatch {
 public:
  void Look(const erda::Server& server, const std::string& pool, erda::tools::Log& log) {
    const erda::ServerStats stats = server.stats();
    const uint64_t exhausted = erda::tools::PutsExhausted(server.activity());
    // The server also refuses a put if its client has too many reservations. Each shard keeps a region for its cleaner.
    const bool refuses = exhausted > std::exchange(exhausted_, exhausted) && stats.free_regions <= stats.shards;
    const int percent = erda::tools::PercentLive(stats);
    const auto level = fill_.Look(percent, refuses);
    if (!level) return;
    const bool full = *level == erda::tools::FillWatch::kFull;
    const std::string what = full ? "has no room, and refuses puts: " : "fills: ";
    log.Write(
        full ? LogLevel::kError : LogLevel::kWarning,
        fmt::format("pool {} {}live values take {} % of its log ({} of {} bytes); delete some, or stop the server "
                    "and make the pool larger by erda-pool resize",
                    pool, what, percent, stats.log_bytes_live, stats.log_bytes_total));
  }

 private:
  erda::tools::FillWatch fill_;
  uint64_t exhausted_ = 0;
};

std::set<std::string> Lines(const std::string& text) {
  std::set<std::string> lines;
  std::istringstream from(text);
  for (std::string line; std::getline(from, line);) lines.insert(line);
  return lines;
}

// Whether a running server changes this key on SIGHUP. A server never starts or stops asking for tokens.
bool CountsAtOnce(const std::string& name, bool has_tokens) {
  static const std::set<std::string> kNames = {"log-level", "log-file", "clients-per-token", "requests-per-second",
                                               "connects-per-second"};
  return kNames.contains(name) || (name == "token-file" && has_tokens);
}

erda::ServerLimits LimitsOf(const erda::ServerOptions& options, bool has_tokens) {
  return {options.clients_per_token, options.requests_per_second, options.connects_per_second,
          has_tokens ? options.token_file : ""};
}

// Handles SIGHUP. `settings` are those of the start, with the newest settings of the log.
void Reload(int argc, char** argv, Settings& settings, erda::Server& server, erda::tools::Log& log) {
  if (settings.config.empty()) {
    return log.Write(LogLevel::kInfo,
                     "SIGHUP: the server was started without --config, so there is no file to read again");
  }
  Settings next;
  std::string wrong;
  if (ReadSettings(argc, argv, next, wrong)) {
    return log.Write(LogLevel::kError, fmt::format("SIGHUP: {}; nothing was changed", wrong));
  }
  if (wrong = log.Change(next.log.level, next.log.file); !wrong.empty()) {
    return log.Write(LogLevel::kError, fmt::format("SIGHUP: {}; nothing was changed", wrong));
  }
  const bool has_tokens = !settings.options.token_file.empty() && !next.options.token_file.empty();
  if (const auto status = server.Reload(LimitsOf(next.options, has_tokens)); !status.ok()) {
    (void)log.Change(settings.log.level, settings.log.file);
    return log.Write(LogLevel::kError, fmt::format("SIGHUP: {}; nothing was changed", status.message()));
  }
  settings.log = next.log;
  erda::tools::TellBusErrorsIn(settings.log.file);
  log.Write(LogLevel::kInfo, fmt::format("SIGHUP: {} was read again", settings.config));
  const auto name_of = [](const std::string& line) { return line.substr(0, line.find(' ')); };
  std::set<std::string> changed;
  const auto before = Lines(settings.used);
  const auto now = Lines(next.used);
  for (const auto& [some, others] : {std::pair(&before, &now), {&now, &before}}) {
    for (const std::string& line : *some) {
      if (!others->contains(line) && line.find(" = ") != std::string::npos) changed.insert(name_of(line));
    }
  }
  for (const std::string& name : changed) {
    if (CountsAtOnce(name, has_tokens)) continue;
    log.Write(LogLevel::kWarning, fmt::format("SIGHUP: {} was changed, and counts from the next start on", name));
  }
}

int Serve(int argc, char** argv, Settings settings) {
  erda::ServerOptions& options = settings.options;
  const erda::tools::StopSignals stop_signals;
  erda::tools::TellBusErrors(kProgram, settings.log.file);
  erda::tools::AllowManyDescriptors();
  erda::tools::Log log(settings.log.level);  // Outlives the server.
  if (const std::string wrong = log.Open(settings.log.file); !wrong.empty()) {
    return Fail(kProgram, wrong, erda::tools::kExitFailure);
  }
  std::istringstream options_used(settings.used);
  for (std::string line; std::getline(options_used, line);) log.Write(LogLevel::kDebug, line);

  const auto exit_code = [](const erda::Status& status) {
    return status.code() == erda::Code::kInvalidArgument ? erda::tools::kExitUsage : erda::tools::kExitFailure;
  };
  erda::tools::DamageWatch damage;
  options.on_damage = [&log, &damage](std::string_view key) {
    if (const auto line = damage.Tell(key)) log.Write(LogLevel::kError, *line);
  };
  erda::tools::EventLog events(erda::SteadyClock::Instance(),
                               [&log](std::string_view line) { log.Write(LogLevel::kWarning, line); });
  options.on_event = [&events](std::string_view line) { events.Tell(line); };
  auto server = erda::Server::Open(options);
  if (!server.ok()) return FailAndLog(log, server.status().ToString(), exit_code(server.status()));
  if (const auto started = (*server)->Start(); !started.ok()) {
    return FailAndLog(log, started.ToString(), exit_code(started));
  }
  const auto report = (*server)->recovery();
  if (report) Say(log, Describe(*report));
  const bool may_be_missing = report && report->shards_verified > 0;
  const uint32_t count = (*server)->stats().shards;
  const std::string shards = fmt::format(", {} shard{}", count, count == 1 ? "" : "s");
  Say(log, fmt::format("ready, listening on {}, pool {} ({}){}", fmt::join((*server)->addresses(), " and "),
                       options.pool, (*server)->durability(), shards));
  for (const erda::ServerFabric& fabric : (*server)->fabrics()) {
    const std::string device = fabric.device.empty() ? "" : " on " + fabric.device;
    Say(log, fmt::format("{}{}, flush method {}, pool registered in {:.3f} ms", fabric.scheme, device,
                         fabric.flush_method, std::chrono::duration<double, std::milli>(fabric.registered_in).count()));
  }

  if (may_be_missing) {
    Say(log, fmt::format("{}; every value was verified: {} damaged", kMayBeMissing, report->damaged));
    log.Write(LogLevel::kError, kMayBeMissing);
  }
  if ((*server)->durability() == "process-safe") Say(log, Survives(options));
  if (options.pool != "dram:") {
    Say(log, fmt::format("the pool can grow to {} bytes (erda-pool resize)", (*server)->growth_limit()));
  }

  erda::tools::MetricsServer metrics([&server] { return erda::tools::MetricsText(**server); });
  if (!settings.metrics.empty()) {
    if (!metrics.Start(*erda::tools::ParseMetricsAddress(settings.metrics))) {
      return FailAndLog(log,
                        fmt::format("--metrics {}: cannot listen there: {}", settings.metrics, std::strerror(errno)),
                        erda::tools::kExitFailure);
    }
    Say(log, fmt::format("metrics on port {}", metrics.port()));
  }
  std::fflush(stdout);
  TellManager("READY=1");

  PoolWatch watch;
  int signal = 0;
  while (signal == 0) {
    watch.Look(**server, options.pool, log);
    signal = stop_signals.WaitFor(std::chrono::seconds(1));
    if (signal == SIGHUP) {
      Reload(argc, argv, settings, **server, log);
      signal = 0;
    }
  }
  Say(log, fmt::format("stopping on {}", erda::tools::StopSignals::NameOf(signal)));
  if (may_be_missing) Say(log, fmt::format("before this run, {}", kMayBeMissing));
  std::fflush(stdout);
  TellManager("STOPPING=1");
  if (const auto stopped = (*server)->Stop(); !stopped.ok()) {
    return FailAndLog(log, stopped.ToString(), erda::tools::kExitFailure);
  }
  events.End();
  if (log.to_file()) log.Write(LogLevel::kInfo, "stopped");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  std::string wrong;
  if (const auto done = ReadSettings(argc, argv, settings, wrong)) {
    return wrong.empty() ? *done : Fail(kProgram, wrong, *done);
  }
  if (settings.check) {
    fmt::print("{}", settings.used);
    return 0;
  }
  return Serve(argc, argv, std::move(settings));
}
