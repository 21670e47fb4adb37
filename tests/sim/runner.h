// Runs many plans on all processors. Each worker is a separate process, so if a run ends by a signal, only that run
// fails.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "sim/cluster.h"

namespace erda::sim {

struct RunnerOptions {
  uint32_t workers = 1;
  // If set, no run begins after this moment.
  std::optional<std::chrono::steady_clock::time_point> until;
};

struct RunnerResult {
  Facts facts;                     // the facts of the runs without a fault
  std::optional<uint64_t> failed;  // the first run with a fault
};

// Runs plan_of(0), plan_of(1), ... up to `count`, in this order, until one fails. All earlier runs were without a
// fault.
RunnerResult RunAll(uint64_t count, const std::function<Plan(uint64_t)>& plan_of, const RunnerOptions& options);

// Runs one plan in a separate process. Returns its fault, or nothing.
std::string RunApart(const Plan& plan);

// Returns a plan with fewer operations, clients and keys that fails, too. Requires: `plan` fails.
Plan Shrink(const Plan& plan);

}  // namespace erda::sim
