#include "index/free_slots.h"

#include <atomic>
#include <bit>

namespace erda::index {

using format::EntryMeta;
using format::EntryWord;
using format::IndexEntry;
using format::kNeighbourhood;

namespace {

// MakeRoom looks for a free slot among this many slots, from the key's home on.
constexpr uint64_t kScanSlotsMax = 8192;

}  // namespace

Result<Slot> FreeSlots::MakeRoom(uint64_t key_hash) {
  const Slot home = view_.layout().HomeOf(key_hash);
  std::optional<Slot> free = view_.FirstFree(home, kScanSlotsMax);
  while (free && *free >= home + kNeighbourhood) free = Displace(*free);
  if (!free) return Status(Code::kResourceExhausted);
  return *free;
}

std::optional<Slot> FreeSlots::MakeFarRoom(uint64_t key_hash) {
  for (;;) {
    const auto window = view_.layout().WindowOf(key_hash);
    if (const auto free = view_.FirstFree(window.begin, window.slots())) return free;
    if (window.slots() == geometry_.block_slots()) return std::nullopt;
    shape_.StoreReaches(view_.layout().reaches().Raised(key_hash));
  }
}

uint32_t FreeSlots::BitsShared(uint64_t key_hash) const {
  const Slot home = view_.layout().HomeOf(key_hash);
  uint32_t differing = 0;
  for (Slot slot = home; slot < home + kNeighbourhood; ++slot) {
    const IndexEntry entry = view_.At(slot);
    if (entry.word != 0) differing |= entry.entry_meta().tag() ^ EntryMeta::TagOf(key_hash);
  }
  return static_cast<uint32_t>(std::countr_zero(differing));
}

std::optional<Slot> FreeSlots::Displace(Slot free) {
  // Begins with the farthest slot, so that each move goes as far as possible.
  for (Slot from = free - (kNeighbourhood - 1); from < free; ++from) {
    const IndexEntry entry = view_.At(from);
    const uint32_t distance = entry.entry_meta().distance();
    // The home of a far entry is unknown, so it may have no other place. An entry that does not fit may name a wrong
    // home.
    if (distance >= kNeighbourhood || !slots_.Fits(from, entry)) continue;
    const Slot home = from - distance;
    if (free < home + kNeighbourhood) {
      Move(from, free);
      return from;
    }
  }
  return std::nullopt;
}

void FreeSlots::Move(Slot from, Slot to) {
  moves_.Begin(from, to);
  const IndexEntry entry = view_.At(from);
  const auto distance = static_cast<uint32_t>(entry.entry_meta().distance() + (to - from));
  const uint64_t counter = *displacements_;
  StoreDisplacements(counter + 1);
  slots_.StoreMeta(to, entry.entry_meta().WithDistance(distance));
  slots_.StoreWord(to, entry.entry_word());
  census_.Change(to, 1);
  // The copy is persistent before the shard changes the entry in its new slot. So after a power cut two copies of an
  // entry are equal.
  slots_.StoreWord(from, EntryWord());
  census_.Change(from, -1);
  // Otherwise the entry stays among the counted ones, or among those that are still to be counted.
  if (census_.Has(from) && !census_.Has(to)) news_.Remove(entry);
  StoreDisplacements(counter + 2);
}

// Released, like the stores of the move in between. A reader sees each only with all earlier ones. So it sees the
// counter odd before an entry moves, and even only after the entry has arrived. Pairs with the readers' Reads of
// counter, neighbourhood and counter, which a channel executes in that order.
void FreeSlots::StoreDisplacements(uint64_t value) {
  std::atomic_ref<uint64_t>(*displacements_).store(value, std::memory_order_release);
}

}  // namespace erda::index
