#include "tools/erda-server/settings.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>

#include "tools/erda-server/metrics.h"
#include "tools/shared/command_line.h"
#include "tools/shared/config_file.h"
#include "tools/shared/geometry_options.h"
#include "tools/shared/journal_option.h"
#include "tools/shared/serving.h"

namespace erda::tools {

namespace {

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
  const auto time = ParseTime(text);
  if (!time || time->count() <= 0) return std::nullopt;
  return Sync{*time, *time};
}

std::string CheckSync(const std::string& text) {
  if (ParseSync(text)) return {};
  return fmt::format("'{}' is not a time: give for instance 1s, 500ms or 2m, at most a day, or always, or never", text);
}

void AddJournal(CLI::App& app, ServerOptions& options) {
  AddJournalFile(
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
  app.add_option(
         "--journal-front", options.journal_front,
         "A small NVM in front of the journal, so that answers do not wait for the disk. The address is /dev/daxX.Y, a "
         "file on a DAX file system, or pmr: and the PCI resource of an NVMe disk's persistent memory region")
      ->type_name("ADDRESS")
      ->group("Journal");
  AddJournalOnTmpfs(app, options.journal_on_tmpfs);
  app.add_option(
         "--archive", options.archive,
         "A folder for an archive, on another disk or machine. All that the journal holds goes there, compressed, "
         "within a minute. With a copy of erda-pool backup, erda-pool restore makes the pool as it was at some "
         "time")
      ->type_name("FOLDER")
      ->group("Journal");
}

void AddOptions(CLI::App& app, ServerOptions& options) {
  app.add_option("--pool", options.pool, "The pool: a file, /dev/daxX.Y, or dram: (it ends with the server); required")
      ->type_name("PATH");
  AddPoolSize(app, options.pool_size, "The pool's size; needed to create it");
  app.add_option("--listen", options.listen,
                 "Where clients connect: shm:/path/to/socket or verbs://host:port; required, and may be repeated")
      ->allow_extra_args(false)
      ->check(CLI::Validator(CheckAddress, "", "address"))
      ->type_name("ADDRESS");
  app.add_option("--token-file", options.token_file,
                 "Only clients that know a token of this file may connect. A client may only read if read-only follows "
                 "its token there. A token with mirror after it is for mirrors alone. A change of the file counts "
                 "within a second (docs/security.md)")
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
  AddShards(app, options.shards, "the number of an existing pool, and 1 for a new one");
  AddGeometry(app, options.region_size, options.segment_size, options.index_entries);
  AddGrowTo(app, options.grow_to);
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

void AddFlush(CLI::App& app, FlushChoice& flush) {
  static const std::map<std::string, FlushChoice> kChoices = {{"auto", FlushChoice::kAuto},
                                                              {"server-flush", FlushChoice::kServerFlush},
                                                              {"read-after-write", FlushChoice::kReadAfterWrite}};
  app.add_option_function<std::string>(
         "--flush", [&flush](const std::string& name) { flush = kChoices.at(name); },
         "How clients' values become persistent in a power-safe pool: server-flush or read-after-write; auto: "
         "server-flush. The method read-after-write loses data unless the NIC writes past the processor's caches (DDIO "
         "off) and the platform has ADR")
      ->check(CLI::IsMember({"auto", "server-flush", "read-after-write"}))
      ->type_name("METHOD")
      ->default_str("auto");
}

void AddRights(CLI::App& app, ServerOptions& options) {
  static const std::map<std::string, ShmAccess> kAccess = {
      {"owner", ShmAccess::kOwner}, {"group", ShmAccess::kGroup}, {"everybody", ShmAccess::kEverybody}};
  static const std::map<std::string, PoolWrites> kWrites = {
      {"nobody", PoolWrites::kNobody}, {"same-user", PoolWrites::kSameUser}, {"everybody", PoolWrites::kEverybody}};
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

}  // namespace

std::optional<int> ReadSettings(int argc, char** argv, Settings& settings, std::string& wrong) {
  ServerOptions& options = settings.options;
  auto spin_us = static_cast<uint64_t>(options.spin.count());
  auto nvm_write_latency_ns = static_cast<uint64_t>(options.nvm_write_latency.count());
  CLI::App app("Serves a pool of non-volatile memory to clients.", kProgram);
  app.footer(kFooter);
  AddOptions(app, options);
  AddFlush(app, options.flush);
  AddRights(app, options);
  AddTimes(app, spin_us, nvm_write_latency_ns);
  AddPolling(app, options.polling, "idle shards wait");
  const auto check_metrics = [](const std::string& address) {
    if (ParseMetricsAddress(address)) return std::string();
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
  if (const auto done = Parse(app, argc, argv)) return *done;
  if (!settings.config.empty()) {
    if (const auto error = TakeConfigFile(app, settings.config)) wrong = *error;
  }
  for (const auto& [needed, missing] :
       {std::pair("--pool", options.pool.empty()), {"--listen", options.listen.empty()}}) {
    if (missing && wrong.empty()) wrong = fmt::format("{} is required (see --help)", needed);
  }
  if (options.sync == kAlways && options.journal.empty() && wrong.empty()) {
    wrong = "--sync always needs a journal (--journal): without one, no answer can wait for the disk";
  }
  if (!wrong.empty()) return kExitUsage;
  if (!options.journal.empty() && app.get_option("--sync")->count() == 0) {
    app.get_option("--sync")->default_str("always");
  }
  if (options.sync == kAlways) options.sync = ServerOptions().sync;
  options.spin = std::chrono::microseconds(spin_us);
  options.nvm_write_latency = std::chrono::nanoseconds(nvm_write_latency_ns);
  settings.used = AsConfigFile(app);
  return std::nullopt;
}

}  // namespace erda::tools
