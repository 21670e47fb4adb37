// The salvage of one shard: it places the regions, reads index and log for evidence, chooses, and takes.
//
// Owns nothing, and does not write to the pool. Requires: nothing else writes to it meanwhile. Any thread may call it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "erda/status.h"
#include "inspect/salvage.h"
#include "inspect/salvage_frame.h"

namespace erda::inspect {

// Gives the shard's values to `take`, and adds the shard to the report. Returns the first error of `take`, which ends
// it. Safe on any bytes.
[[nodiscard]] Status SalvageShard(std::span<const std::byte> pool, const SalvageFrame& frame, uint32_t shard,
                                  const SalvageOptions& options, const TakeValue& take, SalvageReport* report);

}  // namespace erda::inspect
