// The NVM of both schemes: a log of whole key-value pairs, destinations that are overwritten in place, and an index of
// the destinations. Every write goes into the log first, and from there to its destination, in the log's order.
//
// The log is a ring. A put is safe once its entry is persistent. After a crash the server applies the entries from the
// log's head on again, the last one of each key. That is right however far they had been applied before. The head moves
// when room is needed, over all entries that were applied and made persistent: about 8 bytes for each lap.
//
// With Redo Logging the server writes the entries. With Read After Write the clients write them one-sidedly, at the
// place that Reserve returned. An entry counts from the moment in which it verifies. An incomplete entry delays the
// application of later ones, but gets find those. When its client is gone, it is dropped.
//
// For one thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "bench/schemes/entry.h"
#include "bench/schemes/server/extents.h"
#include "bench/schemes/server/pending.h"
#include "bench/schemes/server/scheme_pool.h"
#include "index/index.h"

namespace erda::schemes {

enum class Admission : uint8_t {
  kTaken,
  kWait,    // Waits for room in the log: try again after Apply.
  kFull,    // The index or the destinations have no room.
  kAbsent,  // Of a delete: the key does not exist.
};

struct RecoveryReport {
  uint64_t entries = 0;  // Whole entries in the log.
  uint64_t applied = 0;  // The last entries of their keys, which were applied.
};

class Storage {
 public:
  // After a crash, too. On return all whole entries of the log are applied.
  static Result<std::unique_ptr<Storage>> Open(Scheme scheme, const PoolSettings& settings);
  static Result<std::unique_ptr<Storage>> Open(std::unique_ptr<SchemePool> pool);
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  // Redo Logging. The entry is persistent after the next Fence. Requires: `pair` is key and value, and pair_crc is
  // verified.
  Admission AppendPut(PairSizes sizes, uint64_t key_hash, std::span<const std::byte> pair, uint32_t pair_crc);
  // Read After Write: stores the place at which the client is to write its entry. `flushed`: the entry is persistent
  // once it is whole.
  Admission Reserve(PairSizes sizes, uint64_t key_hash, std::string_view key, Owner owner, bool flushed,
                    uint64_t* position);
  // Makes a whole entry persistent. Returns false if it is not whole, or belongs to another owner. An entry that is
  // gone was applied.
  bool Commit(uint64_t position, Owner owner);
  // For both schemes. The entry is persistent after the next Fence.
  Admission AppendDelete(std::string_view key, uint64_t key_hash);
  void Fence() { nvm_.Fence(); }

  // The value, from the log if it is there. Valid until the next Apply.
  struct Found {
    std::span<const std::byte> value;
    bool in_log;
  };
  std::optional<Found> Find(std::string_view key, uint64_t key_hash);

  // Applies at most this number of entries, and returns their number. REQUIRES: a Fence after the last Append.
  size_t Apply(size_t most);
  // Applies all whole entries, including those at which Apply would not look at this time.
  size_t ApplyAll();
  // The client is gone: its incomplete entries will never be whole.
  void Abandon(Owner owner);
  // Applies all whole entries, and leaves an empty log.
  void Close();

  [[nodiscard]] SchemePool& scheme_pool() { return *pool_; }
  [[nodiscard]] const nvm::WriteCounters& written() const { return nvm_.counters(); }
  [[nodiscard]] size_t unapplied() const { return pending_.size(); }
  [[nodiscard]] uint64_t applied() const { return applied_; }
  // Returns true if the index found no slot for an entry. The entry stays in the log; the storage applies and takes
  // nothing any more.
  [[nodiscard]] bool stuck() const { return stuck_; }
  [[nodiscard]] uint64_t keys() const { return index_.census().used(); }
  // Returns the free bytes for destinations, without the bytes set aside for entries in the log.
  [[nodiscard]] uint64_t free_bytes() const { return free_.free_bytes(); }
  [[nodiscard]] const RecoveryReport& recovery() const { return recovery_; }

 private:
  explicit Storage(std::unique_ptr<SchemePool> pool);
  [[nodiscard]] Status Recover();
  [[nodiscard]] Status FindFreeSpace();
  struct LogEntry {
    uint64_t position;
    PairSizes sizes;
  };
  [[nodiscard]] std::optional<LogEntry> WholeEntryAt(uint64_t position, uint64_t end) const;
  [[nodiscard]] Status ApplyAgain();

  // The log.
  [[nodiscard]] uint64_t OffsetOf(uint64_t position) const { return log_offset_ + position % log_bytes_; }
  [[nodiscard]] std::span<const std::byte> PairAt(uint64_t position, PairSizes sizes) const {
    return nvm_.Bytes(OffsetOf(position) + sizeof(EntryHeader), sizes.pair());
  }
  [[nodiscard]] std::string_view KeyAt(uint64_t position, PairSizes sizes) const {
    return AsString(PairAt(position, sizes).first(sizes.key()));
  }
  [[nodiscard]] bool HasEntry(uint64_t position, PairSizes sizes) const;
  bool MakeRoomInLog(uint64_t bytes);
  void MoveLogHead(uint64_t position);
  void WriteEntry(uint64_t position, PairSizes sizes, std::span<const std::byte> pair, uint32_t pair_crc);
  bool IsWhole(Pending& pending);
  bool IsWholeNow(Pending& pending);
  void MakePersistent(Pending& pending);

  // Destinations.
  [[nodiscard]] std::optional<index::Slot> FindSlot(std::string_view key, uint64_t key_hash) const;
  [[nodiscard]] DestinationWord WordAt(index::Slot slot) const { return DestinationWord(index_.WordAt(slot).raw()); }
  bool TakeRoom(std::string_view key, Pending& pending);
  void GiveBack(Pending& pending);
  void WriteDestination(uint64_t offset, PairSizes sizes, std::span<const std::byte> pair);
  bool ApplyFirst(bool whole);
  // `room` is Pending::room. Returns false if the index has no slot for the entry.
  bool ApplyEntry(uint64_t position, PairSizes sizes, uint64_t key_hash, uint64_t* room);

  const std::unique_ptr<SchemePool> pool_;
  nvm::Writer nvm_;
  uint64_t displacements_ = 0;  // The index counts its moves for one-sided readers, which do not exist here.
  index::Index index_;
  const uint32_t seed_;
  const uint64_t log_offset_;
  const uint64_t log_bytes_;
  Extents free_;
  PendingTable pending_;
  uint64_t log_head_ = 0;    // As in NVM.
  uint64_t log_tail_ = 0;    // The place of the next entry.
  uint64_t new_keys_ = 0;    // New keys that pending entries may bring.
  const uint64_t keys_max_;  // With more keys, the index may find no slot.
  bool stuck_ = false;
  uint64_t applied_ = 0;
  RecoveryReport recovery_;
};

}  // namespace erda::schemes
