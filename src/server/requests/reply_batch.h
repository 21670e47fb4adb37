// The replies and notices of one step of a shard for its clients.
//
// Owns the messages that were added since the last Send, and the kinds of the requests that they answer. The bytes of a
// reply lie in its session's reply memory. Requires: the shard has published its puts before it sends (AllPublished),
// so no client hears of a put that is not published. The shard forgets a session before that session ends. The shard's
// thread calls it.
#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "server/control/activity.h"
#include "server/sessions/session.h"
#include "server/versions/all_published.h"
#include "server/versions/versions.h"

namespace erda::server {

class ReplyBatch {
 public:
  // `clock` times how long requests take until their replies are posted.
  ReplyBatch(ActivityCounts& activity, const Clock& clock) : activity_(activity), clock_(clock) {}

  // Adds the reply to a request. `kind` is the request's RequestOp, or 0 for a question for the time.
  void AddReply(const Asked& asked, uint8_t kind, uint64_t id, const Outcome& outcome);
  // Adds a message without bytes, which the client did not ask for.
  void AddNotice(Session& session, uint32_t imm) { Add(session, imm, {}); }
  // Posts the messages, those of one session together. Calls fail(Session&) for each session whose channel has no room
  // for them.
  template <class Fail>
  void Send(AllPublished, Fail&& fail) {
    for (; !sessions_.empty(); sessions_.pop_back()) {
      if (!Post(*sessions_.back())) fail(*sessions_.back());
    }
    if (!answered_.empty()) TimeAnswers();
  }
  // Drops the messages for the session.
  void Forget(const Session& session) { std::erase(sessions_, &session); }
  [[nodiscard]] bool empty() const { return sessions_.empty(); }

 private:
  // Requests of one kind that the shard found together, at the time `seen`.
  struct Answered {
    uint8_t kind = 0;
    uint32_t count = 0;
    Nanoseconds seen{0};
  };

  void Add(Session& session, uint32_t imm, std::span<std::byte> reply);
  // Returns false if the channel has no room for the session's messages.
  static bool Post(Session& session);
  void TimeAnswers();

  ActivityCounts& activity_;
  const Clock& clock_;
  std::vector<Session*> sessions_;  // sessions with messages to post
  std::vector<Answered> answered_;  // in the order in which the replies were added
};

}  // namespace erda::server
