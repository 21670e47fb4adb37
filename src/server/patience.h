// How long puts that wait for room still wait for what clients hold: versions in flight, and chunks. Owns the time that
// has passed. It is told of that time, and reads no clock. The shard's thread calls it.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "server/chunk_table.h"

namespace erda::server {

class Patience {
 public:
  explicit Patience(ChunkTable& chunks) : chunks_(chunks) {}

  // Puts begin to wait. again: they have waited before, as there was no room then either.
  void Begin(bool again);
  // So much time has passed, and a put still waits.
  void PassTime(Nanoseconds since);
  // An interval of TidyTimer has passed, of this length, and a put still waits.
  void PassInterval(Nanoseconds since) {
    ++intervals_;
    PassTime(since);
  }
  // The shard has looked for work once more, and a put still waits. A shard that is never idle counts intervals by
  // this.
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
