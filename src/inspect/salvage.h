// Takes the values out of a pool that does not open: for erda-pool salvage (docs/salvage.md).
//
// It reads the log itself, region by region, and takes the index for evidence. Safe on any bytes whatever: every offset
// is checked, and nothing is changed. Memory: some 60 bytes for each key of one shard, and 8 bytes for each value of
// that shard that is written; no values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "erda/status.h"
#include "format/geometry.h"

namespace erda::inspect {

struct SalvageOptions {
  // How the pool was made, in place of what its superblocks say.
  std::optional<format::GeometryWish> made;
  bool newest = false;  // of a key that the index names: a newer version counts, too, that a client may have forged
  bool older = false;   // of a key whose newest version is damaged: the version before it is taken
  size_t listed = 1000;
};

struct SalvagedValue {
  std::string_view key;
  std::span<const std::byte> value;
  uint64_t deadline = 0;
  bool named = false;  // the index names it. Else the key may have been deleted
};
using TakeValue = std::function<Status(const SalvagedValue&)>;

// Where the geometry comes from.
enum class FrameSource : uint8_t { kSuperblock, kDamagedSuperblock, kOptions, kDefaults };

struct SalvageReport {
  struct Lost {
    uint32_t shard = 0;
    std::string what;
    std::optional<std::string> key;
    std::optional<uint64_t> offset;  // in the pool
  };

  FrameSource source = FrameSource::kSuperblock;
  format::Geometry geometry{};
  uint64_t missing_bytes = 0;  // of the pool, that the file does not have

  uint64_t named = 0;       // keys that were taken, and that the index names
  uint64_t unnamed = 0;     // keys that were taken, and that it does not
  uint64_t bytes = 0;       // of their keys and values
  uint64_t deleted = 0;     // keys that were not, since they were deleted
  uint64_t damaged = 0;     // keys that were not, since their newest version is damaged
  uint64_t older = 0;       // keys that were taken with an older value, since their newest version is damaged
  uint64_t unfinished = 0;  // keys that nothing names, whose newest version is not whole: was never, or is damaged
  uint64_t doubtful = 0;    // keys with a newer version that a client may have forged, and that was not taken
  std::vector<Lost> lost;   // the first of all that but named, unnamed and deleted

  uint64_t regions_read = 0;
  uint64_t regions_index = 0;
  uint64_t regions_found = 0;     // read, though the region table does not say where they belong
  uint64_t regions_unread = 0;    // with something in them, of which nothing can be read
  uint64_t segments_damaged = 0;  // without a header that verifies, and with something in them
  uint64_t bytes_skipped = 0;     // that are neither zero nor of an object

  [[nodiscard]] uint64_t keys() const { return named + unnamed; }
  [[nodiscard]] bool complete() const {
    return damaged + older + doubtful + regions_unread + segments_damaged + bytes_skipped + missing_bytes == 0;
  }
};

// Each key once, in the order of their places in each shard. kCorruption: it cannot be told how the pool is cut; the
// message says what to do. kInvalidArgument: another format version. What `take` returns ends it.
Result<SalvageReport> Salvage(std::span<const std::byte> pool, const SalvageOptions& options, const TakeValue& take);

}  // namespace erda::inspect
