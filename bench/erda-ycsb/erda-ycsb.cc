// erda-ycsb: YCSB's core workloads against a running server.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <barrier>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/others/open_store.h"
#include "bench/schemes/client/open_store.h"
#include "bench/ycsb/report.h"
#include "bench/ycsb/thread_time.h"
#include "bench/ycsb/worker.h"
#include "bench/ycsb/workload.h"
#include "erda/client.h"
#include "tools/shared/client_options.h"
#include "tools/shared/command_line.h"
#include "tools/shared/progress.h"

namespace {

using erda::bench::Stage;
using erda::bench::Worker;
using erda::tools::AddNumber;

constexpr const char* kProgram = "erda-ycsb";
constexpr const char* kFooter = R"(
Workloads: A 50% get, 50% update    D 95% get of the latest, 5% insert
           B 95% get, 5% update     F 50% get, 50% read-modify-write
           C 100% get               update 100% update

The program first puts all records (load), then times the operations (run). It chooses records by Zipf's law with
exponent 0.99. In workload D the records that were inserted last are the popular ones. Each thread has a separate client.
With --depth 1 it uses the synchronous calls, with more the asynchronous calls.

Addresses are Erda's, or redis:/path/to/socket and memcached:/path/to/socket: the same driver measures these stores.
With --scheme it measures a server of erda-scheme-server. The options --ack and --path count only for Erda.

Exit codes: 0 done, 1 an operation failed, 2 bad usage.

Example: erda-ycsb --workload A --records 100000 --operations 1000000 --threads 2)";

struct Output {
  std::string json_path;
  int server_pid = 0;  // 0: no processor time was asked for.
  bool quiet = false;
};

int Fail(std::string message, int exit_code = erda::tools::kExitFailure) {
  return erda::tools::Fail(kProgram, std::move(message), exit_code);
}

void AddOptions(CLI::App& app, erda::bench::Settings& settings, std::string& workload, Output& output) {
  constexpr uint64_t kMost = 10'000'000'000;
  app.add_option("-w,--workload", workload, "The mix of operations, see below")
      ->required()
      ->transform(CLI::IsMember({"A", "B", "C", "D", "F", "update"}, CLI::ignore_case))
      ->type_name("NAME");
  AddNumber<uint64_t>(app, "--records", settings.records, 1, kMost, "Records to load and choose from; default 100000");
  AddNumber<uint64_t>(app, "--operations", settings.operations, 1, kMost,
                      "Operations to time, over all threads; default 1000000");
  AddNumber<uint64_t>(app, "--warm-up", settings.warm_up, 0, kMost,
                      "Operations that run before those, and are not timed; default 0");
  erda::tools::AddSize(app, "--value-size", settings.value_size,
                       "Bytes of each value, or a size such as 1K or 1.5M; default 1024");
  AddNumber<uint32_t>(app, "--threads", settings.threads, 1, 1024, "Threads; default 1");
  AddNumber<uint32_t>(app, "--depth", settings.depth, 1, 256, "Outstanding operations of each thread; default 1");
  AddNumber<uint64_t>(app, "--seed", settings.seed, 0, std::numeric_limits<uint64_t>::max(),
                      "The seed for the choice of operations and records; default 1");
  app.add_flag_callback(
      "--no-load", [&settings] { settings.load = false; }, "Do not load: the server has the records of an earlier run");
  app.add_flag(
      "--verify", settings.verify,
      "Check that each value that is read is whole, and belongs to its key. Values must have at least 16 bytes");
  app.add_option("--scheme", settings.scheme, "The scheme of the server; default erda")
      ->check(CLI::IsMember({"erda", "redo", "raw"}))
      ->type_name("NAME");
  AddNumber<int>(app, "--server-pid", output.server_pid, 1, std::numeric_limits<int>::max(),
                 "The server's process, on this machine: also report the processor time that it takes in the run");
  app.add_option("--json", output.json_path, "Also write the results to this file")->type_name("FILE");
  app.add_flag("-q,--quiet", output.quiet, "Show no progress bar");
}

// Checks the settings together. Returns the error, or an empty text.
std::string CheckSettings(const erda::bench::Settings& settings) {
  using erda::bench::Values;
  if (settings.value_size > uint64_t{1} << 30)
    return "--value-size: no pool takes values above 1G; give a smaller size";
  if (settings.verify && settings.value_size < Values::kHeaderBytes) {
    return fmt::format("--verify needs a --value-size of at least {}", Values::kHeaderBytes);
  }
  return "";
}

using Workers = std::vector<std::unique_ptr<Worker>>;

double SlowestShare(const Workers& workers, uint64_t of_fastest) {
  uint64_t least = of_fastest;
  for (const auto& worker : workers) least = std::min(least, worker->done());
  return static_cast<double>(least) / static_cast<double>(of_fastest);
}

// Has each worker do its share in a separate thread, and times from the common start to the last end.
erda::bench::Phase RunPhase(const Workers& workers, uint64_t total, const char* label, bool show_progress) {
  Worker::Clock::time_point begin;
  std::barrier start(static_cast<std::ptrdiff_t>(workers.size()),
                     [&begin]() noexcept { begin = Worker::Clock::now(); });
  std::mutex mutex;
  std::condition_variable all_done;
  size_t running = workers.size();
  Worker::Clock::time_point end;
  double slowest_share = 1;

  std::vector<std::thread> threads;
  for (const auto& worker : workers) {
    threads.emplace_back([&, worker = worker.get()] {
      start.arrive_and_wait();
      worker->Run();
      const auto now = Worker::Clock::now();
      const std::lock_guard lock(mutex);
      end = std::max(end, now);
      if (running == workers.size() && worker->done() > 0) slowest_share = SlowestShare(workers, worker->done());
      if (--running == 0) all_done.notify_one();
    });
  }
  const auto done = [&workers] {
    uint64_t sum = 0;
    for (const auto& worker : workers) sum += worker->done();
    return sum;
  };
  {
    erda::tools::Progress progress(label, total, show_progress);
    std::unique_lock lock(mutex);
    while (!all_done.wait_for(lock, std::chrono::milliseconds(200), [&running] { return running == 0; })) {
      progress.Update(done());
    }
  }
  for (auto& thread : threads) thread.join();
  return {done(), std::chrono::duration<double>(end - begin).count(), slowest_share};
}

std::string CannotWrite(const std::string& path) {
  return fmt::format("cannot write {}: {}", path, std::strerror(errno));
}

using Stores = std::vector<std::unique_ptr<erda::bench::Store>>;

erda::Result<std::unique_ptr<erda::bench::Store>> OpenStoreOf(const erda::bench::Settings& settings,
                                                              const erda::ClientOptions& options) {
  if (settings.scheme == erda::bench::kErda) return erda::bench::OpenStore(settings.address, options);
  auto store = erda::bench::OpenStore(settings.scheme, settings.address, options);
  if (!store.ok()) return store.status();
  return std::unique_ptr<erda::bench::Store>(*std::move(store));
}

// Makes one connection for each thread. Returns the exit code if a connection fails, or if the store does not take such
// values.
std::optional<int> Connect(const erda::bench::Settings& settings, std::chrono::milliseconds wait, Stores& stores) {
  erda::ClientOptions options = settings.client;
  options.queue_depth = std::max(settings.depth, erda::bench::kLoadDepth);
  while (stores.size() < settings.threads) {
    const auto connected = erda::tools::WaitForServer(kProgram, settings.address, wait, [&] {
      auto store = OpenStoreOf(settings, options);
      if (!store.ok()) return store.status();
      stores.push_back(*std::move(store));
      return erda::Status();
    });
    if (!connected.ok()) return Fail(erda::tools::Describe(settings.address, connected));
  }
  const size_t most = stores[0]->max_value_bytes(sizeof(erda::bench::Key));
  if (settings.value_size <= most) return std::nullopt;
  return Fail(fmt::format("--value-size: the pool at {} takes values up to {} bytes", settings.address, most),
              erda::tools::kExitUsage);
}

// The bytes that were written, and the processor time, since the start of the server and the clients.
struct Totals {
  std::optional<erda::bench::NvmBytes> nvm_bytes;
  double server_seconds = 0;
};

erda::Result<Totals> TotalsNow(const Workers& workers, const Output& output) {
  Totals totals;
  if (auto* first = dynamic_cast<erda::bench::NvmStore*>(&workers[0]->store())) {
    const auto server_bytes = first->ServerNvmBytes();
    if (!server_bytes.ok()) return server_bytes.status();
    totals.nvm_bytes = erda::bench::NvmBytes{*server_bytes, 0};
    for (const auto& worker : workers) {
      totals.nvm_bytes->clients += dynamic_cast<erda::bench::NvmStore&>(worker->store()).ClientNvmBytes();
    }
  }
  if (output.server_pid != 0) totals.server_seconds = erda::bench::ThreadSeconds(output.server_pid, "");
  return totals;
}

int Benchmark(const erda::bench::Settings& settings, std::chrono::milliseconds wait, const Output& output) {
  Stores stores;
  if (const auto failed = Connect(settings, wait, stores)) return *failed;
  const erda::bench::Values values(settings.value_size);
  erda::bench::Inserts inserts(settings.records,
                               settings.workload.insert_percent > 0 ? settings.warm_up + settings.operations : 0);
  erda::bench::Failures failures;
  Workers workers;
  for (uint32_t i = 0; i < settings.threads; ++i) {
    workers.push_back(std::make_unique<Worker>(settings, values, inserts, failures, i, std::move(stores[i])));
  }

  const bool show_progress = !output.quiet && erda::tools::Progress::HasTerminal();
  const auto failed = [&failures] {
    const uint64_t others = failures.count() - 1;
    return Fail(failures.first() + (others == 0 ? "" : fmt::format(" (and {} more)", others)));
  };
  erda::bench::Report report;
  const auto prepare = [&workers](Stage stage) {
    for (const auto& worker : workers) worker->Prepare(stage);
  };
  if (settings.load) {
    prepare(Stage::kLoad);
    report.load = RunPhase(workers, settings.records, "load", show_progress);
  }
  if (!failures.any() && settings.warm_up > 0) {
    prepare(Stage::kWarmUp);
    (void)RunPhase(workers, settings.warm_up, "warm", show_progress);
  }
  if (failures.any()) return failed();
  prepare(Stage::kRun);
  const auto before = TotalsNow(workers, output);
  if (!before.ok()) return Fail(erda::tools::Describe(settings.address, before.status()));
  report.run = RunPhase(workers, settings.operations, "run ", show_progress);
  // After a failure the server may be gone. The failure is reported below.
  if (const auto after = failures.any() ? before : TotalsNow(workers, output); after.ok()) {
    if (const auto& then = before->nvm_bytes) {
      report.nvm_bytes = {after->nvm_bytes->server - then->server, after->nvm_bytes->clients - then->clients};
    }
    if (output.server_pid != 0) report.server_cpu_seconds = after->server_seconds - before->server_seconds;
  } else {
    return Fail(erda::tools::Describe(settings.address, after.status()));
  }
  for (const auto& worker : workers) report.measured.Merge(worker->measured());
  report.failures = failures.count();

  if (!output.json_path.empty()) {
    std::ofstream file(output.json_path);
    file << ToJson(settings, report).dump(2) << std::endl;
    if (!file) return Fail(CannotWrite(output.json_path));
  }
  if (failures.any()) return failed();
  fmt::print("{}", ToTable(settings, report));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  erda::bench::Settings settings;
  std::string workload;
  Output output;
  CLI::App app("Measures a running server with YCSB's core workloads.", kProgram);
  app.footer(kFooter);
  erda::tools::ClientChoice choice;
  erda::tools::AddClientOptions(app, choice);
  AddOptions(app, settings, workload, output);
  if (const auto done = erda::tools::Parse(app, argc, argv)) return *done;
  if (const auto wrong = erda::tools::TakeClientConfig(app, choice)) return Fail(*wrong, erda::tools::kExitUsage);
  settings.address = choice.address;
  settings.client = choice.options;
  settings.workload = erda::bench::FindWorkload(workload).value();
  if (const auto error = CheckSettings(settings); !error.empty()) return Fail(error, erda::tools::kExitUsage);
  if (output.server_pid != 0 && !std::filesystem::exists(fmt::format("/proc/{}/task", output.server_pid))) {
    return Fail(fmt::format("--server-pid: there is no process {} on this machine", output.server_pid),
                erda::tools::kExitUsage);
  }
  // Check the file before the run rather than after it.
  if (!output.json_path.empty() && !std::ofstream(output.json_path, std::ios::app)) {
    return Fail(CannotWrite(output.json_path), erda::tools::kExitUsage);
  }
  return Benchmark(settings, choice.wait.value_or(erda::tools::kDefaultWait), output);
}
