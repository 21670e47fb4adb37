#include "client/own_requests.h"

#include <chrono>
#include <cstring>

#include "base/bytes.h"
#include "client/requests.h"
#include "format/hello.h"
#include "format/messages.h"

namespace erda::client {

using fabric::WorkRequest;
using format::Reply;
using format::Request;
using format::RequestOp;

namespace {

// The client tells the server of broken versions at most once in this time.
constexpr std::chrono::milliseconds kReportEvery{1};

}  // namespace

// One report is under way at a time. It is sent from separate memory. The operation may be over before the device has
// sent the report, and another operation may use the memory then.
bool OwnRequests::Report(Link& link, std::string_view key) {
  const Nanoseconds now = clock_.Now();
  if (now - reported_at_ < kReportEvery) return true;
  if (ReportIsUnderWay() || connections_.has_closed()) return true;
  if (link.hello().read_only != 0) return true;  // clients that may write tell the server
  const uint32_t slot = link.slots.Take(kReportOwner);
  if (slot == RequestSlots::kNoSlot) return true;
  reported_at_ = now;
  report_link_ = &link;
  report_times_up_ = link.times_up;
  const Request request = MakeReport(key);
  const auto message = operations_.memory().report();
  std::memcpy(message.data(), &request, sizeof(request));
  std::memcpy(message.data() + sizeof(request), key.data(), key.size());
  ++stats_.requests;
  return Send(link, slot, message.first(sizeof(request) + key.size()));
}

void OwnRequests::AskTime(Link& link) {
  if (link.known.time_hint.asks()) return;
  const uint32_t slot = link.slots.Take(kTimeOwner);
  if (slot == RequestSlots::kNoSlot) return;
  link.known.time_hint.Ask();
  ++stats_.requests;
  WorkRequest work;
  work.kind = fabric::OpKind::kWriteImm;
  work.signaled = false;
  work.imm = format::kAsksTime | slot;
  posting_.Post(link, {&work, 1});
}

bool OwnRequests::FindChunk(Link& link, uint32_t head, uint64_t object_bytes, Delegated::Chunk** found) {
  *found = link.puts.delegated_.Find(head, object_bytes);
  SendWaitingChunkRequest(link);
  return link.up();
}

bool OwnRequests::OnPutAnswered(Link& link, uint32_t head, format::LogAddress object, bool refused) {
  link.puts.delegated_.OnAnswer(head, object, refused);
  SendWaitingChunkRequest(link);
  return link.up();
}

void OwnRequests::OnChunkRevoked(Link& link, format::LogAddress address) {
  link.puts.delegated_.OnRevoked(address);
  SendWaitingChunkRequest(link);
}

void OwnRequests::SendChunkRequest(Link& link) {
  if (!link.up()) return;
  const uint32_t slot = link.slots.Take(kChunkOwner);
  if (slot == RequestSlots::kNoSlot) return;  // the next one that is free
  Delegated& delegated = link.puts.delegated_;
  Request& request = delegated.to_send.front();
  request.id = NextId();
  const auto message = operations_.memory().chunk_request(link.shard());
  std::memcpy(message.data(), &request, sizeof(request));
  delegated.to_send.pop_front();
  delegated.sending = true;
  ++stats_.requests;
  Send(link, slot, message);
}

// The message lies in memory that stays until the client goes.
bool OwnRequests::Send(Link& link, uint32_t slot, std::span<std::byte> message) {
  WorkRequest work;
  work.kind = fabric::OpKind::kWriteImm;
  work.signaled = false;
  work.imm = slot;
  work.local = message;
  work.remote = {format::kRequestRegion, link.slots.OffsetOf(slot)};
  return posting_.Post(link, {&work, 1});
}

bool OwnRequests::OnReply(Link& link, OpIndex owner, uint32_t slot) {
  if (owner == kChunkOwner) return OnChunkReply(link, slot);
  if (owner == kTimeOwner) return OnTimeReply(link, slot);
  report_link_ = nullptr;
  return true;
}

bool OwnRequests::OnChunkReply(Link& link, uint32_t slot) {
  const auto request = LoadAs<Request>(operations_.memory().chunk_request(link.shard()));
  const Reply reply = link.connection().ReplyIn(slot);
  const bool ok = reply.code == static_cast<uint8_t>(Code::kOk);
  const bool is_chunk = reply.header.is_chunk() && reply.head == request.head &&
                        SpaceOf(reply.header) >= request.version && SpaceOf(reply.header) <= request.value_size &&
                        reply.number <= UINT32_MAX &&
                        (reply.number != 0) == (link.placing() == format::Placing::kWindow);
  const bool delegate = request.op == static_cast<uint8_t>(RequestOp::kDelegate);
  if (reply.id != request.id || (delegate && ok && !is_chunk)) {
    connections_.CloseSince(link,
                            ": unexpected reply from the server: it fits no request of this client; use a server and a "
                            "client of one version");
    return false;
  }
  link.puts.delegated_.sending = false;
  if (delegate && ok) {
    link.puts.delegated_.OnDelegated(request.head, reply);
  } else if (delegate) {
    link.puts.delegated_.OnRefused(request.head);
  }
  return true;
}

bool OwnRequests::OnTimeReply(Link& link, uint32_t slot) {
  const Reply reply = link.connection().ReplyIn(slot);
  if (reply.id != 0 || reply.code != static_cast<uint8_t>(Code::kOk)) {
    connections_.CloseSince(link,
                            ": unexpected reply from the server: it fits no request of this client; use a server and a "
                            "client of one version");
    return false;
  }
  link.known.time_hint.Learn(clock_.Now(), reply.number);
  return true;
}

}  // namespace erda::client
