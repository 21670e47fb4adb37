// The hash table of one shard: for each key an entry, which names the key's versions in the log.
//
// The index is blocks of slots, with hopscotch hashing in each. As keys become more, the shard splits one block after
// the other in two (format/index_layout.h). This class changes entries, informs the observer (entry_observer.h), and
// counts used slots. Its parts do the rest. The header of each part has its contract:
//
//   View, Slots        the entry in a slot, and the stores to slots
//   Census             how many slots are used
//   StoredShape        how many blocks there are, where they are, and how far entries may be from their homes
//   FreeSlots          a free slot for a new entry; moves of other entries
//   MoveRecord         the last move
//   Splitting          growth by one block
//   Mender             flipped bits
//   EntryNews          what the observer hears, and when
//   Publishing         entries that name the new versions of a batch
//
// Owns its parts, and a shard's slots in the pool. Requires: shape().TakeUp first, if the index may have grown. Then
// Open, except for a caller that only looks for room. The shard's thread calls it, and the thread that starts the
// server before. Clients and the cleaner read the slots meanwhile: the order of the stores is for them. (I6) is in
// free_slots.h, (I14) in splitting.h, (I15) in stored_shape.h.
//   (I5) The word of a free slot is empty. The shard stores a new entry's word when its meta is persistent. So after a
//        power cut no word stands beside another key's meta.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "base/planted.h"
#include "format/geometry.h"
#include "format/index_entry.h"
#include "format/index_layout.h"
#include "index/all_told.h"
#include "index/census.h"
#include "index/entry_news.h"
#include "index/entry_observer.h"
#include "index/free_slots.h"
#include "index/mender.h"
#include "index/move_record.h"
#include "index/published.h"
#include "index/publishing.h"
#include "index/slots.h"
#include "index/splitting.h"
#include "index/stored_shape.h"
#include "index/view.h"
#include "nvm/writer.h"

namespace erda::index {

class Index {
 public:
  // The index has only its first blocks until the caller takes up the shape. observer: may be null.
  Index(nvm::Writer& nvm, const format::Geometry& geometry, uint32_t shard, const Published& published,
        EntryObserver* observer = nullptr);
  Index(const Index&) = delete;
  Index& operator=(const Index&) = delete;

  // Takes up the entries in the slots. The caller may use the index at once, and lets Count count the slots meanwhile.
  // used: the number of used slots, if the pool says it. at_rest: the sum that the last server left, if it is known.
  void Open(std::optional<uint64_t> used, std::optional<format::RestSum> at_rest = std::nullopt) {
    slots_.GrowChecks(size());
    mender_.BeginRest(at_rest);
    census_.Begin(used);
  }
  // Counts this many more slots. Returns true once all are counted.
  bool Count(uint64_t slots);

  [[nodiscard]] const Census& census() const { return census_; }
  [[nodiscard]] StoredShape& shape() { return shape_; }
  [[nodiscard]] const StoredShape& shape() const { return shape_; }
  [[nodiscard]] FreeSlots& free_slots() { return free_slots_; }
  [[nodiscard]] MoveRecord& moves() { return moves_; }
  [[nodiscard]] Splitting& splitting() { return splitting_; }
  [[nodiscard]] Mender& mender() { return mender_; }
  [[nodiscard]] const Mender& mender() const { return mender_; }

  // --- Reading (View)

  // Returns the number of slots.
  [[nodiscard]] uint64_t size() const { return view_.size(); }
  [[nodiscard]] const format::IndexLayout& layout() const { return shape_.layout(); }
  [[nodiscard]] format::IndexEntry At(Slot slot) const { return view_.At(slot); }
  [[nodiscard]] format::EntryWord WordAt(Slot slot) const { return view_.WordAt(slot); }
  void ReadAhead(Slot slot) const { view_.ReadAhead(slot); }
  template <class IsKey>
  [[nodiscard]] std::optional<Slot> Find(uint64_t key_hash, IsKey&& is_key) const {
    return view_.Find(key_hash, std::forward<IsKey>(is_key));
  }

  // --- Changes of entries

  // First step of a new entry: what it says of itself. Requires: the slot is free. The meta is persistent after the
  // next fence, and Enter or Publish come after that fence.
  void Describe(Slot slot, uint64_t key_hash, uint64_t object_bytes);
  // Second step: the slot has an entry from now on, persistently after the next fence.
  void Enter(Slot slot, format::EntryWord word) {
    StoreWordLazily(slot, word);
    census_.Change(slot, 1);
  }
  // The word is persistent on return.
  void StoreWord(Slot slot, format::EntryWord word) {
    news_.Store(slot, word);
    slots_.StoreWord(slot, word);
  }
  // The word is persistent after the next fence.
  void StoreWordLazily(Slot slot, format::EntryWord word) {
    news_.Store(slot, word);
    slots_.StoreWordLazily(slot, word);
  }
  // Publishes entries in two steps. First calls store(Publishing&), which stores the words of versions that are whole,
  // unsettled. Then fences, and stores each of these words again, as settled: persistent after the next fence. All that
  // the caller stored lazily before is persistent on return.
  template <class StoreAll>
  void Publish(StoreAll&& store) {
    store(publishing_);
    publishing_.FenceAndSettle();
  }
  // Returns true if the observer has not heard of all published changes. TellPublished tells it of them.
  [[nodiscard]] bool has_untold() const { return news_.has_untold(); }
  [[nodiscard]] AllTold TellPublished() { return news_.TellPublished(); }
  // Stores the hint if it has changed. It is only a hint, so it becomes persistent with the next fence that comes.
  void StoreSizeHint(Slot slot, uint64_t object_bytes) {
    const format::EntryMeta meta = view_.MetaAt(slot);
    if (meta.WithSizeHint(object_bytes) != meta) StoreMeta(slot, meta.WithSizeHint(object_bytes));
  }
  // The entries in these slots are persistent after the next fence.
  void Flush(Slot first, uint64_t slots) { slots_.Flush(first, slots); }
  // Frees the slot, persistently on return.
  void Free(Slot slot) {
    if (Planted(Flaw::kFreeNotFlushed)) {
      StoreWordLazily(slot, format::EntryWord());
    } else {
      StoreWord(slot, format::EntryWord());
    }
    census_.Change(slot, -1);
  }

 private:
  // Stores the meta. Persistent after the next fence.
  void StoreMeta(Slot slot, format::EntryMeta meta);

  StoredShape shape_;
  const View view_;
  Census census_;
  Slots slots_;
  EntryNews news_;
  Publishing publishing_;
  MoveRecord moves_;
  Mender mender_;
  FreeSlots free_slots_;
  Splitting splitting_;
};

}  // namespace erda::index
