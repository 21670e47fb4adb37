#include "index/entry_news.h"

namespace erda::index {

using format::EntryWord;
using format::IndexEntry;

void EntryNews::TellStore(Slot slot, EntryWord after) {
  TellPublished();
  const IndexEntry before = view_.At(slot);
  const uint32_t head = HeadOf(before);
  if (census_.Has(slot)) observer_->OnEntryChanged(head, before.entry_word(), after);
  observer_->OnEntryStored(head, before, after);
}

void EntryNews::TellUntold() {
  for (const auto& [head, before, after] : untold_) observer_->OnEntryChanged(head, before, after);
  untold_.clear();
}

void EntryNews::Add(const IndexEntry& entry) {
  TellPublished();
  if (observer_ != nullptr) observer_->OnEntryChanged(HeadOf(entry), EntryWord(), entry.entry_word());
}

void EntryNews::Remove(const IndexEntry& entry) {
  TellPublished();
  if (observer_ != nullptr) observer_->OnEntryChanged(HeadOf(entry), entry.entry_word(), EntryWord());
}

}  // namespace erda::index
