// The numbers of a pool's journal, for the stream of one shard and its ring.
#pragma once

#include <cstdint>

namespace erda::nvm {

struct JournalCounts {
  uint64_t stream_bytes = 0;      // The place of the stream's end.
  uint64_t held_bytes = 0;        // The place up to which the disk or the front has the stream.
  uint64_t bytes_written = 0;     // To the ring, since this process opened it.
  uint64_t flushes = 0;           // Of the ring, the same.
  uint64_t ring_bytes = 0;        // The size of the ring.
  uint64_t ring_used_bytes = 0;   // Those of them that no checkpoint has freed.
  uint64_t full_times = 0;        // How often a write had to wait for a checkpoint.
  uint64_t front_bytes = 0;       // The size of the front's part. 0: there is no front.
  uint64_t front_used_bytes = 0;  // Those of them that the disk does not hold.
  uint64_t front_full_times = 0;  // How often the part had no room.
  // Of the shard's archive, since this process opened it.
  uint64_t archive_bytes_written = 0;
  uint64_t archive_waiting_bytes = 0;  // Held, and not archived.
  uint64_t archive_gaps = 0;
  bool archive_failing = false;  // The last attempt had an error.
  bool failed = false;           // The disk has failed.
  // Of the whole pool. The first shard alone has them.
  uint64_t checkpoints = 0;       // Since this process opened the pool.
  uint64_t checkpoint_at_ms = 0;  // Unix time at which the last one began. 0: there was none.
  int error_number = 0;           // Of the disk's first failure. 0: it has not failed, or the number is unknown.
};

}  // namespace erda::nvm
