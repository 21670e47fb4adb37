// Puts, deletes, increments and cleaning: what the client asks the server for (docs/protocol.md, "Put", "Delete"), step
// by step:
//
//   inline, delete, increment
//                    request -> reply
//   delegated        with one doorbell, the value straight into the log, where the client has a chunk of it, and the
//                    request -> reply
//                    (through a window to the chunk, if it has no right to write elsewhere)
//   staged           the same into its staging memory at the server, where it has no right to write into the log, or no
//                    chunk
//   reserve          request -> reply with the address; then, with one doorbell, the value straight into the log and
//                    one more request: a Read that flushes the value out of the NIC, or a commit (the server
//                    flushes)
//
// Owns the operations of this kind. Each holds a request slot of its link while its request is under way. Requires a
// link that is up when an operation starts. Only the client's thread calls it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "client/connections.h"
#include "client/link.h"
#include "client/located.h"
#include "client/operations.h"
#include "client/own_requests.h"
#include "client/posting.h"
#include "client/put_op.h"
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
        stats_(stats) {}
  void Prepare() { operations_.AddKind(&ops_); }

  // A put, or an increment by the value. Copies key and value into the operation's message.
  Result<PutOp*> Take(PutKind kind, std::string_view key, std::string_view value, const PutOptions& options);
  // A put of the first bytes of a buffer, which the operation uses from here on. REQUIRES: the buffer is free.
  Result<PutOp*> TakeFrom(std::string_view key, const std::shared_ptr<Buffer::Memory>& from, size_t size,
                          const PutOptions& options);
  // A request that says no more than its key.
  Result<PutOp*> TakeKey(PutKind kind, std::string_view key, std::optional<uint64_t> if_version);
  // The link is up. A refusal is told later: this may run inside the call that starts the operation.
  void Start(PutOp& op);
  // The reply in the slot of this operation has arrived. A reply that does not fit closes the link.
  void OnReply(OpIndex owner, uint32_t slot);
  // The request slot is free: the operation that has waited longest for one has it.
  void PassSlotOn(Link& link, uint32_t slot);
  // The device has acknowledged a request that was sent from the operation's own memory.
  void OnSent(OpIndex index);
  // The Read after the Write of the value has completed, so the value is placed.
  void OnPlaced(PutOp& op) { FinishPut(op, op.reply); }
  // The control block has arrived that the operation waited for.
  void OnHeads(PutOp& op) { WriteValue(op); }
  // The operation ends by its result, and its callback runs now.
  void Deliver(PutOp& op);

 private:
  Result<PutOp*> TakePut(PutKind kind, std::string_view key, size_t value_size, const PutOptions& options);
  PutOp* TakeAny(PutKind kind, std::string_view key);
  void DecideWay(PutOp& op);
  void Send(PutOp& op);
  void SendWithKey(PutOp& op);
  void GoWithoutChunk(PutOp& op);
  // Makes a request, and stores it in front of the key and the value in the operation's message.
  void WriteRequest(PutOp& op, format::RequestOp kind, uint32_t address = 0, uint32_t value_crc = 0);
  void SendStaged(PutOp& op);
  bool SendDelegated(PutOp& op);
  void OnReserved(PutOp& op);
  void WriteValue(PutOp& op);
  void FinishPut(PutOp& op, const format::Reply& placed);
  // The operation ends now, or when its memory is not needed any more, or in the next Poll if no callback may run.
  void Finish(PutOp& op, Status status);
  void ReleaseSlot(PutOp& op);
  void GiveStagingBack(PutOp& op);

  Operations& operations_;
  Connections& connections_;
  Posting& posting_;
  KnownLocations& locations_;
  OwnRequests& own_requests_;
  const EngineOptions& options_;
  ClientStats& stats_;
  std::vector<PutOp> ops_;
};

}  // namespace erda::client
