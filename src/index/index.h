// The hash table of one shard: blocks of slots, with hopscotch hashing in each, that are split in two one after the
// other as the keys become more (format/index_layout.h). A key's entry is in one of the kNeighbourhood slots from its
// home on, so that a client reads them all in one Read. Where more keys than that share a place, it is farther away, in
// the key's window (format/reach.h).
//
// Not thread-safe: the shard's thread alone calls it. Clients read the slots meanwhile; that is what the order of the
// stores is for:
//   (I5) A free slot's word is empty. Meta is persistent before its word is stored, so that a word never stands beside
//        another key's meta after a power cut.
//   (I6) An entry that moves is in its new slot before it leaves the old one, and the displacement counter is odd in
//        between. A reader who finds nothing between two equal, even readings of the counter has seen every slot while
//        no entry moved: the key was absent.
//   (I14) A split stores the new block first, whole and persistent; then the number of blocks, which makes it count;
//        and frees the entries in the old block when that is persistent. So an entry that a client finds in the old
//        block is the key's still; and if it finds none, the number of blocks that it reads behind that tells it where
//        else to look.
//   (I15) A window grows in the shard's record first, persistently, and then in the control block, before an entry is
//        beyond the one that it had. It never shrinks. So a reader that finds nothing has to have looked at the whole
//        window that the reading after that tells of.
// A power cut in the middle of a move leaves the same entry in two slots, which the shard's record names by then. One
// in the middle of a split leaves entries in the old block that belong to the new one: IsLeftOver.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/planted.h"
#include "erda/status.h"
#include "format/control_block.h"
#include "format/geometry.h"
#include "format/index_layout.h"
#include "format/superblock.h"
#include "index/rest_check.h"
#include "index/slot_checks.h"
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
  // Of each store to a word, before it, also of entries that are not counted yet. before: as it stands in its slot.
  virtual void OnEntryStored(uint32_t head, const format::IndexEntry& before, format::EntryWord after) = 0;

 protected:
  ~EntryObserver() = default;
};

// What readers elsewhere see of it, in the shard's control block.
struct Published {
  uint64_t* displacements = nullptr;
  uint64_t* blocks = nullptr;
  uint64_t* reaches = nullptr;
  std::span<uint32_t> runs;

  static Published In(std::span<std::byte> control, const format::Geometry& geometry);
};

class Index {
 public:
  // As large as it was at first. observer: may be null.
  Index(nvm::Writer& nvm, const format::Geometry& geometry, uint32_t shard, const Published& published,
        EntryObserver* observer = nullptr);
  Index(const Index&) = delete;
  Index& operator=(const Index&) = delete;

  // As large as the shard's record says it is, with these regions as runs. kCorruption: that cannot be.
  Status TakeUp(std::span<const uint32_t> regions);
  // Takes up what is in it. used: how many of its slots are; if nobody knows, Count finds out. In any case it is
  // counted in steps, while it is used already: the observer knows of what is counted. at_rest: the sum that the last
  // server left, if that is known. CheckRest compares it.
  void Open(std::optional<uint64_t> used, std::optional<format::RestSum> at_rest = std::nullopt) {
    checks_.Grow(size());
    rest_ = RestCheck(at_rest, size());
    counted_ = 0;
    used_known_ = used.has_value();
    used_ = used.value_or(0);
  }
  // If the record of the windows is damaged, all are taken for the farthest: that is right, and persistent on return.
  void MendReaches() {
    if (format::CheckedWord(nvm_.Load64(ReachesRecordOffset())).damaged()) StoreReaches(format::Reaches::Farthest());
  }
  // For who reads it beside the shard: as large as it is by now, and its windows. True if either has grown since.
  bool Refresh();
  // Counts this many more slots. Returns true once all are counted.
  bool Count(uint64_t slots);

  // Used slots; if nobody knew, as far as they are counted. After Mend has kept slots, the number may be wrong by
  // theirs. Total counts all again.
  [[nodiscard]] uint64_t used() const { return used_; }
  struct Totals {
    uint64_t used = 0;
    format::RestSum sum;
  };
  // Reads all slots.
  [[nodiscard]] Totals Total() const;
  [[nodiscard]] bool counted() const { return counted_ == size(); }
  [[nodiscard]] uint64_t slots_counted() const { return counted_; }
  [[nodiscard]] uint64_t size() const { return layout_.slots(); }
  [[nodiscard]] const format::IndexLayout& layout() const { return layout_; }
  [[nodiscard]] format::IndexEntry At(Slot slot) const {
    return {nvm_.Load64(WordOffset(slot)), nvm_.Load64(MetaOffset(slot))};
  }
  // For whoever looks at all slots in their order: called for each, before At.
  void ReadAhead(Slot slot) const {
    if (slot % read_ahead_slots_ == 0) {
      nvm_.WillUse(WordOffset(slot), std::min(read_ahead_slots_, size() - slot) * sizeof(format::IndexEntry));
    }
  }
  [[nodiscard]] format::EntryWord WordAt(Slot slot) const { return format::EntryWord(nvm_.Load64(WordOffset(slot))); }

  // The slot whose entry has the key's tag and satisfies is_key(slot, entry).
  template <class IsKey>
  [[nodiscard]] std::optional<Slot> Find(uint64_t key_hash, IsKey&& is_key) const {
    const auto may_be = [](uint32_t differing) { return differing == 0; };
    const auto as_it_stands = [](Slot /*slot*/, const format::IndexEntry& entry) { return entry; };
    return FindInWindow(key_hash, may_be, as_it_stands, is_key);
  }
  // The same, but mends each entry before is_key sees it. Finds an entry also if one bit of its tag is flipped.
  template <class IsKey>
  [[nodiscard]] std::optional<Slot> FindMended(uint64_t key_hash, IsKey&& is_key) {
    const auto may_be = [](uint32_t differing) { return (differing & (differing - 1)) == 0; };
    const auto mended = [this](Slot slot, const format::IndexEntry& entry) {
      return Mend(slot) == Mended::kFits ? entry : At(slot);
    };
    return FindInWindow(key_hash, may_be, mended, is_key);
  }

  // --- Changes that the index did not make (slot_checks.h)

  // The slot holds what the index stored there, as far as the index knows.
  [[nodiscard]] bool Fits(Slot slot) const { return Fits(slot, At(slot)); }
  enum class Mended : uint8_t {
    kFits,
    kUndone,  // one bit was flipped, and is as before, persistently
    kKept     // more has changed: what stands there counts from now on
  };
  Mended Mend(Slot slot);
  // Slots that were kept since the last call.
  [[nodiscard]] bool has_kept() const { return !kept_.empty(); }
  [[nodiscard]] std::vector<Slot> TakeKept() { return std::exchange(kept_, {}); }
  // All slots are counted, and CheckRest is not called yet.
  [[nodiscard]] bool may_check_rest() const { return rest_.is_due() && counted(); }
  [[nodiscard]] bool rest_is_checked() const { return !rest_.is_due(); }
  // What has changed while no server ran. undone: the entry as it was before one bit flipped, if that is all that has
  // changed, and if the slot is as it was found. The caller decides what happens to the slot.
  struct RestChange {
    bool changed = false;
    Slot slot = 0;
    std::optional<format::IndexEntry> undone;
  };
  // REQUIRES: may_check_rest().
  RestChange CheckRest();
  // Stores the entry as it was before a bit flipped, persistently on return.
  void Undo(Slot slot, const format::IndexEntry& entry);
  // Flips that were undone since the start.
  [[nodiscard]] uint64_t flips_undone() const { return flips_undone_; }

  // A free slot in the key's neighbourhood, if there is one.
  [[nodiscard]] std::optional<Slot> FindRoom(uint64_t key_hash) const;
  // The same, moving other entries if need be. kResourceExhausted: there is none to be had.
  Result<Slot> MakeRoom(uint64_t key_hash);
  // Returns a free slot elsewhere in the key's window. If the window has none it grows, persistently on return. Returns
  // nothing if the whole block is taken. REQUIRES: all puts are published.
  std::optional<Slot> MakeFarRoom(uint64_t key_hash);
  // How many low bits of their hashes the key and all that stand in its neighbourhood share: splits by these bits do
  // not part them.
  [[nodiscard]] uint32_t BitsShared(uint64_t key_hash) const;

  // A new entry takes a free slot in two steps. What it says of itself must be persistent before Enter, and is after
  // the next fence.
  void Describe(Slot slot, uint64_t key_hash, uint64_t object_bytes);
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
    StoreLazily(slot, word);
  }
  // For a version that is whole, and settled behind the next fence: two stores, as Enter or StoreWordLazily and
  // StoreWordLazily. What entries name by them is told once, and later: by TellPublished, since who waits for an answer
  // need not wait for that.
  struct Change {
    uint32_t head;  // of the entry
    format::EntryWord before;
    format::EntryWord after;  // the first of the two stores
  };
  void Publish(Slot slot, const Change& change) {
    if (observer_ != nullptr) {
      observer_->OnEntryStored(change.head, {change.before.raw(), nvm_.Load64(MetaOffset(slot))}, change.after);
    }
    StoreLazily(slot, change.after);
    if (change.before.empty()) CountChange(slot, 1);
  }
  void SettlePublished(Slot slot, const Change& change) {
    const format::EntryWord settled = change.after.Settled();
    if (observer_ != nullptr && slot < counted_) untold_.push_back({change.head, change.before, settled});
    StoreLazily(slot, settled);
  }
  // REQUIRED before anybody asks what entries name.
  void TellPublished() {
    if (!untold_.empty()) TellUntold();
  }
  // Only a hint, so it is written when it changed and made persistent by whoever fences next.
  void StoreSizeHint(Slot slot, uint64_t object_bytes);
  // What stands in these slots will be persistent after the next fence.
  void Flush(Slot first, uint64_t slots);
  // The slot is free, persistently, on return.
  void Free(Slot slot) {
    if (Planted(Flaw::kFreeNotFlushed)) {
      StoreWordLazily(slot, format::EntryWord());
    } else {
      StoreWord(slot, format::EntryWord());
    }
    CountChange(slot, -1);
  }

  // --- Growing, by one block at a time: the oldest of those that are not split yet.

  // There are so many keys that the next block is due, or the next run will be needed soon.
  [[nodiscard]] bool WantsSplit() const;
  [[nodiscard]] bool WantsRun() const;
  // The next block has a place. Else a run is needed first, and can be had if there are not as many as there may be.
  [[nodiscard]] bool CanSplit() const {
    return layout_.blocks() < geometry_.blocks_max() && layout_.IsKnown(layout_.blocks());
  }
  [[nodiscard]] uint32_t runs() const { return runs_used_; }
  [[nodiscard]] bool MayHaveRun() const { return runs_used_ < geometry_.runs_max(); }
  // The region has the next run, persistently.
  void AddRun(uint32_t region);
  // REQUIRES: all is counted, no slot is about to be entered, and CanSplit. Persistent on return.
  void Split();
  // The entry belongs to the last block, which came of this slot's: a crash came before it was freed here.
  [[nodiscard]] bool IsLeftOver(Slot slot, const format::IndexEntry& entry) const {
    return layout_.grown() && layout_.BlockWith(slot) == layout_.LastParent() &&
           layout_.BlockOf(entry.entry_meta().tag()) == layout_.blocks() - 1;
  }
  // The number of blocks will be persistent after the next fence.
  void FlushBlocks() { nvm_.Flush(BlocksRecordOffset(), sizeof(uint64_t)); }
  // They are freed, persistently after the next fence. REQUIRES: the number of blocks is persistent, and nothing is
  // counted yet.
  void EndLastSplit();

  // The last move that was begun, if any was. kCorruption: its record is damaged.
  [[nodiscard]] Result<format::MoveWord> Moved() const;
  // There was none; persistent on return.
  void ForgetMove();

 private:
  using Window = format::IndexLayout::Window;

  // may_be(differing bits): of a tag, whether it may be the key's. read(slot, entry): what counts of such an entry.
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
  template <class MayBe, class Read, class IsKey>
  [[nodiscard]] std::optional<Slot> FindAmong(Window slots, uint64_t key_hash, MayBe may_be, Read read,
                                              IsKey& is_key) const {
    if (slots.begin >= slots.end) return std::nullopt;
    const uint64_t first = MetaOffset(slots.begin);  // counted on from there: the slots of a miss are many
    for (Slot i = 0; i < slots.slots(); ++i) {
      const format::EntryMeta meta(nvm_.Load64(first + i * sizeof(format::IndexEntry)));
      if (!may_be(meta.tag() ^ format::EntryMeta::TagOf(key_hash))) continue;
      const Slot slot = slots.begin + i;
      const format::IndexEntry entry = read(slot, {nvm_.Load64(WordOffset(slot)), meta.raw()});
      const bool has_tag = entry.entry_meta().tag() == format::EntryMeta::TagOf(key_hash);
      if (has_tag && entry.word != 0 && is_key(slot, entry)) return slot;
    }
    return std::nullopt;
  }
  [[nodiscard]] bool Fits(Slot slot, const format::IndexEntry& entry) const {
    return slot >= counted_ || checks_.Fits(slot, entry);
  }
  // Returns the entry as it was before a bit flipped, which is persistent then. Nothing: it was more than one bit.
  std::optional<format::IndexEntry> UndoFlip(Slot slot, const format::IndexEntry& entry);
  // The stores to a slot. Each keeps the check of the slot.
  void SetWord(Slot slot, uint64_t word) {
    if (slot >= counted_) rest_.Replace(slot, At(slot), {word, nvm_.Load64(MetaOffset(slot))});
    nvm_.Store64(WordOffset(slot), word);
    checks_.Keep(slot, {word, nvm_.Load64(MetaOffset(slot))});
  }
  void SetMeta(Slot slot, uint64_t meta) {
    if (slot >= counted_) rest_.Replace(slot, At(slot), {nvm_.Load64(WordOffset(slot)), meta});
    nvm_.Store64(MetaOffset(slot), meta);
    checks_.Keep(slot, {nvm_.Load64(WordOffset(slot)), meta});
  }
  [[nodiscard]] uint64_t WordOffset(Slot slot) const { return layout_.SlotOffset(slot); }
  [[nodiscard]] uint64_t MetaOffset(Slot slot) const { return WordOffset(slot) + sizeof(uint64_t); }
  void TellUntold();
  [[nodiscard]] std::optional<Slot> FirstFree(Slot from, uint64_t slots_max) const;
  // Moves some entry into the free slot from nearer to home; the slot that became free.
  [[nodiscard]] std::optional<Slot> Displace(Slot free);
  void Move(Slot from, Slot to);
  void StoreDisplacements(uint64_t value);
  void StoreBlocks(uint64_t blocks);
  void StoreReaches(format::Reaches reaches);
  [[nodiscard]] uint64_t MoveRecordOffset() const {
    return format::ShardRecordOffset(shard_) + offsetof(format::ShardRecord, move);
  }
  [[nodiscard]] uint64_t BlocksRecordOffset() const {
    return format::ShardRecordOffset(shard_) + offsetof(format::ShardRecord, blocks);
  }
  [[nodiscard]] uint64_t ReachesRecordOffset() const {
    return format::ShardRecordOffset(shard_) + offsetof(format::ShardRecord, reaches);
  }
  void CountChange(Slot slot, int change) {
    if (!used_known_ && slot >= counted_) return;
    if (change < 0 && used_ == 0) return;  // the slot was kept, and nobody knew that it was used
    used_ += change;
  }
  // Persistent on return; nobody is told.
  void Store(Slot slot, format::EntryWord word) {
    SetWord(slot, word.raw());
    nvm_.Persist(WordOffset(slot), sizeof(uint64_t));
  }
  void StoreLazily(Slot slot, format::EntryWord word) {
    SetWord(slot, word.raw());
    nvm_.Flush(WordOffset(slot), sizeof(uint64_t));
  }
  // Before the slot's word becomes this one.
  void Observe(Slot slot, format::EntryWord word) {
    if (observer_ == nullptr) return;
    TellPublished();
    const format::IndexEntry before = At(slot);
    const uint32_t head = HeadOf(before);
    if (slot < counted_) observer_->OnEntryChanged(head, before.entry_word(), word);
    observer_->OnEntryStored(head, before, word);
  }

  // A damaged entry's may be another shard's.
  [[nodiscard]] uint32_t HeadOf(const format::IndexEntry& entry) const {
    return geometry_.HeadOf(entry.entry_meta().tag());
  }

  nvm::Writer& nvm_;
  const format::Geometry& geometry_;
  const uint32_t shard_;
  const Published published_;
  EntryObserver* const observer_;
  std::vector<uint32_t> runs_;  // as in the control block
  uint32_t runs_used_ = 0;
  uint64_t read_ahead_slots_;  // a power of two, that are one behind the other in the pool
  format::IndexLayout layout_;
  uint64_t used_ = 0;        // of the first counted_ slots, or of all
  bool used_known_ = false;  // of all
  uint64_t counted_ = 0;     // all, but for a while after the start
  SlotChecks checks_;
  RestCheck rest_;
  uint64_t flips_undone_ = 0;
  std::vector<Slot> kept_;
  std::vector<Change> untold_;  // in the order of the stores
};

}  // namespace erda::index
