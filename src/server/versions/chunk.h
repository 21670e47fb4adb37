// A chunk: a piece of the log that a client fills itself (docs/protocol.md, "Put, delegated"). The shard keeps it in
// DRAM, since only a connected client can go on there. After a restart a shard has no chunks. The shard's
// thread reads and changes it (chunk_table.h).
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "format/log_address.h"

namespace erda::server {

struct Chunk {
  uint32_t head = 0;
  format::LogAddress address;  // The place of its header.
  uint64_t offset = 0;         // The offset of the header in the pool.
  uint64_t version = 0;        // The version in its header: no two chunks have the same.
  uint64_t bytes = 0;          // The size of the whole chunk.
  uint64_t tail = 0;           // The offset of the next object in the chunk.
  uint32_t age = 0;            // Calls of ChunkTable::Age since the last put.
  bool windowed = false;       // The client writes there through a window.
  bool revoked = false;        // The shard publishes no more puts there, but the client may not know yet.
  Nanoseconds awaited{0};      // Since it was revoked: how long a put has waited for room.
};

}  // namespace erda::server
