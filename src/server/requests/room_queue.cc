#include "server/requests/room_queue.h"

#include <algorithm>

namespace erda::server {

void RoomQueue::Park(const Asked& asked, uint64_t rooms) {
  requests_.emplace_back(asked);
  ++asked.session.awaiting_room;
  rooms_ = rooms;
  counters_.Add(format::Counter::kPutsDelayed);
}

void RoomQueue::Forget(const Session& session) {
  std::erase_if(requests_, [&](const ParkedRequest& each) { return each.session == &session; });
}

bool RoomQueue::Has(const Session& session, uint32_t slot) const {
  return session.awaiting_room > 0 &&
         std::ranges::any_of(requests_, [&](const ParkedRequest& each) { return each.IsOf(session, slot); });
}

}  // namespace erda::server
