// What a start does with a shard's log: it finds the linked regions, the opened segments and the ends of the objects,
// and after a crash repairs what the crash left.
//
// Owns what a start alone needs to know. It fills the parts of the running log, which must outlive it. The shard's
// thread alone calls it, and nothing else uses the log until the start is done.
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

  // Takes up an existing pool (or a new one, all zeroes) that was closed cleanly: links the regions, and finds the ends
  // of the open segments. version_limit: no version in the pool is as high. Returns kCorruption if region table and
  // segments contradict each other.
  Status Open(uint64_t version_limit) { return TakeUp(version_limit, nullptr); }

  // Takes up a pool whose server died (server/recovery.h), as Open does, and changes nothing in it. A region that was
  // linked and never opened is no error. Shows all objects of the segments that are not settled, from their marks on,
  // and the last tombstone of each region.
  Status OpenAfterCrash(uint64_t version_limit, const Visit& visit) { return TakeUp(version_limit, &visit); }
  // Returns false if something there is neither an object nor untouched. It was cut off while it was written, or it is
  // damaged. The entries of the index tell which of the two.
  [[nodiscard]] bool plain() const { return plain_; }

  // For a log that is not plain: an entry leads to this address.
  void MarkNamed(uint32_t head, format::LogAddress address);
  // After all of them. Returns kCorruption if an entry leads into a segment that does not count as opened.
  [[nodiscard]] Status CheckNamed() const;
  // Makes all that was found, and that the log now builds upon, persistent with the next fence.
  void FlushFound();
  // Frees regions that were linked and never opened, forgets damaged headers of segments to which no entry leads, and
  // goes on where an object was cut off. Returns the number of regions. Persistent on return.
  uint32_t Repair();

 private:
  // The objects after the mark in a head's open segment. The tail is their end, unless an entry leads farther.
  struct Found {
    uint64_t begin = 0;
    uint64_t last = 0;  // the last of them; 0: there is none
    uint64_t end = 0;
  };
  struct FoundSegment {
    uint64_t named = 0;    // the farthest offset to which an entry leads
    bool damaged = false;  // its header cannot be, and it does not count as opened
  };
  // What a look at a head's regions has found so far.
  struct Newest {
    uint64_t age = 0;
    SegmentId id;
    uint32_t slot = 0;
    bool open = false;
    Walk walk;                   // of an open one
    uint32_t open_segments = 0;  // of the head
    std::optional<CopySegment> copies;
  };

  // visit: after a crash; otherwise null.
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
