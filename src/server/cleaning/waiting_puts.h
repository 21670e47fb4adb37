// The puts of a shard that wait for room: for which room, for how long, and what the shard still tries before it
// refuses them.
//
// Owns these three: RoomWait, Patience and LastResorts. The header of each has its contract. CleaningPolicy makes room,
// and says when there is some. The shard's thread calls it.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "server/cleaner/clean_queues.h"
#include "server/cleaning/last_resorts.h"
#include "server/cleaning/patience.h"
#include "server/cleaning/room_wait.h"
#include "server/versions/versions.h"

namespace erda::server {

class WaitingPuts {
 public:
  WaitingPuts(Versions& versions, CleanQueues& queues)
      : versions_(versions), patience_(versions.chunks()), resorts_(versions, queues) {}

  // Notes that a put finds no room in this head. again: the put has waited already. Returns true if there may be room
  // later: the put then tries again when rooms() has changed.
  bool Expects(uint32_t head, bool again = false);
  // Notes that an interval of TidyTimer, of this length, has passed while a put waits.
  void LosePatience(Nanoseconds since) { patience_.PassInterval(since); }
  // Notes that this much time has passed while a put waits.
  void AwaitChunks(Nanoseconds since) { patience_.PassTime(since); }
  // Returns a number that grows when there is new room, or when it is clear that no room can be made.
  [[nodiscard]] uint64_t rooms() const { return wait_.rooms(); }

  [[nodiscard]] RoomWait& wait() { return wait_; }
  [[nodiscard]] const RoomWait& wait() const { return wait_; }
  [[nodiscard]] Patience& patience() { return patience_; }
  [[nodiscard]] LastResorts& resorts() { return resorts_; }

 private:
  Versions& versions_;
  RoomWait wait_;
  Patience patience_;
  LastResorts resorts_;
};

}  // namespace erda::server
