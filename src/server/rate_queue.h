// Messages of clients that send faster than the limit of requests per second, and that limit.
//
// Owns: the limit; the list of the sessions that have such messages. Each session holds its messages, in the order in
// which they came (Session::held), and its rate. The queue alone changes these. Requires: the shard forgets a session
// before that session ends, and wakes the queue first in each Poll, since the queue reads the time once a Poll. The
// shard's thread calls it, and any thread sets the limit.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "base/server_time.h"
#include "server/session.h"

namespace erda::server {

class RateQueue {
 public:
  // `per_second` requests of one client are served; 0: there is no limit.
  RateQueue(const ServerTime& time, uint32_t per_second) : time_(time), per_second_(per_second) {}

  // Sets the limit from the next message on. Relaxed: a message finds the limit that was set before its client sent it,
  // by the order in which a message is sent and found.
  void SetLimit(uint32_t per_second) { per_second_.store(per_second, std::memory_order_relaxed); }

  // Keeps the message if it comes too fast, or if it comes after others that the queue has. Returns false if the
  // message may be served now.
  bool ParkIfTooFast(Session& session, uint32_t imm, Nanoseconds seen) {
    const bool may = per_second_.load(std::memory_order_relaxed) != 0 || !session.held.empty();
    return may && Park(session, imm, seen);
  }
  // Calls hear(Session&, imm, seen) for each message that may be served now. Returns how many these were.
  template <class Hear>
  size_t Wake(Hear&& hear) {
    now_micros_ = 0;
    if (sessions_.empty()) return 0;
    size_t served = 0;
    std::erase_if(sessions_, [&](Session* session) {
      for (; !session->doomed && !session->held.empty() && !IsTooFast(*session); ++served) {
        const auto [imm, seen] = session->held.front();
        session->held.pop_front();
        hear(*session, imm, seen);
      }
      return session->doomed || session->held.empty();
    });
    return served;
  }
  void Forget(const Session& session) { std::erase(sessions_, &session); }
  [[nodiscard]] bool empty() const { return sessions_.empty(); }
  // How long it takes until one of the messages may be served. Requires: there are some.
  [[nodiscard]] Nanoseconds wait() const;

 private:
  bool Park(Session& session, uint32_t imm, Nanoseconds seen);
  // Counts the message if it is not too fast.
  [[nodiscard]] bool IsTooFast(Session& session);

  const ServerTime& time_;
  std::atomic<uint32_t> per_second_;
  std::vector<Session*> sessions_;
  uint64_t now_micros_ = 0;  // in this Poll; 0: not read yet
};

}  // namespace erda::server
