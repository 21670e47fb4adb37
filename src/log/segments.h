// The segments of one shard's linked regions: which are opened, sealed and settled, and how much is in flight in each.
//
// Owns the segment headers in the pool, and the counts of what is in flight. It tells the region table when all
// segments of a full region are settled. The shard's thread alone calls it. Requires: the region table outlives it.
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

  // Writes the segment's header. version: of its first object; 0 for copies. Persistent on return.
  void Open(SegmentId id, uint64_t version);
  // Nobody appends there any more, and its objects end at `end`. Persistent on return. Stores nothing if the header
  // says so already.
  void Seal(SegmentId id, uint64_t end);
  // Says in the header that nothing before this offset is in flight. Persistent on return.
  void StoreMark(SegmentId id, uint64_t offset);
  // Nobody appends to the region in this slot any more. Requires: each head that ever had an open segment has one, in
  // another region.
  void LeaveRegion(uint32_t head, uint32_t slot);
  // The region is emptied: none of its segments is opened.
  void ForgetRegion(uint32_t region);
  // Settles all that is sealed, and then the regions. Requires: nothing is in flight.
  void SettleAll();

  // Space in the segment waits for its writer / does not any more: it is settled, or dead.
  void BeginFlight(SegmentId id) { ++At(id).in_flight; }
  void EndFlight(SegmentId id) {
    State& segment = At(id);
    if (--segment.in_flight == 0 && segment.sealed) Settle(id);
  }
  [[nodiscard]] uint32_t InFlight(SegmentId id) const { return At(id).in_flight; }

  // --- For a start, which finds segments opened. Stores nothing.

  // The segment is opened. It counts as sealed until Reopen.
  void TakeUp(SegmentId id);
  // The segment is appended to again.
  void Reopen(SegmentId id) { At(id).sealed = false; }
  [[nodiscard]] bool IsOpened(SegmentId id) const { return At(id).opened; }
  // The opened segments, sealed or not.
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
  void StoreState(SegmentId id, format::SegmentState state);
  // Stores a field of the header, after everything before it is persistent. Persistent on return.
  void StoreInHeader(SegmentId id, uint64_t field, uint64_t value);

  nvm::Writer& nvm_;
  const ShardShape shape_;
  RegionTable& regions_;
  std::vector<State> states_;  // of the shard's segments, region by region
  uint64_t opened_ = 0;
};

}  // namespace erda::log
