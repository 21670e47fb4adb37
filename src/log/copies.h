// Where the cleaner copies to: one segment of each head, which holds nothing but copies.
//
// Owns these segments' places. Requires: region table and segments outlive it. The shard's thread alone calls it; the
// cleaner's thread writes the copies.
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

  // Returns the head's segment for copies, also the one that an earlier server left open. Returns nullopt if there is
  // none.
  [[nodiscard]] std::optional<CopySegment> Open(uint32_t head) const;
  // Seals that segment at `end`, and opens the next one. It may link the last free region. Returns nullopt if there is
  // no room.
  std::optional<CopySegment> Next(uint32_t head, uint64_t end);
  // An entry names the address from now on.
  void OnNamed(uint32_t head, format::LogAddress address);
  // Returns where the last copy in the segment stands that an entry names, or has named; 0 if there is none. Requires:
  // all entries are counted.
  [[nodiscard]] uint64_t Last(uint32_t head) const { return At(head).last; }
  // Returns how many bytes the head's region for copies has after that segment.
  [[nodiscard]] uint64_t Room(uint32_t head) const;
  // Returns the slot of that region, or nullopt.
  [[nodiscard]] std::optional<uint32_t> SlotOf(uint32_t head) const;

  // For a start: the segment is the head's for copies. Stores nothing.
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
