#include "index/stored_shape.h"

#include <algorithm>
#include <atomic>

#include "base/planted.h"

namespace erda::index {

using format::CheckedWord;

StoredShape::StoredShape(nvm::Writer& nvm, const format::Geometry& geometry, uint32_t shard, const Published& published)
    : nvm_(nvm),
      geometry_(geometry),
      shard_(shard),
      published_(published),
      runs_(published.runs.size()),
      layout_(geometry, shard, runs_) {}

Status StoredShape::TakeUp(std::span<const uint32_t> regions) {
  const CheckedWord record(nvm_.Load64(BlocksOffset()));
  const uint64_t blocks = record.raw() == 0 ? geometry_.first_blocks() : record.number();
  for (const uint32_t region : regions) AddRun(region);
  layout_.SetBlocks(std::max(blocks, uint64_t{1}));
  // The index may have one run more than its blocks use.
  const bool holds = blocks >= geometry_.first_blocks() && blocks <= geometry_.blocks_max() && !record.damaged() &&
                     layout_.IsKnown(blocks - 1) && runs_used_ <= (layout_.grown() ? layout_.RunOf(blocks - 1) + 2 : 1);
  if (!holds)
    return {Code::kCorruption, "the index of a shard does not have the blocks that the shard's record counts"};
  PublishBlocks();
  layout_.SetReaches(format::ReachesIn(CheckedWord(nvm_.Load64(ReachesOffset()))));
  PublishReaches(layout_.reaches());
  return {};
}

void StoredShape::MendReaches() {
  if (CheckedWord(nvm_.Load64(ReachesOffset())).damaged()) StoreReaches(format::Reaches::Farthest());
}

void StoredShape::AddRun(uint32_t region) {
  runs_[runs_used_] = region + 1;
  std::atomic_ref<uint32_t>(published_.runs[runs_used_]).store(region + 1, std::memory_order_release);
  ++runs_used_;
}

void StoredShape::StoreBlocks(uint64_t blocks) {
  layout_.SetBlocks(blocks);
  nvm_.Store64(BlocksOffset(), CheckedWord::Of(blocks).raw());
  nvm_.Flush(BlocksOffset(), sizeof(uint64_t));
  PublishBlocks();
}

// (I15) The record is fenced before a reader may take the window for as large, and so before an entry stands there. A
// restart then loses no entry.
void StoredShape::StoreReaches(format::Reaches reaches) {
  nvm_.Store64(ReachesOffset(), CheckedWord::Of(reaches.number()).raw());
  if (!Planted(Flaw::kReachNotFlushed)) nvm_.Persist(ReachesOffset(), sizeof(uint64_t));
  const format::Reaches told = Planted(Flaw::kReachToldLate) ? layout_.reaches() : reaches;
  layout_.SetReaches(reaches);
  PublishReaches(told);
}

// Released: pairs with ReadOnlyIndex::Refresh, and with the clients' Reads of slots and then of this word.
void StoredShape::PublishBlocks() {
  std::atomic_ref<uint64_t>(*published_.blocks).store(layout_.blocks(), std::memory_order_release);
}

// Released: pairs as above. A reader that knows of an acknowledged put sees the window that its entry needs.
void StoredShape::PublishReaches(format::Reaches reaches) {
  std::atomic_ref<uint64_t>(*published_.reaches).store(reaches.number(), std::memory_order_release);
}

}  // namespace erda::index
