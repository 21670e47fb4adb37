// The report of an inspection: the superblocks of a pool, its shards, and its damage.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/superblock.h"
#include "inspect/shard_report.h"

namespace erda::inspect {

// A contradiction in the pool that no crash can leave.
struct Damage {
  uint32_t shard = 0;
  std::string what;
  // For damage of an index entry: its key, if the bytes tell it, and its index slot, head and new address.
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
    kNotValid,  // A crash cut its write off, or it is damaged.
  };
  State state = State::kNotValid;
  format::Superblock superblock{};  // Valid if the copy counts or is older.
};

struct PoolReport {
  SuperblockCopy superblocks[2];
  format::Superblock superblock{};  // The copy that counts.
  bool needs_recovery = false;
  std::vector<ShardReport> shards;
  std::vector<Damage> damage;  // The first Options::damage_listed of it.
  uint64_t damage_count = 0;
};

}  // namespace erda::inspect
