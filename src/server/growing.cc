// Growth of the index, step by step (docs/protocol.md, "Growth"): when a block is split, when a region becomes a run of
// blocks, and what a key comes to that finds no place near its home.
#include <utility>

#include "server/versions.h"

namespace erda::server {

using format::Counter;
using format::Reason;

namespace {

// A key that finds no place near its home has more blocks split, unless so small a share of the slots is used, one in
// ...: then more keys have the same place than there are slots for. It gets one farther away, unless splits part them
// before the index is larger than that of a new pool: keys may come in the order of their hashes.
constexpr uint64_t kSparse = 4;
// Slots of the index counted behind each batch of requests: a microsecond or two; and for each put, so that all are
// counted before a tenth of them is taken.
constexpr uint64_t kCountedBesideWork = 32;
constexpr uint64_t kCountedPerPut = 16;

}  // namespace

bool Versions::SplitNext(AllPublished /*proof*/) {
  if (!index_.CanSplit()) {
    const auto region = index_.MayHaveRun() ? log_.LinkRun() : std::nullopt;
    if (!region) return false;
    index_.AddRun(*region);
    counters_.Set(Counter::kLogBytesTotal, log_.regions().bytes_total());
  }
  index_.Split();
  counters_.Set(Counter::kIndexSlots, index_.size());
  return true;
}

// A shard that is never idle comes to its count here.
void Versions::Grow(uint64_t slots) {
  const uint64_t puts = next_version_ - std::exchange(grown_at_, next_version_);
  if (!CountKeys(kCountedBesideWork + puts * kCountedPerPut) || !options_.index_grows) return;
  if (index_.WantsRun()) {
    if (const auto region = log_.LinkRun()) {
      index_.AddRun(*region);
      counters_.Set(Counter::kLogBytesTotal, log_.regions().bytes_total());
    }
  }
  for (uint64_t split = 0; split < slots; split += geometry_.block_slots()) {
    if (!index_.WantsSplit() || !index_.CanSplit()) return;
    (void)SplitNext(PublishPuts());
  }
}

// Blocks are split in their order, so it may take some until it is this key's turn; hardly ever, since those that are
// not split have as many free slots as each other, about. Where none is due, or none can be, the key's window has a
// place, unless its whole block is full (I15).
Reason Versions::MakeRoom(AllPublished proof, uint64_t key_hash, Slot* slot) {
  for (;;) {
    if (auto room = index_.MakeRoom(key_hash); room.ok()) {
      *slot = *room;
      return Reason::kNone;
    }
    index_.Count(index_.size());
    const uint64_t parted_by = geometry_.block_slots() << (index_.BitsShared(key_hash) + 1);
    const bool sparse = index_.used() < index_.size() / kSparse;
    const bool crowded = sparse && parted_by > format::UsualIndexSlots(geometry_.pool_size, geometry_.shards);
    const bool due = options_.index_grows && !crowded;
    if (due && SplitNext(proof)) continue;
    if (const auto room = index_.MakeFarRoom(key_hash)) {
      *slot = *room;
      return Reason::kNone;
    }
    return due && index_.MayHaveRun() ? Reason::kLogFull : Reason::kIndexFull;
  }
}

bool Versions::CountKeys(uint64_t slots) {
  if (index_.counted()) return true;
  index_.Count(slots);
  counters_.Set(Counter::kKeys, index_.used());
  return index_.counted();
}

}  // namespace erda::server
