// erda-pool plan: how large a pool must be for what it is to hold, and how it is cut (docs/operations.md, "Planning").
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>

#include "erda/status.h"
#include "format/geometry.h"

namespace erda::tools {

struct PlanArguments {
  uint64_t records = 0;
  uint64_t key_size = 0;
  uint64_t value_size = 0;
  uint32_t shards = 1;
  uint64_t grow_to = 0;
};

struct Plan {
  format::GeometryWish wish;  // what to ask for: 0 where the default does
  format::Geometry geometry{};
  uint64_t object_bytes = 0;  // that a record takes in the log
};
// The smallest pool that takes the records, with room for the cleaner and for the index. kInvalidArgument: none does.
Result<Plan> MakePlan(const PlanArguments& arguments);
// Whether a pool that is cut so takes the records.
[[nodiscard]] bool TakesRecords(const format::Geometry& geometry, const PlanArguments& arguments);

void AddPlanOptions(CLI::App& command, PlanArguments& arguments);
// The exit code.
int PrintPlan(const char* program, const PlanArguments& arguments, bool json);

}  // namespace erda::tools
