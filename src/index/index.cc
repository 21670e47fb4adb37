#include "index/index.h"

#include <algorithm>
#include <bit>

#include "base/planted.h"

namespace erda::index {

using format::EntryMeta;
using format::EntryWord;
using format::IndexEntry;
using format::kNeighbourhood;

namespace {

// How far from its home a key looks for a free slot to hop back from.
constexpr uint64_t kScanSlotsMax = 8192;
constexpr uint64_t kReadAheadSlots = uint64_t{128} << 10;  // 2 MiB
// In percent of the slots of all blocks of the last doubling: from here on blocks are split, so fast that all are when
// there.
constexpr uint64_t kSplitsFrom = 65;
constexpr uint64_t kSplitUntil = 75;
// Percent of the slots: the first run is linked when this many are used.
constexpr uint64_t kRunFrom = 60;

}  // namespace

Published Published::In(std::span<std::byte> control, const format::Geometry& geometry) {
  const auto word = [&](uint64_t offset) { return reinterpret_cast<uint64_t*>(control.data() + offset); };
  auto* const runs = reinterpret_cast<uint32_t*>(control.data() + format::RunsOffset(geometry));
  return {word(offsetof(format::ControlBlock, displacements)), word(offsetof(format::ControlBlock, blocks)),
          word(offsetof(format::ControlBlock, reaches)), std::span(runs, geometry.runs_max())};
}

Index::Index(nvm::Writer& nvm, const format::Geometry& geometry, uint32_t shard, const Published& published,
             EntryObserver* observer)
    : nvm_(nvm),
      geometry_(geometry),
      shard_(shard),
      published_(published),
      observer_(observer),
      runs_(published.runs.size()),
      read_ahead_slots_(published.runs.empty()
                            ? kReadAheadSlots
                            : std::min({kReadAheadSlots, geometry.index_slots, geometry.run_slots()})),
      layout_(geometry, shard, runs_),
      checks_(geometry.block_shift) {}

// --- Places

std::optional<Slot> Index::FirstFree(Slot from, uint64_t slots_max) const {
  const Slot end = layout_.FirstOf(layout_.BlockWith(from) + 1);
  const Slot count = std::min(end - from, slots_max);
  const uint64_t first = WordOffset(from);
  for (Slot i = 0; i < count; ++i) {
    if (nvm_.Load64(first + i * sizeof(IndexEntry)) == 0) return from + i;
  }
  return std::nullopt;
}

std::optional<Slot> Index::FindRoom(uint64_t key_hash) const {
  return FirstFree(layout_.HomeOf(key_hash), kNeighbourhood);
}

Result<Slot> Index::MakeRoom(uint64_t key_hash) {
  const Slot home = layout_.HomeOf(key_hash);
  std::optional<Slot> free = FirstFree(home, kScanSlotsMax);
  while (free && *free >= home + kNeighbourhood) free = Displace(*free);
  if (!free) return Status(Code::kResourceExhausted);
  return *free;
}

std::optional<Slot> Index::MakeFarRoom(uint64_t key_hash) {
  for (;;) {
    const Window window = layout_.WindowOf(key_hash);
    if (const auto free = FirstFree(window.begin, window.slots())) return free;
    if (window.slots() == geometry_.block_slots()) return std::nullopt;
    StoreReaches(layout_.reaches().Raised(key_hash));
  }
}

uint32_t Index::BitsShared(uint64_t key_hash) const {
  const Slot home = layout_.HomeOf(key_hash);
  uint32_t differing = 0;
  for (Slot slot = home; slot < home + kNeighbourhood; ++slot) {
    const IndexEntry entry = At(slot);
    if (entry.word != 0) differing |= entry.entry_meta().tag() ^ EntryMeta::TagOf(key_hash);
  }
  return static_cast<uint32_t>(std::countr_zero(differing));
}

std::optional<Slot> Index::Displace(Slot free) {
  // From the farthest slot on, so that each hop goes as far as it can.
  for (Slot from = free - (kNeighbourhood - 1); from < free; ++from) {
    const EntryMeta meta = At(from).entry_meta();
    // Its home is not known, and it has no other place. Or it says a wrong home.
    if (meta.distance() >= kNeighbourhood || !Fits(from)) continue;
    const Slot home = from - meta.distance();
    if (free < home + kNeighbourhood) {
      Move(from, free);
      return from;
    }
  }
  return std::nullopt;
}

void Index::Move(Slot from, Slot to) {
  nvm_.Store64(MoveRecordOffset(), format::CheckedWord::Of(format::MoveWord::Of(from, to).raw()).raw());
  nvm_.Persist(MoveRecordOffset(), sizeof(uint64_t));
  const IndexEntry entry = At(from);
  const auto distance = static_cast<uint32_t>(entry.entry_meta().distance() + (to - from));
  const uint64_t counter = *published_.displacements;
  StoreDisplacements(counter + 1);
  SetMeta(to, entry.entry_meta().WithDistance(distance).raw());
  nvm_.Persist(MetaOffset(to), sizeof(uint64_t));
  Store(to, entry.entry_word());
  CountChange(to, 1);
  // Persistent before anything changes the entry in its new slot: the two copies after a power cut are equal.
  Store(from, EntryWord());
  CountChange(from, -1);
  // It stays counted, or stays to be counted, unless it leaves what was counted.
  TellPublished();
  if (observer_ != nullptr && from < counted_ && to >= counted_) {
    observer_->OnEntryChanged(HeadOf(entry), entry.entry_word(), EntryWord());
  }
  StoreDisplacements(counter + 2);
}

Result<format::MoveWord> Index::Moved() const {
  const format::CheckedWord checked(nvm_.Load64(MoveRecordOffset()));
  const format::MoveWord word(checked.number());
  if (checked.damaged() || (!word.none() && !word.Fits(size())))
    return Status(Code::kCorruption, "the record of a shard is damaged");
  return word;
}

void Index::ForgetMove() {
  nvm_.Store64(MoveRecordOffset(), 0);
  nvm_.Persist(MoveRecordOffset(), sizeof(uint64_t));
}

// Block by block: they need not be one behind the other.
void Index::Flush(Slot first, uint64_t slots) {
  for (const Slot end = first + slots; first < end;) {
    const Slot next = std::min(end, layout_.FirstOf(layout_.BlockWith(first) + 1));
    nvm_.Flush(WordOffset(first), (next - first) * sizeof(IndexEntry));
    first = next;
  }
}

void Index::TellUntold() {
  for (const auto& [head, before, after] : untold_) observer_->OnEntryChanged(head, before, after);
  untold_.clear();
}

Index::Totals Index::Total() const {
  Totals totals;
  for (Slot slot = 0; slot < size(); ++slot) {
    ReadAhead(slot);
    const IndexEntry entry = At(slot);
    totals.used += entry.word == 0 ? 0 : 1;
    totals.sum += format::RestSum::Of(slot, entry);
  }
  return totals;
}

bool Index::Count(uint64_t slots) {
  TellPublished();
  const Slot end = counted_ + std::min(slots, size() - counted_);
  // What a server that died stored last may be in the CPU's caches only. Whoever builds upon what is counted fences.
  if (!used_known_ && counted_ < end && !Planted(Flaw::kCountedNotFlushed)) Flush(counted_, end - counted_);
  for (; counted_ < end; ++counted_) {
    ReadAhead(counted_);
    const IndexEntry entry = At(counted_);
    checks_.Keep(counted_, entry);
    rest_.Count(counted_, entry);
    if (entry.word == 0) continue;
    if (!used_known_) ++used_;
    if (observer_ != nullptr) observer_->OnEntryChanged(HeadOf(entry), EntryWord(), entry.entry_word());
  }
  return counted();
}

// --- Changes that the index did not make

// Nobody is told: what the index stored is what was counted.
std::optional<IndexEntry> Index::UndoFlip(Slot slot, const IndexEntry& entry) {
  if (Planted(Flaw::kFlipNotUndone)) return std::nullopt;
  const auto before = checks_.WithoutFlip(slot, entry);
  if (!before) return std::nullopt;
  // One of the two, so that a client never reads a word beside another key's meta (I5).
  const uint64_t at = before->word != entry.word ? WordOffset(slot) : MetaOffset(slot);
  nvm_.Store64(at, before->word != entry.word ? before->word : before->meta);
  nvm_.Persist(at, sizeof(uint64_t));
  ++flips_undone_;
  return before;
}

// The observer counts the addresses that the kept entry names, so that the next store can take them away. The addresses
// that the index stored before are unknown. They stay counted, so no region is emptied that something else needs.
Index::Mended Index::Mend(Slot slot) {
  const IndexEntry entry = At(slot);
  if (Fits(slot, entry)) return Mended::kFits;
  if (UndoFlip(slot, entry)) return Mended::kUndone;
  TellPublished();
  checks_.Keep(slot, entry);
  kept_.push_back(slot);
  if (observer_ != nullptr) observer_->OnEntryChanged(HeadOf(entry), EntryWord(), entry.entry_word());
  return Mended::kKept;
}

// A slot may have got another entry since the start. The hash says whether this one is the one that was found: the
// difference of the sums has the sign of the change.
Index::RestChange Index::CheckRest() {
  const format::RestSum difference = rest_.Take();
  if (difference == format::RestSum()) return {};
  RestChange change{.changed = true, .slot = difference.slot(), .undone = std::nullopt};
  if (change.slot >= size()) return change;
  const IndexEntry found = At(change.slot);
  const IndexEntry other = difference.WithoutFlip(found);
  const auto is_change = [&](const IndexEntry& from, const IndexEntry& to) {
    format::RestSum sum = format::RestSum::Of(change.slot, from);
    sum -= format::RestSum::Of(change.slot, to);
    return sum == difference;
  };
  if (is_change(other, found) && !Planted(Flaw::kRestNotMended)) change.undone = other;
  if (is_change(found, other)) change.changed = false;  // a store since the start has mended it
  return change;
}

// One of word and meta, so that a client never reads a word beside another key's meta (I5).
void Index::Undo(Slot slot, const IndexEntry& entry) {
  const IndexEntry flipped = At(slot);
  TellPublished();
  if (observer_ != nullptr) {
    observer_->OnEntryChanged(HeadOf(entry), EntryWord(), entry.entry_word());
    observer_->OnEntryChanged(HeadOf(flipped), flipped.entry_word(), EntryWord());
    observer_->OnEntryStored(HeadOf(flipped), flipped, entry.entry_word());
  }
  if (entry.word != flipped.word) {
    Store(slot, entry.entry_word());
  } else {
    SetMeta(slot, entry.meta);
    nvm_.Persist(MetaOffset(slot), sizeof(uint64_t));
  }
  ++flips_undone_;
}

// Released, like the stores of the move in between: each is seen only after everything stored before it, so that the
// counter is odd before an entry moves and even only after it arrived. Pairs with the readers' Reads of counter,
// neighbourhood, counter, which a channel executes in that order.
void Index::StoreDisplacements(uint64_t value) {
  std::atomic_ref<uint64_t>(*published_.displacements).store(value, std::memory_order_release);
}

void Index::Describe(Slot slot, uint64_t key_hash, uint64_t object_bytes) {
  const uint32_t distance = layout_.DistanceTo(slot, key_hash);
  const uint32_t depth = layout_.DepthOf(layout_.BlockWith(slot));
  const EntryMeta meta = EntryMeta::Make(EntryMeta::TagOf(key_hash), depth, distance, object_bytes);
  SetMeta(slot, meta.raw());
  if (!Planted(Flaw::kMetaNotFlushed)) nvm_.Flush(MetaOffset(slot), sizeof(uint64_t));
}

void Index::StoreSizeHint(Slot slot, uint64_t object_bytes) {
  const EntryMeta old_meta = At(slot).entry_meta();
  const EntryMeta meta = EntryMeta::Make(old_meta.tag(), old_meta.depth(), old_meta.distance(), object_bytes);
  if (meta == old_meta) return;
  SetMeta(slot, meta.raw());
  nvm_.Flush(MetaOffset(slot), sizeof(uint64_t));
}

// --- Growing

Status Index::TakeUp(std::span<const uint32_t> regions) {
  const format::CheckedWord record(nvm_.Load64(BlocksRecordOffset()));
  const uint64_t blocks = record.raw() == 0 ? geometry_.first_blocks() : record.number();
  for (const uint32_t region : regions) AddRun(region);
  layout_.SetBlocks(std::max(blocks, uint64_t{1}));
  // The run behind the last one in use may be there, too.
  const bool holds = blocks >= geometry_.first_blocks() && blocks <= geometry_.blocks_max() && !record.damaged() &&
                     layout_.IsKnown(blocks - 1) && runs_used_ <= (layout_.grown() ? layout_.RunOf(blocks - 1) + 2 : 1);
  if (!holds)
    return {Code::kCorruption, "the index of a shard does not have the blocks that the shard's record counts"};
  std::atomic_ref<uint64_t>(*published_.blocks).store(blocks, std::memory_order_release);
  layout_.SetReaches(format::ReachesIn(format::CheckedWord(nvm_.Load64(ReachesRecordOffset()))));
  std::atomic_ref<uint64_t>(*published_.reaches).store(layout_.reaches().number(), std::memory_order_release);
  return {};
}

bool Index::Refresh() {
  // Acquired, as the blocks are: the entries that need so large a window came after it, or will come.
  const format::Reaches reaches(std::atomic_ref<uint64_t>(*published_.reaches).load(std::memory_order_acquire));
  const bool farther = reaches != layout_.reaches();
  layout_.SetReaches(reaches);
  // Acquired: what was stored before it is seen, and so are the runs of all these blocks.
  const uint64_t blocks = std::atomic_ref<uint64_t>(*published_.blocks).load(std::memory_order_acquire);
  if (blocks <= layout_.blocks()) return farther;
  for (const uint64_t runs = layout_.RunOf(blocks - 1) + 1; runs_used_ < runs; ++runs_used_) {
    runs_[runs_used_] = std::atomic_ref<uint32_t>(published_.runs[runs_used_]).load(std::memory_order_relaxed);
  }
  layout_.SetBlocks(blocks);
  return true;
}

bool Index::WantsSplit() const {
  const uint64_t full = std::bit_floor(layout_.blocks());
  const uint64_t begin = layout_.FirstOf(full) * kSplitsFrom / 100;
  const uint64_t split = layout_.FirstOf(layout_.blocks() - full);  // slots of blocks that are
  return used_ > begin && split < (used_ - begin) * 100 / (kSplitUntil - kSplitsFrom);
}

// Before it is needed, so that most clients know it by then.
bool Index::WantsRun() const {
  if (!MayHaveRun()) return false;
  if (runs_used_ == 0) return used_ > layout_.slots() * kRunFrom / 100;
  const uint64_t run_blocks = geometry_.run_slots() >> geometry_.block_shift;
  const uint64_t known = geometry_.first_blocks() + runs_used_ * run_blocks;
  return layout_.blocks() + run_blocks / 2 >= known;
}

void Index::AddRun(uint32_t region) {
  runs_[runs_used_] = region + 1;
  std::atomic_ref<uint32_t>(published_.runs[runs_used_]).store(region + 1, std::memory_order_release);
  ++runs_used_;
}

void Index::StoreBlocks(uint64_t blocks) {
  layout_.SetBlocks(blocks);
  nvm_.Store64(BlocksRecordOffset(), format::CheckedWord::Of(blocks).raw());
  FlushBlocks();
  // Released: pairs with Refresh, and with the readers' Reads of neighbourhood and number, in that order.
  std::atomic_ref<uint64_t>(*published_.blocks).store(blocks, std::memory_order_release);
}

// (I15) The record is fenced before a reader may take the window for as large, and so before an entry is there: none is
// lost to a restart.
void Index::StoreReaches(format::Reaches reaches) {
  nvm_.Store64(ReachesRecordOffset(), format::CheckedWord::Of(reaches.number()).raw());
  if (!Planted(Flaw::kReachNotFlushed)) nvm_.Persist(ReachesRecordOffset(), sizeof(uint64_t));
  const uint64_t told = Planted(Flaw::kReachToldLate) ? layout_.reaches().number() : reaches.number();
  layout_.SetReaches(reaches);
  // Released: a reader that sees an entry's put acknowledged sees the window that it needs. Pairs with Refresh, and
  // with the readers' Reads of slots and of this word, in that order.
  std::atomic_ref<uint64_t>(*published_.reaches).store(told, std::memory_order_release);
}

void Index::Split() {
  const uint64_t blocks = layout_.blocks();
  const uint64_t bit = std::bit_floor(blocks);
  const auto depth = static_cast<uint32_t>(std::countr_zero(bit)) + 1;
  const Slot from = layout_.FirstOf(layout_.NextParent());
  const Slot to = layout_.FirstOf(blocks);
  const uint64_t slots = geometry_.block_slots();
  const auto moves = [&](const IndexEntry& entry) { return entry.word != 0 && (entry.entry_meta().tag() & bit) != 0; };

  // A flipped bit would go along, and count as what was stored.
  for (Slot i = 0; i < slots; ++i) (void)Mend(from + i);
  if (Planted(Flaw::kSplitCountedFirst)) StoreBlocks(blocks + 1);
  // What stands there is zeroes, or what a crash left of this split.
  checks_.Grow(to + slots);
  for (Slot i = 0; i < slots; ++i) {
    const IndexEntry entry = At(from + i);
    if (moves(entry)) {
      SetMeta(to + i, entry.entry_meta().WithDepth(depth).raw());
      SetWord(to + i, entry.word);
    } else if (At(to + i).word != 0) {
      SetWord(to + i, 0);
    }
    checks_.Keep(to + i, At(to + i));
  }
  if (!Planted(Flaw::kSplitNotFlushed)) Flush(to, slots);
  nvm_.Fence();
  StoreBlocks(blocks + 1);
  if (!Planted(Flaw::kSplitUnfenced)) nvm_.Fence();
  // Freed for good before another key's meta stands there: a word that a power cut brought back would lead to what is
  // not that key's. (The depth is for clients alone, and need not last.)
  for (Slot i = 0; i < slots; ++i) {
    const IndexEntry entry = At(from + i);
    if (!moves(entry)) continue;
    SetMeta(from + i, entry.entry_meta().WithDepth(depth).raw());
    if (!Planted(Flaw::kSplitLeavesOld)) SetWord(from + i, 0);
  }
  Flush(from, slots);
  nvm_.Fence();
  counted_ = size();
}

void Index::EndLastSplit() {
  if (!layout_.grown() || Planted(Flaw::kKeepsLeftOver)) return;
  const Slot first = layout_.FirstOf(layout_.LastParent());
  for (Slot slot = first; slot < first + geometry_.block_slots(); ++slot) {
    if (const IndexEntry entry = At(slot); entry.word != 0 && IsLeftOver(slot, entry)) SetWord(slot, 0);
  }
  Flush(first, geometry_.block_slots());
}

}  // namespace erda::index
