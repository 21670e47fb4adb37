// Requests that wait for room in the log.
//
// Owns these requests, in the order in which they came to the queue, and each session's count of them
// (Session::awaiting_room). But the requests of a session are in the order of their turns. Requires: a client sends
// nothing else in the slot of a waiting request. The shard forgets a session before that session ends. The shard's
// thread calls it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "server/control/counters.h"
#include "server/sessions/session.h"

namespace erda::server {

class RoomQueue {
 public:
  explicit RoomQueue(Counters counters) : counters_(counters) {}

  // Keeps the request. `rooms` is CleaningPolicy::rooms() at this moment.
  void Park(const Asked& asked, uint64_t rooms);
  // If `rooms` is not the same as in the last Park or Wake, takes all requests out. Calls serve(const Asked&) for each
  // of them, in their order. serve may park the request again. Returns how many requests it took out.
  template <class Serve>
  size_t Wake(uint64_t rooms, Serve&& serve) {
    if (requests_.empty() || rooms == rooms_) return 0;
    rooms_ = rooms;
    const std::vector<QueuedRequest> woken = std::exchange(requests_, {});
    for (const QueuedRequest& each : woken) each.session->awaiting_room = 0;
    for (const QueuedRequest& each : woken) {
      if (!each.session->doomed) serve(each.asked());
    }
    return woken.size();
  }
  void Forget(const Session& session);
  [[nodiscard]] bool Has(const Session& session, uint32_t slot) const;
  [[nodiscard]] bool empty() const { return requests_.empty(); }

 private:
  Counters counters_;
  std::vector<QueuedRequest> requests_;
  uint64_t rooms_ = 0;
};

}  // namespace erda::server
