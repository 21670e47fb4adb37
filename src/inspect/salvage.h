// Takes the values out of a pool that does not open, for erda-pool salvage (docs/salvage.md).
//
// It reads the log itself, region by region, and takes the index for evidence. Safe on any bytes: it checks every
// offset, and changes nothing. Memory: some 60 bytes for each key of one shard, and 16 bytes for each of its values
// that is taken. Any thread may call it.
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
  // The geometry with which the pool was made. It counts in place of the geometry in the superblocks.
  std::optional<format::GeometryWish> made;
  bool newest = false;  // Take a newer version than the one that the index names, although a client may have forged it.
  bool older = false;   // Take the version before the newest one, if the newest one is damaged.
  size_t listed = 1000;
};

struct SalvagedValue {
  std::string_view key;
  std::span<const std::byte> value;
  uint64_t deadline = 0;
  bool named = false;  // The index names the key. A key that it does not name may have been deleted.
};
using TakeValue = std::function<Status(const SalvagedValue&)>;

// The source of the geometry.
enum class FrameSource : uint8_t { kSuperblock, kDamagedSuperblock, kOptions, kDefaults };

struct SalvageReport {
  struct Lost {
    uint32_t shard = 0;
    std::string what;
    std::optional<std::string> key;
    std::optional<uint64_t> offset;  // In the pool.
  };

  FrameSource source = FrameSource::kSuperblock;
  format::Geometry geometry{};
  uint64_t missing_bytes = 0;  // Bytes of the pool that the file does not have.

  uint64_t named = 0;       // Taken keys that the index names.
  uint64_t unnamed = 0;     // Taken keys that the index does not name.
  uint64_t bytes = 0;       // Bytes of all taken keys and values.
  uint64_t deleted = 0;     // Keys that were deleted, and so not taken.
  uint64_t damaged = 0;     // Keys whose newest version is damaged, and that were not taken.
  uint64_t older = 0;       // Keys that were taken with an older value, since their newest version is damaged.
  uint64_t unfinished = 0;  // Keys that nothing names, and whose newest version was never whole, or is damaged.
  uint64_t doubtful = 0;    // Keys with a newer version that a client may have forged, and that was not taken.
  std::vector<Lost> lost;   // The first keys and places of all counts but named, unnamed and deleted.

  uint64_t regions_read = 0;
  uint64_t regions_index = 0;
  uint64_t regions_found = 0;     // Regions that were read, although the region table does not place them.
  uint64_t regions_unread = 0;    // Regions with some bytes in them, of which no object verifies.
  uint64_t segments_damaged = 0;  // Segments with some bytes in them, but without a header that verifies.
  uint64_t bytes_skipped = 0;     // Bytes that are neither zero nor of an object.

  [[nodiscard]] uint64_t keys() const { return named + unnamed; }
  [[nodiscard]] bool complete() const {
    return damaged + older + doubtful + regions_unread + segments_damaged + bytes_skipped + missing_bytes == 0;
  }
};

// Gives each key to `take` once, shard by shard, in the order of the values' places. Returns kCorruption if nothing
// tells the pool's geometry; the message says what to do. Returns kInvalidArgument for another format version. An error
// of `take` ends the salvage, which returns it.
Result<SalvageReport> Salvage(std::span<const std::byte> pool, const SalvageOptions& options, const TakeValue& take);

}  // namespace erda::inspect
