// The sending half of an shm channel. It executes the requests that this end posts. One-sided operations are copies in
// or out of the peer's memory. Messages go into the ring that the peer reads. The sender watches whether the peer is
// there, since the memory of a peer that left is still mapped here.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "fabric/fabric.h"
#include "fabric/shm/beacon.h"
#include "fabric/shm/copy.h"
#include "fabric/shm/memory_map.h"
#include "fabric/shm/peer_memory.h"
#include "fabric/shm/ring.h"

namespace erda::fabric::shm {

// Only the thread of the channel's queue calls it.
class Sender {
 public:
  // A batch of requests while it is executed. From its first Write to its end, the ring tells the peer that this end
  // may be placing bytes. The peer waits for that end before it uses its memory for something else.
  class Batch {
   public:
    explicit Batch(Sender& sender) : sender_(sender) {}
    ~Batch() { EndPlacing(); }
    Batch(const Batch&) = delete;
    Batch& operator=(const Batch&) = delete;

    // Executes the next request. Returns kUnavailable if it writes and the peer is gone. Returns kPermissionDenied if
    // the peer did not grant the access. REQUIRES: Check allowed the batch.
    Code Execute(const WorkRequest& work);
    void EndPlacing() {
      if (places_) sender_.ring_.EndPlacing();
      places_ = false;
    }

   private:
    // Returns false if the peer is gone.
    bool BeginPlacing() {
      places_ = places_ || sender_.ring_.BeginPlacing();
      return places_;
    }

    Sender& sender_;
    bool places_ = false;
  };

  // Sends in `ring`, to a peer that offers nothing yet.
  explicit Sender(Ring ring) : ring_(ring) {}
  // Takes the memory that the peer offers, and its beacon. A peer without a beacon (null) tells its end by the ring.
  void Connect(PeerMemory memory, std::shared_ptr<Mapping> beacon) {
    memory_ = std::move(memory);
    beacon_ = std::move(beacon);
  }

  [[nodiscard]] const PeerMemory& memory() const { return memory_; }
  // Returns kInvalidArgument if a request breaks the contract on this side. Returns kResourceExhausted if the ring has
  // no room for the messages.
  [[nodiscard]] Status Check(std::span<const WorkRequest> batch);
  // Sends a WriteImm at once, if all is well. Returns false if it did nothing: Check and a batch then find the reason.
  // REQUIRES: the request is a WriteImm.
  [[nodiscard]] bool Send(const WorkRequest& work);
  // Reads at once. Returns false if the peer did not grant that. Takes the bytes before any later operation is
  // executed, since operations are executed in order. The fence pairs with the releasing stores of the thread that
  // wrote the bytes.
  [[nodiscard]] bool Read(std::span<std::byte> local, const RemoteAddress& remote) const {
    const std::byte* from = memory_.Find(remote, local.size(), Access::kRemoteRead);
    if (from == nullptr) return false;
    CopyFromShared(local.data(), from, local.size());
    std::atomic_thread_fence(std::memory_order_acquire);
    return true;
  }
  // Shows the pushed messages to the peer. Returns true if the peer sleeps, and must be woken.
  [[nodiscard]] bool Publish() { return ring_.Publish(); }

  // Returns true if the peer closed the channel, which the ring tells, or died, which the beacon tells.
  [[nodiscard]] bool PeerIsGone() const { return ring_.ConsumerIsGone(wrote_) || !PeerLives(); }
  // Returns true if the peer is still there, and so was there during all operations that were executed so far.
  [[nodiscard]] bool PeerWasThere() {
    const bool gone = PeerIsGone();
    wrote_ = false;
    return !gone;
  }

 private:
  // Copies the bytes of a Write or WriteImm into the peer's memory. Returns the codes of Execute. REQUIRES: the ring
  // tells that this end places bytes.
  [[nodiscard]] Code Place(const WorkRequest& work) {
    // A peer that was killed has announced nothing in the ring.
    if (!PeerLives()) return Code::kUnavailable;
    std::byte* to = memory_.Find(work.remote, work.local.size(), Access::kRemoteReadWrite);
    if (to == nullptr) return Code::kPermissionDenied;
    // In order as well: nothing that follows is seen before this Write, and this Write is not seen before earlier
    // operations.
    std::atomic_thread_fence(std::memory_order_release);
    CopyToShared(to, work.local.data(), work.local.size());
    return Code::kOk;
  }
  [[nodiscard]] bool PeerLives() const { return !beacon_ || Beacon::IsLit(beacon_->bytes().data()); }

  Ring ring_;
  PeerMemory memory_;
  std::shared_ptr<Mapping> beacon_;
  bool wrote_ = false;  // There were Writes since PeerWasThere was last asked.
};

}  // namespace erda::fabric::shm
