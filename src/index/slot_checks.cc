#include "index/slot_checks.h"

namespace erda::index {

using format::IndexEntry;

void SlotChecks::Grow(uint64_t slots) {
  if (slots <= this->slots()) return;
  const uint64_t blocks = ((slots - 1) >> block_shift_) + 1 - blocks_.size();
  // The memory is not touched here, so that a large index costs a start nothing.
  memory_.push_back(std::make_unique_for_overwrite<uint16_t[]>(blocks << block_shift_));
  for (uint64_t i = 0; i < blocks; ++i) blocks_.push_back(memory_.back().get() + (i << block_shift_));
}

std::optional<IndexEntry> SlotChecks::WithoutFlip(uint64_t slot, IndexEntry entry) const {
  std::optional<IndexEntry> found;
  for (uint32_t bit = 0; bit < 128; ++bit) {
    IndexEntry other = entry;
    (bit < 64 ? other.word : other.meta) ^= uint64_t{1} << (bit % 64);
    if (!Fits(slot, other)) continue;
    if (found) return std::nullopt;
    found = other;
  }
  return found;
}

}  // namespace erda::index
