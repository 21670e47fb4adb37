// Whether a version has expired, by the shard's word alone (docs/protocol.md, "Expiry").
//
// The shard's time is the only clock: from the moment at which it reaches the deadline on, the version says that the
// key is absent. Owns nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "base/planted.h"
#include "client/link.h"
#include "fabric/fabric.h"
#include "format/control_block.h"

namespace erda::client {

// The shard's time.
inline constexpr fabric::RemoteAddress kTimeWord{format::kControlRegion, offsetof(format::ControlBlock, time)};
// A time that no shard says.
inline constexpr uint64_t kNoTime = UINT64_MAX;

enum class Expiry : uint8_t {
  kLives,
  kOver,
  kMeanwhile,  // it was the newest, and perhaps is no more, and its deadline has passed
  kUnknown,    // the client has to Read the time first
  kOverdue,    // by the client's own clock its deadline has passed, and the shard has not raised its time yet
};

// A version has expired if the shard's time had reached the deadline before the Read that says that it is the newest: a
// later Read of the time may come after another put. It lives if the time had not reached the deadline in a Read at a
// moment of this get when the version was published: it was the newest then, or from then on until it was read. (A put
// that took long may publish a version after its deadline. No get may return it.)
// time_before: Read before the entry, or before the version at its known location. time_behind: Read when the version
// was published; kNoTime: not yet.
[[nodiscard]] inline Expiry ExpiryOf(Link& link, const Clock& clock, uint64_t deadline, uint64_t time_before,
                                     uint64_t time_behind) {
  if (Planted(Flaw::kReturnsExpired)) return Expiry::kLives;
  const bool by_own_clock = Planted(Flaw::kTrustsOwnClock);
  if (by_own_clock) time_before = time_behind = 0;
  if (time_before >= deadline) return Expiry::kOver;
  if (time_behind == kNoTime) return Expiry::kUnknown;
  link.LearnTime(time_behind);
  if (time_behind >= deadline) return Planted(Flaw::kExpiresBehindRead) ? Expiry::kOver : Expiry::kMeanwhile;
  if (!link.time_hint.HasPassed(deadline, clock.Now())) return Expiry::kLives;
  return by_own_clock ? Expiry::kOver : Expiry::kOverdue;
}

}  // namespace erda::client
