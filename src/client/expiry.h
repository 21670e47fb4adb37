// Decides whether a version has expired, by the shard's word alone (docs/protocol.md, "Expiry").
//
// The shard's time is the only clock: once it has reached the deadline of a version, the key is absent. Owns nothing.
// Only the client's thread calls it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "base/planted.h"
#include "client/link.h"
#include "fabric/fabric.h"
#include "format/control_block.h"

namespace erda::client {

// The place of the shard's time.
inline constexpr fabric::RemoteAddress kTimeWord{format::kControlRegion, offsetof(format::ControlBlock, time)};
// A time that no shard ever has.
inline constexpr uint64_t kNoTime = UINT64_MAX;

enum class Expiry : uint8_t {
  kLives,
  kOver,
  kMeanwhile,  // Its deadline has passed, and another version may be the newest now.
  kUnknown,    // The client must Read the time first.
  kOverdue,    // By the client's clock its deadline has passed, but the shard has not raised its time yet.
};

// A version has expired if the shard's time had reached the deadline before the Read that shows it as the newest. A
// later Read of the time may come after another put. The version lives if a Read of the time during this get, at a
// moment when the version was published, was before the deadline. It was the newest then, or from then on until it was
// read. A put that took long may publish a version after its deadline, and no get may return that version. The client
// Reads `time_before` before the entry, or before the version at its known location. It Reads `time_behind` when the
// version is published; kNoTime: not read yet.
[[nodiscard]] inline Expiry ExpiryOf(Link& link, const Clock& clock, uint64_t deadline, uint64_t time_before,
                                     uint64_t time_behind) {
  if (Planted(Flaw::kReturnsExpired)) return Expiry::kLives;
  const bool by_own_clock = Planted(Flaw::kTrustsOwnClock);
  if (by_own_clock) time_before = time_behind = 0;
  if (time_before >= deadline) return Expiry::kOver;
  if (time_behind == kNoTime) return Expiry::kUnknown;
  link.known.LearnTime(time_behind);
  if (time_behind >= deadline) return Planted(Flaw::kExpiresBehindRead) ? Expiry::kOver : Expiry::kMeanwhile;
  if (!link.known.time_hint.HasPassed(deadline, clock.Now())) return Expiry::kLives;
  return by_own_clock ? Expiry::kOver : Expiry::kOverdue;
}

}  // namespace erda::client
