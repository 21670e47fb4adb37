#include "index/read_only_index.h"

#include <atomic>

namespace erda::index {

ReadOnlyIndex::ReadOnlyIndex(const nvm::Writer& nvm, const format::Geometry& geometry, uint32_t shard,
                             const Published& published)
    : published_(published),
      runs_(published.runs.size()),
      layout_(geometry, shard, runs_),
      view_(nvm, geometry, layout_) {}

bool ReadOnlyIndex::Refresh() {
  // Acquired, like the blocks: entries that need so large a window were stored later, or are still to come (I15).
  const format::Reaches reaches(std::atomic_ref<uint64_t>(*published_.reaches).load(std::memory_order_acquire));
  const bool farther = reaches != layout_.reaches();
  layout_.SetReaches(reaches);
  // Acquired: this thread then sees every earlier store of the shard, and so the entries and the runs of all blocks
  // (I14).
  const uint64_t blocks = std::atomic_ref<uint64_t>(*published_.blocks).load(std::memory_order_acquire);
  if (blocks <= layout_.blocks()) return farther;
  for (const uint64_t runs = layout_.RunOf(blocks - 1) + 1; runs_known_ < runs; ++runs_known_) {
    runs_[runs_known_] = std::atomic_ref<uint32_t>(published_.runs[runs_known_]).load(std::memory_order_relaxed);
  }
  layout_.SetBlocks(blocks);
  return true;
}

}  // namespace erda::index
