// Makes the sessions of a shard. Decides what a client may do, makes the memory that its session needs, and offers the
// client the registered memory.
//
// Owns the registrations of the shard's control block, one for each port. Requires: the pool, the control block, and
// the objects of the ports outlive it and its sessions. The shard's thread calls it.
#pragma once

#include <memory>
#include <vector>

#include "base/shared_memory.h"
#include "fabric/fabric.h"
#include "format/hello.h"
#include "server/pool/formatted_pool.h"
#include "server/sessions/gate.h"
#include "server/sessions/port.h"
#include "server/sessions/session.h"
#include "server/sessions/shard_options.h"

namespace erda::server {

class SessionMaker {
 public:
  // Registers the control block with the fabric of each port.
  static Result<SessionMaker> Create(FormattedPool& pool, const SharedMemory& control, std::span<const Port> ports,
                                     const ShardOptions& options);

  // Makes a session with this number, for a client that comes by the port. The session has no channel yet.
  Result<std::unique_ptr<Session>> Make(SessionId id, const format::HelloRequest& hello, size_t port,
                                        const Admission& admission, fabric::PeerUser user) const;
  // Lets the client in: the session gets its channel.
  Status Accept(fabric::Incoming& incoming, const Admission& admission, Session& session) const;

  // Returns what a mirror that comes by this port may Read, and how the server greets it.
  [[nodiscard]] fabric::Region& OfferForMirror(size_t port) const { return *ports_[port].pool_regions.readable; }
  [[nodiscard]] format::HelloReply GreetingForMirror(const Admission& admission) const;

  [[nodiscard]] std::span<const Port> ports() const { return ports_; }
  // Returns how many bytes are registered at all ports, without the memory of the sessions. Includes the pool if
  // `with_pool`.
  [[nodiscard]] uint64_t RegisteredBytes(bool with_pool) const;

 private:
  SessionMaker(FormattedPool& pool, std::span<const Port> ports, const ShardOptions& options);

  [[nodiscard]] bool MayWritePool(fabric::PeerUser user) const;
  Status GiveRequestMemory(Session& session) const;
  Status GiveStaging(Session& session) const;
  // Returns the part of a greeting that the pool and the server give.
  [[nodiscard]] format::HelloReply CommonGreeting() const;
  [[nodiscard]] format::HelloReply Greeting(const Session& session, const Admission& admission) const;

  FormattedPool& pool_;
  std::vector<Port> ports_;
  ShardOptions options_;
  std::vector<std::unique_ptr<fabric::Region>> control_regions_;  // by port
};

}  // namespace erda::server
