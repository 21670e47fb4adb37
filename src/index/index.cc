#include "index/index.h"

#include <algorithm>

#include "base/planted.h"

namespace erda::index {

using format::EntryMeta;
using format::EntryWord;
using format::IndexEntry;
using format::kNeighbourhood;

namespace {

// How far from its home a key looks for a free slot to hop back from.
constexpr uint64_t kScanSlotsMax = 8192;

}  // namespace

std::optional<Slot> Index::FirstFree(Slot from, uint64_t slots_max) const {
  const Slot count = std::min(size() - from, slots_max);
  const uint64_t first = WordOffset(from);
  for (Slot i = 0; i < count; ++i) {
    if (nvm_.Load64(first + i * sizeof(IndexEntry)) == 0) return from + i;
  }
  return std::nullopt;
}

std::optional<Slot> Index::FindRoom(uint64_t key_hash) const {
  return FirstFree(geometry_.HomeOf(key_hash), kNeighbourhood);
}

Result<Slot> Index::MakeRoom(uint64_t key_hash) {
  const Slot home = geometry_.HomeOf(key_hash);
  std::optional<Slot> free = FirstFree(home, kScanSlotsMax);
  while (free && *free >= home + kNeighbourhood) free = Displace(*free);
  if (!free) return Status(Code::kResourceExhausted);
  return *free;
}

std::optional<Slot> Index::Displace(Slot free) {
  // From the farthest slot on, so that each hop goes as far as it can.
  for (Slot from = free - (kNeighbourhood - 1); from < free; ++from) {
    const EntryMeta meta = At(from).entry_meta();
    const Slot home = from - meta.distance();
    if (free < home + kNeighbourhood) {
      Move(from, free);
      return from;
    }
  }
  return std::nullopt;
}

void Index::Move(Slot from, Slot to) {
  nvm_.Store64(MoveRecordOffset(), format::MoveWord::Of(from, to).raw());
  nvm_.Persist(MoveRecordOffset(), sizeof(uint64_t));
  const IndexEntry entry = At(from);
  const auto distance = static_cast<uint32_t>(entry.entry_meta().distance() + (to - from));
  const uint64_t counter = *displacements_;
  StoreDisplacements(counter + 1);
  nvm_.Store64(MetaOffset(to), entry.entry_meta().WithDistance(distance).raw());
  nvm_.Persist(MetaOffset(to), sizeof(uint64_t));
  Store(to, entry.entry_word());
  CountChange(to, 1);
  // Persistent before anything changes the entry in its new slot: the two copies after a power cut are equal.
  Store(from, EntryWord());
  CountChange(from, -1);
  // It stays counted, or stays to be counted, unless it leaves what was counted.
  if (observer_ != nullptr && from < counted_ && to >= counted_) {
    observer_->OnEntryChanged(entry.entry_meta().head(), entry.entry_word(), EntryWord());
  }
  StoreDisplacements(counter + 2);
}

Result<format::MoveWord> Index::Moved() const {
  const format::MoveWord word(nvm_.Load64(MoveRecordOffset()));
  if (!word.none() && !word.Fits(size())) return Status(Code::kCorruption, "the record of a shard is damaged");
  return word;
}

void Index::ForgetMove() {
  nvm_.Store64(MoveRecordOffset(), 0);
  nvm_.Persist(MoveRecordOffset(), sizeof(uint64_t));
}

bool Index::Count(uint64_t slots) {
  const Slot end = counted_ + std::min(slots, size() - counted_);
  // What a server that died stored last may be in the CPU's caches only. Whoever builds upon what is counted fences.
  if (!used_known_ && counted_ < end && !Planted(Flaw::kCountedNotFlushed)) Flush(counted_, end - counted_);
  for (; counted_ < end; ++counted_) {
    ReadAhead(counted_);
    const IndexEntry entry = At(counted_);
    if (entry.word == 0) continue;
    if (!used_known_) ++used_;
    if (observer_ != nullptr) observer_->OnEntryChanged(entry.entry_meta().head(), EntryWord(), entry.entry_word());
  }
  return counted();
}

// Released, like the stores of the move in between: each is seen only after everything stored before it, so that the
// counter is odd before an entry moves and even only after it arrived. Pairs with the readers' Reads of counter,
// neighbourhood, counter, which a channel executes in that order.
void Index::StoreDisplacements(uint64_t value) {
  std::atomic_ref<uint64_t>(*displacements_).store(value, std::memory_order_release);
}

void Index::Describe(Slot slot, uint64_t key_hash, uint32_t head, uint64_t object_bytes) {
  const auto distance = static_cast<uint32_t>(slot - geometry_.HomeOf(key_hash));
  const EntryMeta meta = EntryMeta::Make(EntryMeta::TagOf(key_hash), head, distance, object_bytes);
  nvm_.Store64(MetaOffset(slot), meta.raw());
  if (!Planted(Flaw::kMetaNotFlushed)) nvm_.Flush(MetaOffset(slot), sizeof(uint64_t));
}

void Index::StoreSizeHint(Slot slot, uint64_t object_bytes) {
  const EntryMeta old_meta = At(slot).entry_meta();
  const EntryMeta meta = EntryMeta::Make(old_meta.tag(), old_meta.head(), old_meta.distance(), object_bytes);
  if (meta == old_meta) return;
  nvm_.Store64(MetaOffset(slot), meta.raw());
  nvm_.Flush(MetaOffset(slot), sizeof(uint64_t));
}

}  // namespace erda::index
