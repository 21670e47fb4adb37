// erda-server: owns a pool and serves it until a signal.
#include <fmt/core.h>
#include <fmt/format.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
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
#include "tools/erda-server/watch.h"
#include "tools/shared/command_line.h"
#include "tools/shared/config_file.h"
#include "tools/shared/event_log.h"
#include "tools/shared/geometry_options.h"
#include "tools/shared/journal_option.h"
#include "tools/shared/serving.h"

namespace {

using erda::tools::AddNumber;
using erda::tools::AddSize;
using erda::tools::Fail;
using erda::tools::LogLevel;
using erda::tools::MustBe;

constexpr const char* kProgram = "erda-server";
constexpr const char* kFooter = R"(
A size is a number of bytes, or a number with K, M, G or T, such as 64M or 1.5G. These units are powers of two.
The options of the geometry count when the server creates the pool. An existing pool keeps its geometry.

If a pool was not closed cleanly, the server first recovers it, and prints a line about that. When clients can connect,
the server prints a line, and one more for each fabric. SIGTERM and SIGINT close the pool cleanly.

The configuration file is TOML. Its keys are the options' names, without the dashes in front. SIGHUP makes the server
read it again. These keys count at once: log-level, log-file, clients-per-token, requests-per-second,
connects-per-second, and the name of another token-file. All others count from the next start on, and the log names
those that were changed. A file with an error changes nothing. A change inside the token file needs no signal.

Exit codes: 0 stopped by a signal, or --check found nothing wrong, 1 failure, 2 bad usage.

Examples: erda-server --pool /var/lib/erda/pool --size 4G --listen shm:/run/erda/socket
          erda-server --config /etc/erda/erda-server.toml --check)";

std::string CheckAddress(const std::string& address) {
  for (const std::string_view scheme : {"shm:", "verbs:"}) {
    if (address.starts_with(scheme) && address.size() > scheme.size()) return {};
  }
  return fmt::format("'{}' is not an address: give shm:/path/to/socket or verbs://host:port", address);
}

// The value of --sync, for a pool without a journal and for one with a journal.
struct Sync {
  std::chrono::milliseconds sync;
  std::chrono::milliseconds journal_interval;
};
constexpr std::chrono::milliseconds kAlways{-1};  // In place of Sync::sync: only a journal can do that.

std::optional<Sync> ParseSync(const std::string& text) {
  if (text == "always") return Sync{kAlways, std::chrono::milliseconds(0)};
  if (text == "never") return Sync{std::chrono::milliseconds(0), std::chrono::hours(24)};
  const auto time = erda::tools::ParseTime(text);
  if (!time || time->count() <= 0) return std::nullopt;
  return Sync{*time, *time};
}

std::string CheckSync(const std::string& text) {
  if (ParseSync(text)) return {};
  return fmt::format("'{}' is not a time: give for instance 1s, 500ms or 2m, at most a day, or always, or never", text);
}

void AddJournal(CLI::App& app, erda::ServerOptions& options) {
  erda::tools::AddJournalFile(
      app, options.journal, options.journal_size,
      "The file of a journal. With it a pool in an ordinary file survives a power cut. The server makes the journal "
      "together with the pool, and then needs both. The text ,size= gives the size of a new one; default 1G "
      "(docs/journal.md)");
  app.add_option(
         "--journal-memory", options.journal_memory,
         "A folder in memory (a tmpfs). The server keeps a pool with a journal there while it runs, and the next "
         "server goes on with it if this one is killed")
      ->type_name("FOLDER")
      ->capture_default_str()
      ->group("Journal");
  erda::tools::AddJournalOnTmpfs(app, options.journal_on_tmpfs);
}

void AddOptions(CLI::App& app, erda::ServerOptions& options) {
  app.add_option("--pool", options.pool, "The pool: a file, /dev/daxX.Y, or dram: (it ends with the server); required")
      ->type_name("PATH");
  erda::tools::AddPoolSize(app, options.pool_size, "The pool's size; needed to create it");
  app.add_option("--listen", options.listen,
                 "Where clients connect: shm:/path/to/socket or verbs://host:port; required, and may be repeated")
      ->allow_extra_args(false)
      ->check(CLI::Validator(CheckAddress, "", "address"))
      ->type_name("ADDRESS");
  app.add_option("--token-file", options.token_file,
                 "Only clients that know a token of this file may connect. A client may only read if read-only follows "
                 "its token there. A change of the file counts within a second (docs/security.md)")
      ->type_name("FILE");
  app.add_option_function<std::string>(
         "--sync",
         [&options](const std::string& text) {
           const Sync sync = *ParseSync(text);
           options.sync = sync.sync;
           options.journal_interval = sync.journal_interval;
         },
         "How often the server writes a pool in an ordinary file to its disk, as long as there are changes: 1s, 500ms, "
         "2m, or never. A sync bounds the loss by a power cut or a crash of the kernel, and promises nothing. With a "
         "journal: always (its default), so that each answer waits for the disk, or how often the journal is written")
      ->check(CLI::Validator(CheckSync, "", "sync"))
      ->type_name("TIME")
      ->default_str("1s");
  AddJournal(app, options);
  options.shards = 0;
  AddSize(app, "--scrub-rate", options.scrub_rate,
          "How many bytes of stored values the server verifies in a second, however busy it is; 0: none")
      ->capture_default_str();
  erda::tools::AddShards(app, options.shards, "the number of an existing pool, and 1 for a new one");
  erda::tools::AddGeometry(app, options.region_size, options.segment_size, options.index_entries);
  erda::tools::AddGrowTo(app, options.grow_to);
  app.add_flag(
      "--populate", options.populate,
      "Make all pages of the pool before the server serves, so that no put waits for one. The pool must fit into "
      "the memory; this takes up to a second for each GiB");

  const auto limit = [&app](const std::string& name, uint32_t& value, uint32_t low, uint32_t high,
                            const std::string& help) {
    return AddNumber<uint32_t>(app, name, value, low, high, help)->capture_default_str()->group("Limits");
  };
  limit("--max-clients", options.max_clients, 1, 65536, "Connections to each shard");
  limit("--slots-per-client", options.slots_per_client, 1, 256, "Outstanding requests of each client on each shard");
  limit("--slot-bytes", options.slot_bytes, 2048, 65536,
        "The largest request, with its key and inline value; a multiple of 64")
      ->check(MustBe([](uint64_t bytes) { return bytes % 64 == 0; }, "a multiple of 64"));
  limit("--reservations-per-client", options.reservations_per_client, 1, 1 << 20,
        "Puts of one client on one shard that have their space and are not settled");
  limit("--clients-per-token", options.clients_per_token, 0, 65536,
        "Connections to each shard with one token; without a token file, of one client; 0: no limit");
  limit("--requests-per-second", options.requests_per_second, 0, 1'000'000'000,
        "Requests of one client that each shard serves in a second, at least 100. Faster requests wait; 0: no limit")
      ->check(MustBe([](uint64_t rate) { return rate == 0 || rate >= 100; }, "0, or 100 and more"));
  limit("--connects-per-second", options.connects_per_second, 0, 1'000'000,
        "Clients that may connect with one token to one address in a second; without a token file, all clients. The "
        "server refuses clients beyond it; 0: no limit");
}

void AddFlush(CLI::App& app, erda::FlushChoice& flush) {
  static const std::map<std::string, erda::FlushChoice> kChoices = {
      {"auto", erda::FlushChoice::kAuto},
      {"server-flush", erda::FlushChoice::kServerFlush},
      {"read-after-write", erda::FlushChoice::kReadAfterWrite}};
  app.add_option_function<std::string>(
         "--flush", [&flush](const std::string& name) { flush = kChoices.at(name); },
         "How clients' values become persistent in a power-safe pool: server-flush or read-after-write; auto: "
         "server-flush. The method read-after-write loses data unless the NIC writes past the processor's caches (DDIO "
         "off) and the platform has ADR")
      ->check(CLI::IsMember({"auto", "server-flush", "read-after-write"}))
      ->type_name("METHOD")
      ->default_str("auto");
}

void AddRights(CLI::App& app, erda::ServerOptions& options) {
  static const std::map<std::string, erda::ShmAccess> kAccess = {{"owner", erda::ShmAccess::kOwner},
                                                                 {"group", erda::ShmAccess::kGroup},
                                                                 {"everybody", erda::ShmAccess::kEverybody}};
  static const std::map<std::string, erda::PoolWrites> kWrites = {{"nobody", erda::PoolWrites::kNobody},
                                                                  {"same-user", erda::PoolWrites::kSameUser},
                                                                  {"everybody", erda::PoolWrites::kEverybody}};
  app.add_option_function<std::string>(
         "--shm-access", [&options](const std::string& name) { options.shm_access = kAccess.at(name); },
         "Which users of this machine can connect to the shm addresses: owner (the server's own user), group or "
         "everybody")
      ->check(CLI::IsMember({"owner", "group", "everybody"}))
      ->type_name("WHO")
      ->default_str("owner")
      ->group("Rights");
  app.add_option_function<std::string>(
         "--pool-writes", [&options](const std::string& name) { options.pool_writes = kWrites.at(name); },
         "Which clients write large values into the pool themselves, and could write anywhere there: nobody, same-user "
         "(over shm clients of the server's user) or everybody. Over a NIC, same-user lets each client write only into "
         "the parts of the log that the server gave it. The server copies the values of other clients "
         "(docs/security.md)")
      ->check(CLI::IsMember({"nobody", "same-user", "everybody"}))
      ->type_name("WHO")
      ->default_str("same-user")
      ->group("Rights");
  AddSize(app, "--staging-bytes", options.staging_bytes,
          "Memory on each shard for the large values of each client that does not write into the pool. Each gets at "
          "least the size of a segment. At most 1G")
      ->check(MustBe([](uint64_t bytes) { return bytes <= 1 << 30; }, "at most 1G"))
      ->capture_default_str()
      ->group("Rights");
}

void AddTimes(CLI::App& app, uint64_t& spin_us, uint64_t& nvm_write_latency_ns) {
  AddNumber<uint64_t>(app, "--spin-us", spin_us, 0, 1'000'000'000,
                      "With --polling adaptive: for how many microseconds an idle shard looks for work before it "
                      "sleeps. It looks up to 20 times as long where requests come that soon")
      ->capture_default_str()
      ->group("Timing");
  AddNumber<uint64_t>(app, "--nvm-write-latency-ns", nvm_write_latency_ns, 0, 1'000'000'000,
                      "Nanoseconds that the server adds to every write-back to NVM, for experiments on DRAM")
      ->capture_default_str()
      ->group("Timing");
}

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
      !options.journal.empty()
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

struct LogOptions {
  LogLevel level = LogLevel::kInfo;
  std::string file;
};

void AddLog(CLI::App& app, LogOptions& options) {
  static const std::map<std::string, LogLevel> kLevels = {{"debug", LogLevel::kDebug},
                                                          {"info", LogLevel::kInfo},
                                                          {"warning", LogLevel::kWarning},
                                                          {"error", LogLevel::kError}};
  app.add_option_function<std::string>(
         "--log-level", [&options](const std::string& name) { options.level = kLevels.at(name); },
         "The lowest level that the log has. At error it has damage, and a pool without room; at warning also a pool "
         "that fills, and errors of clients. At info a log file also has start and stop; at debug the log also has the "
         "options that the server uses")
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}))
      ->type_name("LEVEL")
      ->default_str("info")
      ->group("Log");
  app.add_option("--log-file", options.file,
                 "Write the log to the end of this file, with all that the server says on stdout; default stderr. You "
                 "may rename the file at any time: the next line begins a new one")
      ->type_name("FILE")
      ->group("Log");
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

// The settings of the command line and the configuration file.
struct Settings {
  erda::ServerOptions options;
  LogOptions log;
  std::string metrics;
  std::string config;  // The file's name.
  std::string used;    // The settings in use, as a configuration file.
  bool check = false;
};

// Returns the exit code if the program is done. If the configuration file has an error, or a setting is missing, it
// sets `wrong` to the message, and returns kExitUsage.
std::optional<int> ReadSettings(int argc, char** argv, Settings& settings, std::string& wrong);

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

std::optional<int> ReadSettings(int argc, char** argv, Settings& settings, std::string& wrong) {
  erda::ServerOptions& options = settings.options;
  auto spin_us = static_cast<uint64_t>(options.spin.count());
  auto nvm_write_latency_ns = static_cast<uint64_t>(options.nvm_write_latency.count());
  CLI::App app("Serves a pool of non-volatile memory to clients.", kProgram);
  app.footer(kFooter);
  AddOptions(app, options);
  AddFlush(app, options.flush);
  AddRights(app, options);
  AddTimes(app, spin_us, nvm_write_latency_ns);
  erda::tools::AddPolling(app, options.polling, "idle shards wait");
  const auto check_metrics = [](const std::string& address) {
    if (erda::tools::ParseMetricsAddress(address)) return std::string();
    return fmt::format("'{}' is not an address for metrics: give a port, or an IP address and a port", address);
  };
  app.add_option("--metrics", settings.metrics,
                 "Serve metrics for Prometheus over HTTP, at GET /metrics of an address such as 127.0.0.1:9464. Every "
                 "program that reaches the address can read them. A port alone is a port of 127.0.0.1; default off")
      ->check(CLI::Validator(check_metrics, "", "metrics"))
      ->type_name("ADDRESS");
  AddLog(app, settings.log);
  app.add_option("--config", settings.config, "A file with options. A flag wins over the same option in the file")
      ->type_name("FILE")
      ->configurable(false);
  app.add_flag(
         "--check", settings.check,
         "Print the options that the server would use, as a configuration file, and exit. The server opens nothing")
      ->configurable(false);
  if (const auto done = erda::tools::Parse(app, argc, argv)) return *done;
  if (!settings.config.empty()) {
    if (const auto error = erda::tools::TakeConfigFile(app, settings.config)) wrong = *error;
  }
  for (const auto& [needed, missing] :
       {std::pair("--pool", options.pool.empty()), {"--listen", options.listen.empty()}}) {
    if (missing && wrong.empty()) wrong = fmt::format("{} is required (see --help)", needed);
  }
  if (options.sync == kAlways && options.journal.empty() && wrong.empty()) {
    wrong = "--sync always needs a journal (--journal): without one, no answer can wait for the disk";
  }
  if (!wrong.empty()) return erda::tools::kExitUsage;
  if (!options.journal.empty() && app.get_option("--sync")->count() == 0) {
    app.get_option("--sync")->default_str("always");
  }
  if (options.sync == kAlways) options.sync = erda::ServerOptions().sync;
  options.spin = std::chrono::microseconds(spin_us);
  options.nvm_write_latency = std::chrono::nanoseconds(nvm_write_latency_ns);
  settings.used = erda::tools::AsConfigFile(app);
  return std::nullopt;
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
