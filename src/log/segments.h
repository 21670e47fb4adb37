// The segments of one shard's linked regions: which ones are opened, sealed and settled, and how much is in flight in
// each.
//
// Owns the segment headers in the pool, and for each segment the count of versions in flight. It tells the region table
// when all segments of a full region are settled. The shard's thread alone calls it. Requires: the region table
// outlives it.
//
//   not opened --Open--> open --Seal--> sealed, and settled once nothing in it is in flight
#pragma once

#include <cstdint>
#include <vector>

#include "format/log_layout.h"
#include "log/region_table.h"
#include "log/shard_shape.h"
#include "nvm/writer.h"

namespace erda::log {

class Segments {
 public:
  Segments(nvm::Writer& nvm, const ShardShape& shape, RegionTable& regions);

  // Writes the header of a segment that begins with an object of this version. version: 0 for a segment of copies.
  // Persistent on return.
  void Open(SegmentId id, uint64_t version);
  // Stores in the header that the segment is full and that its objects end at `end`. Persistent on return. Stores
  // nothing if the header is sealed already.
  void Seal(SegmentId id, uint64_t end);
  // Stores in the header that nothing before this offset is in flight. Persistent on return.
  void StoreMark(SegmentId id, uint64_t offset);
  // Notes that nobody appends to the region in this head slot any more. Requires: each head that ever had an open
  // segment has one, in another region.
  void LeaveRegion(uint32_t head, uint32_t slot);
  // Forgets the segments of a region that is emptied: they do not count as opened any more.
  void ForgetRegion(uint32_t region);
  // Settles all that is sealed, and then the regions. Requires: nothing is in flight.
  void SettleAll();

  // BeginFlight: one more version in the segment is in flight. EndFlight: one of them is settled, or dead.
  void BeginFlight(SegmentId id) { ++At(id).in_flight; }
  void EndFlight(SegmentId id) {
    State& segment = At(id);
    if (--segment.in_flight == 0 && segment.sealed) Settle(id);
  }
  [[nodiscard]] uint32_t InFlight(SegmentId id) const { return At(id).in_flight; }

  // --- For a start, which finds opened segments in the pool. These functions store nothing there.

  // Notes that the segment is opened. It counts as sealed until Reopen.
  void TakeUp(SegmentId id);
  // Notes that the log appends to the segment again.
  void Reopen(SegmentId id) { At(id).sealed = false; }
  [[nodiscard]] bool IsOpened(SegmentId id) const { return At(id).opened; }
  // Returns the number of opened segments, sealed or not.
  [[nodiscard]] uint64_t opened() const { return opened_; }

 private:
  struct State {
    uint32_t in_flight = 0;
    bool opened = false;
    bool sealed = false;
  };

  [[nodiscard]] State& At(SegmentId id) { return states_[shape_.SegmentNumber(id)]; }
  [[nodiscard]] const State& At(SegmentId id) const { return states_[shape_.SegmentNumber(id)]; }
  void Settle(SegmentId id);
  void SettleRegion(uint32_t region);
  // The segment is full, and nothing in it is in flight.
  void StoreSettled(SegmentId id);
  void StoreState(SegmentId id, format::SegmentState state);
  // Stores a field of the header. Fences first, so that all earlier flushed stores are persistent before the field.
  // Persistent on return.
  void StoreInHeader(SegmentId id, uint64_t field, uint64_t value);

  nvm::Writer& nvm_;
  const ShardShape shape_;
  RegionTable& regions_;
  std::vector<State> states_;  // of the shard's segments, region by region
  uint64_t opened_ = 0;
};

}  // namespace erda::log
