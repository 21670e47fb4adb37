// The sessions of one shard: opens them, finds them by number, and closes them. Holds the limits on connections, and
// tells the server's owner what clients do wrong.
//
// Owns the sessions, and the list of the doomed ones. The shard does not serve a doomed session any more, and closes it
// in a later step. The reason: completions of its channel may still stand in the present batch. Requires: when
// CloseDoomed lets a session go, the caller drops everything that it keeps about the session. The shard's thread calls
// it, and any thread sets the limit.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "mirror/links.h"
#include "server/control/activity.h"
#include "server/control/counters.h"
#include "server/sessions/events.h"
#include "server/sessions/gate.h"
#include "server/sessions/session.h"
#include "server/sessions/session_maker.h"

namespace erda::server {

class Sessions {
 public:
  Sessions(SessionMaker maker, uint32_t shard, Counters counters, ActivityCounts& activity,
           const ShardOptions& options);

  // Opens a session for the peer that came by the port, or refuses the peer with a message.
  void Open(std::unique_ptr<fabric::Incoming> incoming, const format::HelloRequest& hello, size_t port,
            const Admission& admission);
  // Lets a mirror in, or refuses it with a message.
  void OpenMirror(std::unique_ptr<fabric::Incoming> incoming, const format::HelloRequest& hello, size_t port,
                  const Admission& admission, mirror::Links& links);
  void Refuse(fabric::Incoming& incoming, const format::HelloRequest& hello, size_t port, const Status& why);
  // Notes that the session's channel is up.
  void Connect(Session& session);
  // Requires: a session with this number exists.
  [[nodiscard]] Session& At(SessionId id) { return *sessions_[id]; }

  // Dooms the session: the shard ends it after this step.
  void Doom(Session& session);
  void DoomAll();
  // Dooms the sessions whose token is not one of these.
  void DoomOthers(const TokenIds& tokens);
  // Dooms a session whose client broke the protocol.
  [[gnu::cold]] void Violate(Session& session, std::string_view what);
  // Dooms a session whose client keeps others waiting.
  [[gnu::cold]] void EndOverdue(Session& session, std::string_view what);
  // Closes each doomed session whose client's Writes cannot arrive any more, and calls let_go(const Session&) for it.
  // Returns how many it closed.
  //
  // (I8) While a client is in the middle of a Write, the shard keeps the session, with its space in the log. A client
  // without write access to the pool has no such space, so its session closes at once.
  template <class LetGo>
  size_t CloseDoomed(LetGo&& let_go) {
    has_new_doomed_ = false;
    return std::erase_if(doomed_, [&](Session* session) {
      if (!MayClose(*session)) return false;
      Close(*session, let_go);
      return true;
    });
  }
  // Closes all sessions, even of clients that are in the middle of a Write: destroying a channel fences it.
  template <class LetGo>
  void CloseAll(LetGo&& let_go) {
    DoomAll();
    for (Session* session : std::exchange(doomed_, {})) Close(*session, let_go);
  }
  [[nodiscard]] bool has_doomed() const { return !doomed_.empty(); }
  // Returns true if sessions were doomed since the last CloseDoomed.
  [[nodiscard]] bool has_new_doomed() const { return has_new_doomed_; }

  void CountRefused(size_t fabric);
  // Limits the connections with one token, or of one client id; 0: there is no limit. Any thread may call it; it counts
  // from the next client on. Relaxed: the limit orders no other memory.
  void SetLimit(uint32_t clients_per_token) { clients_per_token_.store(clients_per_token, std::memory_order_relaxed); }
  // `tell` hears of clients that break the protocol or keep others waiting, and of those that are refused.
  void OnEvent(TellEvent tell) { tell_ = std::move(tell); }

 private:
  Status LetIn(fabric::Incoming& incoming, const format::HelloRequest& hello, size_t port, const Admission& admission);
  [[nodiscard]] Status MayConnect(const format::HelloRequest& hello, const Admission& admission) const;
  [[nodiscard]] static bool MayClose(const Session& session);
  template <class LetGo>
  void Close(Session& session, LetGo& let_go) {
    session.channel.reset();  // the fence: from here on none of its Writes arrives, not even through a window
    let_go(static_cast<const Session&>(session));
    Remove(session);
  }
  void Remove(Session& session);
  void CountRegistered(const Session& session, bool comes);
  void TellOf(const Session& session, std::string_view what) const;

  const SessionMaker maker_;
  const uint32_t shard_;
  const uint32_t max_clients_;
  Counters counters_;
  ActivityCounts& activity_;
  const std::vector<size_t> fabric_of_port_;        // the numbers under which the statistics count them
  std::vector<std::unique_ptr<Session>> sessions_;  // by number; null where free
  std::vector<Session*> doomed_;                    // in the order in which they were doomed
  bool has_new_doomed_ = false;
  std::atomic<uint32_t> clients_per_token_;
  TellEvent tell_;
};

}  // namespace erda::server
