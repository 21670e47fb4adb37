// The requests that a shard has received and cannot answer yet, in a queue for each reason to wait. The shard's thread
// calls it.
#pragma once

#include "base/clock.h"
#include "server/requests/medium_queue.h"
#include "server/requests/rate_queue.h"
#include "server/requests/room_queue.h"
#include "server/requests/writer_queue.h"

namespace erda::server {

struct ParkedRequests {
  RateQueue for_rate;
  RoomQueue for_room;
  WriterQueue for_writer;
  MediumQueue& for_medium;

  [[nodiscard]] bool awaits_room() const { return !for_room.empty(); }
  // Returns true if requests wait for values that clients write.
  [[nodiscard]] bool awaits_writers() const { return !for_writer.empty(); }
  // holds_back returns true if messages wait because their clients send too fast. held_for returns the time until the
  // shard may serve the first of them.
  [[nodiscard]] bool holds_back() const { return !for_rate.empty(); }
  [[nodiscard]] Nanoseconds held_for() const { return for_rate.wait(); }
  // Returns true if a request in this slot was served before, and waits.
  [[nodiscard]] bool Has(const Session& session, uint32_t slot) const {
    return for_room.Has(session, slot) ||
           (session.awaiting_writer > 0 && (for_writer.Has(session, slot) || for_medium.Has(session, slot)));
  }
  // Drops the requests of a session that ends.
  void Forget(const Session& session) {
    for_rate.Forget(session);
    for_room.Forget(session);
    for_writer.Forget(session);
    for_medium.Forget(session);
  }
};

}  // namespace erda::server
