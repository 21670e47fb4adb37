#include "client/search.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "base/bytes.h"
#include "base/planted.h"
#include "client/link.h"

namespace erda::client {

using format::IndexEntry;
using format::IndexLayout;

namespace {

// REQUIRES: the place of the operation's block is known.
fabric::RemoteAddress NeighbourhoodOf(SearchOperation& op) {
  const IndexLayout& layout = op.link->known.layout();
  op.first_slot = layout.HomeIn(op.block, op.key_hash);
  return {format::kPoolRegion, layout.SlotOffset(op.first_slot)};
}

// Guesses the key's block by the depths that the entries state. A depth that the client does not know yet means that
// the block was split, and the depth says where the key went. Only the number of blocks is proof.
uint64_t LikelyBlock(const SearchOperation& op) {
  const IndexLayout& layout = op.link->known.layout();
  if (const uint64_t block = layout.BlockOf(op.key_hash); block != op.block)
    return block;  // another get has learned it
  const uint32_t known = layout.DepthOf(op.block);
  uint32_t deepest = known;
  const std::byte* at = op.neighbourhood().data();
  for (uint32_t slot = 0; slot < op.slots_read; ++slot, at += sizeof(IndexEntry)) {
    IndexEntry entry;
    std::memcpy(&entry, at, sizeof(entry));
    deepest = std::max(deepest, entry.entry_meta().depth());
  }
  const uint64_t likely = IndexLayout::BlockAt(op.key_hash, deepest);
  return deepest == known || likely >= op.link->geometry().blocks_max() ? op.block : likely;
}

// Sets the operation's entry to the first one that has the key's tag and is not known to be another key's. Returns
// false if there is no such entry.
[[gnu::always_inline]] inline bool FindEntry(SearchOperation& op) {
  const uint32_t tag = format::EntryMeta::TagOf(op.key_hash);
  const std::byte* at = op.neighbourhood().data();
  for (uint32_t slot = 0; slot < op.slots_read; ++slot, at += sizeof(IndexEntry)) {
    IndexEntry entry;
    std::memcpy(&entry, at, sizeof(entry));
    if (entry.entry_meta().tag() != tag || entry.word == 0) continue;
    const auto foreign = std::span(op.foreign).first(op.foreign_count);
    if (std::find(foreign.begin(), foreign.end(), entry.word) != foreign.end()) continue;
    op.entry = entry;
    op.entry_slot = op.first_slot + slot;
    return true;
  }
  return false;
}

}  // namespace

// --- The first look

void Search::Begin(SearchOperation& op) {
  op.foreign_count = 0;
  op.time_before = op.link->known.time();
  op.slot_changes = op.link->known.slot_changes();
  // If the last search missed, this one may miss, too. Then the first look is at all slots that a miss has to look at.
  const bool at_all = misses_ && !between_readings_.ReadsInOrder();
  op.slots_read = at_all ? format::kNeighbourhood : format::kFirstLook;
  op.block = op.link->known.layout().BlockOf(op.key_hash);
  if (!op.link->known.layout().IsKnown(op.block)) return WaitForBlock(op);
  op.before = op.link->known.reading();
  posting_.PostRead(op, Step::kEntry, op.neighbourhood().first(op.slots_read * sizeof(IndexEntry)),
                    NeighbourhoodOf(op));
}

SearchStep Search::OnEntryRead(SearchOperation& op) {
  misses_ = !FindEntry(op);
  if (!misses_) return SearchStep::kFound;
  uint64_t block = LikelyBlock(op);
  if (op.slots_read == format::kNeighbourhood && block == op.block && op.before.displacements % 2 == 0) {
    ++stats_.second_looks;
    op.looked = {op.first_slot, op.first_slot + format::kNeighbourhood};
    GoFarther(op, format::Reaches(op.before.reaches));
    return SearchStep::kWaits;
  }
  if (!op.link->known.layout().IsKnown(block)) {
    // The control block may tell the place of that block.
    block = op.block;
    if (!connections_.ReadControl(*op.link)) return SearchStep::kWaits;
  }
  ConfirmMiss(op, block);
  return SearchStep::kWaits;
}

SearchStep Search::GoOn(SearchOperation& op) {
  if (op.foreign_count == op.foreign.size()) {
    Begin(op);
    return SearchStep::kWaits;
  }
  op.foreign[op.foreign_count++] = op.entry.word;
  if (FindEntry(op)) return SearchStep::kFound;
  if (op.first_slot != op.link->known.layout().HomeIn(op.block, op.key_hash)) {
    // The entry was in a piece of the window that was looked at between the readings.
    GoFarther(op, format::Reaches(op.before.reaches));
  } else {
    ConfirmMiss(op, op.link->known.layout().BlockOf(op.key_hash));
  }
  return SearchStep::kWaits;
}

// Waits for the control block, which tells the place of the key's block.
void Search::WaitForBlock(SearchOperation& op) {
  op.block = kNoBlock;
  connections_.WaitForHeads(op);
}

// --- Miss

void Search::ConfirmMiss(SearchOperation& op, uint64_t block) {
  op.time_before = op.link->known.time();
  op.slot_changes = op.link->known.slot_changes();
  op.slots_read = format::kNeighbourhood;
  op.block = block;
  if (!op.link->known.layout().IsKnown(block)) return WaitForBlock(op);
  const fabric::RemoteAddress neighbourhood = NeighbourhoodOf(op);
  op.looked = {op.first_slot, op.first_slot + format::kNeighbourhood};
  between_readings_.Begin(op, Step::kMissConfirm, op.neighbourhood(), neighbourhood);
  if (op.look != Look::kBefore) ++stats_.second_looks;
}

// (I15) The client has looked at the neighbourhood of the operation's block, and perhaps at more. Looks at the rest of
// the window, which is as large as these reaches say. After all of it comes the reading that says how large it was.
void Search::GoFarther(SearchOperation& op, format::Reaches reaches) {
  if (!LookFarther(op, reaches)) between_readings_.ReadBehind(op);
}

// Looks at the next slots away from the home, up to 64 at a time. Returns false if the client has looked at all of the
// window.
bool Search::LookFarther(SearchOperation& op, format::Reaches reaches) {
  op.step = Step::kMissConfirm;
  if (reaches.Exponent(op.key_hash) == 0 || Planted(Flaw::kReachNotSeen)) return false;
  const IndexLayout::Window window = op.link->known.layout().WindowIn(op.block, op.key_hash, reaches);
  uint64_t& begin = op.looked.begin;
  uint64_t& end = op.looked.end;
  if (end < window.end) {
    op.first_slot = end;
    end = std::min(end + format::kNeighbourhood, window.end);
    op.slots_read = static_cast<uint32_t>(end - op.first_slot);
  } else if (begin > window.begin) {
    op.first_slot = begin - std::min(begin - window.begin, uint64_t{format::kNeighbourhood});
    op.slots_read = static_cast<uint32_t>(begin - op.first_slot);
    begin = op.first_slot;
  } else {
    return false;
  }
  op.look = Look::kAt;
  op.foreign_count = 0;  // The known ones are of the piece before.
  op.slot_changes = op.link->known.slot_changes();
  posting_.PostRead(op, Step::kMissConfirm, op.neighbourhood().first(op.slots_read * sizeof(IndexEntry)),
                    {format::kPoolRegion, op.link->known.layout().SlotOffset(op.first_slot)});
  return true;
}

SearchStep Search::OnMissConfirm(SearchOperation& op) {
  if (op.look == Look::kBefore) {
    op.link->known.Learn(LoadAs<Reading>(op.readings()));
    ConfirmMiss(op, op.link->known.layout().BlockOf(op.key_hash));
    return SearchStep::kWaits;
  }
  if (op.look == Look::kAll) {
    op.before = LoadAs<Reading>(op.readings());
    (void)BetweenReadings::TakeReading(op);
  }
  // (I14) An entry counts if the block was the key's before it was read. A missing entry counts if the
  // block was the key's after that.
  if (op.look != Look::kBehind && BetweenReadings::IsOfBlock(op, op.before) && FindEntry(op)) return SearchStep::kFound;
  if (op.look == Look::kAt) {
    GoFarther(op, format::Reaches(op.before.reaches));
    return SearchStep::kWaits;
  }
  const Reading before = op.before;
  const Reading after = BetweenReadings::TakeReading(op);
  const bool moved = before.displacements != after.displacements || before.displacements % 2 != 0;
  const bool split = !BetweenReadings::IsOfBlock(op, before) || !BetweenReadings::IsOfBlock(op, after);
  if (split && !Planted(Flaw::kSplitNotSeen)) {
    ConfirmMiss(op, op.link->known.layout().BlockOf(op.key_hash));
    return SearchStep::kWaits;
  }
  if (moved && !Planted(Flaw::kMissNotConfirmed)) {
    ConfirmMiss(op, op.block);
    return SearchStep::kWaits;
  }
  op.before.reaches = after.reaches;  // Only these may be larger. The other words are as they were before.
  return LookFarther(op, format::Reaches(after.reaches)) ? SearchStep::kWaits : SearchStep::kAbsent;
}

}  // namespace erda::client
