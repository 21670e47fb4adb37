// erda-pool plan: computes the size of a pool for given records, and its geometry (docs/operations.md, "Planning").
#pragma once

#include <cstdint>

#include "erda/status.h"
#include "format/geometry.h"

namespace CLI {
class App;
}

namespace erda::tools {

struct PlanArguments {
  uint64_t records = 0;
  uint64_t key_size = 0;
  uint64_t value_size = 0;
  uint32_t shards = 1;
  uint64_t grow_to = 0;
};

struct Plan {
  format::GeometryWish wish;  // The wish to ask for: 0 where the default is right.
  format::Geometry geometry{};
  uint64_t object_bytes = 0;  // The bytes of a record in the log.
};
// Returns the smallest pool that takes the records, with room for the cleaner and for the index. Returns
// kInvalidArgument if no pool does.
Result<Plan> MakePlan(const PlanArguments& arguments);
// Returns true if a pool of this geometry takes the records.
[[nodiscard]] bool TakesRecords(const format::Geometry& geometry, const PlanArguments& arguments);

void AddPlanOptions(CLI::App& command, PlanArguments& arguments);
// Returns the exit code.
int PrintPlan(const char* program, const PlanArguments& arguments, bool json);

}  // namespace erda::tools
