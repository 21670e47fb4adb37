#include "index/entry_news.h"

namespace erda::index {

using format::EntryWord;
using format::IndexEntry;

void EntryNews::TellStore(Slot slot, EntryWord after) {
  (void)TellPublished();
  const IndexEntry before = view_.At(slot);
  const uint32_t head = HeadOf(before);
  if (census_.Has(slot)) observer_->OnEntryChanged(head, before.entry_word(), after);
  observer_->OnEntryStored(head, before, after);
}

void EntryNews::TellUntold() {
  for (const EntryChange& change : untold_) {
    if (change.left_at != 0) {
      observer_->OnValueReplaced(change);
    } else {
      observer_->OnEntryChanged(change.head, change.before, change.after.Settled());
    }
  }
  untold_.clear();
}

void EntryNews::Add(const IndexEntry& entry) {
  (void)TellPublished();
  if (observer_ != nullptr) observer_->OnEntryChanged(HeadOf(entry), EntryWord(), entry.entry_word());
}

void EntryNews::Remove(const IndexEntry& entry) {
  (void)TellPublished();
  if (observer_ != nullptr) observer_->OnEntryChanged(HeadOf(entry), entry.entry_word(), EntryWord());
}

}  // namespace erda::index
