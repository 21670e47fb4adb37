// The log of one shard: its heads, their regions, the segments in them, and where the next object goes.
//
// Space is only ever appended to. A segment is sealed when the next object does not fit, and marked settled once
// nothing in it is in flight any more. In the open segment a mark follows behind what is settled, so that a restart
// need not walk it from the beginning. The log knows how much of each region is still needed; the cleaner copies that
// to segments of its own, and then the region is emptied and free again (docs/cleaning.md). The last free region is the
// cleaner's.
//
// shard_log.cc: appending, segments, looking up. regions.cc: regions, and what cleaning needs of them. take_up.cc:
// taking up a pool, closing it, and after a crash.
//
// Not thread-safe: the shard's thread alone calls it. Clients hold copies of the region numbers (control block).
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/planted.h"
#include "erda/status.h"
#include "format/control_block.h"
#include "format/entry_word.h"
#include "format/geometry.h"
#include "format/log_layout.h"
#include "format/object.h"
#include "index/index.h"
#include "log/objects.h"
#include "log/region_table.h"
#include "log/region_use.h"
#include "log/segment_headers.h"
#include "log/segments.h"
#include "log/shard_shape.h"
#include "nvm/writer.h"

namespace erda::log {

class ShardLog final : public index::EntryObserver {
 public:
  struct Space {
    format::LogAddress address;
    uint64_t offset = 0;  // in the pool
  };

  // control: the shard's control block, where clients read the region numbers.
  ShardLog(nvm::Writer& nvm, const format::Geometry& geometry, uint32_t pool_seed, uint32_t shard,
           std::span<std::byte> control);

  // Takes up an existing (or an all zero, new) pool that was closed cleanly: links the regions, finds the ends of the
  // open segments. version_limit: no version in the pool is as high. kCorruption if region table and segments
  // contradict each other.
  Status Open(uint64_t version_limit = UINT64_MAX) { return TakeUp(version_limit, nullptr); }
  // Nothing is in flight any more: every segment that is full is settled. Persistent on return.
  void Close();

  // An object with a good header, which was reserved and may not be settled.
  using Visit = std::function<void(const format::ObjectView& header)>;
  // Taking up a pool whose server died (server/recovery.h). First what is there, as Open finds it; nothing is changed.
  // A region that was linked and never opened is not an error. Shows all objects of the segments that are not settled,
  // from their marks on, and the last tombstone of each region. Not plain on return: something there is neither an
  // object nor untouched. It was cut off while it was written, or it is damaged; which of the two is seen by where the
  // index leads.
  Status OpenAfterCrash(uint64_t version_limit, const Visit& visit);
  [[nodiscard]] bool plain() const { return plain_; }

  // For a log that is not plain: an entry leads to this address.
  void MarkNamed(uint32_t head, format::LogAddress address);
  // After all of them: kCorruption if one leads into a segment that does not count as opened.
  [[nodiscard]] Status CheckNamed() const;
  // All that was found, and that the log now builds upon, will be persistent after the next fence.
  void FlushFound();
  // Frees regions that were linked and never opened, forgets damaged headers of segments that no entry leads to, and
  // goes on where an object was cut off; the number of regions. Persistent on return.
  uint32_t Repair();

  // Appends `bytes` (a multiple of the granule, at most what a segment holds) to a head. The caller writes an object
  // header with this version there, and all headers written so far are persistent before an entry names what is behind
  // them: a log is walked from header to header. kResourceExhausted if there is no room.
  Result<Space> Reserve(uint32_t head, uint64_t bytes, uint64_t version);
  // The same if it only appends. nullopt: Reserve would also say in the pool what is settled: before, all that was
  // reserved must be settled, or in flight.
  std::optional<Space> Append(uint32_t head, uint64_t bytes) {
    Head& of = HeadAt(head);
    if (!Fits(of, bytes) || IsMarkDue(of)) return std::nullopt;
    return AppendTo(&of, bytes);
  }
  // What the open segment of the head still takes.
  [[nodiscard]] uint64_t RoomLeft(uint32_t head) const {
    const Head& of = HeadAt(head);
    return of.open.none() ? 0 : geometry_.segment_size - of.tail;
  }
  // Puts go to the region in this slot of the head.
  [[nodiscard]] bool IsAppendedTo(uint32_t head, uint32_t slot) const {
    const Head& of = HeadAt(head);
    return !of.open.none() && of.slot == slot;
  }
  // The space at `address` waits for its writer / does not any more (settled, or dead).
  void BeginFlight(uint32_t head, format::LogAddress address) { segments_.BeginFlight(SegmentAt(head, address)); }
  void EndFlight(uint32_t head, format::LogAddress address);

  // Nothing may take the place of the region that the address is in, until as many Releases: somebody may still write
  // there, or look there for an older version.
  void Hold(uint32_t head, format::LogAddress address) { use_.Hold(head, address); }
  void Release(uint32_t head, format::LogAddress address) { use_.Release(head, address); }

  // --- Cleaning

  using LinkedRegion = log::LinkedRegion;
  void OnEntryChanged(uint32_t head, format::EntryWord before, format::EntryWord after) override;
  void OnEntryStored(uint32_t head, const format::IndexEntry& before, format::EntryWord after) override;
  // Calls visit(LinkedRegion) for each region to which nobody appends.
  template <class Visit>
  void ForEachFull(Visit&& visit) {
    use_.ForEachFull(visit);
  }
  // Where the cleaner may copy to.
  struct CopySegment {
    uint32_t region = 0;
    uint32_t generation = 0;
    uint32_t slot = 0;
    uint64_t segment = 0;
    bool operator==(const CopySegment&) const = default;
  };
  // The segment of the head that the last cleaner left open.
  [[nodiscard]] std::optional<CopySegment> OpenCopies(uint32_t head) const;
  // Where the last copy in it stands that an entry names, or has named; 0: none. REQUIRES: all entries are counted.
  [[nodiscard]] uint64_t LastCopy(uint32_t head) const { return HeadAt(head).last_copy; }
  // The next one, behind the one that ends there, which the cleaner has filled, if there is one. It may take the last
  // free region. nullopt: there is none.
  std::optional<CopySegment> NextCopies(uint32_t head, uint64_t end);
  // What there is for copies in the head's region for them, behind the segment that is being filled.
  [[nodiscard]] uint64_t RoomForCopies(uint32_t head) const;
  // Takes it out of its head. Nobody finds anything there any more, and its bytes may be changed at will.
  // REQUIRES: its use is none, and it is full.
  void Empty(uint32_t head, uint32_t slot);
  // As RegionTable says of them.
  [[nodiscard]] const std::vector<EmptiedRegion>& emptied() const { return regions_.emptied(); }
  void FreeEmptied(uint32_t region) { regions_.FreeEmptied(region); }
  [[nodiscard]] uint32_t free_regions() const { return regions_.free_regions(); }
  [[nodiscard]] std::span<const uint32_t> runs() const { return regions_.runs(); }
  std::optional<uint32_t> LinkRun() { return regions_.LinkRun(); }
  [[nodiscard]] uint32_t newest_generation() const { return regions_.newest_generation(); }
  [[nodiscard]] uint32_t crowded_heads() const { return regions_.crowded_heads(); }
  [[nodiscard]] bool IsCrowded(uint32_t head) const { return regions_.IsCrowded(head); }
  // Bytes that were appended by puts since the log was taken up.
  [[nodiscard]] uint64_t appended() const { return appended_; }
  // Grows with what may make it worth to look for a region to clean: an entry leaves an address, the writers have
  // filled a region, or nobody holds a full one any more.
  [[nodiscard]] uint64_t changes() const { return use_.changes() + filled_regions_; }

  // In a segment's header, where no object ever is, in a region of the head that is not about to be cleaned. None if it
  // has no region.
  [[nodiscard]] format::LogAddress PlaceOfNoObject(uint32_t head) const;
  // The head has a region that is appended to, from this version on; false if none is to be had.
  bool EnsureOpen(uint32_t head, uint64_t version) {
    return !HeadAt(head).open.none() || OpenNextSegment(head, version);
  }
  // Whose log the entry's addresses are in. A damaged entry's may be another shard's.
  [[nodiscard]] uint32_t HeadOf(const format::IndexEntry& entry) const {
    return geometry_.HeadOf(entry.entry_meta().tag());
  }

  // The head's tombstone slot. REQUIRES: an object was reserved in this head before.
  [[nodiscard]] Space TombstoneSlot(uint32_t head) const;

  // The pool bytes from an address to the end of its segment; empty if the address is none of this log's.
  [[nodiscard]] std::span<const std::byte> BytesAt(uint32_t head, format::LogAddress address) const {
    return objects_.BytesAt(head, address);
  }
  [[nodiscard]] format::Place PlaceOf(uint32_t head, format::LogAddress address) const {
    return objects_.PlaceOf(head, address);
  }
  [[nodiscard]] format::ObjectView Inspect(uint32_t head, format::LogAddress address) const {
    return objects_.Inspect(head, address);
  }
  // In a time that does not depend on the value.
  [[nodiscard]] format::ObjectView InspectHeader(uint32_t head, format::LogAddress address) const {
    return objects_.InspectHeader(head, address);
  }
  // REQUIRES: BytesAt is not empty.
  [[nodiscard]] uint64_t OffsetOf(uint32_t head, format::LogAddress address) const {
    return objects_.OffsetOf(head, address);
  }

  [[nodiscard]] uint64_t bytes_used() const { return segments_.opened() * geometry_.segment_size - room_; }
  // Of the objects that entries name, about.
  [[nodiscard]] uint64_t bytes_live() const { return use_.bytes_live(); }
  [[nodiscard]] uint64_t bytes_total() const {
    return (geometry_.regions_per_shard - runs().size()) * geometry_.region_size;
  }

 private:
  struct Head {
    SegmentId copies;  // where the cleaner copies to; none: nowhere yet
    uint32_t copies_slot = 0;
    uint64_t last_copy = 0;  // in that segment, that was ever named; 0: none
    SegmentId open;          // none: there is none yet
    uint32_t slot = 0;       // of the open segment
    uint64_t tail = 0;       // offset in the open segment
    uint64_t mark = 0;       // so is this: the next place for the mark, an earlier tail
    uint32_t in_flight = 0;  // before that place
    // Recovery: the objects behind the mark in the open segment. Where they end is the tail, unless an entry leads
    // farther.
    uint64_t begin = 0;
    uint64_t last = 0;  // the last of them; 0: there is none
    uint64_t end = 0;
  };
  // What stands in a region's tombstone slot.
  struct Tombstone {
    format::ObjectView view;
    bool cut_off = false;  // neither a tombstone nor untouched
  };
  struct FoundSegment {    // recovery
    uint64_t named = 0;    // the farthest offset that an entry leads to
    bool damaged = false;  // its header cannot be, and it does not count as opened
  };
  // The end of the objects in a segment, and whether nothing was ever written behind it.
  struct Walk {
    uint64_t begin = 0;
    uint64_t last = 0;  // of those behind the mark; 0: none
    uint64_t end = 0;
    bool untouched = true;
    bool plain = true;  // no object was cut off in a chunk without a window
  };

  [[nodiscard]] Head& HeadAt(uint32_t head) { return heads_[shape_.HeadInShard(head)]; }
  [[nodiscard]] const Head& HeadAt(uint32_t head) const { return heads_[shape_.HeadInShard(head)]; }
  [[nodiscard]] FoundSegment& FoundAt(SegmentId id) { return found_segments_[shape_.SegmentNumber(id)]; }
  [[nodiscard]] SegmentId SegmentAt(uint32_t head, format::LogAddress address) const {
    return shape_.SegmentOf(regions_.RegionIn(head, geometry_.SlotOf(address)), address);
  }
  [[nodiscard]] format::SegmentHeader HeaderOf(SegmentId id) const { return log::HeaderOf(nvm_, shape_, id); }

  // visit: after a crash.
  Status TakeUp(uint64_t version_limit, const Visit* visit);
  Status TakeUpSegments(uint32_t head, uint64_t version_limit, const Visit* visit);
  void TakeUpSettled(uint32_t region);
  // From the mark on.
  [[nodiscard]] Walk WalkObjects(uint32_t head, uint32_t slot, SegmentId id, const format::SegmentHeader& header,
                                 const Visit* visit) const;
  // Shows the objects in a chunk, and returns where it ends. address, bytes: where it begins, and from there to the end
  // of its segment.
  [[nodiscard]] uint64_t WalkChunk(uint32_t head, format::LogAddress address, std::span<const std::byte> bytes,
                                   const format::ObjectHeader& chunk, uint64_t first_version, const Visit* visit,
                                   bool* plain) const;
  [[nodiscard]] Tombstone TombstoneIn(uint32_t head, uint32_t slot, SegmentId id) const;
  [[nodiscard]] bool Fits(const Head& head, uint64_t bytes) const {
    return !head.open.none() && head.tail + bytes <= geometry_.segment_size;
  }
  [[nodiscard]] bool IsMarkDue(const Head& head) const {
    const bool can_move = head.in_flight == 0 || Planted(Flaw::kMarksInFlight);
    return can_move && head.tail - head.mark >= mark_step_;
  }
  // REQUIRES: it fits.
  Space AppendTo(Head* head, uint64_t bytes);
  void ClearTail(const Head& head);
  void MoveMark(Head& head);
  bool OpenNextSegment(uint32_t head, uint64_t version);
  void OnNamed(uint32_t head, format::LogAddress address);

  nvm::Writer& nvm_;
  const format::Geometry& geometry_;
  const ShardShape shape_;
  const uint64_t mark_step_;
  RegionTable regions_;
  const Objects objects_;
  RegionUse use_;
  std::vector<Head> heads_;
  Segments segments_;
  std::vector<FoundSegment> found_segments_;  // of this shard's regions, region by region
  uint64_t appended_ = 0;
  uint64_t filled_regions_ = 0;  // by writers
  uint64_t room_ = 0;            // bytes that all open segments still take
  bool plain_ = true;
};

}  // namespace erda::log
