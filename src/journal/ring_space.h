// The blocks of one shard's ring: which ones have live records, and where the next record goes.
//
// The writer and the reader of a ring both ask it. So the reader looks for a record only where the writer puts it.
//
// Not thread-safe. It calls no disk.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "journal/place.h"

namespace erda::journal {

// The two checkpoint blocks come before it.
inline constexpr uint64_t kFirstRecordBlock = 2;

class RingSpace {
 public:
  // A record that the ring needs. All places are in the order of the records.
  struct Live {
    uint64_t block;
    Place end;
    uint64_t epoch;
  };

  // `blocks` is the end of the ring, `next` the block of the first record. No record is live yet.
  // REQUIRES: kFirstRecordBlock <= next < blocks.
  RingSpace(uint64_t blocks, uint64_t next) : blocks_(blocks), next_(next) {}

  // Returns the block at which a record of `blocks` blocks goes next. That is after the last record if it fits before
  // the end of the ring, and otherwise the first block. Returns nothing if the record would reach a live one.
  [[nodiscard]] std::optional<uint64_t> Find(uint64_t blocks) const;
  // Returns the most blocks for which Find returns a block.
  [[nodiscard]] uint64_t LongestFree() const;
  [[nodiscard]] uint64_t free_blocks() const;
  // The block after the last record. A reader looks for the next record here, and then at kFirstRecordBlock.
  [[nodiscard]] uint64_t next() const { return next_; }

  // Makes a record live. REQUIRES: live.block == Find(blocks).
  void Take(uint64_t blocks, const Live& live);

  // A checkpoint: what the ring's reader has to know to begin there.
  struct Beginning {
    uint64_t first_block;
    uint64_t place_epoch;
  };
  // Returns nothing if no live record ends at that place.
  [[nodiscard]] std::optional<Beginning> After(Place place) const;
  // Frees the records that end there or before.
  void Free(Place place);

 private:
  uint64_t blocks_;
  uint64_t next_;
  std::deque<Live> live_;
};

}  // namespace erda::journal
