// erda-scheme-server: serves a pool by one of the schemes with which Erda is compared, until a signal.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>

#include "bench/schemes/messages.h"
#include "bench/schemes/scheme.h"
#include "bench/schemes/server/server.h"
#include "erda/status.h"
#include "tools/shared/command_line.h"
#include "tools/shared/serving.h"

namespace {

using erda::FlushChoice;
using erda::schemes::ServerSettings;
using erda::tools::AddNumber;
using erda::tools::AddSize;
using erda::tools::Fail;

constexpr const char* kProgram = "erda-scheme-server";
constexpr const char* kFooter = R"(
This server exists so that erda-ycsb --scheme can measure it. Do not store data with it. It has one shard, and its
processor serves the gets.

With --scheme redo it runs Redo Logging. A put travels in its request; the server appends it to its log, answers, and
applies it later. With --scheme raw it runs Read After Write. Clients write into the log themselves, with a Read after
each write; the server applies the entries that it finds there.

A size is a number of bytes, or a number with K, M, G or T, such as 64M or 1.5G. These units are powers of two.
The sizes of index and log count when the server creates the pool. At its start the server applies the entries that an
earlier server left in the log. When clients can connect, it prints a line. SIGTERM, SIGINT and SIGHUP stop it.

Exit codes: 0 stopped by a signal, 1 failure, 2 bad usage.

Example: erda-scheme-server --scheme redo --pool dram: --size 1G --listen shm:/tmp/scheme.socket)";

struct Options {
  std::string scheme;
  ServerSettings settings;
  uint64_t spin_us = 50;
  uint64_t nvm_write_latency_ns = 0;
};

void AddOptions(CLI::App& app, Options& options) {
  ServerSettings& settings = options.settings;
  app.add_option("--scheme", options.scheme, "The scheme: redo or raw")
      ->required()
      ->check(CLI::IsMember({"redo", "raw"}))
      ->type_name("NAME");
  app.add_option("--pool", settings.pool.pool.path, "The pool: a file, /dev/daxX.Y, or dram: (it ends with the server)")
      ->required()
      ->type_name("PATH");
  AddSize(app, "--size", settings.pool.pool.size, "The pool's size; needed to create it");
  app.add_option("--listen", settings.listen, "Where clients connect: shm:/path/to/socket or verbs://host:port")
      ->required()
      ->type_name("ADDRESS");
  AddSize(app, "--log-size", settings.pool.log_bytes,
          "The size of the log, a ring of entries; default 8M, or an eighth of the pool");
  AddNumber<uint64_t>(app, "--index-entries", settings.pool.index_entries, 0, uint64_t{1} << 40,
                      "Index slots, 16 bytes each; default by the pool's size");
  AddNumber<uint32_t>(app, "--max-clients", settings.max_clients, 1, 65536, "The most connections; default 1024");
  AddNumber<uint32_t>(app, "--slot-bytes", settings.slot_bytes, erda::schemes::kSlotBytesMin,
                      erda::schemes::kSlotBytesMax, "The largest request, with its key and value; default 16384");
  static const std::map<std::string, FlushChoice> kChoices = {{"auto", FlushChoice::kAuto},
                                                              {"server-flush", FlushChoice::kServerFlush},
                                                              {"read-after-write", FlushChoice::kReadAfterWrite}};
  app.add_option_function<std::string>(
         "--flush", [&settings](const std::string& name) { settings.flush = kChoices.at(name); },
         "The flush method of raw in a power-safe pool, as for erda-server; default auto: server-flush, which takes "
         "the place of the Read. The method read-after-write loses data unless the NIC writes past the processor's "
         "caches and the platform has ADR")
      ->check(CLI::IsMember({"auto", "server-flush", "read-after-write"}))
      ->type_name("METHOD");
  AddNumber<uint64_t>(app, "--spin-us", options.spin_us, 0, 1'000'000'000,
                      "With --polling adaptive: for how many microseconds the idle server looks for work; default 50");
  AddNumber<uint64_t>(
      app, "--nvm-write-latency-ns", options.nvm_write_latency_ns, 0, 1'000'000'000,
      "Nanoseconds that the server adds to every write-back to NVM, for experiments on DRAM; default 0");
  erda::tools::AddPolling(app, settings.polling, "the idle server waits");
}

int Serve(const ServerSettings& settings) {
  const erda::tools::StopSignals stop_signals;
  erda::tools::AllowManyDescriptors();

  auto server = erda::schemes::Server::Start(settings);
  if (!server.ok()) {
    const bool usage = server.status().code() == erda::Code::kInvalidArgument;
    return Fail(kProgram, server.status().ToString(), usage ? erda::tools::kExitUsage : erda::tools::kExitFailure);
  }
  const auto& recovery = (*server)->recovery();
  if (recovery.entries > 0) {
    fmt::print("{}: {} entries were in the log, {} of them the last of their keys, and applied\n", kProgram,
               recovery.entries, recovery.applied);
  }
  fmt::print("{}: ready, scheme {}, listening on {}, pool {} ({}), flush method {}\n", kProgram,
             SchemeName(settings.scheme), (*server)->address(), settings.pool.pool.path,
             DurabilityName((*server)->durability()), FlushMethodName((*server)->flush_method()));

  fmt::print("{}: stopping on {}\n", kProgram, stop_signals.Wait());
  std::fflush(stdout);
  (*server)->Stop();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Serves a pool by a scheme that Erda is compared with: Redo Logging or Read After Write.", kProgram);
  app.footer(kFooter);
  AddOptions(app, options);
  if (const auto done = erda::tools::Parse(app, argc, argv)) return *done;
  options.settings.scheme = erda::schemes::FindScheme(options.scheme).value();
  options.settings.spin = std::chrono::microseconds(options.spin_us);
  options.settings.pool.pool.write_latency = std::chrono::nanoseconds(options.nvm_write_latency_ns);
  return Serve(options.settings);
}
