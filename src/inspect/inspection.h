// What a pool's bytes are, told by reading them: for erda-inspect and erda-pool. Safe on any bytes whatever: every
// offset is checked, the time is in proportion to the pool's size, and the memory to its regions and to the damage that
// may be listed.
//
// It reads the formats by itself, and not by way of index, log and recovery: those take a pool up to change it, and
// stop at the first contradiction; this goes on, and names them all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "erda/status.h"
#include "format/superblock.h"

namespace erda::inspect {

struct Options {
  bool verify = false;          // the values of all entries, too
  size_t damage_listed = 1000;  // more is only counted
};

// What no crash leaves.
struct Damage {
  uint32_t shard = 0;
  std::string what;
  // Of an entry of the index. Its key, if it can be known; else the place has to do.
  std::optional<std::string> key;
  std::optional<uint64_t> slot;
  std::optional<uint32_t> head;
  std::optional<uint32_t> address;  // LogAddress::raw
};

struct SuperblockCopy {
  enum class State : uint8_t {
    kCounts,
    kOlder,
    kNeverWritten,
    kNotValid,  // its write was cut off, or it is damaged
  };
  State state = State::kNotValid;
  format::Superblock superblock{};  // to be believed if it counts or is older
};

struct Segments {
  uint64_t open = 0;
  uint64_t sealed = 0;   // full; something in them may be in flight
  uint64_t settled = 0;  // full, and nothing in them is
  uint64_t copying = 0;  // the cleaner copies there
};

struct HeadReport {
  uint32_t head = 0;
  uint32_t regions = 0;
  Segments segments;
  uint64_t objects = 0;       // as far as they can be walked
  uint64_t chunks = 0;        // that were given to clients, for objects of theirs
  uint64_t object_bytes = 0;  // with what is damaged in between
};

struct ShardReport {
  uint32_t shard = 0;
  uint64_t version_limit = 0;
  uint64_t keys_at_close = 0;
  // The last entry that was moved in the index, if one was.
  struct Move {
    uint64_t from = 0;
    uint64_t to = 0;
    bool under_way = false;  // it is in both slots
  };
  std::optional<Move> move;

  std::vector<HeadReport> heads;
  uint32_t regions_linked = 0;
  uint32_t regions_free = 0;
  uint32_t regions_emptied = 0;   // by the cleaner, and not free yet
  uint32_t regions_unopened = 0;  // linked, and not used yet: a crash came in between
  uint64_t cut_off = 0;           // open segments with something behind their objects that is none: a crash came

  uint64_t index_slots = 0;  // of all blocks
  uint64_t index_blocks = 0;
  uint64_t window_slots = 0;   // of the largest window of a key; 64 as long as none has grown (format/reach.h)
  uint32_t windows_grown = 0;  // of 16, of as many parts of the keys
  uint32_t regions_index = 0;  // runs of its blocks
  uint64_t left_over = 0;      // entries in the block that was split last, which are in the new one
  uint64_t used_slots = 0;
  uint64_t keys = 0;            // whose newest version is a value, whole or not known to be otherwise
  uint64_t not_whole = 0;       // in flight: entries whose newest version is not settled, and not whole
  uint64_t whole = 0;           // the same, and whole
  uint64_t tombstones = 0;      // the same, and a delete
  uint64_t verified = 0;        // objects whose values were read, and are whole
  uint64_t verified_bytes = 0;  // of these objects

  uint64_t log_bytes = 0;
  uint64_t object_bytes = 0;
  uint64_t live_bytes = 0;  // of objects that an entry leads to: as its newest, or as the older one it may go back to
  [[nodiscard]] uint64_t dead_bytes() const { return object_bytes > live_bytes ? object_bytes - live_bytes : 0; }
  [[nodiscard]] uint64_t unsettled() const { return not_whole + whole + tombstones; }
};

struct PoolReport {
  SuperblockCopy superblocks[2];
  format::Superblock superblock{};  // the one that counts
  bool needs_recovery = false;
  std::vector<ShardReport> shards;
  std::vector<Damage> damage;  // the first of it
  uint64_t damage_count = 0;
};

// The status is that of format::FindSuperblock: without a valid superblock there is no pool.
// Its superblocks alone, at once; the report has no shards.
Result<PoolReport> InspectFrame(std::span<const std::byte> pool);
// All of it.
Result<PoolReport> InspectPool(std::span<const std::byte> pool, const Options& options);

}  // namespace erda::inspect
