// The requests that a shard has received and cannot answer yet, in a queue for each reason to wait. The shard's thread
// calls it.
#pragma once

#include "server/requests/rate_queue.h"
#include "server/requests/room_queue.h"
#include "server/requests/writer_queue.h"

namespace erda::server {

struct ParkedRequests {
  RateQueue for_rate;
  RoomQueue for_room;
  WriterQueue for_writer;

  // Returns true if a request in this slot was served before, and waits.
  [[nodiscard]] bool Has(const Session& session, uint32_t slot) const {
    return for_room.Has(session, slot) || for_writer.Has(session, slot);
  }
  // Drops the requests of a session that ends.
  void Forget(const Session& session) {
    for_rate.Forget(session);
    for_room.Forget(session);
    for_writer.Forget(session);
  }
};

}  // namespace erda::server
