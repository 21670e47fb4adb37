#include "server/cleaning/present_phase.h"

#include <utility>

namespace erda::server {

void PresentPhase::Begin(const log::ShardLog::LinkedRegion& region, CleanPhase phase, std::span<const HeldPlace> held) {
  phase_ = phase;
  may_take_last_ = region.use.held == 0;
  pace_.Begin(geometry_.region_size, region.dead_bytes());
  queues_.Send(MergeOrder{.region = region.region,
                          .generation = region.generation,
                          .head = region.head,
                          .slot = region.slot,
                          .phase = phase,
                          .held = held});
}

CleanPhase PresentPhase::End() { return std::exchange(phase_, std::nullopt).value_or(CleanPhase::kMerge); }

void PresentPhase::Update(bool hurry) { pace_.Update(hurry || phase_ == CleanPhase::kReplicate); }

}  // namespace erda::server
