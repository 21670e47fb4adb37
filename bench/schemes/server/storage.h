// What both schemes keep in NVM: a log of whole key-value pairs, destinations that are overwritten in place, and an
// index of the destinations. Every write goes into the log first, and from there to its destination, in the log's
// order.
//
// The log is a ring. A put is safe once its entry is persistent: after a crash the entries from the log's head on are
// applied again, of each key the last one, which is right however far it had been applied before. The head moves when
// room is needed, over all that was applied and made persistent: 8 bytes for each lap or so.
//
// With Redo Logging the server writes the entries. With Read After Write the clients do, one-sidedly, where Reserve
// said; an entry counts from when it verifies. One that is not whole yet holds up those behind it (they are found all
// the same); when its client is gone it is dropped.
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
  kWait,    // for room in the log: try again after Apply
  kFull,    // no room in the index or for the destination
  kAbsent,  // of a delete: there is no such key
};

struct RecoveryReport {
  uint64_t entries = 0;  // that were whole in the log
  uint64_t applied = 0;  // of these: the last of their keys
};

class Storage {
 public:
  // After a crash too: on return all that was whole in the log is applied.
  static Result<std::unique_ptr<Storage>> Open(Scheme scheme, const PoolSettings& settings);
  static Result<std::unique_ptr<Storage>> Open(std::unique_ptr<SchemePool> pool);
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  // Redo Logging. The entry is persistent after the next Fence. pair: key, value; pair_crc: verified.
  Admission AppendPut(PairSizes sizes, uint64_t key_hash, std::span<const std::byte> pair, uint32_t pair_crc);
  // Read After Write: where the client is to write its entry. flushed: what it wrote is persistent once it is whole.
  Admission Reserve(PairSizes sizes, uint64_t key_hash, std::string_view key, Owner owner, bool flushed,
                    uint64_t* position);
  // The entry is whole: makes it persistent. False if it is not, or not this owner's. What is gone was applied.
  bool Commit(uint64_t position, Owner owner);
  // Both schemes; persistent after the next Fence.
  Admission AppendDelete(std::string_view key, uint64_t key_hash);
  void Fence() { nvm_.Fence(); }

  // The value, from the log if it is there; valid until the next Apply.
  struct Found {
    std::span<const std::byte> value;
    bool in_log;
  };
  std::optional<Found> Find(std::string_view key, uint64_t key_hash);

  // Applies so many entries; how many there were. REQUIRES: a Fence after the last Append.
  size_t Apply(size_t most);
  // All that are whole, also those at which Apply would not look just now.
  size_t ApplyAll();
  // What this client has not written whole by now it never will.
  void Abandon(Owner owner);
  // Applies all that is whole, and leaves an empty log.
  void Close();

  [[nodiscard]] SchemePool& scheme_pool() { return *pool_; }
  [[nodiscard]] const nvm::WriteCounters& written() const { return nvm_.counters(); }
  [[nodiscard]] size_t unapplied() const { return pending_.size(); }
  [[nodiscard]] uint64_t applied() const { return applied_; }
  // The index found no slot for an entry, which stays in the log: nothing is applied or taken any more.
  [[nodiscard]] bool stuck() const { return stuck_; }
  [[nodiscard]] uint64_t keys() const { return index_.used(); }
  // For destinations; what was set aside for entries in the log is none of it.
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
  // room: as in Pending. False if the index has no slot for it.
  bool ApplyEntry(uint64_t position, PairSizes sizes, uint64_t key_hash, uint64_t* room);

  const std::unique_ptr<SchemePool> pool_;
  nvm::Writer nvm_;
  uint64_t displacements_ = 0;  // the index counts its moves for one-sided readers; here are none
  index::Index index_;
  const uint32_t seed_;
  const uint64_t log_offset_;
  const uint64_t log_bytes_;
  Extents free_;
  PendingTable pending_;
  uint64_t log_head_ = 0;    // as it is in NVM
  uint64_t log_tail_ = 0;    // where the next entry goes
  uint64_t new_keys_ = 0;    // that pending entries may bring
  const uint64_t keys_max_;  // beyond which the index may find no slot
  bool stuck_ = false;
  uint64_t applied_ = 0;
  RecoveryReport recovery_;
};

}  // namespace erda::schemes
