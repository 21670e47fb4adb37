#include "inspect/inspection.h"

#include <utility>

#include "base/bytes.h"
#include "inspect/shard_inspection.h"

namespace erda::inspect {

Result<PoolReport> InspectFrame(std::span<const std::byte> pool) {
  const auto found = format::FindSuperblock(pool);
  if (!found.ok()) return found.status();
  PoolReport report;
  report.superblock = found->superblock;
  report.needs_recovery = found->superblock.clean != 1 || found->other_damaged;
  for (int copy = 0; copy < 2; ++copy) {
    SuperblockCopy& to = report.superblocks[copy];
    const auto bytes = pool.subspan(format::kSuperblockOffsets[copy], sizeof(format::Superblock));
    to.superblock = LoadAs<format::Superblock>(bytes);
    if (copy == found->copy) {
      to.state = SuperblockCopy::State::kCounts;
    } else if (IsZero(bytes)) {
      to.state = SuperblockCopy::State::kNeverWritten;
    } else {
      to.state = found->other_damaged ? SuperblockCopy::State::kNotValid : SuperblockCopy::State::kOlder;
    }
  }
  return report;
}

Result<PoolReport> InspectPool(std::span<const std::byte> pool, const Options& options) {
  auto report = InspectFrame(pool);
  if (!report.ok()) return report.status();
  if (report->superblock.journaled != 0 && report->needs_recovery) {
    return Status(
        Code::kConflict,
        "it has a journal, and was not closed cleanly, so the file may lack a part: start a server with both, "
        "and stop that");
  }
  pool = pool.first(report->superblock.geometry.pool_size);
  for (uint32_t shard = 0; shard < report->superblock.geometry.shards; ++shard) {
    report->shards.push_back(InspectShard(pool, shard, options, &*report));
  }
  return report;
}

}  // namespace erda::inspect
