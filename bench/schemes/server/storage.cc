#include "bench/schemes/server/storage.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/hash.h"

namespace erda::schemes {

namespace {

constexpr size_t kPendingMax = 65536;

// Hopscotch hashing finds a slot for every key up to a load of 0.85 (docs/design.md, "The index"). An acknowledged
// write must find one, so the server refuses new keys at a somewhat lower load.
constexpr uint64_t KeysMax(uint64_t slots) { return slots - slots / 5; }

}  // namespace

Storage::Storage(std::unique_ptr<SchemePool> pool)
    : pool_(std::move(pool)),
      nvm_(pool_->pool()),
      index_(nvm_, pool_->geometry(), 0, {&displacements_, nullptr, nullptr, {}}),
      seed_(pool_->seed()),
      log_offset_(pool_->log_offset()),
      log_bytes_(pool_->log_bytes()),
      pending_(std::min<uint64_t>(log_bytes_ / kGranule, kPendingMax)),
      keys_max_(KeysMax(pool_->geometry().index_slots)) {}

Result<std::unique_ptr<Storage>> Storage::Open(Scheme scheme, const PoolSettings& settings) {
  auto pool = SchemePool::Open(scheme, settings);
  if (!pool.ok()) return pool.status();
  auto storage = Open(*std::move(pool));
  if (storage.ok()) return storage;
  return Status(storage.status().code(), "pool " + settings.pool.path + ": " + std::string(storage.status().message()));
}

Result<std::unique_ptr<Storage>> Storage::Open(std::unique_ptr<SchemePool> pool) {
  std::unique_ptr<Storage> storage(new Storage(std::move(pool)));
  if (auto status = storage->Recover(); !status.ok()) return status;
  return storage;
}

// --- The log

bool Storage::HasEntry(uint64_t position, PairSizes sizes) const {
  const auto header = LoadAs<EntryHeader>(nvm_.Bytes(OffsetOf(position), sizeof(EntryHeader)));
  return header.position == position && header.sizes == sizes.raw() &&
         header.crc == EntryCrc(PairCrc(seed_, sizes, PairAt(position, sizes)), position);
}

// Sets log_tail_ to a place with this number of free bytes. An entry does not wrap around.
bool Storage::MakeRoomInLog(uint64_t bytes) {
  if (pending_.full()) return false;
  uint64_t position = log_tail_;
  if (position % log_bytes_ + bytes > log_bytes_) position += log_bytes_ - position % log_bytes_;
  if (position + bytes > log_head_ + log_bytes_) {
    MoveLogHead(pending_.empty() ? position : pending_.At(pending_.first()).position);
    if (position + bytes > log_head_ + log_bytes_) return false;
  }
  log_tail_ = position;
  return true;
}

// Moves the head to `position`. Everything before it was applied. It becomes persistent here, before its entries can be
// overwritten.
void Storage::MoveLogHead(uint64_t position) {
  if (position == log_head_) return;
  nvm_.Fence();
  log_head_ = position;
  nvm_.Store64(kLogHeadOffset, position);
  nvm_.Persist(kLogHeadOffset, sizeof(uint64_t));
}

void Storage::WriteEntry(uint64_t position, PairSizes sizes, std::span<const std::byte> pair, uint32_t pair_crc) {
  const EntryHeader header{position, EntryCrc(pair_crc, position), sizes.raw()};
  nvm_.Write(OffsetOf(position), BytesOf(header));
  nvm_.Write(OffsetOf(position) + sizeof(header), pair);
  nvm_.Flush(OffsetOf(position), EntryBytes(sizes));
}

bool Storage::IsWhole(Pending& pending) {
  if (!pending.whole) pending.whole = HasEntry(pending.position, pending.sizes);
  return pending.whole;
}

// Does the same as IsWhole for a caller that looks again and again. It verifies an incomplete entry at the 1st, 2nd,
// 4th, 8th look, since each check computes the checksum of all of it.
bool Storage::IsWholeNow(Pending& pending) {
  if (pending.whole || pending.owner == kNobody) return IsWhole(pending);
  if (LoadAs<EntryHeader>(nvm_.Bytes(OffsetOf(pending.position), sizeof(EntryHeader))).position != pending.position) {
    return false;
  }
  return std::has_single_bit(++pending.partial_looks) && IsWhole(pending);
}

void Storage::MakePersistent(Pending& pending) {
  if (pending.persistent) return;
  nvm_.Persist(OffsetOf(pending.position), EntryBytes(pending.sizes));
  pending.persistent = true;
}

// --- Writes

Admission Storage::AppendPut(PairSizes sizes, uint64_t key_hash, std::span<const std::byte> pair, uint32_t pair_crc) {
  const uint64_t bytes = AlignUp(EntryBytes(sizes), kGranule);
  if (stuck_) return Admission::kFull;
  if (!MakeRoomInLog(bytes)) return Admission::kWait;
  Pending pending{.position = log_tail_, .key_hash = key_hash, .sizes = sizes, .whole = true, .persistent = true};
  if (!TakeRoom(AsString(pair.first(sizes.key())), pending)) return Admission::kFull;
  WriteEntry(log_tail_, sizes, pair, pair_crc);
  log_tail_ += bytes;
  pending_.Push(pending);
  return Admission::kTaken;
}

Admission Storage::Reserve(PairSizes sizes, uint64_t key_hash, std::string_view key, Owner owner, bool flushed,
                           uint64_t* position) {
  const uint64_t bytes = AlignUp(EntryBytes(sizes), kGranule);
  if (stuck_) return Admission::kFull;
  if (!MakeRoomInLog(bytes)) return Admission::kWait;
  Pending pending{.position = log_tail_, .key_hash = key_hash, .sizes = sizes, .owner = owner, .persistent = flushed};
  if (!TakeRoom(key, pending)) return Admission::kFull;
  *position = log_tail_;
  log_tail_ += bytes;
  pending_.Push(pending);
  return Admission::kTaken;
}

Admission Storage::AppendDelete(std::string_view key, uint64_t key_hash) {
  if (!Find(key, key_hash)) return Admission::kAbsent;
  const PairSizes sizes = PairSizes::OfDelete(static_cast<uint32_t>(key.size()));
  const uint64_t bytes = AlignUp(EntryBytes(sizes), kGranule);
  if (stuck_) return Admission::kFull;
  if (!MakeRoomInLog(bytes)) return Admission::kWait;
  WriteEntry(log_tail_, sizes, AsBytes(key), PairCrc(seed_, sizes, AsBytes(key)));
  pending_.Push({.position = log_tail_, .key_hash = key_hash, .sizes = sizes, .whole = true, .persistent = true});
  log_tail_ += bytes;
  return Admission::kTaken;
}

bool Storage::Commit(uint64_t position, Owner owner) {
  if (position >= log_tail_) return false;
  // Pending entries are in the log's order, so a binary search finds the entry.
  PendingTable::Id low = pending_.first();
  PendingTable::Id high = pending_.end();
  while (low < high) {
    const PendingTable::Id middle = low + (high - low) / 2;
    if (pending_.At(middle).position < position) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == pending_.end() || pending_.At(low).position != position) {
    return low == pending_.first();  // It was applied since, or never given out.
  }
  Pending& pending = pending_.At(low);
  if (pending.owner != owner || !IsWhole(pending)) return false;
  if (!pending.persistent) {
    nvm_.Flush(OffsetOf(position), EntryBytes(pending.sizes));
    pending.persistent = true;
  }
  return true;
}

// --- Reads

std::optional<Storage::Found> Storage::Find(std::string_view key, uint64_t key_hash) {
  std::optional<Found> found;
  const bool in_log = pending_.FindNewest(key_hash, [&](Pending& pending) {
    if (!IsWhole(pending) || KeyAt(pending.position, pending.sizes) != key) return false;
    if (pending.sizes.deletes()) return true;
    MakePersistent(pending);  // A power cut must not take back an entry that a reader saw.
    found = Found{PairAt(pending.position, pending.sizes).subspan(key.size()), true};
    return true;
  });
  if (in_log) return found;
  const auto slot = FindSlot(key, key_hash);
  if (!slot) return std::nullopt;
  const uint64_t at = WordAt(*slot).offset();
  const PairSizes sizes(LoadAs<uint32_t>(nvm_.Bytes(at, kDestinationHeaderBytes)));
  return Found{nvm_.Bytes(at + kDestinationHeaderBytes + key.size(), sizes.value()), false};
}

std::optional<index::Slot> Storage::FindSlot(std::string_view key, uint64_t key_hash) const {
  return index_.Find(key_hash, [&](index::Slot /*slot*/, const format::IndexEntry& entry) {
    const DestinationWord word(entry.word);
    const PairSizes sizes(LoadAs<uint32_t>(nvm_.Bytes(word.offset(), kDestinationHeaderBytes)));
    return sizes.key() == key.size() && DestinationBytes(sizes) <= word.bytes() &&
           AsString(nvm_.Bytes(word.offset() + kDestinationHeaderBytes, key.size())) == key;
  });
}

// --- Destinations

// An acknowledged entry must be applied, so its room is set aside before. An existing destination that is large enough
// stays so, unless the key is deleted in between.
bool Storage::TakeRoom(std::string_view key, Pending& pending) {
  const uint64_t room = RoomFor(pending.sizes);
  const auto slot = FindSlot(key, pending.key_hash);
  const bool to_be_deleted =
      pending_.FindNewest(pending.key_hash, [](const Pending& other) { return other.sizes.deletes(); });
  if (slot && !to_be_deleted && WordAt(*slot).bytes() >= room) return true;
  pending.counts_as_new = !slot || to_be_deleted;
  if (pending.counts_as_new && index_.census().used() + new_keys_ >= keys_max_) return false;
  const auto taken = free_.Take(room);
  if (!taken) return false;
  pending.room = *taken;
  if (pending.counts_as_new) ++new_keys_;
  return true;
}

void Storage::GiveBack(Pending& pending) {
  if (pending.counts_as_new) --new_keys_;
  if (pending.room != 0) free_.Add(pending.room, RoomFor(pending.sizes));
}

void Storage::WriteDestination(uint64_t offset, PairSizes sizes, std::span<const std::byte> pair) {
  nvm_.Write(offset, BytesOf(sizes.raw()));
  nvm_.Write(offset + kDestinationHeaderBytes, pair);
  nvm_.Flush(offset, DestinationBytes(sizes));
}

bool Storage::ApplyEntry(uint64_t position, PairSizes sizes, uint64_t key_hash, uint64_t* room) {
  const auto pair = PairAt(position, sizes);
  const auto slot = FindSlot(AsString(pair.first(sizes.key())), key_hash);
  if (sizes.deletes()) {
    if (!slot) return true;
    const DestinationWord word = WordAt(*slot);
    index_.Free(*slot);
    free_.Add(word.offset(), word.bytes());
    return true;
  }
  if (slot && WordAt(*slot).bytes() >= RoomFor(sizes)) {
    WriteDestination(WordAt(*slot).offset(), sizes, pair);
    return true;
  }
  // The key differs from the one of the reservation: the client has broken the protocol.
  if (!slot && *room == 0) return true;
  if (!slot) {
    const auto made = index_.free_slots().MakeRoom(key_hash);
    if (!made.ok()) return false;
    WriteDestination(*room, sizes, pair);
    index_.Describe(*made, key_hash, DestinationBytes(sizes));
    nvm_.Fence();  // Before the entry names the destination.
    index_.Enter(*made, DestinationWord::Of(*room, RoomFor(sizes)).as_entry_word());
    nvm_.Fence();
  } else {
    const DestinationWord old = WordAt(*slot);
    WriteDestination(*room, sizes, pair);
    nvm_.Fence();
    index_.StoreWord(*slot, DestinationWord::Of(*room, RoomFor(sizes)).as_entry_word());
    free_.Add(old.offset(), old.bytes());
  }
  *room = 0;  // It is in use.
  return true;
}

size_t Storage::Apply(size_t most) {
  size_t n = 0;
  while (n < most && !pending_.empty() && ApplyFirst(IsWholeNow(pending_.At(pending_.first())))) ++n;
  return n;
}

size_t Storage::ApplyAll() {
  size_t n = 0;
  while (!pending_.empty() && ApplyFirst(IsWhole(pending_.At(pending_.first())))) ++n;
  return n;
}

// Returns false if the entry must stay.
bool Storage::ApplyFirst(bool whole) {
  Pending& pending = pending_.At(pending_.first());
  if (whole) {
    // The log comes before the destination: a power cut may tear a destination only if its entry is in the log.
    MakePersistent(pending);
    // Without a slot the entry stays in the log, with all later ones. Gets find them there, so none is lost. The server
    // takes no more entries then.
    if (!ApplyEntry(pending.position, pending.sizes, pending.key_hash, &pending.room)) stuck_ = true;
    if (stuck_) return false;
    ++applied_;
  } else if (pending.owner != kNobody) {
    return false;
  }
  GiveBack(pending);
  pending_.PopFirst();
  return true;
}

void Storage::Abandon(Owner owner) {
  for (PendingTable::Id id = pending_.first(); id < pending_.end(); ++id) {
    Pending& pending = pending_.At(id);
    if (pending.owner != owner) continue;
    (void)IsWhole(pending);
    pending.owner = kNobody;
  }
}

void Storage::Close() {
  ApplyAll();
  if (pending_.empty()) MoveLogHead(log_tail_);
}

// --- Opening a pool, after a crash or a clean close: the storage applies the entries in the log, and finds the free
// space through the index.

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
