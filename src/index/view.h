// Reads the slots of an index: the entry in a slot, and the slot that has the entry of a key.
//
// An entry stands in one of the kNeighbourhood slots from its key's home on, so that a client reads all of them in one
// Read. If more keys than that share a place, an entry stands farther away, in the key's window (format/reach.h).
//
// Owns nothing, and is three words: the parts of an index copy it. Requires: writer and layout outlive it. Each slot
// that a caller names is one of the layout's. The thread that changes the layout calls it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "format/geometry.h"
#include "format/index_entry.h"
#include "format/index_layout.h"
#include "nvm/writer.h"

namespace erda::index {

using Slot = uint64_t;

class View {
 public:
  View(const nvm::Writer& nvm, const format::Geometry& geometry, const format::IndexLayout& layout);

  [[nodiscard]] const format::IndexLayout& layout() const { return layout_; }
  // Returns the number of slots.
  [[nodiscard]] uint64_t size() const { return layout_.slots(); }
  // Returns the pool offset of the slot's word.
  [[nodiscard]] uint64_t WordOffset(Slot slot) const { return layout_.SlotOffset(slot); }
  // Returns the pool offset of the slot's meta, which stands just after the word.
  [[nodiscard]] uint64_t MetaOffset(Slot slot) const { return WordOffset(slot) + sizeof(uint64_t); }
  [[nodiscard]] format::EntryWord WordAt(Slot slot) const { return format::EntryWord(nvm_.Load64(WordOffset(slot))); }
  [[nodiscard]] format::EntryMeta MetaAt(Slot slot) const { return format::EntryMeta(nvm_.Load64(MetaOffset(slot))); }
  [[nodiscard]] format::IndexEntry At(Slot slot) const {
    const uint64_t at = WordOffset(slot);
    return {nvm_.Load64(at), nvm_.Load64(at + sizeof(uint64_t))};
  }
  // A caller that reads all slots in their order calls this for each slot, before At.
  void ReadAhead(Slot slot) const {
    if (slot % read_ahead_slots_ == 0) {
      nvm_.WillUse(WordOffset(slot), std::min(read_ahead_slots_, size() - slot) * sizeof(format::IndexEntry));
    }
  }
  // Returns the first free slot among `slots_max` slots from this one on. Stops at the end of the block.
  [[nodiscard]] std::optional<Slot> FirstFree(Slot from, uint64_t slots_max) const;

  // Returns the slot whose entry has the key's tag and satisfies is_key(slot, entry).
  template <class IsKey>
  [[nodiscard]] std::optional<Slot> Find(uint64_t key_hash, IsKey&& is_key) const {
    const auto may_be = [](uint32_t differing) { return differing == 0; };
    const auto as_it_stands = [](Slot /*slot*/, const format::IndexEntry& entry) { return entry; };
    return FindInWindow(key_hash, may_be, as_it_stands, is_key);
  }
  // Does the same. Looks at an entry only if may_be(bits in which its tag differs from the key's). The entry is then
  // what read(slot, entry) returns.
  template <class MayBe, class Read, class IsKey>
  [[nodiscard]] std::optional<Slot> FindInWindow(uint64_t key_hash, MayBe may_be, Read read, IsKey& is_key) const {
    const Slot home = layout_.HomeOf(key_hash);
    const auto among = [&](Window slots) { return FindAmong(slots, key_hash, may_be, read, is_key); };
    if (const auto found = among({home, home + format::kNeighbourhood})) return found;
    if (layout_.reaches().Exponent(key_hash) == 0) return std::nullopt;
    const Window window = layout_.WindowOf(key_hash);
    if (const auto found = among({home + format::kNeighbourhood, window.end})) return found;
    return among({window.begin, home});
  }

 private:
  using Window = format::IndexLayout::Window;

  template <class MayBe, class Read, class IsKey>
  [[nodiscard]] std::optional<Slot> FindAmong(Window slots, uint64_t key_hash, MayBe may_be, Read read,
                                              IsKey& is_key) const {
    if (slots.begin >= slots.end) return std::nullopt;
    // The loop adds to one offset, and asks the layout once: a search that finds nothing looks at many slots.
    const uint64_t first = MetaOffset(slots.begin);
    for (Slot i = 0; i < slots.slots(); ++i) {
      const format::EntryMeta meta(nvm_.Load64(first + i * sizeof(format::IndexEntry)));
      if (!may_be(meta.tag() ^ format::EntryMeta::TagOf(key_hash))) continue;
      const Slot slot = slots.begin + i;
      const uint64_t word = nvm_.Load64(first + i * sizeof(format::IndexEntry) - sizeof(uint64_t));
      const format::IndexEntry entry = read(slot, {word, meta.raw()});
      const bool has_tag = entry.entry_meta().tag() == format::EntryMeta::TagOf(key_hash);
      if (has_tag && entry.word != 0 && is_key(slot, entry)) return slot;
    }
    return std::nullopt;
  }

  const nvm::Writer& nvm_;
  const format::IndexLayout& layout_;
  const uint64_t read_ahead_slots_;  // A power of two. These slots are contiguous in the pool.
};

}  // namespace erda::index
