// Runs many plans on all processors, each worker a process of its own: a run that ends by a signal fails alone.
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
  // No run begins after it, whatever `count` says.
  std::optional<std::chrono::steady_clock::time_point> until;
};

struct RunnerResult {
  Facts facts;                     // of the runs that went well
  std::optional<uint64_t> failed;  // the first that did not
};

// Runs plan_of(0), plan_of(1), ... up to `count`, in this order, until one fails. All before that one went well.
RunnerResult RunAll(uint64_t count, const std::function<Plan(uint64_t)>& plan_of, const RunnerOptions& options);

// Runs one plan in a process of its own: what was wrong, empty if nothing was.
std::string RunApart(const Plan& plan);

// A plan with fewer operations, clients and keys that fails as well. REQUIRES: this one does.
Plan Shrink(const Plan& plan);

}  // namespace erda::sim
