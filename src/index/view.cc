#include "index/view.h"

namespace erda::index {

namespace {

constexpr uint64_t kReadAheadSlots = uint64_t{128} << 10;  // 2 MiB

// An index that has no runs need not have regions either, and so no slots of a run.
uint64_t ReadAheadSlots(const format::Geometry& geometry) {
  if (geometry.runs_max() == 0) return kReadAheadSlots;
  return std::min({kReadAheadSlots, geometry.index_slots, geometry.run_slots()});
}

}  // namespace

View::View(const nvm::Writer& nvm, const format::Geometry& geometry, const format::IndexLayout& layout)
    : nvm_(nvm), layout_(layout), read_ahead_slots_(ReadAheadSlots(geometry)) {}

std::optional<Slot> View::FirstFree(Slot from, uint64_t slots_max) const {
  const Slot end = layout_.FirstOf(layout_.BlockWith(from) + 1);
  const Slot count = std::min(end - from, slots_max);
  const uint64_t first = WordOffset(from);
  for (Slot i = 0; i < count; ++i) {
    if (nvm_.Load64(first + i * sizeof(format::IndexEntry)) == 0) return from + i;
  }
  return std::nullopt;
}

}  // namespace erda::index
