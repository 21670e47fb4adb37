// The log of one shard: its objects, and the operations of puts, the cleaner and the index on it.
//
// Owns the log's parts, one in each file below, and has the functions that need several of them. The shard's thread
// alone calls it. Clients read copies of the region numbers in the control block.
//
//   region_table   which regions are linked to a head (head_slots), free, emptied, or the index's
//   segments       which segments are opened, sealed and settled, and what is in flight there
//   tails          where each head's next object goes
//   copies         where the cleaner copies to
//   region_use     how much of each region is still needed, and region_counts for readers
//   objects        reading, from an address to an object
//   log_recovery   what a start does
//
// The cleaner copies the objects that a region still needs to other segments, which hold copies only. Then the shard
// empties the region, and it becomes free again (docs/cleaning.md).
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "erda/status.h"
#include "format/entry_word.h"
#include "format/geometry.h"
#include "format/object.h"
#include "index/all_told.h"
#include "index/entry_observer.h"
#include "log/copies.h"
#include "log/log_recovery.h"
#include "log/objects.h"
#include "log/region_counts.h"
#include "log/region_table.h"
#include "log/region_use.h"
#include "log/segments.h"
#include "log/shard_shape.h"
#include "log/tails.h"
#include "nvm/writer.h"

namespace erda::log {

class ShardLog final : public index::EntryObserver {
 public:
  using Space = log::Space;
  using LinkedRegion = log::LinkedRegion;

  // control: the shard's control block, where clients read the region numbers.
  ShardLog(nvm::Writer& nvm, const format::Geometry& geometry, uint32_t pool_seed, uint32_t shard,
           std::span<std::byte> control);

  // Returns the object that takes the pool up. Requires: called once, before any other use of the log.
  [[nodiscard]] LogRecovery Recover() { return {nvm_, shape_, objects_, regions_, segments_, tails_, copies_}; }
  // Closes each open segment, and settles every full one. Persistent on return. Requires: nothing is in flight any
  // more.
  void Close();

  [[nodiscard]] const RegionTable& regions() const { return regions_; }
  [[nodiscard]] const Tails& tails() const { return tails_; }
  [[nodiscard]] Copies& copies() { return copies_; }

  // --- Puts. Tails has the contract of each of these functions.

  Result<Space> Reserve(uint32_t head, uint64_t bytes, uint64_t version) {
    return tails_.Reserve(head, bytes, version);
  }
  std::optional<Space> Append(uint32_t head, uint64_t bytes) { return tails_.Append(head, bytes); }
  std::optional<Space> TombstoneSlot(uint32_t head, uint64_t version) { return tails_.TombstoneSlot(head, version); }

  // BeginFlight: the version at `address` is in flight from now on. EndFlight: it is settled, or dead.
  void BeginFlight(uint32_t head, format::LogAddress address) {
    const SegmentId id = objects_.SegmentOf(head, address);
    tails_.BeginFlight(head, id, address);
    segments_.BeginFlight(id);
  }
  void EndFlight(uint32_t head, format::LogAddress address) {
    const SegmentId id = objects_.SegmentOf(head, address);
    tails_.EndFlight(head, id, address);
    segments_.EndFlight(id);
  }
  // Holds the region of the address until Release was called once for each Hold (RegionUse::Hold).
  void Hold(uint32_t head, format::LogAddress address) { use_.Hold(head, address); }
  void Release(uint32_t head, format::LogAddress address) { use_.Release(head, address); }

  // --- The index

  void OnEntryChanged(uint32_t head, format::EntryWord before, format::EntryWord after) override;
  void OnEntryStored(uint32_t head, const format::IndexEntry& before, format::EntryWord after) override;
  void OnValueLeft(uint64_t offset) override;
  void OnValueReplaced(const index::EntryChange& change) override;
  // Links one more region as a run of the index (RegionTable::LinkRun).
  std::optional<uint32_t> LinkRun() { return regions_.LinkRun(); }
  // Returns the head that the entry's addresses are in. For a damaged entry, it may be a head of another shard.
  [[nodiscard]] uint32_t HeadOf(const format::IndexEntry& entry) const {
    return shape_.geometry().HeadOf(entry.entry_meta().tag());
  }
  // Returns the head of the key's addresses.
  [[nodiscard]] uint32_t HeadOf(uint64_t key_hash) const { return shape_.geometry().HeadOf(key_hash); }
  // Returns an address where no object ever is: it lies in a segment's header. Chooses a region of the head that is not
  // about to be cleaned. If the head has no such region, the address says so (LogAddress::none).
  [[nodiscard]] format::LogAddress PlaceOfNoObject(uint32_t head) const;

  // --- Cleaning

  // Returns what the full regions still hold.
  [[nodiscard]] RegionCounts counts(index::AllTold /*proof*/) { return {use_, tails_}; }
  // Takes a region out of its head. From then on nobody finds anything there, and the cleaner may change its bytes.
  // Requires: the region is full, and nothing names or holds it.
  void Empty(uint32_t head, uint32_t slot);
  // Frees an emptied region. Requires: all of the region is zeroes, persistently.
  void FreeEmptied(uint32_t region) { regions_.FreeEmptied(region); }
  // On a pool with a journal, before the first copy into a segment that an earlier server left open. Fills the segment
  // with zeroes after the last copy that an entry names. The cleaner does so, too, but not in the stream.
  void TakeCopies(uint32_t head);

  // --- Reading (Objects)

  [[nodiscard]] [[gnu::always_inline]] Objects::Rest RestAt(uint32_t head, format::LogAddress address) const {
    return objects_.RestAt(head, address);
  }
  [[nodiscard]] std::span<const std::byte> BytesAt(uint32_t head, format::LogAddress address) const {
    return objects_.BytesAt(head, address);
  }
  [[nodiscard]] format::Place PlaceOf(uint32_t head, format::LogAddress address) const {
    return objects_.PlaceOf(head, address);
  }
  [[nodiscard]] uint64_t OffsetOf(uint32_t head, format::LogAddress address) const {
    return objects_.OffsetOf(head, address);
  }
  [[nodiscard]] format::ObjectView Inspect(uint32_t head, format::LogAddress address) const {
    return objects_.Inspect(head, address);
  }
  [[nodiscard]] format::ObjectView InspectHeader(uint32_t head, format::LogAddress address) const {
    return objects_.InspectHeader(head, address);
  }

  // --- Bytes

  // Returns the bytes of all opened segments, without the room that is left in the open ones.
  [[nodiscard]] uint64_t bytes_used() const {
    return segments_.opened() * shape_.geometry().segment_size - tails_.room();
  }
  // Returns about how many bytes the objects take that entries name. For a gauge: the log may not have counted yet what
  // the last puts changed (counts).
  [[nodiscard]] uint64_t bytes_live() const { return use_.bytes_live(); }

 private:
  nvm::Writer& nvm_;
  const ShardShape shape_;
  RegionTable regions_;
  Segments segments_;
  const Objects objects_;
  RegionUse use_;
  Tails tails_;
  Copies copies_;
};

}  // namespace erda::log
