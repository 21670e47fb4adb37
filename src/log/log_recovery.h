// Takes up a shard's log when a server starts. Finds the linked regions, the opened segments and the ends of the
// objects. After a crash, repairs the damage that the crash left.
//
// Owns the facts that only a start needs. Fills the parts of the running log. Requires: these parts outlive it, and
// nothing else uses the log until the start is done. The shard's thread alone calls it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "erda/status.h"
#include "format/log_address.h"
#include "format/log_layout.h"
#include "log/copies.h"
#include "log/objects.h"
#include "log/region_table.h"
#include "log/segment_walk.h"
#include "log/segments.h"
#include "log/shard_shape.h"
#include "log/tails.h"
#include "nvm/writer.h"

namespace erda::log {

class LogRecovery {
 public:
  LogRecovery(nvm::Writer& nvm, const ShardShape& shape, const Objects& objects, RegionTable& regions,
              Segments& segments, Tails& tails, Copies& copies);

  // Takes up a pool that was closed cleanly, or a new one, which is all zeroes. Links the regions, and finds the ends
  // of the open segments. Every version in the pool is below version_limit. Returns kCorruption if the region table and
  // the segments contradict each other.
  Status Open(uint64_t version_limit) { return TakeUp(version_limit, nullptr); }

  // Takes up a pool whose server died (server/recovery/recovery.h), as Open does, and changes nothing in it. Accepts a
  // region that was linked and never opened. Calls `visit` with each object, from the mark on, in the segments that are
  // not settled. Also calls it with the last tombstone of each region.
  Status OpenAfterCrash(uint64_t version_limit, const Visit& visit) { return TakeUp(version_limit, &visit); }
  // Returns false if the log has bytes that are neither an object nor untouched. A crash cut off the write of these
  // bytes, or they are damaged. The entries of the index tell which of the two.
  [[nodiscard]] bool plain() const { return plain_; }

  // For a log that is not plain: notes that an entry leads to this address.
  void MarkNamed(uint32_t head, format::LogAddress address);
  // Returns kCorruption if an entry leads into a segment that does not count as opened. Requires: MarkNamed was called
  // for all entries.
  [[nodiscard]] Status CheckNamed() const;
  // Flushes the words and headers that the start has found and that the log now relies on. They are persistent after
  // the next fence.
  void FlushFound();
  // Frees the regions that were linked and never opened. Forgets the damaged headers of segments to which no entry
  // leads. Lets the log go on where an object was cut off. Returns the number of freed regions. Persistent on return.
  uint32_t Repair();

 private:
  // The objects after the mark in a head's open segment. The tail is their end, unless an entry leads farther.
  struct Found {
    uint64_t begin = 0;
    uint64_t last = 0;  // where the last object stands; 0: there is no object
    uint64_t end = 0;
  };
  struct FoundSegment {
    uint64_t named = 0;    // the farthest offset to which an entry leads
    bool damaged = false;  // its header is impossible, so it does not count as opened
  };
  // The newest segments of a head, as far as its regions were read.
  struct Newest {
    uint64_t age = 0;
    SegmentId id;
    uint32_t slot = 0;
    bool open = false;
    Walk walk;                   // empty unless the start has walked the segment
    uint32_t open_segments = 0;  // how many the head has
    std::optional<CopySegment> copies;
  };

  // visit: null unless the server died.
  Status TakeUp(uint64_t version_limit, const Visit* visit);
  Status TakeUpHead(uint32_t head, uint64_t version_limit, const Visit* visit);
  Status TakeUpRegion(uint32_t head, uint32_t slot, uint64_t version_limit, const Visit* visit, Newest* newest);
  void TakeUpSettled(uint32_t region);
  void TakeUpSegment(uint32_t head, uint32_t slot, SegmentId id, const Visit* visit, uint64_t* age, Newest* newest);
  void RepairRegions(uint32_t head, uint32_t* unlinked);
  void RepairTail(uint32_t head);
  [[nodiscard]] FoundSegment& At(SegmentId id) { return found_segments_[shape_.SegmentNumber(id)]; }
  [[nodiscard]] SegmentId IdOf(uint64_t number) const;

  nvm::Writer& nvm_;
  const ShardShape shape_;
  const Objects& objects_;
  RegionTable& regions_;
  Segments& segments_;
  Tails& tails_;
  Copies& copies_;
  std::vector<Found> found_;                  // by head
  std::vector<FoundSegment> found_segments_;  // by the segment's number in the shard
  bool plain_ = true;
};

}  // namespace erda::log
