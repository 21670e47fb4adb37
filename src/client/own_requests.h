// Requests that the client sends for itself, with no operation waiting: for chunks of the log, for the shard's time,
// and reports of broken versions.
//
// Owns the numbers of all requests, and the state of the last report. A request of this kind uses a request slot of its
// link, if one is free. All changes to a link's chunks go through here, so no request about a chunk is left unsent.
// Only the client's thread calls it.
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
#include "format/log_address.h"

namespace erda::client {

class OwnRequests {
 public:
  OwnRequests(Operations& operations, Connections& connections, Posting& posting, const Clock& clock,
              ClientStats& stats)
      : operations_(operations), connections_(connections), posting_(posting), clock_(clock), stats_(stats) {}

  // The number of the next request; a reply repeats it.
  [[nodiscard]] uint64_t NextId() { return next_id_++; }

  // Tells the server of a key whose newest version is broken, if a slot is free, and not too often. Returns false if
  // the connection failed.
  bool Report(Link& link, std::string_view key);
  // Asks for the shard's time. Without a free slot it does nothing: an operation that needs the time asks again.
  void AskTime(Link& link);

  // --- Chunks of the log (delegated.h). Each call sends the request that it makes, and that may end the connection.

  // Finds the chunk of the head for an object of this size. Stores null in *found if no chunk has room. Returns false
  // if the connection failed.
  [[nodiscard]] bool FindChunk(Link& link, uint32_t head, uint64_t object_bytes, Delegated::Chunk** found);
  // Takes the place for the object, in a chunk that FindChunk has just found. Makes no request.
  [[nodiscard]] static format::LogAddress PlaceInChunk(Link& link, Delegated::Chunk& chunk, uint64_t object_bytes) {
    return link.puts.delegated_.Place(chunk, object_bytes);
  }
  // Notes that the put of this object was answered. refused: the server takes no puts into the chunk any more. Returns
  // false if the connection failed.
  [[nodiscard]] bool OnPutAnswered(Link& link, uint32_t head, format::LogAddress object, bool refused);
  // Notes that the server revokes the chunk at this address.
  void OnChunkRevoked(Link& link, format::LogAddress address);
  // Frees a request slot. A request about a chunk that waited for one takes it.
  void FreeSlot(Link& link, uint32_t slot) {
    link.slots.Free(slot);
    SendWaitingChunkRequest(link);
  }

  // --- Replies

  // Returns true if a slot with this owner holds a request that the client sent for itself.
  [[nodiscard]] static bool Owns(OpIndex owner) { return owner >= kTimeOwner && owner != RequestSlots::kFree; }
  // The reply to such a request has arrived. Returns true if the caller is to free the slot. Returns false if the
  // server broke the protocol: the link is closed then.
  bool OnReply(Link& link, OpIndex owner, uint32_t slot);

 private:
  // The owners of the slots that these requests use.
  static constexpr OpIndex kReportOwner = kNoOp - 1;
  static constexpr OpIndex kChunkOwner = kNoOp - 2;
  static constexpr OpIndex kTimeOwner = kNoOp - 3;

  // Returns true if the server has not answered the last report yet, and can still do so.
  [[nodiscard]] bool ReportIsUnderWay() const {
    return report_link_ != nullptr && report_link_->up() && report_link_->times_up == report_times_up_;
  }
  // Sends the next request about a chunk, if there is one and none is under way. Without a free slot it waits for one.
  void SendWaitingChunkRequest(Link& link) {
    const Delegated& chunks = link.puts.delegated_;
    if (!chunks.sending && !chunks.to_send.empty()) SendChunkRequest(link);
  }
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
  const Link* report_link_ = nullptr;  // where the last report went; null once it is answered
  uint32_t report_times_up_ = 0;       // how often that link had come up
};

}  // namespace erda::client
