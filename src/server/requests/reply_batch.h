// The replies and notices of one step of a shard for its clients.
//
// Owns the replies that wait until the medium holds what they tell. Owns the messages that were added since the last
// Send, and the kinds of the requests that they answer. The bytes of a reply lie in its session's reply memory.
// Requires: the shard has published its puts before it sends (AllPublished), so no client hears of a put that is not
// published. The shard forgets a session before that session ends. The shard's thread calls it.
#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "nvm/writer.h"
#include "server/control/activity.h"
#include "server/requests/request_rules.h"
#include "server/requests/waiting_replies.h"
#include "server/sessions/session.h"
#include "server/versions/all_published.h"
#include "server/versions/versions.h"

namespace erda::server {

class ReplyBatch {
 public:
  // `clock` times how long requests take until their replies are posted.
  ReplyBatch(const nvm::Writer& nvm, ActivityCounts& activity, const Clock& clock)
      : nvm_(nvm), holds_later_(nvm.holds_later()), activity_(activity), clock_(clock) {}

  // Adds the reply to a request. `kind` is the request's RequestOp, or 0 for a question for the time. On a pool with a
  // journal, a reply that is never undone waits until the medium holds all that the shard has flushed. So does one to a
  // put with kPlaced, if the session has too many of them. If the medium has failed, a reply that would wait is an
  // error, unless it gives space for a value.
  void AddReply(const Asked& asked, uint8_t kind, uint64_t id, const Outcome& outcome, Undone undone = Undone::kNever);
  // Adds a message without bytes, which the client did not ask for.
  void AddNotice(Session& session, uint32_t imm) { Add(session, imm, {}); }
  // Posts the messages, those of one session together. Calls fail(Session&) for each session whose channel has no room
  // for them.
  template <class Fail>
  void Send(AllPublished, Fail&& fail) {
    if (holds_later_) {
      waiting_.Place(nvm_.place());
      (void)AddHeld(held_);  // An answer that needs nothing new need not wait for more.
    }
    for (; !sessions_.empty(); sessions_.pop_back()) {
      if (!Post(*sessions_.back())) fail(*sessions_.back());
    }
    if (!answered_.empty()) TimeAnswers();
  }
  // Adds the replies that waited, and whose place the medium holds now: the next Send posts them. Returns how many.
  size_t AddHeld(uint64_t held);
  // The medium has failed: adds the replies that waited, as errors, except those that give space. Returns how many.
  size_t AddFailed();
  // The replies that AddHeld would add wait until the medium holds all that the shard has flushed now.
  void Postpone(uint64_t held) { waiting_.Postpone(held, nvm_.place()); }
  // Drops the messages for the session.
  void Forget(const Session& session) {
    std::erase(sessions_, &session);
    waiting_.Forget(session);
  }
  // Returns true if answers wait until the medium holds more.
  [[nodiscard]] bool waits() const { return !waiting_.empty(); }
  [[nodiscard]] size_t waiting() const { return waiting_.unsent(); }
  // Returns true if one of them tells the time.
  [[nodiscard]] bool tells_time() const { return waiting_.tells_time(); }
  [[nodiscard]] bool empty() const { return sessions_.empty() && !waiting_.has_without_place(); }

 private:
  // Requests of one kind that the shard found together, at the time `seen`.
  struct Answered {
    uint8_t kind = 0;
    uint32_t count = 0;
    Nanoseconds seen{0};
  };

  // Returns true if the reply has to wait. Otherwise counts it, if it is for a put with kPlaced. Requires: the pool has
  // a journal.
  [[nodiscard]] bool HasToWait(const Asked& asked, Undone undone);
  void Add(Session& session, uint32_t imm, std::span<std::byte> reply);
  // Adds the reply that lies in the slot's reply memory.
  void AddFromMemory(const Asked& asked, uint8_t kind);
  // Returns false if the channel has no room for the session's messages.
  static bool Post(Session& session);
  void TimeAnswers();

  const nvm::Writer& nvm_;
  const bool holds_later_;
  WaitingReplies waiting_;
  uint64_t held_ = 0;  // The place of the last AddHeld: all versions before it are settled.
  ActivityCounts& activity_;
  const Clock& clock_;
  std::vector<Session*> sessions_;  // sessions with messages to post
  std::vector<Answered> answered_;  // in the order in which the replies were added
};

}  // namespace erda::server
