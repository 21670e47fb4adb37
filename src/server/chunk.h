// A chunk: a piece of the log that a client fills itself (docs/protocol.md, "Put, delegated"). Kept in DRAM, since only
// a client that is connected can go on there. After a restart there is none.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "format/log_address.h"

namespace erda::server {

struct Chunk {
  uint32_t head = 0;
  format::LogAddress address;  // of its header
  uint64_t offset = 0;         // of that, in the pool
  uint64_t version = 0;        // in that header: no two chunks have the same
  uint64_t bytes = 0;          // all of it
  uint64_t tail = 0;           // where the next object stands, from its beginning
  uint32_t age = 0;            // whiles since it was used
  bool windowed = false;       // its client writes there through a window
  bool taken_back = false;     // nothing is put there any more, but its client may not know yet
  Nanoseconds awaited{0};      // since then, by one put that waits for room
};

}  // namespace erda::server
