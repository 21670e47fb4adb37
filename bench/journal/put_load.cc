#include "bench/journal/put_load.h"

#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "bench/ycsb/worker.h"
#include "bench/ycsb/workload.h"
#include "erda/client.h"

namespace erda::journal_bench {

namespace {

constexpr uint64_t kMostPuts = uint64_t{1} << 40;  // The time ends the run.
constexpr uint64_t kDrawnMost = uint64_t{1} << 16;
constexpr double kMillisecond = 1e-3;

bench::Settings DriverOf(const PutLoad& load, std::chrono::milliseconds time) {
  bench::Settings settings;
  settings.address = load.address;
  settings.workload = *bench::FindWorkload("update");
  settings.records = load.keys;
  settings.operations = kMostPuts;
  settings.value_size = load.value_bytes;
  settings.threads = static_cast<uint32_t>(load.clients);
  settings.depth = static_cast<uint32_t>(load.depth);
  settings.load_depth = 1;
  settings.seconds = static_cast<double>(time.count()) * kMillisecond;
  settings.load = false;
  settings.drawn_most = kDrawnMost;
  return settings;
}

}  // namespace

Result<PutResult> RunPuts(const PutLoad& load, std::chrono::milliseconds time) {
  bench::Settings settings = DriverOf(load, time);
  settings.client.queue_depth = settings.queue_depth();
  const bench::Values values(load.value_bytes);
  bench::Inserts inserts(load.keys, 0);
  bench::Failures failures;
  std::vector<std::unique_ptr<bench::Worker>> workers;
  for (uint32_t index = 0; index < settings.threads; ++index) {
    auto client = Client::Connect(load.address, settings.client);
    if (!client.ok()) return client.status();
    workers.push_back(std::make_unique<bench::Worker>(settings, values, inserts, failures, index,
                                                      std::make_unique<bench::ErdaStore>(*std::move(client))));
    workers.back()->Prepare(bench::Stage::kRun);
  }
  const auto begin = bench::Worker::Clock::now();
  {
    std::vector<std::jthread> threads;
    threads.reserve(workers.size());
    for (const auto& worker : workers) threads.emplace_back([&worker] { worker->Run(); });
  }
  PutResult result;
  result.seconds = std::chrono::duration<double>(bench::Worker::Clock::now() - begin).count();
  if (failures.any()) return Status(Code::kUnavailable, failures.first());
  for (const auto& worker : workers) result.put.Merge(worker->measured().put);
  return result;
}

}  // namespace erda::journal_bench
