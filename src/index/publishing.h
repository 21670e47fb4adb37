// Lets entries name the new versions of a batch of puts (Index::Publish).
//
// Owns the entries that it has stored in the present batch and not settled. Only Index makes an object of this class
// and ends a batch: it fences, and settles the entries. So no caller can publish an entry and leave it unsettled, or
// settle it before the fence. Requires: nobody looks for flipped bits during a batch, since an unsettled entry does not
// fit its check. The shard's thread calls it.
#pragma once

#include <cstddef>
#include <vector>

#include "base/planted.h"
#include "format/index_entry.h"
#include "index/census.h"
#include "index/entry_news.h"
#include "index/entry_observer.h"
#include "index/slots.h"
#include "nvm/writer.h"

namespace erda::index {

class Publishing {
 public:
  Publishing(const Publishing&) = delete;
  Publishing& operator=(const Publishing&) = delete;

  // Stores the word of a version that is whole. If the entry is new, this is its second step (Index::Describe). Readers
  // see the entry unsettled from now on, and settled after the fence that ends the batch.
  void Store(Slot slot, const EntryChange& change) {
    news_.Publish(slot, change);
    slots_.StoreUnsettledLazily(slot, change.after);
    if (change.before.empty()) census_.Change(slot, 1);
    unsettled_.push_back({slot, change.after.Settled()});
  }

 private:
  friend class Index;

  static constexpr size_t kUsualBatch = 32;
  struct Unsettled {
    Slot slot;
    format::EntryWord settled;
  };

  Publishing(nvm::Writer& nvm, Slots& slots, Census& census, EntryNews& news)
      : nvm_(nvm), slots_(slots), census_(census), news_(news) {
    unsettled_.reserve(kUsualBatch);
  }

  void FenceAndSettle() {
    // Pairs with the flushes of the batch. Unsettled entries are persistent before a reader can see them settled, and
    // before a client gets an answer.
    if (!Planted(Flaw::kEntryNotFlushed)) nvm_.Fence();
    for (const auto& [slot, settled] : unsettled_) slots_.StoreWordLazily(slot, settled);
    unsettled_.clear();
  }

  nvm::Writer& nvm_;
  Slots& slots_;
  Census& census_;
  EntryNews& news_;
  std::vector<Unsettled> unsettled_;  // In the order of the stores.
};

}  // namespace erda::index
