// The client's connections: one to each shard, made when an operation needs it, lost, and made again; and what they say
// of the pool.
//
// Owns the completion queue, the links, and the connections that were closed and may still be named by a completion.
// Requires the client's operations: those that use a connection end with it. Only the client's thread calls it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/hash.h"
#include "client/engine_options.h"
#include "client/link.h"
#include "client/operations.h"
#include "erda/client.h"
#include "erda/status.h"
#include "fabric/fabric.h"

namespace erda::client {

// The pool, as the connections described it. Before the first connection it is not known.
struct KnownPool {
  bool is_known = false;
  format::Geometry geometry{};
  std::array<uint8_t, 16> uuid{};
  HashSeed hash_seed{};

  // The largest value for a key of this size; 0 while the pool is not known.
  [[nodiscard]] size_t ValueBytesMax(size_t key_bytes) const {
    return is_known ? format::ValueBytesMax(geometry, key_bytes) : 0;
  }
};

class Connections {
 public:
  Connections(fabric::Fabric& fabric, std::string address, const EngineOptions& options, const Clock& clock,
              Operations& operations, ClientStats& stats)
      : fabric_(fabric),
        address_(std::move(address)),
        options_(options),
        clock_(clock),
        operations_(operations),
        stats_(stats) {}
  // Makes the queue, and the link to the first shard.
  Status Prepare();

  // --- Making

  // Begins to connect to all shards: true once all are up. An error is final until the next call.
  Result<bool> Connect();
  // Why a connection ended that Connect had begun, once; ok if none did.
  Status TakeConnectError() { return std::exchange(connect_error_, Status()); }
  // The link begins to connect if it is down. If it cannot, it is closed.
  void Ensure(Link& link);
  // The server has taken the connection. False: the client does not take the server, and the link is closed.
  bool OnConnected(Link& link);
  // The control block has arrived. True: the link has come up just now.
  bool OnControlRead(Link& link);

  // --- Losing

  // The channel is closed: the client proves that it knows the token if the server asked for that. Otherwise it
  // ends the link.
  void OnClosed(Link& link);
  // Ends the link, and every operation on it; the next operation connects again. timed_out: the operation that got no
  // answer, if that is why.
  void Close(Link& link, const Status& status, OpIndex timed_out = kNoOp);
  // The same with kUnavailable; why follows the address.
  void CloseSince(Link& link, const char* why) { Close(link, {Code::kUnavailable, address_ + why}); }
  // A step found no memory, and nobody knows how far it came. The next Poll ends all operations with their connections.
  void GiveUp() { gives_up_ = true; }
  [[nodiscard]] bool gives_up() const { return gives_up_; }
  // Does so; that leaves no operation half done. Needs no memory: closed_ is cleared before, and has had its room.
  void EndAll() noexcept;
  // Closed connections, until they are destroyed: nothing may send from memory of their operations after that.
  [[nodiscard]] bool has_closed() const { return !closed_.empty(); }
  void DestroyClosed() { closed_.clear(); }
  // Destroys all channels. Nothing else may be called after it.
  void Drop() {
    closed_.clear();
    links_.clear();
  }

  // --- Control blocks

  // Asks for the link's control block. False if the connection failed.
  bool ReadControl(Link& link);
  // The operation waits for the region numbers, read again.
  void WaitForHeads(Operation& op);
  // Begins to read the control blocks of all shards, with their counters; ControlsRead says when all have arrived.
  // REQUIRES: ControlsRead().
  Status BeginReadControls();
  [[nodiscard]] bool ControlsRead() const;

  // --- What there is

  [[nodiscard]] fabric::CompletionQueue& queue() { return *queue_; }
  [[nodiscard]] const std::string& address() const { return address_; }
  [[nodiscard]] const KnownPool& pool() const { return pool_; }
  [[nodiscard]] uint32_t pool_seed() const { return format::PoolSeed(pool_.uuid); }
  // By shard. Before the first connection: the link to the first shard.
  [[nodiscard]] std::span<const std::unique_ptr<Link>> links() const {
    return std::span(links_).first(pool_.is_known ? pool_.geometry.shards : 1);
  }
  // REQUIRES: the pool is known.
  [[nodiscard]] Link& LinkOfKey(uint64_t key_hash) const { return *links_[pool_.geometry.ShardOf(key_hash)]; }
  [[nodiscard]] Link& LinkOf(const Operation& op) const {
    if (op.shard != Operation::kByKey) return *links_[op.shard];
    return pool_.is_known ? LinkOfKey(op.key_hash) : *links_[0];
  }
  // The client has a chunk of some log, or says something of one: servers may have something to say, too.
  [[nodiscard]] bool HasChunks() const;

 private:
  void Prove(Link& link);
  void AdoptPool(const Link& link);
  void CloseOthers(const Link* but);
  void EndOperationsOn(const Link& link, const Status& status, OpIndex timed_out);

  fabric::Fabric& fabric_;
  const std::string address_;
  const EngineOptions& options_;
  const Clock& clock_;
  Operations& operations_;
  ClientStats& stats_;
  std::unique_ptr<fabric::CompletionQueue> queue_;
  KnownPool pool_;
  Status connect_error_;
  bool gives_up_ = false;
  std::vector<std::unique_ptr<Link>> links_;  // by shard; never removed, since operations point at them
  // Connections that were closed in this Poll.
  std::vector<Link::Connection> closed_;
};

}  // namespace erda::client
