#include "server/recovery.h"

#include <algorithm>
#include <array>

#include "base/planted.h"

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

// Equal for the two copies of an entry, and hardly ever for two entries; never 0.
uint32_t FingerprintOf(const IndexEntry& entry) {
  return (entry.entry_meta().tag() ^ entry.entry_word().new_address().raw()) | 1;
}

// The tombstone slot of a region: only a delete that is under way names it.
bool IsTombstoneSlot(LogAddress address) { return address.offset_in_region() == format::kTombstoneSlotOffset; }

}  // namespace

// --- Looking

Status Recovery::Look(uint64_t version_limit) {
  if (auto status = log_.OpenAfterCrash(version_limit); !status.ok()) return status;
  ScanIndex();
  return log_.CheckNamed();
}

void Recovery::ScanIndex() {
  // Of the slot at hand and of the 63 before it: where the first copy of an entry can be that was being moved here.
  std::array<uint32_t, kNeighbourhood> fingerprints{};
  report_.index_slots = index_.size();
  for (Slot slot = 0; slot < index_.size(); ++slot) {
    uint32_t& own = fingerprints[slot % kNeighbourhood];
    own = 0;
    const IndexEntry entry = index_.At(slot);
    if (entry.word == 0) continue;
    ++used_;
    const uint32_t fingerprint = FingerprintOf(entry);
    bool similar = false;  // no early exit, so that it compiles to a few vector instructions
    for (const uint32_t other : fingerprints) similar |= other == fingerprint;
    own = fingerprint;
    if (similar) {
      bool copy = false;
      for (Slot other = slot - std::min<Slot>(slot, kNeighbourhood - 1); other < slot && !copy; ++other) {
        copy = IsSameEntry(other, slot);
      }
      if (copy) {
        second_copies_.push_back(slot);
        continue;
      }
    }
    const EntryWord word = entry.entry_word();
    log_.MarkNamed(entry.entry_meta().head(), word.new_address());
    if (word.settled()) continue;  // nobody goes back to its old one; it may be the damaged one that a put repaired
    log_.MarkNamed(entry.entry_meta().head(), word.old_address());
    unsettled_.push_back(Decide(slot, entry));
  }
}

// One entry in two slots: the same word, with the same tag, head and home. (Equal words alone can be two heads'.)
bool Recovery::IsSameEntry(Slot a, Slot b) const {
  const IndexEntry first = index_.At(a);
  const IndexEntry second = index_.At(b);
  const EntryMeta one = first.entry_meta();
  const EntryMeta other = second.entry_meta();
  return first.word == second.word && one.tag() == other.tag() && one.head() == other.head() &&
         one.distance() + (b - a) == other.distance() && other.distance() < kNeighbourhood;
}

Recovery::Unsettled Recovery::Decide(Slot slot, const IndexEntry& entry) {
  const EntryWord word = entry.entry_word();
  const uint32_t head = entry.entry_meta().head();
  const ObjectView newest = log_.Inspect(head, word.new_address());
  Unsettled unsettled{slot, Action::kDamaged, {}};
  // Header and key were persistent before the entry named them (I3), and a tombstone as a whole.
  if (newest.state == ObjectState::kNothing || !Belongs(slot, entry, newest)) return unsettled;
  if (IsTombstoneSlot(word.new_address())) {
    const bool tombstone = newest.header.kind == static_cast<uint8_t>(ObjectKind::kTombstone);
    if (tombstone && newest.state == ObjectState::kWhole) unsettled.action = Action::kEndDelete;
  } else if (newest.state == ObjectState::kWhole || Planted(Flaw::kTrustsNewest)) {
    unsettled.action = Action::kSettle;
    unsettled.version = {word.new_address(), SpaceOf(newest.header)};
  } else {
    unsettled.action = Action::kTakeBack;
    unsettled.version = chain_.NewestBefore(head, newest, word.old_address(), [&](LogAddress at) {
      log_.MarkNamed(head, at);
      return false;  // no writer is left
    });
    log_.MarkNamed(head, unsettled.version.address);
  }
  return unsettled;
}

bool Recovery::Belongs(Slot slot, const IndexEntry& entry, const ObjectView& view) const {
  const uint64_t key_hash = view.header.key_hash;
  const EntryMeta meta = entry.entry_meta();
  return geometry_.ShardOf(key_hash) == shard_ && meta.tag() == EntryMeta::TagOf(key_hash) &&
         geometry_.HomeOf(key_hash) + meta.distance() == slot;
}

// --- Repairing

RecoveryReport Recovery::Repair() {
  // 1. If the server's process alone died, what it stored last may be in the CPU's caches only. Nobody may build upon
  //    it before it is on the medium.
  if (!Planted(Flaw::kFoundNotFlushed)) index_.FlushAll();
  if (!Planted(Flaw::kFoundNotFlushed)) log_.FlushFound();
  nvm_.Fence();

  // 2. Before one of two copies changes, the other one goes: the one that is farther from home.
  index_.Open(used_);
  if (!Planted(Flaw::kKeepsBothCopies)) {
    for (const Slot slot : second_copies_) index_.Free(slot);
  }
  report_.moves_undone = second_copies_.size();

  // 3.
  report_.unsettled = unsettled_.size();
  for (const Unsettled& unsettled : unsettled_) RepairEntry(unsettled);

  // 4. Space of the log that no entry needs; segments are settled after the entries that lead into them.
  report_.regions_unlinked = log_.Repair();
  log_.Close();
  nvm_.Fence();
  report_.keys = index_.used();
  return report_;
}

void Recovery::RepairEntry(const Unsettled& unsettled) {
  const Slot slot = unsettled.slot;
  const IndexEntry entry = index_.At(slot);
  const EntryWord word = entry.entry_word();
  switch (unsettled.action) {
    case Action::kSettle:
      chain_.MakePersistent(entry.entry_meta().head(), unsettled.version);
      chain_.StoreSettled(slot, word);
      ++report_.settled;
      return;
    case Action::kTakeBack:
      chain_.TakeBack(slot, unsettled.version);
      ++(index_.WordAt(slot).empty() ? report_.dropped : report_.taken_back);
      return;
    case Action::kEndDelete:
      index_.Free(slot);
      ++report_.deletes_finished;
      return;
    case Action::kDamaged:
      // It may have been acknowledged, and its settled bit lost: an older version would be wrong. With the bit, a get
      // says that it is damaged.
      index_.StoreWordLazily(slot, word.Settled());
      ++report_.damaged;
      return;
  }
}

}  // namespace erda::server
