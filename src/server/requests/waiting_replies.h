// Replies that wait until the medium holds what they tell (docs/journal.md, "Answers"). Only a pool with a journal has
// such replies.
//
// Answers to puts with Ack::kPlaced are sent at once, and stand in the same queue: they count until the medium holds
// their puts. A session may have as many of them as it has slots. So it has no more versions waiting for the medium
// than twice its slots, apart from those of its reservations.
//
// Owns the order of the replies, and each session's counts of them (Session::awaiting_hold, ::placed). The bytes of a
// reply lie in its session's reply memory. Requires: the shard forgets a session before that session ends. The shard's
// thread calls it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>

#include "server/sessions/session.h"

namespace erda::server {

class WaitingReplies {
 public:
  // Adds the reply to a request of this kind. Its place is that of the next Place.
  void Add(const Asked& asked, uint8_t kind) {
    ++asked.session.awaiting_hold;
    ++unsent_;
    Push({ParkedRequest(asked), kind, false, UINT64_MAX});
  }
  // Counts the reply to a put with kPlaced, which the caller sends now. Returns false if the session has too many of
  // them: then the reply has to wait.
  [[nodiscard]] bool AddPlaced(const Asked& asked) {
    if (asked.session.placed >= asked.session.slots) return false;
    ++asked.session.placed;
    Push({ParkedRequest(asked), 0, true, UINT64_MAX});
    return true;
  }
  // The replies that were added since the last call wait until the medium holds the stream up to this place.
  void Place(uint64_t place) {
    for (; without_place_ > 0; --without_place_) replies_[replies_.size() - without_place_].place = place;
  }
  // Calls send(const Asked&, uint8_t kind) for each reply whose place is held, in their order, unless it is sent.
  // Returns how many left the queue.
  template <class Send>
  size_t Release(uint64_t held, Send&& send) {
    size_t released = 0;
    for (; replies_.size() > without_place_ && replies_.front().place <= held; ++released) {
      const Waiting reply = replies_.front();
      replies_.pop_front();
      if (reply.is_sent) {
        --reply.request.session->placed;
        continue;
      }
      --reply.request.session->awaiting_hold;
      --unsent_;
      send(reply.request.asked(), reply.kind);
    }
    return released;
  }
  // The same for all replies: none of them waits any more.
  template <class Send>
  size_t ReleaseAll(Send&& send) {
    Place(0);
    return Release(UINT64_MAX, send);
  }
  // The replies up to the place `held` need a place more: they wait up to `place`.
  void Postpone(uint64_t held, uint64_t place) {
    for (Waiting& each : replies_) {
      if (each.place > held) return;
      each.place = place;
    }
  }
  void Forget(const Session& session) {
    if (session.awaiting_hold + session.placed == 0) return;
    const auto is_its = [&](const Waiting& each) { return each.request.session == &session; };
    without_place_ -= static_cast<size_t>(
        std::count_if(replies_.end() - static_cast<ptrdiff_t>(without_place_), replies_.end(), is_its));
    unsent_ -= static_cast<size_t>(
        std::ranges::count_if(replies_, [&](const Waiting& each) { return is_its(each) && !each.is_sent; }));
    std::erase_if(replies_, is_its);
  }
  [[nodiscard]] bool has_without_place() const { return without_place_ > 0; }
  // Returns true if a client waits that has asked for the time.
  [[nodiscard]] bool tells_time() const {
    return std::ranges::any_of(replies_, [](const Waiting& each) { return each.kind == 0 && !each.is_sent; });
  }
  [[nodiscard]] bool empty() const { return replies_.empty(); }
  // Returns how many are not sent yet.
  [[nodiscard]] size_t unsent() const { return unsent_; }

 private:
  struct Waiting {
    ParkedRequest request;
    uint8_t kind = 0;
    bool is_sent = false;
    uint64_t place = 0;
  };

  void Push(const Waiting& reply) {
    replies_.push_back(reply);
    ++without_place_;
  }

  std::deque<Waiting> replies_;
  size_t without_place_ = 0;  // The last ones of replies_.
  size_t unsent_ = 0;
};

}  // namespace erda::server
