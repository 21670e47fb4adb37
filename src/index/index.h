// The hash table of one shard: hopscotch hashing over a line of slots. A key's entry is in one of the kNeighbourhood
// slots from its home on, so that a client reads them all in one Read.
//
// Not thread-safe: the shard's thread alone calls it. Clients read the slots meanwhile; that is what the order of the
// stores is for:
//   (I5) A free slot's word is empty. Meta is persistent before its word is stored, so that a word never stands beside
//        another key's meta after a power cut.
//   (I6) An entry that moves is in its new slot before it leaves the old one, and the displacement counter is odd in
//        between. A reader who finds nothing between two equal, even readings of the counter has seen every slot while
//        no entry moved: the key was absent.
// A power cut in the middle of a move leaves the same entry in two slots, which the shard's record names by then.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>

#include "base/planted.h"
#include "erda/status.h"
#include "format/geometry.h"
#include "format/superblock.h"
#include "nvm/writer.h"

namespace erda::index {

using Slot = uint64_t;

// Is told of each change of a word, before it, and so of what entries name. An entry that moves to another slot names
// the same.
class EntryObserver {
 public:
  EntryObserver() = default;
  EntryObserver(const EntryObserver&) = delete;
  EntryObserver& operator=(const EntryObserver&) = delete;
  virtual void OnEntryChanged(uint32_t head, format::EntryWord before, format::EntryWord after) = 0;
  // As OnEntryChanged, but also of entries that are not counted yet.
  virtual void OnEntryStored(uint32_t head, format::EntryWord before, format::EntryWord after) = 0;

 protected:
  ~EntryObserver() = default;
};

class Index {
 public:
  // displacements: the word in the shard's control block. observer: may be null.
  Index(nvm::Writer& nvm, const format::Geometry& geometry, uint32_t shard, uint64_t* displacements,
        EntryObserver* observer = nullptr)
      : nvm_(nvm), geometry_(geometry), shard_(shard), displacements_(displacements), observer_(observer) {}

  // Takes up an existing index. used: how many of its slots are; if nobody knows, Count finds out. In any case it is
  // counted in steps, while it is used already: the observer knows of what is counted.
  void Open(std::optional<uint64_t> used) {
    counted_ = 0;
    used_known_ = used.has_value();
    used_ = used.value_or(0);
  }
  // Looks at so many more slots; true once all are counted.
  bool Count(uint64_t slots);

  // Used slots; if nobody knew, as far as they are counted.
  [[nodiscard]] uint64_t used() const { return used_; }
  [[nodiscard]] bool counted() const { return counted_ == size(); }
  [[nodiscard]] uint64_t size() const { return geometry_.index_slots; }
  [[nodiscard]] format::IndexEntry At(Slot slot) const {
    return {nvm_.Load64(WordOffset(slot)), nvm_.Load64(MetaOffset(slot))};
  }
  // For whoever looks at all slots in their order: called for each, before At.
  void ReadAhead(Slot slot) const {
    if (slot % kReadAheadSlots == 0) {
      nvm_.WillUse(WordOffset(slot), std::min(kReadAheadSlots, size() - slot) * sizeof(format::IndexEntry));
    }
  }
  [[nodiscard]] format::EntryWord WordAt(Slot slot) const { return format::EntryWord(nvm_.Load64(WordOffset(slot))); }

  // The slot whose entry has the key's tag and satisfies is_key(slot, entry).
  template <class IsKey>
  [[nodiscard]] std::optional<Slot> Find(uint64_t key_hash, IsKey&& is_key) const {
    const Slot home = geometry_.HomeOf(key_hash);
    const uint64_t first = MetaOffset(home);  // counted on from there: the slots of a miss are many
    for (Slot i = 0; i < format::kNeighbourhood; ++i) {
      const format::EntryMeta meta(nvm_.Load64(first + i * sizeof(format::IndexEntry)));
      if (meta.tag() != format::EntryMeta::TagOf(key_hash)) continue;
      const format::IndexEntry entry{nvm_.Load64(WordOffset(home + i)), meta.raw()};
      if (entry.word != 0 && is_key(home + i, entry)) return home + i;
    }
    return std::nullopt;
  }

  // A free slot in the key's neighbourhood, if there is one.
  [[nodiscard]] std::optional<Slot> FindRoom(uint64_t key_hash) const;
  // The same, moving other entries if need be. kResourceExhausted: there is none to be had.
  Result<Slot> MakeRoom(uint64_t key_hash);

  // A new entry takes a free slot in two steps. What it says of itself must be persistent before Enter, and is after
  // the next fence.
  void Describe(Slot slot, uint64_t key_hash, uint32_t head, uint64_t object_bytes);
  // From here on it is an entry, persistently after the next fence.
  void Enter(Slot slot, format::EntryWord word) {
    StoreWordLazily(slot, word);
    CountChange(slot, 1);
  }
  // The word is persistent on return.
  void StoreWord(Slot slot, format::EntryWord word) {
    Observe(slot, word);
    Store(slot, word);
  }
  // The word will be persistent after the next fence.
  void StoreWordLazily(Slot slot, format::EntryWord word) {
    Observe(slot, word);
    nvm_.Store64(WordOffset(slot), word.raw());
    nvm_.Flush(WordOffset(slot), sizeof(uint64_t));
  }
  // Only a hint, so it is written when it changed and made persistent by whoever fences next.
  void StoreSizeHint(Slot slot, uint64_t object_bytes);
  // What stands in these slots will be persistent after the next fence.
  void Flush(Slot first, uint64_t slots) { nvm_.Flush(WordOffset(first), slots * sizeof(format::IndexEntry)); }
  // The slot is free, persistently, on return.
  void Free(Slot slot) {
    if (Planted(Flaw::kFreeNotFlushed)) {
      StoreWordLazily(slot, format::EntryWord());
    } else {
      StoreWord(slot, format::EntryWord());
    }
    CountChange(slot, -1);
  }

  // The last move that was begun, if any was. kCorruption: its record is damaged.
  [[nodiscard]] Result<format::MoveWord> Moved() const;
  // There was none; persistent on return.
  void ForgetMove();

 private:
  static constexpr uint64_t kReadAheadSlots = uint64_t{128} << 10;  // 2 MiB

  [[nodiscard]] uint64_t WordOffset(Slot slot) const { return geometry_.SlotOffset(shard_, slot); }
  [[nodiscard]] uint64_t MetaOffset(Slot slot) const { return WordOffset(slot) + sizeof(uint64_t); }
  [[nodiscard]] std::optional<Slot> FirstFree(Slot from, uint64_t slots_max) const;
  // Moves some entry into the free slot from nearer to home; the slot that became free.
  [[nodiscard]] std::optional<Slot> Displace(Slot free);
  void Move(Slot from, Slot to);
  void StoreDisplacements(uint64_t value);
  [[nodiscard]] uint64_t MoveRecordOffset() const {
    return format::kShardRecordsOffset + shard_ * sizeof(format::ShardRecord) + offsetof(format::ShardRecord, move);
  }
  void CountChange(Slot slot, int change) {
    if (used_known_ || slot < counted_) used_ += change;
  }
  // Persistent on return; nobody is told.
  void Store(Slot slot, format::EntryWord word) {
    nvm_.Store64(WordOffset(slot), word.raw());
    nvm_.Persist(WordOffset(slot), sizeof(uint64_t));
  }
  // Before the slot's word becomes this one.
  void Observe(Slot slot, format::EntryWord word) {
    if (observer_ == nullptr) return;
    const format::IndexEntry before = At(slot);
    const uint32_t head = before.entry_meta().head();
    if (slot < counted_) observer_->OnEntryChanged(head, before.entry_word(), word);
    observer_->OnEntryStored(head, before.entry_word(), word);
  }

  nvm::Writer& nvm_;
  const format::Geometry& geometry_;
  const uint32_t shard_;
  uint64_t* const displacements_;
  EntryObserver* const observer_;
  uint64_t used_ = 0;        // of the first counted_ slots, or of all
  bool used_known_ = false;  // of all
  uint64_t counted_ = 0;     // all, but for a while after the start
};

}  // namespace erda::index
