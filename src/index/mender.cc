#include "index/mender.h"

#include "base/planted.h"

namespace erda::index {

using format::IndexEntry;

// The observer counts the addresses that the accepted entry names, so that the next store can take them away. The
// addresses that the index stored before are unknown. They stay counted, so no region is emptied that an entry may
// need.
Mender::Mended Mender::MendUnfit(Slot slot, const IndexEntry& entry) {
  if (UndoFlip(slot, entry)) return Mended::kUndone;
  slots_.TakeAsItStands(slot, entry);
  news_of_damage_.accepted.push_back(slot);
  has_news_ = true;
  news_.Add(entry);
  return Mended::kAccepted;
}

// Tells the observer of no change of names: it has counted what the index stored.
bool Mender::UndoFlip(Slot slot, const IndexEntry& entry) {
  if (Planted(Flaw::kFlipNotUndone)) return false;
  const auto before = slots_.WithoutFlip(slot, entry);
  if (!before) return false;
  news_.Leave(entry, before->entry_word());
  StoreUndone(slot, entry, *before);
  return true;
}

// The sum counts the entry as if it had never been flipped. So EndRest finds no difference.
void Mender::UndoPlace(Slot slot, uint64_t key_hash) {
  const IndexEntry flipped = view_.At(slot);
  const format::EntryMeta meta = flipped.entry_meta()
                                     .WithTag(format::EntryMeta::TagOf(key_hash))
                                     .WithDistance(view_.layout().DistanceTo(slot, key_hash));
  if (meta == flipped.entry_meta()) return;
  const IndexEntry undone{flipped.word, meta.raw()};
  Undo(slot, undone);
  slots_.rest().Replace(slot, undone, flipped);
}

// Stores one of the two, so that no client reads a word beside another key's meta (I5).
void Mender::StoreUndone(Slot slot, const IndexEntry& flipped, const IndexEntry& undone) {
  if (undone.word != flipped.word) {
    slots_.StoreWord(slot, undone.entry_word());
  } else {
    slots_.StoreMeta(slot, undone.entry_meta());
  }
  ++flips_undone_;
}

// --- At rest

// A slot may have got another entry since the start. The hash says whether the flipped half is still the one that was
// found: the difference of the sums has the sign of the change.
void Mender::EndRest() {
  const format::RestSum difference = slots_.rest().Take();
  if (difference == format::RestSum()) return;
  const Slot slot = difference.slot();
  if (slot < view_.size()) {
    const IndexEntry found = view_.At(slot);
    const IndexEntry other = difference.WithoutFlip(found);
    if (difference.IsChange(found, other)) return;  // A store since the start has mended it.
    if (difference.IsChange(other, found) && !Planted(Flaw::kRestNotMended)) return Undo(slot, other);
  }
  news_of_damage_.changed_at_rest = has_news_ = true;
}

void Mender::Undo(Slot slot, const IndexEntry& undone) {
  const IndexEntry flipped = view_.At(slot);
  if (census_.Has(slot)) {
    news_.Add(undone);
    news_.Remove(flipped);
  }
  news_.Leave(flipped, undone.entry_word());
  StoreUndone(slot, flipped, undone);
}

}  // namespace erda::index
