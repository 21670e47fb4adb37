// Finds changes of slots that the index did not make, by the slots' checks (slot_checks.h). Undoes a flipped bit, which
// the medium may do to an entry. Keeps an entry in which more has changed, and remembers its slot.
//
// Owns the list of kept slots, and the number of undone flips. The shard's thread calls it.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "index/census.h"
#include "index/entry_news.h"
#include "index/slots.h"
#include "index/view.h"

namespace erda::index {

class Mender {
 public:
  enum class Mended : uint8_t {
    kFits,
    kUndone,  // One bit was flipped. It is as before, persistently.
    kKept     // More has changed. The entry counts as it stands from now on.
  };

  // A change of the slots while no server ran.
  struct RestChange {
    bool changed = false;
    Slot slot = 0;
    // The entry without its flipped bit. Nothing: more has changed, or a store has overwritten the flipped word or
    // meta.
    std::optional<format::IndexEntry> undone;
  };

  Mender(const View& view, Slots& slots, const Census& census, EntryNews& news)
      : view_(view), slots_(slots), census_(census), news_(news) {}

  Mended Mend(Slot slot);
  // Returns true if the slot holds what the index has stored there, as far as the index knows.
  [[nodiscard]] bool Fits(Slot slot) const { return slots_.Fits(slot, view_.At(slot)); }
  // Does the same as View::Find, but mends each entry before is_key sees it. Finds an entry also if one bit of its tag
  // is flipped, and the index knows that.
  template <class IsKey>
  [[nodiscard]] std::optional<Slot> FindMended(uint64_t key_hash, IsKey&& is_key) {
    const auto may_be = [](uint32_t differing) { return (differing & (differing - 1)) == 0; };
    const auto mended = [this](Slot slot, const format::IndexEntry& entry) {
      return Mend(slot) == Mended::kFits ? entry : view_.At(slot);
    };
    return view_.FindInWindow(key_hash, may_be, mended, is_key);
  }
  // Before CheckRest: finds an entry whose tag differs in one bit from the key's. is_key sees the entry with the key's
  // tag. Such an entry is another key's, or a bit has flipped.
  template <class IsKey>
  [[nodiscard]] std::optional<Slot> FindNearTag(uint64_t key_hash, IsKey&& is_key) const {
    const uint32_t tag = format::EntryMeta::TagOf(key_hash);
    const auto may_be = [](uint32_t differing) { return std::has_single_bit(differing); };
    const auto with_tag = [tag](Slot /*slot*/, const format::IndexEntry& entry) {
      return format::IndexEntry{entry.word, entry.entry_meta().WithTag(tag).raw()};
    };
    return view_.FindInWindow(key_hash, may_be, with_tag, is_key);
  }
  // Before CheckRest: stores the tag and the distance that the key's entry has in this slot, if they differ. Persistent
  // on return. Requires: the entry is the key's.
  void UndoPlace(Slot slot, uint64_t key_hash);

  // The last server left this sum. Nothing: it is unknown, and CheckRest has nothing to compare.
  void BeginRest(std::optional<format::RestSum> at_rest) {
    slots_.rest() = RestCheck(at_rest, view_.size());
    has_news_ = rest_is_due();
  }
  // There may be something to do: a check of the sum, or kept slots to tell. The shard asks in each step.
  [[nodiscard]] bool has_news() const { return has_news_; }
  // The caller has done what there was to do for now.
  void EndNews() { has_news_ = rest_is_due() || !kept_.empty(); }
  // CheckRest has not been called yet, and the last server has left a sum.
  [[nodiscard]] bool rest_is_due() const { return slots_.rest().is_due(); }
  // CheckRest may be called.
  [[nodiscard]] bool may_check_rest() const { return rest_is_due() && census_.is_complete(); }
  // Compares the entries that were found with those that the last server left. Requires: may_check_rest().
  [[nodiscard]] RestChange CheckRest();
  // Stores the entry without its flipped bit, persistently on return. Requires: the index has counted the flipped
  // entry, or has not counted the slot.
  void Undo(Slot slot, const format::IndexEntry& undone);

  // Returns the slots that were kept since the last call.
  [[nodiscard]] std::vector<Slot> TakeKept() { return std::exchange(kept_, {}); }
  // Returns how many flips were undone since the start.
  [[nodiscard]] uint64_t flips_undone() const { return flips_undone_; }

 private:
  bool UndoFlip(Slot slot, const format::IndexEntry& entry);
  // Stores word or meta, whichever differs from the entry that stands there. Persistent on return.
  void StoreUndone(Slot slot, const format::IndexEntry& flipped, const format::IndexEntry& undone);

  const View view_;
  Slots& slots_;
  const Census& census_;
  EntryNews& news_;
  uint64_t flips_undone_ = 0;
  std::vector<Slot> kept_;
  bool has_news_ = false;
};

}  // namespace erda::index
