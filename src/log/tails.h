// The place of each head's next object: the head's open segment, the tail in it, and the mark that follows the tail.
//
// Owns the heads' open segments. Requires: the region table and the segments outlive it. The shard's thread alone calls
// it.
//
// A head only appends. It seals a segment when the next object does not fit. Every version before the mark of the open
// segment is settled, so a restart walks the segment from the mark on.
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

  // Appends space of `bytes` to a head: a multiple of the granule, and at most the room of a segment. The caller writes
  // an object header with this version there. Before an entry names a place, the caller makes all headers before that
  // place persistent. A restart walks the log from header to header. Returns kResourceExhausted if there is no room.
  Result<Space> Reserve(uint32_t head, uint64_t bytes, uint64_t version);
  // Does the same as Reserve if that only appends. Returns nullopt if Reserve would also store a mark, or seal a
  // segment. Before such a call of Reserve, the caller settles each version that it reserved, or begins its flight.
  std::optional<Space> Append(uint32_t head, uint64_t bytes) {
    Tail& of = At(head);
    if (!Fits(of, bytes) || IsMarkDue(of)) return std::nullopt;
    return AppendTo(&of, bytes);
  }
  // Returns the tombstone slot of the region to which the head appends. Opens a segment, from this version on, if the
  // head has no open one. Returns nullopt if there is no room for a segment.
  std::optional<Space> TombstoneSlot(uint32_t head, uint64_t version);
  // Notes that a version at the address, in this segment, is in flight from now on. It may stand in older space: in a
  // chunk, or in the place of a tombstone.
  void BeginFlight(uint32_t head, SegmentId id, format::LogAddress address) {
    Tail& of = At(head);
    if (id == of.open && shape_.OffsetInSegment(address) < of.mark) ++of.in_flight;
  }
  // Notes that the space at the address, in this segment, is not in flight any more.
  void EndFlight(uint32_t head, SegmentId id, format::LogAddress address) {
    Tail& of = At(head);
    if (id == of.open && shape_.OffsetInSegment(address) < of.mark) --of.in_flight;
  }

  // Seals each open segment that is full.
  void SealFull();
  // Fills the rest of each open segment with zeroes, and stores that everything before the rest is settled. Persistent
  // on return. Requires: nothing is in flight.
  void Close();

  // --- For a start. These functions store nothing in the pool.

  // Makes this the head's open segment, and counts it as full until GoOnAt.
  void TakeUp(uint32_t head, uint32_t slot, SegmentId id);
  // The head's open segment is not full: its next object goes to the offset `tail`.
  void GoOnAt(uint32_t head, uint64_t tail);

  // Returns the head's open segment. If the head never had one, the id says so: SegmentId::none.
  [[nodiscard]] SegmentId OpenSegment(uint32_t head) const { return At(head).open; }
  // Returns the head slot of the open segment's region.
  [[nodiscard]] uint32_t SlotOf(uint32_t head) const { return At(head).slot; }
  [[nodiscard]] bool IsAppendedTo(uint32_t head, uint32_t slot) const {
    return !At(head).open.none() && At(head).slot == slot;
  }
  // Returns how many bytes the open segment of the head still takes.
  [[nodiscard]] uint64_t RoomLeft(uint32_t head) const {
    return At(head).open.none() ? 0 : shape_.geometry().segment_size - At(head).tail;
  }
  // Returns the bytes appended since the start.
  [[nodiscard]] uint64_t appended() const { return appended_; }
  // Returns how many bytes all open segments still have room for.
  [[nodiscard]] uint64_t room() const { return room_; }
  // Returns how many regions writers have filled since the start.
  [[nodiscard]] uint64_t filled_regions() const { return filled_regions_; }

 private:
  struct Tail {
    SegmentId open;          // Empty before the head's first segment.
    uint32_t slot = 0;       // The head slot of its region.
    uint64_t tail = 0;       // The end of the objects in it.
    uint64_t mark = 0;       // An earlier tail, to which the mark moves next.
    uint32_t in_flight = 0;  // Versions in flight before `mark`.
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
  // Requires: Fits(*of, bytes).
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
