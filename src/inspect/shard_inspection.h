// The inspection of one shard: region table, record, log and index, in this order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "inspect/inspection.h"

namespace erda::inspect {

// Returns the shard's report, and adds its damage to the pool's report. Safe on any bytes.
// REQUIRES: the pool has all bytes of the geometry of the report's superblock.
[[nodiscard]] ShardReport InspectShard(std::span<const std::byte> pool, uint32_t shard, const Options& options,
                                       PoolReport* report);

}  // namespace erda::inspect
