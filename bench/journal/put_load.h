// Puts of several clients at once, each in a thread of this process.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "bench/journal/report.h"
#include "erda/status.h"

namespace erda::journal_bench {

// Puts of the driver's records (bench/ycsb/workload.h), chosen as YCSB does.
struct PutLoad {
  std::string address;
  uint64_t keys;
  uint64_t value_bytes;
  uint64_t clients;
  uint64_t depth;  // Puts in flight of each client.
};

struct PutResult {
  bench::Histogram put;  // In nanoseconds.
  double seconds = 0;    // From the first put to the last answer.
};

// Puts for this time. Returns the first failure of a put.
Result<PutResult> RunPuts(const PutLoad& load, std::chrono::milliseconds time);

}  // namespace erda::journal_bench
