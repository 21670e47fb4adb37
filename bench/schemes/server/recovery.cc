// Opening a pool, after a crash or a clean close. The server applies the entries in the log, and finds the free space
// through the index.
#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/hash.h"
#include "bench/schemes/server/storage.h"

namespace erda::schemes {

Status Storage::Recover() {
  index_.Open(std::nullopt);
  // A move of the index that was cut off has left its entry in two slots.
  const auto move = index_.moves().Last();
  if (!move.ok()) return move.status();
  index_.Count(index_.size());
  if (!move->none()) {
    const format::IndexEntry from = index_.At(move->from());
    const bool twice = from.word != 0 && format::IsMovedCopy(from, index_.At(move->to()), move->to() - move->from());
    if (twice) index_.Free(move->to());
  }
  if (auto status = FindFreeSpace(); !status.ok()) return status;
  return ApplyAgain();
}

Status Storage::FindFreeSpace() {
  std::vector<std::pair<uint64_t, uint64_t>> used;
  for (index::Slot slot = 0; slot < index_.size(); ++slot) {
    if (index_.WordAt(slot).raw() == 0) continue;
    const DestinationWord word = WordAt(slot);
    used.emplace_back(word.offset(), word.bytes());
  }
  std::sort(used.begin(), used.end());
  uint64_t free_from = pool_->data_offset();
  for (const auto& [offset, bytes] : used) {
    if (offset < free_from || bytes == 0 || offset > pool_->data_end() || bytes > pool_->data_end() - offset) {
      return {Code::kCorruption, "its index has an entry out of range"};
    }
    free_.Add(free_from, offset - free_from);
    free_from = offset + bytes;
  }
  free_.Add(free_from, pool_->data_end() - free_from);
  return {};
}

std::optional<Storage::LogEntry> Storage::WholeEntryAt(uint64_t position, uint64_t end) const {
  const uint64_t to_wrap = log_bytes_ - position % log_bytes_;
  const auto header = LoadAs<EntryHeader>(nvm_.Bytes(OffsetOf(position), sizeof(EntryHeader)));
  const PairSizes sizes(header.sizes);
  if (header.position != position || !sizes.valid()) return std::nullopt;
  if (EntryBytes(sizes) > std::min(to_wrap, end - position) || !HasEntry(position, sizes)) return std::nullopt;
  return LogEntry{position, sizes};
}

// Entries that a client never finished are no obstacle: the server looks at each place where an entry may begin. The
// last stores of a server that died may be in the caches alone. So the server writes back everything on which it
// builds, and fences before it stores anything: the index by Count, the log's head, the entries.
Status Storage::ApplyAgain() {
  log_head_ = nvm_.Load64(kLogHeadOffset);
  nvm_.Flush(kLogHeadOffset, sizeof(uint64_t));
  if (log_head_ % kGranule != 0 || log_head_ > std::numeric_limits<uint64_t>::max() / 2) {
    return {Code::kCorruption, "the head of its log is damaged"};
  }
  log_tail_ = log_head_;
  std::vector<LogEntry> entries;
  std::unordered_map<std::string_view, size_t> last;
  const uint64_t end = log_head_ + log_bytes_;
  for (uint64_t position = log_head_; position < end;) {
    const auto entry = WholeEntryAt(position, end);
    if (!entry) {
      position += kGranule;
      continue;
    }
    nvm_.Flush(OffsetOf(position), EntryBytes(entry->sizes));
    last[KeyAt(position, entry->sizes)] = entries.size();
    entries.push_back(*entry);
    position += AlignUp(EntryBytes(entry->sizes), kGranule);
    log_tail_ = position;
  }
  nvm_.Fence();  // Also before the destination of a word that is zero in the caches is given to another key.
  recovery_.entries = entries.size();

  // Applies the last entry of each key. These all fitted at once, which may be untrue of earlier entries. Deletes come
  // first, since they make room.
  for (const bool deletes : {true, false}) {
    for (size_t i = 0; i < entries.size(); ++i) {
      const auto& [position, sizes] = entries[i];
      const std::string_view key = KeyAt(position, sizes);
      if (sizes.deletes() != deletes || last[key] != i) continue;
      uint64_t room = 0;
      if (!deletes) {
        const auto taken = free_.Take(RoomFor(sizes));
        if (taken) room = *taken;
        const auto slot = FindSlot(key, HashKey(key, kHashSeed));
        if (room == 0 && !(slot && WordAt(*slot).bytes() >= RoomFor(sizes))) {
          return {Code::kResourceExhausted, "it has no room for the values of its log"};
        }
      }
      if (!ApplyEntry(position, sizes, HashKey(key, kHashSeed), &room)) {
        return {Code::kResourceExhausted, "its index has no room for the keys of its log"};
      }
      if (room != 0) free_.Add(room, RoomFor(sizes));
      ++recovery_.applied;
    }
  }
  MoveLogHead(log_tail_);
  return {};
}

}  // namespace erda::schemes
