// One shard: a state machine that serves its clients' requests from its completion queues, one for each fabric. It owns
// no thread and reads no clock but the one passed in: ShardThread drives it in production, a seeded loop in tests.
//
// Owns: the parts that a Poll goes through, from what arrives to the replies. Requires: the shard's part of the pool is
// taken up (shard_data.h) before the first Poll; all that the ports refer to outlives the shard. One thread, the
// shard's, calls it, unless a comment says otherwise. A client that breaks the protocol loses its channel, and no other
// client notices.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "base/clock.h"
#include "fabric/fabric.h"
#include "format/messages.h"
#include "server/arrivals.h"
#include "server/commit_batch.h"
#include "server/control_memory.h"
#include "server/events.h"
#include "server/formatted_pool.h"
#include "server/gate.h"
#include "server/inbox.h"
#include "server/persist_timer.h"
#include "server/port.h"
#include "server/reply_batch.h"
#include "server/session.h"
#include "server/sessions.h"
#include "server/shard_data.h"
#include "server/shard_options.h"

namespace erda::server {

class Shard {
 public:
  // Sessions know their port by its place among the ports.
  static Result<std::unique_ptr<Shard>> Create(FormattedPool& pool, uint32_t number, std::span<const Port> ports,
                                               const ShardOptions& options);
  ~Shard();
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  // The gate let in a peer that asked for this shard on that port. The peer becomes a session, or is refused with a
  // message.
  void Admit(std::unique_ptr<fabric::Incoming> incoming, const format::HelloRequest& hello, size_t port,
             const Admission& admission = {}) {
    sessions_.Open(std::move(incoming), hello, port, admission);
  }
  // Ends all sessions whose token is none of these.
  void EndOthers(const TokenIds& tokens) { sessions_.DoomOthers(tokens); }

  // Serves what has arrived on all ports. Returns how much that was.
  size_t Poll();
  // For idle moments: settles what arrived without a commit, and ends what is over. since: the time since the last
  // Tidy. Returns how much it did.
  size_t Tidy(Nanoseconds since);
  // Requests wait for what clients write. PassTime tells that time has passed while they do.
  [[nodiscard]] bool awaits_writers() const { return !inbox_.parked().for_writer.empty(); }
  void PassTime(Nanoseconds since) { inbox_.PassTime(since); }
  // Messages wait because their clients send too fast. held_for: until the first of them may be served.
  [[nodiscard]] bool holds_back() const { return !inbox_.parked().for_rate.empty(); }
  [[nodiscard]] Nanoseconds held_for() const { return inbox_.parked().for_rate.wait(); }
  // Returns true if something is in flight, or waits: Tidy must look again after a while.
  [[nodiscard]] bool unsettled() const;

  // `tell` hears of clients that break the protocol or keep others waiting, and of those that are refused.
  void OnEvent(TellEvent tell) { sessions_.OnEvent(std::move(tell)); }
  // From any thread, for the next request and the next client on. Each limit counts by itself, so no order is needed.
  void SetLimits(uint32_t clients_per_token, uint32_t requests_per_second) {
    sessions_.SetLimit(clients_per_token);
    inbox_.SetLimit(requests_per_second);
  }
  // Returns true once there is no session any more. False: a client is in the middle of a Write, so ask again soon.
  bool EndSessions();
  // Ends all sessions, settles or takes back what is in flight, and leaves the pool as a clean close wants it.
  void Close();

  [[nodiscard]] uint32_t number() const { return number_; }
  [[nodiscard]] ShardData& data() { return data_; }
  [[nodiscard]] ControlMemory& control() { return control_; }
  [[nodiscard]] const Counters& counters() const { return control_.counters(); }

 private:
  Shard(FormattedPool& pool, uint32_t number, std::span<const Port> ports, const ShardOptions& options,
        ControlMemory control, SessionMaker maker);

  [[nodiscard]] bool awaits_room() const { return !inbox_.parked().for_room.empty(); }
  // The phases of a Poll. Receive, Clean and CloseDoomed return how much they did.
  size_t Receive();
  // Makes persistent and visible what the requests of this Poll have done, for all of them together.
  void Publish();
  // Publishes the puts, and sends the replies. Ends sessions that take no replies.
  void Reply();
  size_t Clean(bool was_busy);
  // Closes the sessions that may be closed.
  size_t CloseDoomed();
  // Nothing of the session's client can arrive any more.
  void LetGo(const Session& session);

  const uint32_t number_;
  const Clock& clock_;
  ControlMemory control_;
  ShardData data_;
  Sessions sessions_;
  ReplyBatch replies_;
  CommitBatch commits_;
  Inbox inbox_;
  Arrivals arrivals_;
  PersistTimer persist_timer_;
  uint32_t polls_since_fence_ = 0;
  uint32_t busy_polls_ = 0;
};

}  // namespace erda::server
