#include "server/recovery/recovery.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/planted.h"
#include "format/superblock.h"

namespace erda::server {

using format::EntryMeta;
using format::EntryWord;
using format::IndexEntry;
using format::kNeighbourhood;
using format::LogAddress;
using format::ObjectKind;
using format::ObjectState;
using format::ObjectView;

namespace {

// Returns a number that is equal for the two copies of an entry, and rarely for two entries. Never returns 0.
uint32_t FingerprintOf(const IndexEntry& entry) {
  return (entry.entry_meta().tag() ^ entry.entry_word().new_address().raw()) | 1;
}

}  // namespace

// --- Looking

Status Recovery::Look(uint64_t version_limit) {
  std::vector<uint64_t> hashes;  // hashes of the keys of objects that may not be settled
  const auto visit = [&](const ObjectView& object) {
    ++report_.objects;
    if (geometry_.ShardOf(object.header.key_hash) == shard_) hashes.push_back(object.header.key_hash);
  };
  if (auto status = log_recovery_.OpenAfterCrash(version_limit, visit); !status.ok()) return status;
  if (auto status = index_.shape().TakeUp(log_.regions().runs()); !status.ok()) return status;
  const auto move = index_.moves().Last();
  if (log_recovery_.plain() && move.ok()) {
    std::vector<Window> windows;
    windows.reserve(hashes.size() + 1);
    const auto& layout = index_.layout();
    for (const uint64_t hash : hashes) {
      windows.push_back(Planted(Flaw::kReachForgotten) ? layout.NeighbourhoodOf(hash) : layout.WindowOf(hash));
    }
    LookAtWindows(std::move(windows), *move);
    return {};
  }
  ScanIndex();
  return log_recovery_.CheckNamed();
}

// Reads the index slots in their order, each once: memory is fastest in that order.
void Recovery::LookAtWindows(std::vector<Window> windows, format::MoveWord move) {
  // The entry that was moved last may stand in both of its slots. Then recovery repairs only the copy that is to stay.
  std::optional<Slot> second_copy;
  if (!move.none()) {
    // Both copies are in the slots from here on, in one block.
    const Slot end = index_.layout().FirstOf(index_.layout().BlockWith(move.from()) + 1);
    const Slot from = std::min(move.from(), end - kNeighbourhood);
    windows.push_back({from, from + kNeighbourhood});
    const IndexEntry first = index_.At(move.from());
    const bool copied = first.word != 0 && format::IsMovedCopy(first, index_.At(move.to()), move.to() - move.from());
    if (copied) second_copy = move.to();
  }
  std::ranges::sort(windows, {}, &Window::begin);
  Slot next = 0;  // the first slot that was not read yet
  for (const auto& [first, end] : windows) {
    const Slot begin = std::max(first, next);
    if (begin >= end) continue;
    next = end;
    if (!touched_.empty() && touched_.back().end == begin) {
      touched_.back().end = end;
    } else {
      touched_.push_back({begin, end});
    }
    for (Slot slot = begin; slot < end; ++slot) {
      const IndexEntry entry = index_.At(slot);
      if (entry.word == 0 || entry.entry_word().settled() || slot == second_copy) continue;
      if (index_.splitting().IsLeftOver(slot, entry)) continue;
      unsettled_.push_back(Decide(slot, entry));
    }
  }
  if (second_copy) second_copies_.push_back(*second_copy);
}

void Recovery::ScanIndex() {
  touched_.push_back({0, index_.size()});
  // The fingerprints of this slot and of the 63 before it. If an entry was being moved to this slot, its first copy is
  // in one of these.
  std::array<uint32_t, kNeighbourhood> fingerprints{};
  report_.index_slots = index_.size();
  for (Slot slot = 0; slot < index_.size(); ++slot) {
    uint32_t& own = fingerprints[slot % kNeighbourhood];
    own = 0;
    index_.ReadAhead(slot);
    const IndexEntry entry = index_.At(slot);
    if (entry.word == 0 || index_.splitting().IsLeftOver(slot, entry)) continue;
    const uint32_t fingerprint = FingerprintOf(entry);
    bool similar = false;  // without an early exit, so that the loop compiles to a few vector instructions
    for (const uint32_t other : fingerprints) similar |= other == fingerprint;
    own = fingerprint;
    if (similar) {
      bool copy = false;
      for (Slot other = slot - std::min<Slot>(slot, kNeighbourhood - 1); other < slot && !copy; ++other) {
        copy = format::IsMovedCopy(index_.At(other), entry, slot - other);
      }
      if (copy) {
        second_copies_.push_back(slot);
        continue;
      }
    }
    const EntryWord word = entry.entry_word();
    log_recovery_.MarkNamed(log_.HeadOf(entry), word.new_address());
    if (word.settled()) continue;  // its old version may be damaged, but nobody goes back to it
    log_recovery_.MarkNamed(log_.HeadOf(entry), word.old_address());
    unsettled_.push_back(Decide(slot, entry));
  }
}

Recovery::Unsettled Recovery::Decide(Slot slot, const IndexEntry& entry) {
  const EntryWord word = entry.entry_word();
  const uint32_t head = log_.HeadOf(entry);
  const ObjectView newest = log_.Inspect(head, word.new_address());
  RecoveryFacts facts;
  facts.newest = newest.state;
  if (Planted(Flaw::kTrustsNewest) && newest.state == ObjectState::kHeader) facts.newest = ObjectState::kWhole;
  facts.belongs = newest.state != ObjectState::kNothing && Belongs(slot, entry, newest);
  facts.tombstone = newest.header.is(ObjectKind::kTombstone);
  facts.in_its_slot = geometry_.OffsetInRegion(word.new_address()) == format::kTombstoneSlotOffset;
  facts.old = !word.old_address().none();
  Chain::Before before;
  if (facts.newest == ObjectState::kHeader && facts.belongs) {
    before = chain_.NewestBefore(head, newest, word.old_address(), [&](LogAddress at) {
      log_recovery_.MarkNamed(head, at);
      return false;  // no writer is alive
    });
    facts.whole_before = before.whole_bytes != 0;
    log_recovery_.MarkNamed(head, before.address);
  }
  Unsettled unsettled{slot, DecideRecovery(facts), before};
  if (unsettled.action == RecoveryAction::kSettle) unsettled.version = {word.new_address(), SpaceOf(newest.header)};
  return unsettled;
}

bool Recovery::Belongs(Slot slot, const IndexEntry& entry, const ObjectView& view) const {
  const uint64_t key_hash = view.header.key_hash;
  const EntryMeta meta = entry.entry_meta();
  return geometry_.ShardOf(key_hash) == shard_ && meta.tag() == EntryMeta::TagOf(key_hash) &&
         index_.layout().IsPlaceOf(key_hash, slot, meta.distance());
}

// --- Repairing

RecoveryReport Recovery::Repair() {
  // 1. If only the server's process died, its last stores may be in the CPU's caches only. They must be on the medium
  // before recovery relies on them.
  if (!Planted(Flaw::kFoundNotFlushed)) {
    for (const auto& [begin, end] : touched_) index_.Flush(begin, end - begin);
    nvm_.Flush(format::ShardRecordOffset(shard_), sizeof(format::ShardRecord));
    log_recovery_.FlushFound();
  }
  nvm_.Fence();

  // 2. Frees entries in an old block that are in a new block already. If an entry has two copies, frees the one that is
  // farther from home before the other one changes.
  index_.Open(std::nullopt);
  index_.splitting().EndLastSplit();
  if (!Planted(Flaw::kKeepsBothCopies)) {
    for (const Slot slot : second_copies_) index_.Free(slot);
  }
  report_.moves_undone = second_copies_.size();
  if (!index_.moves().Last().ok()) index_.moves().Forget();  // the record of the move is damaged

  // 3. Repairs each entry that is not settled.
  report_.unsettled = unsettled_.size();
  for (const Unsettled& unsettled : unsettled_) RepairEntry(unsettled);

  // 4. Frees space of the log that no entry needs. Segments are settled after the entries that lead into them.
  report_.regions_unlinked = log_recovery_.Repair();
  log_.Close();
  return report_;
}

void Recovery::RepairEntry(const Unsettled& unsettled) {
  const Slot slot = unsettled.slot;
  const IndexEntry entry = index_.At(slot);
  const EntryWord word = entry.entry_word();
  switch (unsettled.action) {
    case RecoveryAction::kSettle:
      chain_.MakePersistent(log_.HeadOf(entry), unsettled.version);
      chain_.StoreSettled(slot, word);
      ++report_.settled;
      return;
    case RecoveryAction::kGoBack:
    case RecoveryAction::kGoBackToOld:
      chain_.TakeBack(slot, unsettled.version);
      ++report_.taken_back;
      return;
    case RecoveryAction::kFree:
      index_.Free(slot);
      ++report_.dropped;
      return;
    case RecoveryAction::kEndDelete:
      index_.Free(slot);
      ++report_.deletes_finished;
      return;
    case RecoveryAction::kDamaged:
      // The version may have been acknowledged, and its settled bit lost, so an older version would be wrong. With the
      // bit, a get reports the damage.
      index_.StoreWordLazily(slot, word.Settled());
      ++report_.damaged;
      return;
  }
}

}  // namespace erda::server
