#include "server/recovery/index_repair.h"

#include <algorithm>

namespace erda::server {

using format::EntryWord;
using format::IndexEntry;
using index::Slot;

void IndexRepair::Repair() {
  RaiseBlocks();
  JudgeSlots();
  misplaced_.MoveHome(tell_, &report_);
}

// A split may have stored the number of blocks in a page that got lost. Then blocks after the known number hold
// entries. An entry there that leads to nothing is left from an earlier use of the region, whose zeroes got lost.
void IndexRepair::RaiseBlocks() {
  uint64_t blocks = index_.layout().blocks();
  for (Slot slot = index_.layout().slots(); slot < index_.places_end(); ++slot) {
    const IndexEntry entry = index_.At(slot);
    if (entry.word == 0) continue;
    if (judge_.Judge(entry).verdict == JudgedEntry::Verdict::kSound) {
      blocks = std::max(blocks, index_.layout().BlockWith(slot) + 1);
    } else {
      index_.StoreEntry(slot, EntryWord());
    }
  }
  index_.SetBlocks(blocks);
}

void IndexRepair::JudgeSlots() {
  Twins before;
  report_.index_slots = index_.layout().slots();
  for (Slot slot = 0; slot < index_.layout().slots(); ++slot) {
    if (slot == index_.layout().FirstOf(index_.layout().BlockWith(slot))) before.clear();
    if (index_.At(slot).word == 0) continue;
    const Twin own{slot, JudgeSlot(slot)};
    const IndexEntry entry = index_.At(slot);
    if (entry.word == 0 || misplaced_.IsLast(slot)) continue;
    const uint32_t tag = entry.entry_meta().tag();
    if (!EndTwins(before, own, tag)) before.emplace(tag, own);
  }
  index_.StoreReaches();
}

std::optional<uint64_t> IndexRepair::JudgeSlot(Slot slot) {
  using Verdict = JudgedEntry::Verdict;
  const IndexEntry entry = index_.At(slot);
  const JudgedEntry judged = judge_.Judge(entry);
  if (judged.key_hash) index_.RaiseReach(slot, entry, *judged.key_hash);
  if (judged.has_key()) versions_.See(judged.version.header.version);
  ++report_.objects;
  const bool unsettled = !entry.entry_word().settled();
  const bool in_place = index_.IsInPlace(slot, entry, judged.key_hash);
  report_.unsettled += unsettled ? 1 : 0;
  switch (judged.verdict) {
    case Verdict::kGone:
      index_.StoreEntry(slot, EntryWord());
      ++(judged.version.state == format::ObjectState::kWhole ? report_.deletes_finished : report_.dropped);
      return judged.key_hash;
    case Verdict::kSound:
      if (judged.word != entry.entry_word()) index_.StoreEntry(slot, judged.word);
      if (unsettled) ++(judged.went_back ? report_.taken_back : report_.settled);
      break;
    case Verdict::kDamaged:
      ++report_.damaged;
      tell_(judged.has_key() ? judged.version.key : std::string_view());
      if (!in_place) {  // no get looks in this slot
        index_.StoreEntry(slot, EntryWord());
        return judged.key_hash;
      }
      if (unsettled) index_.StoreEntry(slot, entry.entry_word().Settled());
      break;
  }
  regions_.MarkNamed(geometry_.HeadOf(entry.entry_meta().tag()), judged.word.new_address());
  if (!in_place) misplaced_.Add(slot, {judged.word.raw(), entry.meta});
  return judged.key_hash;
}

bool IndexRepair::EndTwins(const Twins& before, const Twin& own, uint32_t tag) {
  const auto [from, to] = before.equal_range(tag);
  return std::any_of(from, to, [&](const auto& at) {
    const Twin& other = at.second;
    if (other.key_hash && own.key_hash && *other.key_hash != *own.key_hash) return false;
    return index_.At(other.slot).word != 0 && EndTwin(other.slot, own.slot);
  });
}

// A move leaves two entries if one page of it arrived on the disk and another did not. The newer one stays, even if it
// is damaged: a get never falls back past a version that was acknowledged. The age of a version without a header is
// unknown. Then the whole one stays.
bool IndexRepair::EndTwin(Slot other, Slot slot) {
  const JudgedEntry first = judge_.Judge(index_.At(other));
  const JudgedEntry second = judge_.Judge(index_.At(slot));
  if (!first.has_key() && !second.has_key()) return false;
  if (first.has_key() && second.has_key() && first.version.key != second.version.key) return false;
  const JudgedEntry& with_key = first.has_key() ? first : second;
  if (first.has_key() != second.has_key()) {  // another key may have the same tag: then its entry stands elsewhere
    const Slot unknown = first.has_key() ? slot : other;
    const uint32_t distance = index_.At(unknown).entry_meta().distance();
    if (!index_.layout().IsPlaceOf(with_key.version.header.key_hash, unknown, distance)) return false;
  }
  const bool keep_first =
      first.has_key() && (!second.has_key() || first.version.header.version >= second.version.header.version);
  index_.StoreEntry(keep_first ? slot : other, EntryWord());
  ++report_.moves_undone;
  if (first.has_key() != second.has_key()) tell_(with_key.version.key);
  return keep_first;
}

}  // namespace erda::server
