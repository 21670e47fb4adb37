// The works that erda-micro measures, each as a benchmark of Google Benchmark.
//
// A work is a small piece of Erda. It is a class with two functions: Run does the piece once, and Check returns an
// error if a result was wrong. The suite makes a new object for each measurement, from fixed keys and seeds. So two
// measurements execute the same instructions.
//
// Owns the processor's counters, and the note of a failure. The thread that has made the suite calls it.
#pragma once

#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>
#include <utility>

#include "bench/micro/callgrind.h"
#include "bench/micro/hardware_counters.h"
#include "erda/status.h"

namespace erda::micro {

class Suite {
 public:
  Suite();
  Suite(const Suite&) = delete;
  Suite& operator=(const Suite&) = delete;

  // Adds a work. `make` makes an object of its class W, and returns Result<std::unique_ptr<W>>. A work has room for
  // `most` Runs, a multiple of kBatch, or for any number if `most` is 0. Requires: the suite outlives the measurements.
  template <class Make>
  void Add(const std::string& name, uint64_t most, Make make) {
    auto* added = benchmark::RegisterBenchmark(name.c_str(), [this, name, make](benchmark::State& state) {
      if (const Status status = Measure(name, make, state); !status.ok()) Fail(status, state);
    });
    if (Callgrind::runs()) {
      added->Iterations(kCounted);
    } else if (most != 0) {
      added->Iterations(static_cast<benchmark::IterationCount>(most));
    }
  }
  // Returns true if a work could not be made, or gave a wrong result.
  [[nodiscard]] bool failed() const { return failed_; }

  // Runs between two looks at the clock.
  static constexpr uint64_t kBatch = 100;

 private:
  // Runs before the measurement, so that the client knows the locations of all keys.
  static constexpr uint64_t kWarmUp = 256;
  // Runs that callgrind counts.
  static constexpr uint64_t kCounted = 2000;

  // Not inlined, so that each batch is measured as the same code.
  template <class W>
  [[gnu::noinline]] static void Repeat(W& work, uint64_t runs) {
    for (uint64_t i = 0; i < runs; ++i) work.Run();
  }
  template <class Make>
  Status Measure(const std::string& name, const Make& make, benchmark::State& state) {
    auto made = make();
    if (!made.ok()) return made.status();
    auto& work = **made;
    Repeat(work, kWarmUp);
    const uint64_t batch = Callgrind::runs() ? kCounted : kBatch;
    BeginCounters();
    while (state.KeepRunningBatch(static_cast<benchmark::IterationCount>(batch))) {
      Callgrind::Begin();
      Repeat(work, batch);
      Callgrind::End(name);
    }
    EndCounters(state);
    return work.Check();
  }
  void BeginCounters();
  void EndCounters(benchmark::State& state);
  void Fail(const Status& status, benchmark::State& state);

  HardwareCounters counters_;
  bool failed_ = false;
};

}  // namespace erda::micro
