// erda-ycsb: YCSB's core workloads against a running server, or another store.
#include <fmt/core.h>

#include <algorithm>
#include <barrier>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/erda-ycsb/arguments.h"
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

using erda::bench::Arguments;
using erda::bench::Output;
using erda::bench::Stage;
using erda::bench::Worker;
using erda::tools::kExitUsage;

int Fail(std::string message, int exit_code = erda::tools::kExitFailure) {
  return erda::tools::Fail(erda::bench::kProgram, std::move(message), exit_code);
}

bool ShowsProgress(const Output& output) { return !output.quiet && erda::tools::Progress::HasTerminal(); }

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
  options.queue_depth = settings.queue_depth();
  while (stores.size() < settings.threads) {
    const auto connected = erda::tools::WaitForServer(erda::bench::kProgram, settings.address, wait, [&] {
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
              kExitUsage);
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

// Times the operations. Returns the exit code if the server does not tell what they cost it.
std::optional<int> Run(const erda::bench::Settings& settings, const Output& output, const Workers& workers,
                       const erda::bench::Failures& failures, erda::bench::Report& report) {
  // Nobody knows how far a run is that ends at a time.
  const bool show_progress = ShowsProgress(output) && settings.seconds == 0;
  const auto before = TotalsNow(workers, output);
  if (!before.ok()) return Fail(erda::tools::Describe(settings.address, before.status()));
  report.run = RunPhase(workers, settings.operations, "run ", show_progress);
  // After a failure the server may be gone. The caller reports the failure.
  const auto after = failures.any() ? before : TotalsNow(workers, output);
  if (!after.ok()) return Fail(erda::tools::Describe(settings.address, after.status()));
  if (const auto& then = before->nvm_bytes) {
    report.nvm_bytes = {after->nvm_bytes->server - then->server, after->nvm_bytes->clients - then->clients};
  }
  if (output.server_pid != 0) report.server_cpu_seconds = after->server_seconds - before->server_seconds;
  return std::nullopt;
}

// Waits for a line of standard input, or its end.
void WaitForLine() {
  fmt::print("ready\n");
  std::fflush(stdout);
  std::string ignored;
  std::getline(std::cin, ignored);
}

int Benchmark(const Arguments& arguments) {
  const auto& settings = arguments.settings;
  const auto& output = arguments.output;
  Stores stores;
  if (const auto failed = Connect(settings, arguments.wait, stores)) return *failed;
  const erda::bench::Values values(settings.value_size);
  erda::bench::Inserts inserts(settings.records, settings.workload.insert_percent > 0 && settings.run
                                                     ? settings.warm_up + settings.operations
                                                     : 0);
  erda::bench::Failures failures;
  Workers workers;
  for (uint32_t i = 0; i < settings.threads; ++i) {
    workers.push_back(std::make_unique<Worker>(settings, values, inserts, failures, i, std::move(stores[i])));
  }

  const bool show_progress = ShowsProgress(output);
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
  if (settings.run) {
    prepare(Stage::kRun);
    if (output.hold) WaitForLine();
    if (const auto failed_totals = Run(settings, output, workers, failures, report)) return *failed_totals;
  }
  for (const auto& worker : workers) report.measured.Merge(worker->measured());
  report.failures = failures.count();
  report.records = inserts.limit();

  if (!output.json_path.empty()) {
    std::ofstream file(output.json_path);
    file << ToJson(settings, report).dump(2) << std::endl;
    if (!file) return Fail(fmt::format("cannot write {}: {}", output.json_path, std::strerror(errno)));
  }
  if (failures.any()) return failed();
  fmt::print("{}", ToTable(settings, report));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  if (const auto done = erda::bench::ReadArguments(argc, argv, arguments)) return *done;
  return Benchmark(arguments);
}
