// The client's connections: one to each shard, made when an operation needs it, lost, and made again.
//
// Owns the links, and the closed connections whose channels a completion may still name. Requires the client's
// operations: those that use a connection end with it. Only the client's thread calls it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "client/engine_options.h"
#include "client/link.h"
#include "client/links.h"
#include "client/operations.h"
#include "erda/client.h"
#include "erda/status.h"
#include "fabric/fabric.h"

namespace erda::client {

class Connections {
 public:
  Connections(fabric::Fabric& fabric, std::string address, const EngineOptions& options, const Clock& clock,
              Operations& operations, ClientStats& stats)
      : links_(fabric, std::move(address), options.client_id),
        options_(options),
        clock_(clock),
        operations_(operations),
        stats_(stats) {}
  Status Prepare() { return links_.Prepare(); }

  // --- Making

  // Begins to connect to all shards. Returns true once all links are up. An error is final until the next call.
  Result<bool> Connect();
  // Returns why a connection ended that Connect had begun, and forgets that. Returns ok if none ended.
  Status TakeConnectError() { return std::exchange(connect_error_, Status()); }
  // Begins to connect the link if it is down. Closes the link if that fails.
  void Ensure(Link& link);
  // The server has taken the connection. Returns false if the client does not take the server: the link is closed then.
  bool OnConnected(Link& link);
  // The control block has arrived. Returns true if the link has come up by that.
  bool OnControlRead(Link& link);

  // --- Losing

  // The channel is closed: the client proves that it knows the token if the server asked for that. Otherwise it
  // ends the link.
  void OnClosed(Link& link);
  // Closes the link, and ends every operation on it. The next operation connects again. timed_out: the operation that
  // got no answer, if the client closes the link for that.
  void Close(Link& link, const Status& status, OpIndex timed_out = kNoOp);
  // Closes the link with kUnavailable. In the message `why` follows the address.
  [[gnu::noinline]] void CloseSince(Link& link, const char* why) { Close(link, {Code::kUnavailable, address() + why}); }
  // Notes that a step found no memory, and that nobody knows how far it came. The next Poll calls EndAll.
  void GiveUp() { gives_up_ = true; }
  [[nodiscard]] bool gives_up() const { return gives_up_; }
  // Closes all links, so that no operation stays half done. Needs no memory: closed_ is cleared before, and has had its
  // room.
  void EndAll() noexcept;
  // Returns true if a closed connection is not destroyed yet. Until then the fabric may send from the memory of the
  // operations that ended with it.
  [[nodiscard]] bool has_closed() const { return !closed_.empty(); }
  void DestroyClosed() { closed_.clear(); }
  // Destroys all channels. The owner may only destroy the connections after it.
  void Drop() {
    closed_.clear();
    links_.Clear();
  }

  // --- Control blocks

  // Reads the link's control block. Returns false if the connection failed.
  bool ReadControl(Link& link);
  // Reads the link's control block, and lets the operation wait for it.
  void WaitForHeads(Operation& op);
  // Begins to read the control blocks of all shards, with their counters. ControlsRead says when all have arrived.
  // REQUIRES: ControlsRead().
  Status BeginReadControls();
  [[nodiscard]] bool ControlsRead() const;

  // --- What there is

  [[nodiscard]] Links& links() { return links_; }
  [[nodiscard]] const Links& links() const { return links_; }
  [[nodiscard]] const KnownPool& pool() const { return links_.pool(); }
  [[nodiscard]] const std::string& address() const { return links_.address(); }

 private:
  void Prove(Link& link);
  void CloseOthers(const Link* but);
  void EndOperationsOn(const Link& link, const Status& status, OpIndex timed_out);

  Links links_;
  const EngineOptions& options_;
  const Clock& clock_;
  Operations& operations_;
  ClientStats& stats_;
  Status connect_error_;
  bool gives_up_ = false;
  std::vector<Connection> closed_;  // in this Poll
};

}  // namespace erda::client
