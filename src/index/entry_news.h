// Tells the observer of an index how entries change (entry_observer.h).
//
// Owns the changes by published puts that it has not told yet. Publish passes OnEntryStored on at once. The one
// OnEntryChanged of both stores waits until TellPublished, so that the answer to the client need not wait for it.
// Everything else it tells at once, after all that is waiting. So the observer hears of changes in the order of the
// stores. Requires: the caller calls Store and Publish before the store that each announces. The shard's thread calls
// it.
#pragma once

#include <cstdint>
#include <vector>

#include "format/geometry.h"
#include "format/index_entry.h"
#include "index/all_told.h"
#include "index/census.h"
#include "index/entry_observer.h"
#include "index/view.h"

namespace erda::index {

class EntryNews {
 public:
  // observer: may be null.
  EntryNews(const View& view, const format::Geometry& geometry, const Census& census, EntryObserver* observer)
      : view_(view), geometry_(geometry), census_(census), observer_(observer) {}

  // The slot's word becomes this one.
  void Store(Slot slot, format::EntryWord after) {
    if (observer_ != nullptr) TellStore(slot, after);
  }
  // The first store of a published change. TellPublished tells the observer of this one and of the second, which
  // follows before anybody reads what the observer has counted.
  void Publish(Slot slot, const EntryChange& change) {
    if (observer_ == nullptr) return;
    if (change.left_at != 0) {
      observer_->OnValueLeft(change.left_at);
    } else {
      observer_->OnEntryStored(change.head, {change.before.raw(), view_.MetaAt(slot).raw()}, change.after);
    }
    if (census_.Has(slot)) untold_.push_back(change);
  }
  // Returns true if the observer has not heard of all changes by published puts.
  [[nodiscard]] bool has_untold() const { return !untold_.empty(); }
  // Tells the observer of them.
  [[nodiscard]] AllTold TellPublished() {
    if (!untold_.empty()) TellUntold();
    return {};
  }
  // The entry is among the counted ones from now on.
  void Add(const format::IndexEntry& entry);
  // The slot of this entry gets a word that names other versions. Changes no count.
  void Leave(const format::IndexEntry& entry, format::EntryWord after) {
    if (observer_ != nullptr) observer_->OnEntryStored(HeadOf(entry), entry, after);
  }
  // The entry is no longer among the counted ones.
  void Remove(const format::IndexEntry& entry);

 private:
  // Not inline: that would cost each put 8 instructions, where the compiler inlines the stores of its rare branches.
  void TellStore(Slot slot, format::EntryWord after);
  void TellUntold();
  // For a damaged entry, this may be a head of another shard.
  [[nodiscard]] uint32_t HeadOf(const format::IndexEntry& entry) const {
    return geometry_.HeadOf(entry.entry_meta().tag());
  }

  const View view_;
  const format::Geometry& geometry_;
  const Census& census_;
  EntryObserver* const observer_;
  std::vector<EntryChange> untold_;  // In the order of the stores.
};

}  // namespace erda::index
