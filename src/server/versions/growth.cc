#include "server/versions/growth.h"

#include <utility>

namespace erda::server {

using format::Counter;
using format::Reason;

namespace {

// If a key finds no place near its home, the shard splits more blocks. It does not if fewer than one index slot in this
// many is used: then too many keys have the same neighbourhood. Such a key gets a place farther away. Exception: splits
// may part these keys before the index has a slot for 256 bytes of the pool. Then the shard splits, since keys may come
// in the order of their hashes.
constexpr uint64_t kSparse = 4;
// Slots of the index counted after each batch of requests: a microsecond or two.
constexpr uint64_t kCountedBesideWork = 32;
// Slots counted for each put. The shard has counted all slots before puts have taken a tenth of them.
constexpr uint64_t kCountedPerPut = 16;

}  // namespace

bool Growth::AddRun() {
  const auto region = log_.LinkRun();
  if (!region) return false;
  index_.shape().AddRun(*region);
  counters_.Set(Counter::kLogBytesTotal, log_.regions().bytes_total());
  return true;
}

bool Growth::SplitNext(AllPublished /*proof*/) {
  if (!index_.splitting().CanSplit() && (!index_.shape().MayHaveRun() || !AddRun())) return false;
  index_.splitting().Split();
  nothing_due_at_ = UINT64_MAX;
  counters_.Set(Counter::kIndexSlots, index_.size());
  return true;
}

void Growth::GrowIfDue(uint64_t slots) {
  const uint64_t puts = numbers_.given() - std::exchange(given_, numbers_.given());
  if (!CountKeys(kCountedBesideWork + puts * kCountedPerPut) || !grows_) return;
  // A split would take a flipped bit along.
  if (index_.mender().rest_is_due()) return;
  const bool wants_run = index_.splitting().WantsRun();
  if (wants_run) (void)AddRun();
  if (!wants_run && !index_.splitting().WantsSplit()) nothing_due_at_ = index_.census().used();
  for (uint64_t split = 0; split < slots; split += geometry_.block_slots()) {
    if (!index_.splitting().WantsSplit() || !index_.splitting().CanSplit()) return;
    (void)SplitNext(batch_.Publish());
  }
}

// Blocks are split in their order, so several splits may come before the one of this key's block. That is rare: blocks
// that are not split have about as many free slots as each other. If no split is due or possible, the key gets a place
// farther away in its block. It gets none if the whole block is full (I15).
Reason Growth::MakeRoom(AllPublished /*proof*/, uint64_t key_hash, index::Slot* slot) {
  EndRest(batch_.Publish());
  for (;;) {
    if (auto room = index_.free_slots().MakeRoom(key_hash); room.ok()) {
      *slot = *room;
      return Reason::kNone;
    }
    index_.Count(index_.size());
    const uint64_t parted_by = geometry_.block_slots() << (index_.free_slots().BitsShared(key_hash) + 1);
    const bool sparse = index_.census().used() < index_.size() / kSparse;
    const bool crowded = sparse && parted_by > format::SparseIndexSlots(geometry_.pool_size, geometry_.shards);
    const bool due = grows_ && !crowded;
    if (due && SplitNext(batch_.Publish())) continue;
    if (const auto room = index_.free_slots().MakeFarRoom(key_hash)) {
      *slot = *room;
      return Reason::kNone;
    }
    return due && index_.shape().MayHaveRun() ? Reason::kLogFull : Reason::kIndexFull;
  }
}

void Growth::EndRest(AllPublished /*proof*/) {
  if (!index_.mender().rest_is_due()) return;
  (void)CountKeys(index_.size());
  mending_.EndRest(batch_.Publish());
}

bool Growth::CountKeys(uint64_t slots) {
  if (index_.census().is_complete()) return true;
  index_.Count(slots);
  counters_.Set(Counter::kKeys, index_.census().used());
  return index_.census().is_complete();
}

}  // namespace erda::server
