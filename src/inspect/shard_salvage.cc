#include "inspect/shard_salvage.h"

#include "inspect/index_evidence.h"
#include "inspect/key_evidence.h"
#include "inspect/log_evidence.h"
#include "inspect/lost_entries.h"
#include "inspect/placed_regions.h"
#include "inspect/region_placer.h"
#include "inspect/salvage_bytes.h"
#include "inspect/salvage_choice.h"
#include "inspect/salvage_losses.h"

namespace erda::inspect {

Status SalvageShard(std::span<const std::byte> pool, const SalvageFrame& frame, uint32_t shard,
                    const SalvageOptions& options, const TakeValue& take, SalvageReport* report) {
  const SalvageBytes bytes(pool, frame, shard);
  SalvageLosses losses(shard, options.listed, report);
  PlacedRegions regions(bytes);
  RegionPlacer(bytes, &regions, &losses).Run();

  KeyEvidence keys(bytes, options.newest);
  LostEntries lost(bytes.geometry());
  IndexEvidence(bytes, regions, &keys, &lost).Read();
  LogEvidence(bytes, regions, &keys, &losses).Read();

  SalvageChoice choice(bytes, keys, options.older, &lost, &losses);
  choice.Run();
  return choice.TakeAll(regions, take);
}

}  // namespace erda::inspect
