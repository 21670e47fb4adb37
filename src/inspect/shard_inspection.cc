#include "inspect/shard_inspection.h"

#include <utility>

#include "format/index_layout.h"
#include "inspect/client_chunks.h"
#include "inspect/head_inspection.h"
#include "inspect/index_inspection.h"
#include "inspect/linked_regions.h"
#include "inspect/object_reader.h"
#include "inspect/record_inspection.h"
#include "inspect/shard_bytes.h"
#include "inspect/shard_findings.h"

namespace erda::inspect {

ShardReport InspectShard(std::span<const std::byte> pool, uint32_t shard, const Options& options, PoolReport* report) {
  const ShardBytes bytes(pool, report->superblock, shard);
  const format::Geometry& g = bytes.geometry();
  ShardFindings findings(shard, options.damage_listed, report);
  const LinkedRegions regions(bytes, &findings);
  format::IndexLayout layout(g, shard, regions.runs());
  InspectRecord(bytes, &layout, &findings);

  ClientChunks chunks;
  for (uint32_t i = 0; i < g.heads_per_shard; ++i) HeadInspection(bytes, regions, &chunks, &findings).Inspect(i);

  ObjectReader objects(bytes, regions, &chunks, &findings);
  IndexInspection index(bytes, layout, options.verify, &objects, &findings);
  index.Inspect();
  chunks.AddDamage(&findings);
  index.CheckSums();
  return std::move(findings.report());
}

}  // namespace erda::inspect
