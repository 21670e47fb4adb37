// What anyone finds who looks at a pool's bytes: a client, or whoever opens them after a crash. Written apart from the
// code under test, from the formats and the read table alone.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "format/geometry.h"
#include "format/messages.h"
#include "format/object.h"

namespace erda::server {

// What a get gives that gives no value.
inline constexpr std::string_view kAbsent = "(absent)";
inline constexpr std::string_view kDamaged = "(damaged)";

// The bytes of one shard's pool.
struct PoolBytes {
  std::span<const std::byte> bytes;
  format::Geometry geometry{};
  uint32_t pool_seed = 0;
  uint32_t shard = 0;
  uint64_t millis = 0;  // deadlines up to here have passed
};

// A get, as a client does it: region numbers from the control block, then neighbourhood, object, read table.
std::string ReadLikeAClient(const PoolBytes& pool, std::span<const std::byte> control, format::FlushMethod flush,
                            std::string_view key);

// What is left of a key after a crash: its newest whole version, or kAbsent. Starts with "error:" if the bytes
// contradict what they promise.
std::string ReadAfterCrash(const PoolBytes& pool, std::string_view key);

// Checks what holds of every entry at every moment, on the medium too; the first violation, or nothing.
//   the new version's header is there (I3); it is whole if it is settled (I2)
//   the old version of an unsettled one is whole, and older (I1)
//   its number is below the shard's version limit: it is not given out again
//   a segment that is marked settled holds no newest version that is not whole
std::string FindViolation(const PoolBytes& pool);

// Checks what else holds when nothing is in flight, after a clean close or a recovery; the first violation, or nothing.
//   each entry is settled, its new version a whole value (no tombstone), and its key has no other entry
//   each entry is in its key's neighbourhood, and says how far from the home
//   each linked region has been opened; each full segment is settled; the cleaner copies to one of a head
std::string FindUnrest(const PoolBytes& pool);

}  // namespace erda::server
