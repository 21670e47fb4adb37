// Reads the records of a ring in their order.
//
// Owns a buffer. Uses the disk, and belongs to one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "erda/status.h"
#include "journal/aligned_buffer.h"
#include "journal/disk.h"
#include "journal/identity.h"
#include "journal/record.h"
#include "journal/ring_space.h"

namespace erda::journal {

// The part of a disk that belongs to one shard. Offset and size are multiples of Disk::kBlock.
struct RingPart {
  uint64_t offset;
  uint64_t size;

  [[nodiscard]] uint64_t blocks() const { return size / Disk::kBlock; }
};

class RecordReader {
 public:
  // REQUIRES: the disk outlives the reader, and nothing writes to the part.
  RecordReader(Disk& disk, const RingPart& part, const RingIdentity& identity);

  struct Found {
    uint64_t block;
    uint64_t blocks;
    Record record;  // Its bytes last until the next call.
  };
  // Returns the next record after those that are live in `space`. Returns nothing if it is missing, torn, or not the
  // expected one. Then the stream ends. An error of the disk is no end: the record may be there.
  Result<std::optional<Found>> Next(const RingSpace& space, const Expected& expected);

  // Reads all blocks. Returns a whole record of this ring, live or not. It was written when the stream was held beyond
  // `end`, or in an epoch after this one. Returns nothing if the ring has no such record.
  Result<std::optional<Found>> FindBeyond(Place end, uint64_t epoch);

 private:
  Result<std::optional<Found>> At(uint64_t block, const RingSpace& space, const Expected& expected);
  // Returns the bytes of these blocks, which last until the next call.
  Result<std::span<const std::byte>> Blocks(uint64_t block, uint64_t blocks);

  Disk& disk_;
  const RingPart part_;
  const RingIdentity identity_;
  AlignedBuffer buffer_;
  // The blocks in the buffer.
  uint64_t begin_ = 0;
  uint64_t end_ = 0;
};

}  // namespace erda::journal
