// Reads a pool's bytes as a client does, or as a server after a crash. It is separate from the tested code: it follows
// the formats and the read table alone.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "format/geometry.h"
#include "format/hello.h"
#include "format/object.h"

namespace erda::server {

// The results of a get without a value.
inline constexpr std::string_view kAbsent = "(absent)";
inline constexpr std::string_view kDamaged = "(damaged)";

// The bytes of one shard's pool.
struct PoolBytes {
  std::span<const std::byte> bytes;
  format::Geometry geometry{};
  uint32_t pool_seed = 0;
  uint32_t shard = 0;
  uint64_t millis = 0;  // deadlines up to this time have passed
};

// Gets as a client does: region numbers from the control block, then neighbourhood, object and read table.
std::string ReadLikeAClient(const PoolBytes& pool, std::span<const std::byte> control, format::FlushMethod flush,
                            std::string_view key);

// Returns the newest whole version of a key after a crash, or kAbsent. The text starts with "error:" if the bytes break
// a promise of the format.
std::string ReadAfterCrash(const PoolBytes& pool, std::string_view key);

// Checks the rules that hold for each entry at every moment, also on the medium. Returns the first violation, or
// nothing. The rules:
// - The header of the new version is there (I3). A settled new version is whole (I2).
// - The old version of an unsettled entry is whole, and older than the new one (I1).
// - The number of the new version is below the shard's version limit. Thus the shard does not give it out again.
// - The newest version of an unsettled entry is not in a segment that is marked settled (I9).
std::string FindViolation(const PoolBytes& pool);

// Checks more rules that hold when nothing is in flight, after a clean close or a recovery. Returns the first
// violation, or nothing. The rules:
// - Each entry is settled. Its new version is a whole value, and no tombstone. Its key has no other entry.
// - Each entry is in its key's neighbourhood, and says how far from the home it is.
// - Each linked region has been opened. Each full segment is settled.
// - Each head has at most one unsettled segment to which the cleaner copies.
std::string FindUnrest(const PoolBytes& pool);

}  // namespace erda::server
