// The limit of requests per second, and the messages of clients that send faster.
//
// Owns the limit, and the list of the sessions with such messages. Each session holds its messages, in the order in
// which they came (Session::held), and its rate. Only the queue changes these. Requires: the shard forgets a session
// before that session ends. In each Poll, the shard wakes the queue first, since the queue reads the time once a Poll.
// The shard's thread calls it, and any thread sets the limit.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "base/server_time.h"
#include "server/sessions/session.h"

namespace erda::server {

class RateQueue {
 public:
  // `per_second` requests of one client are served; 0: there is no limit.
  RateQueue(const ServerTime& time, uint32_t per_second) : time_(time), per_second_(per_second) {}

  // Sets the limit from the next message on. Relaxed: sending and finding a message already gives the order. So if the
  // limit was set before a client sent a message, the message finds that limit.
  void SetLimit(uint32_t per_second) { per_second_.store(per_second, std::memory_order_relaxed); }

  // Keeps the message if it comes too fast, or if the queue has earlier ones of the session. Returns false if the shard
  // may serve the message now.
  bool ParkIfTooFast(Session& session, uint32_t imm, Nanoseconds seen) {
    const bool may = per_second_.load(std::memory_order_relaxed) != 0 || !session.held.empty();
    return may && Park(session, imm, seen);
  }
  // Calls hear(Session&, imm, seen) for each message that the shard may serve now. Returns how many these were.
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
  // Returns the time until the shard may serve the first of the messages. Requires: the queue has messages.
  [[nodiscard]] Nanoseconds wait() const;

 private:
  bool Park(Session& session, uint32_t imm, Nanoseconds seen);
  // Returns true if the message comes too fast. Otherwise counts it.
  [[nodiscard]] bool IsTooFast(Session& session);

  const ServerTime& time_;
  std::atomic<uint32_t> per_second_;
  std::vector<Session*> sessions_;
  uint64_t now_micros_ = 0;  // the time in this Poll; 0: not read yet
};

}  // namespace erda::server
