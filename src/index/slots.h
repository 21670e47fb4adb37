// The stores to the slots of an index. Each store keeps the slot's check (slot_checks.h), so that changes which the
// index did not make are found.
//
// Owns the checks, and the sum over the entries at rest (rest_check.h). Tells no observer, and counts nothing: its
// callers do. Set... stores without a flush. Store... is persistent on return, and Store...Lazily after the next fence.
// The shard's thread calls it.
#pragma once

#include <cstdint>
#include <optional>

#include "format/geometry.h"
#include "format/index_entry.h"
#include "index/census.h"
#include "index/rest_check.h"
#include "index/slot_checks.h"
#include "index/view.h"
#include "nvm/writer.h"

namespace erda::index {

class Slots {
 public:
  Slots(nvm::Writer& nvm, const View& view, const format::Geometry& geometry, const Census& census)
      : nvm_(nvm), view_(view), census_(census), checks_(geometry.block_shift) {}

  // Returns the pool offset of the word. Always inline, like the other stores of words: otherwise each put makes three
  // calls.
  [[gnu::always_inline]] uint64_t SetWord(Slot slot, format::EntryWord word) {
    const uint64_t at = SetWordUnchecked(slot, word);
    checks_.Keep(slot, {word.raw(), nvm_.Load64(at + sizeof(uint64_t))});
    return at;
  }
  void SetMeta(Slot slot, format::EntryMeta meta) {
    if (!census_.Has(slot)) [[unlikely]]
      ReplaceAtRest(slot, {view_.WordAt(slot).raw(), meta.raw()});
    nvm_.Store64(view_.MetaOffset(slot), meta.raw());
    checks_.Keep(slot, {view_.WordAt(slot).raw(), meta.raw()});
  }
  void StoreWord(Slot slot, format::EntryWord word) { nvm_.Persist(SetWord(slot, word), sizeof(uint64_t)); }
  [[gnu::always_inline]] void StoreWordLazily(Slot slot, format::EntryWord word) {
    nvm_.Flush(SetWord(slot, word), sizeof(uint64_t));
  }
  // Does the same, but keeps no check. Requires: StoreWordLazily of the slot follows before anybody asks whether the
  // slot fits.
  void StoreUnsettledLazily(Slot slot, format::EntryWord word) {
    nvm_.Flush(SetWordUnchecked(slot, word), sizeof(uint64_t));
  }
  void StoreMeta(Slot slot, format::EntryMeta meta) {
    SetMeta(slot, meta);
    nvm_.Persist(view_.MetaOffset(slot), sizeof(uint64_t));
  }
  void FlushMeta(Slot slot) { nvm_.Flush(view_.MetaOffset(slot), sizeof(uint64_t)); }
  // The entries in these slots are persistent after the next fence.
  void Flush(Slot first, uint64_t slots);

  // This many slots have checks from now on. New checks say nothing until a store, or until TakeAsItStands.
  void GrowChecks(uint64_t slots) { checks_.Grow(slots); }
  // The entry counts as what the index has stored in this slot. Requires: the entry stands in the slot.
  void TakeAsItStands(Slot slot, const format::IndexEntry& entry) { checks_.Keep(slot, entry); }
  [[nodiscard]] RestCheck& rest() { return rest_; }
  [[nodiscard]] const RestCheck& rest() const { return rest_; }
  // Returns true if the slot holds what the index has stored there. A slot that the census has not counted has no check
  // yet, so any entry fits.
  [[nodiscard]] bool Fits(Slot slot, const format::IndexEntry& entry) const {
    return !census_.Has(slot) || checks_.Fits(slot, entry);
  }
  // Returns the entry as it was before one of its bits flipped. Returns nothing if more has changed. Requires: the slot
  // is counted, and its entry does not fit.
  [[nodiscard]] std::optional<format::IndexEntry> WithoutFlip(Slot slot, const format::IndexEntry& entry) const {
    return checks_.WithoutFlip(slot, entry);
  }

 private:
  // Returns the pool offset of the word.
  [[gnu::always_inline]] uint64_t SetWordUnchecked(Slot slot, format::EntryWord word) {
    const uint64_t at = view_.WordOffset(slot);
    if (!census_.Has(slot)) [[unlikely]]
      ReplaceAtRest(slot, {word.raw(), nvm_.Load64(at + sizeof(uint64_t))});
    nvm_.Store64(at, word.raw());
    return at;
  }
  // The slot is not counted yet, and is about to hold this entry. Not inline, so that the stores of a put stay inline.
  void ReplaceAtRest(Slot slot, const format::IndexEntry& entry);

  nvm::Writer& nvm_;
  const View view_;
  const Census& census_;
  SlotChecks checks_;
  RestCheck rest_;
};

}  // namespace erda::index
