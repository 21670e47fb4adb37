#include "server/recovery/misplaced_entries.h"

#include <algorithm>

namespace erda::server {

using format::EntryMeta;
using format::EntryWord;
using format::IndexEntry;
using index::Slot;

void MisplacedEntries::MoveHome(const std::function<void(std::string_view key)>& tell, RecoveryReport* report) {
  for (const Misplaced& misplaced : entries_) {
    ++report->moves_undone;
    const JudgedEntry judged = judge_.Judge(misplaced.entry);
    const bool has_place = KeepNewer(judged);
    const std::optional<Slot> room = has_place ? std::nullopt : MakeRoom(judged.version.header);
    const std::optional<Slot> old = FindAgain(misplaced);  // after MakeRoom, which may have moved it
    if (room) index_.StoreEntry(*room, judged.word);
    if (old) index_.StoreEntry(*old, EntryWord());
    if (has_place || room) continue;
    ++report->damaged;
    tell(judged.version.key);
  }
}

bool MisplacedEntries::KeepNewer(const JudgedEntry& judged) {
  const uint64_t hash = judged.version.header.key_hash;
  const auto window = index_.layout().WindowOf(hash);
  for (Slot there = window.begin; there < window.end; ++there) {
    const IndexEntry other = index_.At(there);
    const EntryMeta meta = other.entry_meta();
    if (other.word == 0 || meta.tag() != EntryMeta::TagOf(hash)) continue;
    if (!index_.layout().IsPlaceOf(hash, there, meta.distance())) continue;
    const JudgedEntry present = judge_.Judge(other);
    if (present.has_key() && present.version.key != judged.version.key) continue;
    if (!present.has_key() || present.version.header.version < judged.version.header.version) {
      index_.StoreEntry(there, judged.word);
    }
    return true;
  }
  return false;
}

std::optional<Slot> MisplacedEntries::MakeRoom(const format::ObjectHeader& header) {
  // No client reads these words: the shard serves nobody yet.
  uint64_t displacements = 0;
  uint64_t blocks = 0;
  uint64_t reaches = 0;
  std::vector<uint32_t> runs(geometry_.runs_max());
  index::Index index(nvm_, geometry_, shard_, {&displacements, &blocks, &reaches, runs});
  if (!index.shape().TakeUp(index_.RunRegions()).ok()) return std::nullopt;
  const auto near = index.free_slots().MakeRoom(header.key_hash);
  const std::optional<Slot> room = near.ok() ? std::optional(*near) : index.free_slots().MakeFarRoom(header.key_hash);
  index_.SetReaches(index.layout().reaches());
  if (!room) return std::nullopt;
  index.Describe(*room, header.key_hash, SpaceOf(header));
  nvm_.Fence();  // before the word: a word never stands beside another key's meta (I5)
  return room;
}

// The entry may have moved, by less than a neighbourhood and within its block.
std::optional<Slot> MisplacedEntries::FindAgain(const Misplaced& misplaced) const {
  const EntryMeta meta = misplaced.entry.entry_meta();
  const uint64_t block = index_.layout().BlockWith(misplaced.slot);
  const Slot end = std::min(misplaced.slot + format::kNeighbourhood, index_.layout().FirstOf(block + 1));
  for (Slot slot = misplaced.slot; slot < end; ++slot) {
    const IndexEntry entry = index_.At(slot);
    const EntryMeta found = entry.entry_meta();
    const bool same_home = found.distance() - meta.distance() == slot - misplaced.slot;  // its meta says so
    if (entry.word == misplaced.entry.word && found.tag() == meta.tag() && same_home) return slot;
  }
  return std::nullopt;
}

}  // namespace erda::server
