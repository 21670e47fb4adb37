// Decides how long puts that wait for room still wait for versions in flight and for chunks, which clients hold. Owns
// the time that has passed. Its caller tells it that time: it reads no clock. The shard's thread calls it.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "server/versions/chunk_table.h"

namespace erda::server {

class Patience {
 public:
  explicit Patience(ChunkTable& chunks) : chunks_(chunks) {}

  // Notes that puts begin to wait. again: they have waited before, and found no room.
  void Begin(bool again);
  // Notes that this much time has passed while a put waits.
  void PassTime(Nanoseconds since);
  // Notes that an interval of TidyTimer, of this length, has passed while a put waits.
  void PassInterval(Nanoseconds since) {
    ++intervals_;
    PassTime(since);
  }
  // Notes that the shard has looked for work once more while a put waits. A shard that is never idle counts intervals
  // by its looks.
  void CountLook();
  [[nodiscard]] uint64_t looks() const { return looks_; }
  [[nodiscard]] bool is_over() const;

 private:
  ChunkTable& chunks_;
  uint32_t intervals_ = 0;
  uint64_t looks_ = 0;
  Nanoseconds waited_{0};
};

}  // namespace erda::server
