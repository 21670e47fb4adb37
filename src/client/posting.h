// What the client posts to its connections: at once if nothing else is on its way, else gathered, so that one doorbell
// goes to each connection.
//
// Owns the list of links that have something gathered. Closes a link whose connection fails, which ends its operations.
// Only the client's thread calls it.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "client/connections.h"
#include "client/link.h"
#include "client/operations.h"
#include "erda/client.h"
#include "fabric/fabric.h"

namespace erda::client {

class Posting {
 public:
  Posting(Operations& operations, Connections& connections, ClientStats& stats)
      : operations_(operations), connections_(connections), stats_(stats) {}
  void Prepare() { to_flush_.reserve(operations_.size()); }

  // False if the connection failed.
  bool Post(Link& link, std::span<const fabric::WorkRequest> batch);
  // A Read for the operation. The last one of a batch moves the operation on when it completes.
  fabric::WorkRequest ReadWork(const Operation& op, std::span<std::byte> to, fabric::RemoteAddress from, bool last);
  // Posts one Read; its completion finds the operation at this step.
  void PostRead(Operation& op, Step step, std::span<std::byte> to, fabric::RemoteAddress from);
  // The operation that a completed Read moves on; kNoOp: none, since the Read was not the last one of its batch.
  [[nodiscard]] static OpIndex MovedBy(uint64_t id) { return (id & kLastBit) == 0 ? kNoOp : static_cast<OpIndex>(id); }

  // What is posted now goes out together with what others post.
  [[nodiscard]] bool Gathers() const { return operations_.polling() ? gathers_ : operations_.in_flight() > 1; }
  // Whether more than one operation goes on in this Poll. Returns what was said before.
  bool SetGathers(bool gathers) { return std::exchange(gathers_, gathers); }
  // Something is to go out with the next Flush: it is gathered, or an operation is to gather it before that.
  [[nodiscard]] bool has_pending() const { return has_pending_; }
  void SetPending() { has_pending_ = true; }
  // Posts what was gathered.
  void Flush();
  // Forgets what was gathered: all connections end.
  void Clear() {
    to_flush_.clear();
    has_pending_ = false;
  }

 private:
  // Ids of posted Reads: the operation's index, and this bit for the last one of a batch.
  static constexpr uint64_t kLastBit = uint64_t{1} << 32;

  Operations& operations_;
  Connections& connections_;
  ClientStats& stats_;
  std::vector<Link*> to_flush_;  // where something is gathered, unless it was closed or flushed since
  bool gathers_ = false;
  bool has_pending_ = false;
};

}  // namespace erda::client
