#include "bench/micro/suite.h"

namespace erda::micro {

namespace {

constexpr const char* kCounter = "instructions";

}  // namespace

// The results say which counter counted.
Suite::Suite() {
  benchmark::AddCustomContext("build", ERDA_MICRO_BUILD);
  if (Callgrind::runs()) {
    benchmark::AddCustomContext(kCounter, "callgrind");
  } else if (counters_.refusal().empty()) {
    benchmark::AddCustomContext(kCounter, "the processor's counters");
  } else {
    benchmark::AddCustomContext(kCounter, "not counted: " + counters_.refusal());
  }
}

void Suite::BeginCounters() {
  if (!Callgrind::runs() && counters_.refusal().empty()) counters_.Begin();
}

void Suite::EndCounters(benchmark::State& state) {
  if (Callgrind::runs() || !counters_.refusal().empty()) return;
  const HardwareCounters::Counts counts = counters_.End();
  const auto each = [](uint64_t count) {
    return benchmark::Counter(static_cast<double>(count), benchmark::Counter::kAvgIterations);
  };
  state.counters[kCounter] = each(counts.instructions);
  state.counters["cache_misses"] = each(counts.cache_misses);
}

void Suite::Fail(const Status& status, benchmark::State& state) {
  failed_ = true;
  state.SkipWithError(status.ToString().c_str());
}

}  // namespace erda::micro
