// The send queue of a channel's queue pair, and the requests that wait for room in it.
//
// Posted requests go to the queue pair at once, as long as it has room; the rest wait here. The queue remembers each
// request in the queue pair until it is known to be done, by its completion or by a later one.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <span>

#include "base/fifo.h"
#include "fabric/verbs/peer_offer.h"
#include "fabric/verbs/posted_ring.h"
#include "fabric/verbs/request.h"
#include "fabric/verbs/windows.h"

namespace erda::fabric::verbs {

// Owns no part of the device. The thread of the channel's queue calls it. A function that returns an int returns 0, or
// the error with which the device has refused a request, now or in an earlier call. The refused request and all later
// ones then wait: the caller must call Close, and Flush when the queue pair is done.
class SendQueue {
 public:
  // REQUIRES: `peer` and `windows` live as long as this object.
  SendQueue(const PeerOffer& peer, const Windows& windows) : peer_(peer), windows_(windows) {}

  // From now on requests go to the queue pair. It takes `places` requests at once, and `inline_bytes` bytes inline.
  void Open(ibv_qp* pair, uint32_t channel, uint32_t places, uint32_t inline_bytes);
  // Posts nothing more. Requests wait until Flush takes them.
  void Close() { open_ = false; }

  // Posts the requests, after those that wait already.
  [[nodiscard]] int Post(std::span<const Request> requests);
  // Posts requests that wait, as far as there is room.
  [[nodiscard]] int PostWaiting();
  // Posts a request after all others, on a queue pair that flushes. Its completion ends the requests that asked for no
  // completion. REQUIRES: it is called once. Returns false if the device does not take it.
  [[nodiscard]] bool PostLast();

  // Takes the request whose completion came, and all before it. Returns false if it is not in the queue pair.
  bool Take(uint32_t number, PostedRequest* posted);
  // Calls `each(const PostedRequest&)` for each request that has not completed, in order, and forgets it after the
  // call. So a call that throws loses no request. REQUIRES: the queue pair completes nothing more.
  template <class Each>
  void Flush(const Each& each) {
    for (; !posted_.empty(); posted_.DropOldest()) each(posted_.oldest());
    for (; !waiting_.empty(); waiting_.pop_front()) each(PostedOf(waiting_.front()));
  }

  // Returns true if no request is in the queue pair.
  [[nodiscard]] bool idle() const { return posted_.empty(); }
  [[nodiscard]] uint32_t room() const { return posted_.room(); }
  // Returns the number of the caller's messages that the queue pair has received.
  [[nodiscard]] uint64_t messages() const { return messages_; }

 private:
  // Hands over as many requests as fit. Returns their number.
  size_t Push(std::span<const Request> requests);
  // Hands over requests with one doorbell. Returns the number of those that the device took.
  size_t RingDoorbell(std::span<const Request> requests);
  [[nodiscard]] unsigned FlagsOf(const Request& request);

  const PeerOffer& peer_;
  const Windows& windows_;
  ibv_qp* pair_ = nullptr;
  uint32_t channel_ = 0;
  uint32_t inline_bytes_ = 0;
  bool open_ = false;
  int refused_ = 0;  // The error with which the device refused a request.
  PostedRing posted_;
  uint32_t unsignaled_ = 0;  // Requests since the last one that asks for a completion.
  uint32_t reads_ = 0;       // Reads of the caller in the queue pair.
  uint64_t messages_ = 0;
  Fifo<Request> waiting_;
};

}  // namespace erda::fabric::verbs
