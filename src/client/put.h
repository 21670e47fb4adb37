// Puts, deletes, increments and cleaning, which the server does at the client's request (docs/protocol.md, "Put",
// "Delete"), step by step:
//
//   inline, delete, increment
//                    request -> reply
//   delegated        with one doorbell, the value straight into the client's chunk of the log, and the request -> reply
//                    (through a window to the chunk, if the client may not write elsewhere)
//   staged           with one doorbell, the value into the client's staging memory at the server, and the request ->
//                    reply (if the client may not write into the log, or has no chunk)
//   reserve          request -> reply with the address; then, with one doorbell, the value straight into the log and
//                    one more request: a Read that flushes the value out of the NIC, or a commit (the server
//                    flushes)
//
// Owns the operations of this kind. Each holds a request slot of its link while its request is under way. Requires a
// link that is up when an operation starts. Only the client's thread calls it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "client/connections.h"
#include "client/link.h"
#include "client/located.h"
#include "client/operations.h"
#include "client/own_requests.h"
#include "client/posting.h"
#include "client/put_op.h"
#include "client/put_taker.h"
#include "erda/client.h"
#include "format/messages.h"

namespace erda::client {

class Puts {
 public:
  Puts(Operations& operations, Connections& connections, Posting& posting, KnownLocations& locations,
       OwnRequests& own_requests, const EngineOptions& options, ClientStats& stats)
      : operations_(operations),
        connections_(connections),
        posting_(posting),
        locations_(locations),
        own_requests_(own_requests),
        options_(options),
        stats_(stats),
        taker_(operations, connections, ops_) {}
  void Prepare() { operations_.AddKind(&ops_); }

  [[nodiscard]] PutTaker& taker() { return taker_; }
  // Sends the request, or waits for a place. Defers the end of an operation that the client refuses, since this may run
  // inside the call that starts the operation. REQUIRES: the link is up.
  void Start(PutOp& op);
  // The reply in the slot of this operation has arrived. A reply that does not fit closes the link.
  void OnReply(OpIndex owner, uint32_t slot);
  // Frees the request slot. A request about a chunk takes it first, and then the operation that has waited longest.
  void PassSlotOn(Link& link, uint32_t slot) {
    own_requests_.FreeSlot(link, slot);
    if (!link.puts.waiting_for_slot.empty()) StartWaiting(link);
  }
  // The device has acknowledged a request that was sent from the operation's own memory.
  void OnSent(OpIndex index);
  // The Read after the Write of the value has completed, so the value is placed.
  void OnPlaced(PutOp& op);
  // The control block has arrived that the operation waited for.
  void OnHeads(PutOp& op) { WriteValue(op); }
  // Ends the operation by its result, and runs its callback now.
  void Deliver(PutOp& op);

 private:
  // Returns the way of the operation by the table of put_path.h.
  [[nodiscard]] PutWay DecideWay(const PutOp& op) const;
  // Returns true if a put can be sent its way. Otherwise it defers its end, or lets it wait for room.
  [[gnu::noinline]] bool CanGo(PutOp& op);
  // Returns the reason if the way of the operation is a refusal, and ok otherwise.
  [[nodiscard]] Status RefusalOf(const PutOp& op) const;
  // Returns true if the put has a place in the staging buffer, or takes one. Otherwise lets it wait for room.
  bool HasStagingRoom(PutOp& op);
  void Send(PutOp& op);
  void SendInline(PutOp& op);
  void SendWithKey(PutOp& op);
  void GoWithoutChunk(PutOp& op);
  // Gives the request an id, and stores it before the key and the value in the operation's message.
  void WriteRequest(PutOp& op, format::Request request);
  void WriteRequest(PutOp& op, std::span<std::byte> message, format::Request request);
  void SendStaged(PutOp& op);
  bool SendDelegated(PutOp& op);
  void OnReserved(PutOp& op);
  void WriteValue(PutOp& op);
  void FinishPut(PutOp& op, const format::Reply& placed);
  // Ends the operation now, or once its memory is not needed any more. If no callback may run now, ends it in the next
  // Poll.
  void Finish(PutOp& op, Status status);
  [[gnu::noinline]] void FinishRefused(PutOp& op, const format::Reply& reply);
  void End(PutOp& op);
  void ReleaseSlot(PutOp& op);
  [[gnu::noinline]] void StartWaiting(Link& link);
  void GiveStagingBack(PutOp& op);

  Operations& operations_;
  Connections& connections_;
  Posting& posting_;
  KnownLocations& locations_;
  OwnRequests& own_requests_;
  const EngineOptions& options_;
  ClientStats& stats_;
  std::vector<PutOp> ops_;
  PutTaker taker_;
};

}  // namespace erda::client
