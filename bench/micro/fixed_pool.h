// A pool in DRAM that is the same in each run: with a fixed identity and a fixed hash seed. A new pool has random ones,
// and each run would then place its keys elsewhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "bench/micro/suite.h"
#include "server/pool/formatted_pool.h"

namespace erda::micro {

// Returns how often a work may put `at_once` values of this size in one measurement, a multiple of Suite::kBatch. No
// cleaner runs, so the pool has room for all of them.
constexpr uint64_t PutsMost(size_t value_bytes, uint32_t at_once = 1) {
  constexpr uint64_t kLogBytes = 16 << 20;
  constexpr uint64_t kBytesBeside = 128;  // Header, key and checksum, up to a granule, and more.
  return kLogBytes / (value_bytes + kBytesBeside) / at_once / Suite::kBatch * Suite::kBatch;
}

// Makes the pool, for one shard. It needs no recovery.
Result<std::unique_ptr<server::FormattedPool>> MakeFixedPool();

}  // namespace erda::micro
