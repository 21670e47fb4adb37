// Where each head's next object goes: the head's open segment, the tail in it, and the mark that follows the tail.
//
// Owns the heads' open segments. Requires: region table and segments outlive it. The shard's thread alone calls it.
//
// Space is only ever appended to. A segment is sealed when the next object does not fit. The mark says what is settled
// in the open segment, so that a restart need not walk the segment from its beginning.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/planted.h"
#include "erda/status.h"
#include "format/log_address.h"
#include "log/region_table.h"
#include "log/segments.h"
#include "log/shard_shape.h"
#include "nvm/writer.h"

namespace erda::log {

struct Space {
  format::LogAddress address;
  uint64_t offset = 0;  // in the pool
};

class Tails {
 public:
  Tails(nvm::Writer& nvm, const ShardShape& shape, RegionTable& regions, Segments& segments);

  // Appends `bytes` (a multiple of the granule, at most what a segment holds) to a head. The caller writes an object
  // header with this version there. All headers written so far are persistent before an entry names a place after
  // them: a restart walks the log from header to header. Returns kResourceExhausted if there is no room.
  Result<Space> Reserve(uint32_t head, uint64_t bytes, uint64_t version);
  // As Reserve, if that only appends. Returns nullopt if Reserve would also say in the pool what is settled: before
  // that, the caller settles all that it reserved, or begins its flight.
  std::optional<Space> Append(uint32_t head, uint64_t bytes) {
    Tail& of = At(head);
    if (!Fits(of, bytes) || IsMarkDue(of)) return std::nullopt;
    return AppendTo(&of, bytes);
  }
  // Returns the tombstone slot of the region to which the head appends. Opens a segment, from this version on, if the
  // head has none. Returns nullopt if there is no room for one.
  std::optional<Space> TombstoneSlot(uint32_t head, uint64_t version);
  // Space at the address, in this segment, is not in flight any more.
  void EndFlight(uint32_t head, SegmentId id, format::LogAddress address) {
    Tail& of = At(head);
    if (id == of.open && shape_.OffsetInSegment(address) < of.mark) --of.in_flight;
  }

  // Seals the open segments that are full.
  void SealFull();
  // Makes zeroes of the rest of each open segment, and says that all before is settled. Persistent on return. Requires:
  // nothing is in flight.
  void Close();

  // --- For a start. Stores nothing.

  // The segment is the head's open one, and full.
  void TakeUp(uint32_t head, uint32_t slot, SegmentId id);
  // The head's open segment is not full: the next object goes there.
  void GoOnAt(uint32_t head, uint64_t tail);

  // Returns none if the head has never had an open segment.
  [[nodiscard]] SegmentId OpenSegment(uint32_t head) const { return At(head).open; }
  // The slot of the open segment's region.
  [[nodiscard]] uint32_t SlotOf(uint32_t head) const { return At(head).slot; }
  [[nodiscard]] bool IsAppendedTo(uint32_t head, uint32_t slot) const {
    return !At(head).open.none() && At(head).slot == slot;
  }
  // Returns how many bytes the open segment of the head still takes.
  [[nodiscard]] uint64_t RoomLeft(uint32_t head) const {
    return At(head).open.none() ? 0 : shape_.geometry().segment_size - At(head).tail;
  }
  // Bytes appended since the start.
  [[nodiscard]] uint64_t appended() const { return appended_; }
  // Bytes that all open segments still take.
  [[nodiscard]] uint64_t room() const { return room_; }
  // Regions that writers have filled since the start.
  [[nodiscard]] uint64_t filled_regions() const { return filled_regions_; }

 private:
  struct Tail {
    SegmentId open;          // none: there is none yet
    uint32_t slot = 0;       // of its region
    uint64_t tail = 0;       // in the open segment
    uint64_t mark = 0;       // an earlier tail: the next place for the mark
    uint32_t in_flight = 0;  // before that place
  };

  [[nodiscard]] Tail& At(uint32_t head) { return tails_[shape_.HeadInShard(head)]; }
  [[nodiscard]] const Tail& At(uint32_t head) const { return tails_[shape_.HeadInShard(head)]; }
  [[nodiscard]] bool Fits(const Tail& of, uint64_t bytes) const {
    return !of.open.none() && of.tail + bytes <= shape_.geometry().segment_size;
  }
  [[nodiscard]] bool IsMarkDue(const Tail& of) const {
    const bool can_move = of.in_flight == 0 || Planted(Flaw::kMarksInFlight);
    return can_move && of.tail - of.mark >= mark_step_;
  }
  // Requires: it fits.
  Space AppendTo(Tail* of, uint64_t bytes);
  void MoveMark(Tail* of);
  // Returns false if there is no room.
  bool OpenNext(uint32_t head, uint64_t version);

  nvm::Writer& nvm_;
  const ShardShape shape_;
  const uint64_t mark_step_;
  RegionTable& regions_;
  Segments& segments_;
  std::vector<Tail> tails_;
  uint64_t appended_ = 0;
  uint64_t room_ = 0;
  uint64_t filled_regions_ = 0;
};

}  // namespace erda::log
