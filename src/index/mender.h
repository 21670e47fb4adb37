// Finds changes of slots that the index did not make, by the slots' checks (slot_checks.h). Undoes a flipped bit.
// Accepts an entry in which more has changed as it stands, and remembers its slot.
//
// Also undoes a bit that flipped while no server ran (rest_check.h), which the checks cannot know.
//
// Owns the news of what cannot be undone, and the number of undone flips. The shard's thread calls it.
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
    kUndone,   // One bit was flipped. It is as before, persistently.
    kAccepted  // More has changed. The entry counts as it stands from now on.
  };

  // Changes that cannot be undone. The shard tells operators of them.
  struct News {
    bool changed_at_rest = false;  // Entries have changed while no server ran.
    std::vector<Slot> accepted;    // The slots whose entries were accepted.
  };

  Mender(const View& view, Slots& slots, const Census& census, EntryNews& news)
      : view_(view), slots_(slots), census_(census), news_(news) {}

  Mended Mend(Slot slot) {
    const format::IndexEntry entry = view_.At(slot);
    return slots_.Fits(slot, entry) ? Mended::kFits : MendUnfit(slot, entry);
  }
  // Returns true if the slot holds what the index has stored there, as far as the index knows.
  [[nodiscard]] bool Fits(Slot slot) const { return slots_.Fits(slot, view_.At(slot)); }
  // Does the same as View::Find, but mends each entry before is_key sees it. Finds an entry also if one bit of its tag
  // is flipped, and the index knows that.
  template <class IsKey>
  [[nodiscard]] std::optional<Slot> FindMended(uint64_t key_hash, IsKey&& is_key) {
    const auto may_be = [](uint32_t differing) { return (differing & (differing - 1)) == 0; };
    const auto mended = [this](Slot slot, const format::IndexEntry& entry) {
      if (slots_.Fits(slot, entry)) [[likely]]
        return entry;
      (void)MendUnfit(slot, entry);
      return view_.At(slot);
    };
    return view_.FindInWindow(key_hash, may_be, mended, is_key);
  }
  // Before EndRest: finds an entry whose tag differs in one bit from the key's. is_key sees the entry with the key's
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
  // Before EndRest: stores the tag and the distance that the key's entry has in this slot, if they differ. Persistent
  // on return. Requires: the entry is the key's.
  void UndoPlace(Slot slot, uint64_t key_hash);

  // Takes the sum that the last server stored. nullopt: no sum is known, so EndRest compares nothing.
  void BeginRest(std::optional<format::RestSum> at_rest) {
    slots_.rest() = RestCheck(at_rest, view_.size());
    has_news_ = rest_is_due();
  }
  // Returns true if a sum is known, and EndRest has not compared it yet.
  [[nodiscard]] bool rest_is_due() const { return slots_.rest().is_due(); }
  [[nodiscard]] bool may_end_rest() const { return rest_is_due() && census_.is_complete(); }
  // Compares the sum with that of the entries that the index found. Undoes a flipped bit, persistently on return. Keeps
  // everything as it stands if more has changed, or if a store has overwritten the flipped word or meta. Requires:
  // may_end_rest().
  void EndRest();

  // Returns true if EndRest is due, or if TakeNews has something new to return. The shard asks in each step, so this is
  // one flag.
  [[nodiscard]] bool has_news() const { return has_news_; }
  // Returns the news since the last call.
  [[nodiscard]] News TakeNews() {
    has_news_ = rest_is_due();
    return std::exchange(news_of_damage_, {});
  }
  // Returns how many flips were undone since the start.
  [[nodiscard]] uint64_t flips_undone() const { return flips_undone_; }

 private:
  // Mends the entry, which stands in the slot and does not fit.
  Mended MendUnfit(Slot slot, const format::IndexEntry& entry);
  bool UndoFlip(Slot slot, const format::IndexEntry& entry);
  // Stores the entry without its flipped bit, persistently on return. Requires: the index has counted the flipped
  // entry, or has not counted the slot.
  void Undo(Slot slot, const format::IndexEntry& undone);
  // Stores word or meta, whichever differs from the entry that stands there. Persistent on return.
  void StoreUndone(Slot slot, const format::IndexEntry& flipped, const format::IndexEntry& undone);

  const View view_;
  Slots& slots_;
  const Census& census_;
  EntryNews& news_;
  uint64_t flips_undone_ = 0;
  News news_of_damage_;
  bool has_news_ = false;
};

}  // namespace erda::index
