// The report on one shard of an inspected pool: its record, its log and its index, as counts.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace erda::inspect {

struct Segments {
  uint64_t open = 0;
  uint64_t sealed = 0;   // Full, and a version in them may be in flight.
  uint64_t settled = 0;  // Full, and no version in them is in flight.
  uint64_t copying = 0;  // The cleaner copies objects there.
};

struct HeadReport {
  uint32_t head = 0;
  uint32_t regions = 0;
  Segments segments;
  uint64_t objects = 0;       // Only those that a walk reaches.
  uint64_t chunks = 0;        // Chunks that the shard gave to clients.
  uint64_t object_bytes = 0;  // Includes the damaged bytes between objects.
};

struct ShardReport {
  uint32_t shard = 0;
  uint64_t version_limit = 0;
  uint64_t keys_at_close = 0;
  // The last move of an index entry to another index slot, if the record names one.
  struct Move {
    uint64_t from = 0;
    uint64_t to = 0;
    bool under_way = false;  // The entry is in both index slots.
  };
  std::optional<Move> move;

  std::vector<HeadReport> heads;
  uint32_t regions_linked = 0;
  uint32_t regions_free = 0;
  uint32_t regions_emptied = 0;   // The cleaner is filling them with zeroes.
  uint32_t regions_unopened = 0;  // A crash came after they were linked, and before the log used them.
  uint64_t cut_off = 0;           // Segments in which a crash cut off the last objects.

  uint64_t index_slots = 0;  // The index slots of all blocks.
  uint64_t index_blocks = 0;
  uint64_t window_slots = 0;   // The largest window of a key. It is 64 until a window grows (format/reach.h).
  uint32_t windows_grown = 0;  // The classes of keys whose window has grown, of 16.
  uint32_t regions_index = 0;  // The regions that hold runs of the index.
  uint64_t left_over = 0;      // Entries that the last split has copied into the new block, and not yet removed.
  uint64_t used_slots = 0;
  uint64_t keys = 0;            // Entries whose newest version is a value, whole or not verified.
  uint64_t not_whole = 0;       // Entries whose newest version is in flight, and not whole.
  uint64_t whole = 0;           // Entries whose newest version is in flight, and whole.
  uint64_t tombstones = 0;      // Entries whose newest version is a delete that has not ended.
  uint64_t verified = 0;        // Objects whose values were read, and are whole.
  uint64_t verified_bytes = 0;  // The bytes of those objects.

  uint64_t log_bytes = 0;
  uint64_t object_bytes = 0;
  uint64_t live_bytes = 0;  // Objects that an entry names by its new address, or by its old one.
  [[nodiscard]] uint64_t dead_bytes() const { return object_bytes > live_bytes ? object_bytes - live_bytes : 0; }
  [[nodiscard]] uint64_t unsettled() const { return not_whole + whole + tombstones; }
};

}  // namespace erda::inspect
