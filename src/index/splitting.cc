#include "index/splitting.h"

#include <bit>

#include "base/planted.h"

namespace erda::index {

using format::EntryWord;
using format::IndexEntry;
using format::IndexLayout;

namespace {

// In percent of the slots of all blocks of the last doubling. When kSplitsFrom are used, the next doubling begins. When
// kSplitUntil are used, all its blocks are split.
constexpr uint64_t kSplitsFrom = 65;
constexpr uint64_t kSplitUntil = 75;
// The first run is due when this percentage of the slots is used.
constexpr uint64_t kRunFrom = 60;

// Returns true if a split by this bit moves the entry into the new block.
bool Moves(const IndexEntry& entry, uint64_t bit) { return entry.word != 0 && (entry.entry_meta().tag() & bit) != 0; }

// Returns the depth of the two blocks into which a split by this bit parts a block.
uint32_t DepthAfter(uint64_t bit) { return static_cast<uint32_t>(std::countr_zero(bit)) + 1; }

}  // namespace

bool Splitting::WantsSplit() const {
  const IndexLayout& layout = view_.layout();
  const uint64_t full = std::bit_floor(layout.blocks());
  const uint64_t begin = layout.FirstOf(full) * kSplitsFrom / 100;
  const uint64_t split = layout.FirstOf(layout.blocks() - full);  // The slots of the blocks that are split.
  const uint64_t used = census_.used();
  return used > begin && split < (used - begin) * 100 / (kSplitUntil - kSplitsFrom);
}

bool Splitting::WantsRun() const {
  const IndexLayout& layout = view_.layout();
  if (!shape_.MayHaveRun()) return false;
  if (shape_.runs() == 0) return census_.used() > layout.slots() * kRunFrom / 100;
  const uint64_t run_blocks = geometry_.run_slots() >> geometry_.block_shift;
  const uint64_t known = geometry_.first_blocks() + shape_.runs() * run_blocks;
  return layout.blocks() + run_blocks / 2 >= known;
}

void Splitting::Split() {
  const uint64_t blocks = view_.layout().blocks();
  const uint64_t bit = std::bit_floor(blocks);
  const Slot from = view_.layout().FirstOf(view_.layout().NextParent());
  const Slot to = view_.layout().FirstOf(blocks);

  // A flipped bit would move along, and then count as what the index stored.
  for (Slot i = 0; i < geometry_.block_slots(); ++i) (void)mender_.Mend(from + i);
  if (Planted(Flaw::kSplitCountedFirst)) shape_.StoreBlocks(blocks + 1);
  FillNewBlock(from, to, bit);
  if (!Planted(Flaw::kSplitNotFlushed)) slots_.Flush(to, geometry_.block_slots());
  nvm_.Fence();
  shape_.StoreBlocks(blocks + 1);
  if (!Planted(Flaw::kSplitUnfenced)) nvm_.Fence();
  FreeMoved(from, bit);
  census_.AddBlock();
}

// The slots of the new block hold zeroes, or what a crash left of this split.
void Splitting::FillNewBlock(Slot from, Slot to, uint64_t bit) {
  slots_.GrowChecks(to + geometry_.block_slots());
  for (Slot i = 0; i < geometry_.block_slots(); ++i) {
    const IndexEntry entry = view_.At(from + i);
    if (Moves(entry, bit)) {
      slots_.SetMeta(to + i, entry.entry_meta().WithDepth(DepthAfter(bit)));
      slots_.SetWord(to + i, entry.entry_word());
    } else if (!view_.WordAt(to + i).empty()) {
      slots_.SetWord(to + i, EntryWord());
    }
    slots_.TakeAsItStands(to + i, view_.At(to + i));
  }
}

// The slots are freed for good before another key's meta stands there. Otherwise a power cut could bring a word back
// that leads to another key's version. (The depth is for clients alone, and need not last.)
void Splitting::FreeMoved(Slot from, uint64_t bit) {
  for (Slot i = 0; i < geometry_.block_slots(); ++i) {
    const IndexEntry entry = view_.At(from + i);
    if (!Moves(entry, bit)) continue;
    slots_.SetMeta(from + i, entry.entry_meta().WithDepth(DepthAfter(bit)));
    if (!Planted(Flaw::kSplitLeavesOld)) slots_.SetWord(from + i, EntryWord());
  }
  slots_.Flush(from, geometry_.block_slots());
  nvm_.Fence();
}

void Splitting::EndLastSplit() {
  if (!view_.layout().grown() || Planted(Flaw::kKeepsLeftOver)) return;
  const Slot first = view_.layout().FirstOf(view_.layout().LastParent());
  for (Slot slot = first; slot < first + geometry_.block_slots(); ++slot) {
    const IndexEntry entry = view_.At(slot);
    if (entry.word != 0 && IsLeftOver(slot, entry)) slots_.SetWord(slot, EntryWord());
  }
  slots_.Flush(first, geometry_.block_slots());
}

}  // namespace erda::index
