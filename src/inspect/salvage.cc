#include "inspect/salvage.h"

#include <algorithm>

#include "inspect/salvage_frame.h"
#include "inspect/shard_salvage.h"

namespace erda::inspect {

Result<SalvageReport> Salvage(std::span<const std::byte> pool, const SalvageOptions& options, const TakeValue& take) {
  const auto frame = FindSalvageFrame(pool, options);
  if (!frame.ok()) return frame.status();
  SalvageReport report;
  report.source = frame->source;
  report.geometry = frame->geometry;
  if (frame->geometry.pool_size > pool.size()) report.missing_bytes = frame->geometry.pool_size - pool.size();
  pool = pool.first(std::min<uint64_t>(pool.size(), frame->geometry.pool_size));
  for (uint32_t shard = 0; shard < frame->geometry.shards; ++shard) {
    if (auto status = SalvageShard(pool, *frame, shard, options, take, &report); !status.ok()) return status;
  }
  return report;
}

}  // namespace erda::inspect
