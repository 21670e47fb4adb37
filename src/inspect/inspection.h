// The inspection of a pool, for erda-inspect and erda-pool: it reads the bytes, and reports contents and damage.
//
// Safe on any bytes: it checks every offset. Its time is in proportion to the pool's size. Its memory is in proportion
// to the number of regions and chunks, and to the damage that may be listed.
//
// It reads the formats without the classes of index, log and recovery. Those open a pool to change it, and stop at the
// first contradiction. The inspection goes on, and names all contradictions. Any thread may call it.
#pragma once

#include <cstddef>
#include <span>

#include "erda/status.h"
#include "inspect/report.h"

namespace erda::inspect {

struct Options {
  bool verify = false;          // Also read the values of settled entries.
  size_t damage_listed = 1000;  // The inspection only counts damage beyond this number.
};

// Both return the status of format::FindSuperblock if the pool has no valid superblock.
//
// Reads the superblocks alone. The report has no shards.
Result<PoolReport> InspectFrame(std::span<const std::byte> pool);
// Reads all of the pool.
Result<PoolReport> InspectPool(std::span<const std::byte> pool, const Options& options);

}  // namespace erda::inspect
