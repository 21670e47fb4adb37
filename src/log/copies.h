// The segments that the cleaner copies to: one of each head, which holds nothing but copies.
//
// Owns the list of these segments. Requires: the region table and the segments outlive it. The shard's thread alone
// calls it; the cleaner's thread writes the copies.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "format/log_address.h"
#include "log/region_table.h"
#include "log/segments.h"
#include "log/shard_shape.h"

namespace erda::log {

// A segment that the cleaner may copy to.
struct CopySegment {
  uint32_t region = 0;
  uint32_t generation = 0;
  uint32_t slot = 0;
  uint64_t segment = 0;
  bool operator==(const CopySegment&) const = default;
};

class Copies {
 public:
  Copies(const ShardShape& shape, RegionTable& regions, Segments& segments);

  // Returns the head's segment for copies. An earlier server may have left it open. Returns nullopt if the head has no
  // such segment.
  [[nodiscard]] std::optional<CopySegment> Open(uint32_t head) const;
  // Seals the head's segment for copies at `end`, and opens the next one. May link the shard's last free region.
  // Returns nullopt if there is no room.
  std::optional<CopySegment> Next(uint32_t head, uint64_t end);
  // Notes that an index entry names the address from now on.
  void OnNamed(uint32_t head, format::LogAddress address);
  // Returns the offset, in the head's segment for copies, of the last copy that an entry names or has named. Returns 0
  // if no entry has named one. Requires: all entries are counted.
  [[nodiscard]] uint64_t Last(uint32_t head) const { return At(head).last; }
  // Returns how many bytes the head's region for copies has after its open segment.
  [[nodiscard]] uint64_t Room(uint32_t head) const;
  // Returns the head slot of the head's region for copies, or nullopt.
  [[nodiscard]] std::optional<uint32_t> SlotOf(uint32_t head) const;

  // For a start: makes this the head's segment for copies. Stores nothing in the pool.
  void TakeUp(uint32_t head, uint32_t slot, SegmentId id);

 private:
  struct Place {
    SegmentId open;
    uint32_t slot = 0;
    uint64_t last = 0;
  };
  [[nodiscard]] Place& At(uint32_t head) { return places_[shape_.HeadInShard(head)]; }
  [[nodiscard]] const Place& At(uint32_t head) const { return places_[shape_.HeadInShard(head)]; }

  const ShardShape shape_;
  RegionTable& regions_;
  Segments& segments_;
  std::vector<Place> places_;
};

}  // namespace erda::log
