// Takes the messages of a shard's sessions: when they arrive, and again when a waiting request can go on.
//
// Owns the requests that wait, except those in the MediumQueue. Requires: a completion's channel belongs to an open
// session. In each Poll the shard first wakes the requests that wait for the rate. The shard forgets a session before
// that session ends. The shard's thread calls it, and any thread sets the limit.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "fabric/fabric.h"
#include "server/cleaning/cleaning_policy.h"
#include "server/control/counters.h"
#include "server/requests/clock_wait.h"
#include "server/requests/parked_requests.h"
#include "server/requests/request_handler.h"
#include "server/requests/served.h"
#include "server/sessions/session.h"
#include "server/sessions/sessions.h"
#include "server/sessions/shard_options.h"
#include "server/versions/versions.h"

namespace erda::server {

class Inbox {
 public:
  Inbox(const RequestHandler& handler, const ShardOptions& options, Counters counters, Sessions& sessions,
        Versions& versions, CleaningPolicy& cleaning, MediumQueue& for_medium)
      : handler_(handler),
        sessions_(sessions),
        versions_(versions),
        cleaning_(cleaning),
        parked_{RateQueue(*options.time, options.requests_per_second), RoomQueue(counters), WriterQueue(versions),
                for_medium},
        clock_wait_(versions) {}

  // Takes a completion of a channel, and serves it if it is a request. seen: when the shard found it.
  void Take(const fabric::Completion& completion, Nanoseconds seen);
  // These functions serve parked requests again. WakeForRate takes those that the rate allows, and WakeForRoom those
  // for which there may be room now. WakeForWriter takes up to `limit` of those that await a writer
  // (WriterQueue::Wake), and WakeForMedium those whose version the medium holds now. Each returns how many do not wait
  // any more.
  size_t WakeForRate() {
    return parked_.for_rate.Wake(
        [this](Session& session, uint32_t imm, Nanoseconds seen) { Hear(session, imm, seen); });
  }
  size_t WakeForRoom() {
    const auto serve = [this](const Asked& asked) { Conclude(asked, handler_.Serve(asked, After::kRoom)); };
    return parked_.for_room.Wake(cleaning_.waiting().rooms(), serve);
  }
  size_t WakeForWriter(size_t limit, bool looks);
  size_t WakeForMedium();
  // Returns true if requests or the clock wait for values that clients write. PassTime adds the time to their wait, and
  // ends a session that they await for too long.
  [[nodiscard]] bool awaits_writers() const { return parked_.awaits_writers() || clock_wait_.waits(); }
  void PassTime(Nanoseconds since);
  // Forgets a session that ends.
  void Forget(const Session& session) { parked_.Forget(session); }
  void SetLimit(uint32_t requests_per_second) { parked_.for_rate.SetLimit(requests_per_second); }
  [[nodiscard]] const ParkedRequests& parked() const { return parked_; }

 private:
  // Checks a message, and calls Hear unless it comes too fast.
  void Receive(Session& session, const fabric::Completion& message, Nanoseconds seen);
  // Answers a question for the time, or serves the request in the slot.
  void Hear(Session& session, uint32_t imm, Nanoseconds seen);
  // Ends the handling of a request: parks it if it has to wait, and ends the session if it broke the protocol.
  void Conclude(const Asked& asked, const Served& served);

  RequestHandler handler_;
  Sessions& sessions_;
  Versions& versions_;
  CleaningPolicy& cleaning_;
  ParkedRequests parked_;
  ClockWait clock_wait_;
};

}  // namespace erda::server
