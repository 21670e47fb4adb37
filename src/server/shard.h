// One shard: a state machine that serves its clients' requests from its completion queues, one for each fabric. It owns
// no thread, and reads only the clock that its options name. ShardThread drives it in production, and a seeded loop in
// tests.
//
// Owns the parts that a Poll goes through, from the completions to the replies. Requires: the shard's part of the pool
// is taken up (shard_data.h) before the first Poll. The objects of the ports outlive the shard. One thread, the
// shard's, calls it, unless a comment says otherwise. A client that breaks the protocol loses its channel, and no other
// client notices.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "base/clock.h"
#include "fabric/fabric.h"
#include "format/hello.h"
#include "server/control/control_memory.h"
#include "server/control/hold_timer.h"
#include "server/control/persist_timer.h"
#include "server/pool/formatted_pool.h"
#include "server/requests/arrivals.h"
#include "server/requests/commit_batch.h"
#include "server/requests/inbox.h"
#include "server/requests/medium_queue.h"
#include "server/requests/parked_requests.h"
#include "server/requests/reply_batch.h"
#include "server/sessions/events.h"
#include "server/sessions/gate.h"
#include "server/sessions/port.h"
#include "server/sessions/session.h"
#include "server/sessions/sessions.h"
#include "server/sessions/shard_options.h"
#include "server/shard_data.h"

namespace erda::server {

class Shard {
 public:
  // A session stores the index of its port in `ports`.
  static Result<std::unique_ptr<Shard>> Create(FormattedPool& pool, uint32_t number, std::span<const Port> ports,
                                               const ShardOptions& options);
  ~Shard();
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  // Takes a peer that asked for this shard on that port, and that the gate has let in. Makes a session or a link for
  // the peer, or refuses it with a message.
  void Admit(std::unique_ptr<fabric::Incoming> incoming, const format::HelloRequest& hello, size_t port,
             const Admission& admission = {});
  // Returns the links to mirrors. Null: the pool has no mirrors.
  [[nodiscard]] mirror::Links* links() { return links_; }
  // Ends all sessions and all links to mirrors whose token is not one of these.
  void EndOthers(const TokenIds& tokens);
  // The same for the links to mirrors alone. REQUIRES: links() is not null.
  void EndOtherMirrors(const TokenIds& tokens);

  // Serves the messages that have arrived on all ports. Returns how much work that was.
  size_t Poll();
  // For idle moments: settles versions that arrived without a commit, and ends waits and sessions that are over. since:
  // the time since the last Tidy. Returns how much it did.
  size_t Tidy(Nanoseconds since);
  // Returns the requests that wait.
  [[nodiscard]] const ParkedRequests& parked() const { return inbox_.parked(); }
  // Returns true if something waits for values that clients write. PassTime adds the time for which it has waited.
  [[nodiscard]] bool awaits_writers() const { return inbox_.awaits_writers(); }
  void PassTime(Nanoseconds since) { inbox_.PassTime(since); }
  // Returns true if versions are in flight, or requests wait. Then Tidy must look again (TidyTimer).
  [[nodiscard]] bool unsettled() const;

  // `tell` hears of clients that break the protocol or keep others waiting, and of those that are refused.
  void OnEvent(TellEvent tell) { sessions_.OnEvent(std::move(tell)); }
  // Any thread may call it. The limits count from the next request and the next client on. Each limit counts by itself,
  // so no order is needed.
  void SetLimits(uint32_t clients_per_token, uint32_t requests_per_second) {
    sessions_.SetLimit(clients_per_token);
    inbox_.SetLimit(requests_per_second);
  }
  // Ends all sessions. Returns true once none is left. If it returns false, a client is in the middle of a Write, and
  // the caller calls again soon.
  bool EndSessions();
  // Ends all sessions, settles or takes back all versions in flight, and leaves the pool as after a clean close.
  void Close();

  [[nodiscard]] uint32_t number() const { return number_; }
  [[nodiscard]] ShardData& data() { return data_; }
  [[nodiscard]] ControlMemory& control() { return control_; }
  [[nodiscard]] const Counters& counters() const { return control_.counters(); }

 private:
  Shard(FormattedPool& pool, uint32_t number, std::span<const Port> ports, const ShardOptions& options,
        ControlMemory control, SessionMaker maker);

  // On a pool with a journal or mirrors: settles what the medium holds now, and goes on with what waited for that.
  // Returns how much it did.
  size_t TakeHeld();
  size_t SettleHeld();
  // The medium of a pool with a journal has failed. `held`: the last place that it holds.
  size_t GiveUp(uint64_t held);
  // Sends the stream to the mirrors. Before that all of it is fenced. Then it may look at the time. Returns 1 if that
  // changes what the shard may answer.
  size_t SendToMirrors(bool looks);
  // Has the medium write what versions or answers wait for. Returns true if the medium holds it already, as a front
  // does. Then the next Poll has something to do.
  bool AskHeld();
  // The phases of a Poll. Receive, Clean and CloseDoomed return how much they did.
  size_t Receive();
  // Makes the effects of all requests of this Poll persistent and visible together.
  void Publish();
  // Publishes the puts, and sends the replies. Ends sessions that take no replies.
  void Reply();
  size_t Clean(bool was_busy);
  // Closes the doomed sessions that may be closed.
  size_t CloseDoomed();
  // Drops everything that the shard keeps about the session. Requires: no Write of its client can arrive any more.
  void LetGo(const Session& session);

  const uint32_t number_;
  const Clock& clock_;
  mirror::Links* const links_;
  ControlMemory control_;
  ShardData data_;
  Sessions sessions_;
  ReplyBatch replies_;
  CommitBatch commits_;
  MediumQueue for_medium_;
  Inbox inbox_;
  Arrivals arrivals_;
  PersistTimer persist_timer_;
  HoldTimer hold_timer_;
  uint64_t held_ = 0;  // The place up to which TakeHeld has looked.
  bool gave_up_ = false;
  uint32_t polls_since_fence_ = 0;
  uint32_t polls_since_look_ = 0;
  uint32_t busy_polls_ = 0;
};

}  // namespace erda::server
