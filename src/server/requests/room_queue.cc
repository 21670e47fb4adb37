#include "server/requests/room_queue.h"

#include <algorithm>

namespace erda::server {

void RoomQueue::Park(const Asked& asked, uint64_t rooms) {
  const QueuedRequest request(asked);
  Session& session = asked.session;
  if (session.awaiting_room == 0 || session.last_for_room < request.turn) {
    requests_.push_back(request);
    session.last_for_room = request.turn;
  } else {  // It waited for the medium before.
    requests_.insert(std::ranges::find_if(requests_, [&](const auto& each) { return request.IsBefore(each); }),
                     request);
  }
  ++session.awaiting_room;
  rooms_ = rooms;
  counters_.Add(format::Counter::kPutsDelayed);
}

void RoomQueue::Forget(const Session& session) {
  std::erase_if(requests_, [&](const QueuedRequest& each) { return each.session == &session; });
}

bool RoomQueue::Has(const Session& session, uint32_t slot) const {
  return session.awaiting_room > 0 &&
         std::ranges::any_of(requests_, [&](const QueuedRequest& each) { return each.IsOf(session, slot); });
}

}  // namespace erda::server
