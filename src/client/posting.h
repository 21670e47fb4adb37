// Posts work requests to the client's connections. Posts them at once if no other operation is outstanding. Otherwise
// it gathers them, so that each connection gets one doorbell.
//
// Owns the list of the links with gathered requests. Closes a link whose connection fails, which ends its operations.
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

  // Posts or gathers the batch. Returns false if the connection failed.
  [[gnu::always_inline]] bool Post(Link& link, std::span<const fabric::WorkRequest> batch) {
    if (link.channel() == nullptr) return false;
    if (Gathers() && link.connection().gathered() < Connection::kGatheredMax) return Gather(link, batch);
    return link.connection().Post(batch).ok() || Close(link);
  }
  // Returns a Read for the operation. When the last one of a batch completes, the operation goes on.
  fabric::WorkRequest ReadWork(const Operation& op, std::span<std::byte> to, fabric::RemoteAddress from, bool last);
  // Posts one Read. When it completes, the operation is at this step.
  void PostRead(Operation& op, Step step, std::span<std::byte> to, fabric::RemoteAddress from);
  // Returns the operation that goes on after a completed Read, or kNoOp if the Read was not the last one of its batch.
  [[nodiscard]] static OpIndex MovedBy(uint64_t id) { return (id & kLastBit) == 0 ? kNoOp : static_cast<OpIndex>(id); }

  // Returns true if requests are gathered now, to be posted together with those of other operations.
  [[nodiscard]] bool Gathers() const { return operations_.polling() ? gathers_ : operations_.in_flight() > 1; }
  // Sets whether more than one operation goes on in this Poll. Returns the setting before.
  bool SetGathers(bool gathers) { return std::exchange(gathers_, gathers); }
  // Returns true if the next Flush has work: requests are gathered, or an operation will gather some before that.
  [[nodiscard]] bool has_pending() const { return has_pending_; }
  void SetPending() { has_pending_ = true; }
  // Posts the gathered requests.
  void Flush();
  // Forgets the gathered requests, since all connections end.
  void Clear() {
    to_flush_.clear();
    has_pending_ = false;
  }

 private:
  // Ids of posted Reads: the operation's index, and this bit for the last one of a batch.
  static constexpr uint64_t kLastBit = uint64_t{1} << 32;

  [[gnu::noinline]] bool Gather(Link& link, std::span<const fabric::WorkRequest> batch);
  // Closes a link whose connection failed. Returns false.
  [[gnu::cold]] bool Close(Link& link);

  Operations& operations_;
  Connections& connections_;
  ClientStats& stats_;
  std::vector<Link*> to_flush_;  // links with gathered requests, unless they were closed or flushed since
  bool gathers_ = false;
  bool has_pending_ = false;
};

}  // namespace erda::client
