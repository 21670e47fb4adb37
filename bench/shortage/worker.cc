#include "bench/shortage/worker.h"

#include <fmt/core.h>
#include <sched.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "bench/others/open_store.h"
#include "bench/shortage/board.h"
#include "bench/ycsb/histogram.h"
#include "bench/ycsb/workload.h"
#include "erda/client.h"

namespace erda::shortage {

namespace {

using nlohmann::json;
using Time = std::chrono::steady_clock;

void Say(const json& line) {
  fmt::print("{}\n", line.dump(-1, ' ', false, json::error_handler_t::replace));
  std::fflush(stdout);
}

// A reader looks at the sign after this number of gets.
constexpr uint64_t kGetsPerLook = 64;
constexpr uint64_t kAddsPerLook = 1000;

Status Put(bench::Store& store, const WorkSettings& settings, Board& board, bench::Histogram& times) {
  const bench::Values values(settings.value_bytes);
  std::string value(settings.value_bytes, '\0');
  const auto start = Time::now();
  for (uint64_t i = 0; !board.stopped(); board.Count(settings.place, ++i)) {
    if (settings.per_second != 0) {
      std::this_thread::sleep_until(start + std::chrono::nanoseconds(1'000'000'000 / settings.per_second * i));
    }
    const bench::Key key = bench::KeyOf(i % kKeys);
    values.Fill(value, i % kKeys, i);
    const auto begin = Time::now();
    if (auto put = store.Put(bench::AsView(key), value); !put.ok()) return put;
    times.Record(static_cast<uint64_t>((Time::now() - begin).count()));
  }
  return {};
}

Status Get(bench::Store& store, const WorkSettings& settings, Board& board) {
  std::string value(settings.value_bytes, '\0');
  const std::span<std::byte> out = std::as_writable_bytes(std::span(value));
  for (uint64_t i = 0; i % kGetsPerLook != 0 || !board.stopped(); board.Count(settings.place, ++i)) {
    const bench::Key key = bench::KeyOf(i % kKeys);
    if (const auto got = store.Get(bench::AsView(key), out); !got.ok()) return got.status();
  }
  return {};
}

void Compute(const WorkSettings& settings, Board& board) {
  volatile uint64_t sum = 0;
  for (uint64_t i = 0; !board.stopped(); board.Count(settings.place, ++i)) {
    for (uint64_t k = 0; k < kAddsPerLook; ++k) sum = sum + k;
  }
}

void KeepTo(int processor) {
  cpu_set_t usable;
  if (processor < 0 || ::sched_getaffinity(0, sizeof(usable), &usable) != 0) return;
  int nth = processor % CPU_COUNT(&usable);
  int chosen = 0;
  while (!CPU_ISSET(chosen, &usable) || nth-- > 0) ++chosen;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(chosen, &one);
  (void)::sched_setaffinity(0, sizeof(one), &one);  // If this is not permitted, the process runs on any.
}

Status Run(const WorkSettings& settings, bench::Histogram& times) {
  auto board = Board::Open(settings.board);
  if (!board.ok()) return board.status();
  KeepTo(settings.processor);
  if (settings.kind == "compute") {
    Say({{"pid", ::getpid()}});
    Compute(settings, **board);
    return {};
  }
  ClientOptions options;
  options.polling = settings.polling == "busy"    ? Polling::kBusy
                    : settings.polling == "sleep" ? Polling::kSleep
                                                  : Polling::kAdaptive;
  auto store = bench::OpenStore(settings.address, options);
  if (!store.ok()) return store.status();
  Say({{"pid", ::getpid()}});
  return settings.kind == "put" ? Put(**store, settings, **board, times) : Get(**store, settings, **board);
}

}  // namespace

CLI::App* AddWork(CLI::App& app, WorkSettings& settings) {
  CLI::App* work = app.add_subcommand(kWorkCommand)->group("");
  work->add_option("--kind", settings.kind)->required();
  work->add_option("--address", settings.address);
  work->add_option("--board", settings.board)->required();
  work->add_option("--place", settings.place)->required()->check(CLI::Range(uint64_t{0}, Board::kPlaces - 1));
  work->add_option("--polling", settings.polling);
  work->add_option("--value-bytes", settings.value_bytes);
  work->add_option("--per-second", settings.per_second);
  work->add_option("--processor", settings.processor);
  return work;
}

int Work(const WorkSettings& settings) {
  bench::Histogram times;
  const Status status = Run(settings, times);
  if (!status.ok()) {
    Say({{"message", status.ToString()}});
    return 1;
  }
  Say({{"p50_ns", times.Percentile(50)}, {"p99_ns", times.Percentile(99)}});
  return 0;
}

}  // namespace erda::shortage
