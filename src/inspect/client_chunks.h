// The chunks that clients had in the log of one shard, and the bytes that are left of each for the inspection.
//
// A client may write any size into a header in its chunk. So a chunk bounds the bytes that its objects take of the
// budget of reads, and the bytes that count as live. A forged size hides no damage elsewhere. One thread uses it.
#pragma once

#include <cstdint>
#include <map>

#include "inspect/shard_findings.h"

namespace erda::inspect {

class ClientChunks {
 public:
  struct Chunk {
    uint64_t end = 0;          // Its end in the pool.
    uint64_t budget = 0;       // The bytes of values that may still be read.
    uint64_t not_live = 0;     // The bytes that do not count as live yet.
    bool claims_more = false;  // Its objects state more bytes than it has.
  };

  // Adds a chunk whose objects stand from begin to end. Both are offsets in the pool.
  void Add(uint64_t begin, uint64_t end) { chunks_[begin] = {end, end - begin, end - begin, false}; }
  // Returns the chunk whose objects stand around an offset in the pool, or null.
  [[nodiscard]] Chunk* Find(uint64_t offset);
  [[nodiscard]] const Chunk* Find(uint64_t offset) const;
  // Adds to the damage each chunk whose objects state more bytes than it has.
  void AddDamage(ShardFindings* findings) const;

 private:
  std::map<uint64_t, Chunk> chunks_;  // by the offset of its objects in the pool
};

}  // namespace erda::inspect
