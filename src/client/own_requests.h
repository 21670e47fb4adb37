// Requests that the client sends for itself, with no operation waiting: for chunks of the log, for the shard's time,
// and reports of broken versions.
//
// Owns the numbers of all requests, and what is known of the last report. A request of this kind uses a request slot of
// its link, if one is free. Only the client's thread calls it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/clock.h"
#include "client/connections.h"
#include "client/link.h"
#include "client/operations.h"
#include "client/posting.h"
#include "erda/client.h"

namespace erda::client {

class OwnRequests {
 public:
  OwnRequests(Operations& operations, Connections& connections, Posting& posting, const Clock& clock,
              ClientStats& stats)
      : operations_(operations), connections_(connections), posting_(posting), clock_(clock), stats_(stats) {}

  // The number of the next request; a reply repeats it.
  [[nodiscard]] uint64_t NextId() { return next_id_++; }

  // Tells the server of a key whose newest version is broken, if a slot is free, and not too often. False if the
  // connection failed.
  bool Report(Link& link, std::string_view key);
  // Asks for the shard's time. Without a free slot it does nothing, and who needs the time asks again.
  void AskTime(Link& link);
  // Sends the next request that concerns a chunk, if there is one and none is under way. Without a free slot it waits
  // for one.
  void SendChunkRequests(Link& link) {
    if (!link.delegated.sending && !link.delegated.to_send.empty()) SendChunkRequest(link);
  }

  // Whether a slot with this owner holds a request of this kind.
  [[nodiscard]] static bool Owns(OpIndex owner) { return owner >= Link::kTimeOwner && owner != Link::kFreeSlot; }
  // The reply to such a request has arrived, and the slot is to be freed. False: the server broke the protocol, and the
  // link is closed.
  bool OnReply(Link& link, OpIndex owner, uint32_t slot);

 private:
  void SendChunkRequest(Link& link);
  bool OnChunkReply(Link& link, uint32_t slot);
  bool OnTimeReply(Link& link, uint32_t slot);
  bool Send(Link& link, uint32_t slot, std::span<std::byte> message);

  Operations& operations_;
  Connections& connections_;
  Posting& posting_;
  const Clock& clock_;
  ClientStats& stats_;
  uint64_t next_id_ = 1;
  Nanoseconds reported_at_{0};
  const Link* report_link_ = nullptr;  // where the last report went
};

}  // namespace erda::client
