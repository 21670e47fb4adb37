#include "client/own_requests.h"

#include <chrono>
#include <cstring>

#include "base/bytes.h"
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

// One report is under way at a time. Its memory is not that of the operation, which may be over, and another one may
// use that memory, before the report is sent.
bool OwnRequests::Report(Link& link, std::string_view key) {
  const Nanoseconds now = clock_.Now();
  if (now - reported_at_ < kReportEvery) return true;
  const bool under_way = report_link_ != nullptr && report_link_->reports;
  if (under_way || connections_.has_closed()) return true;
  if (link.hello().read_only != 0) return true;  // others tell
  const uint32_t slot = link.TakeSlot(Link::kReportOwner);
  if (slot == Link::kNoSlot) return true;
  reported_at_ = now;
  report_link_ = &link;
  link.reports = true;
  Request request{};
  request.op = static_cast<uint8_t>(RequestOp::kReport);
  request.key_size = static_cast<uint16_t>(key.size());
  request.id = 0;
  const auto message = operations_.report_memory();
  std::memcpy(message.data(), &request, sizeof(request));
  std::memcpy(message.data() + sizeof(request), key.data(), key.size());
  ++stats_.requests;
  return Send(link, slot, message.first(sizeof(request) + key.size()));
}

void OwnRequests::AskTime(Link& link) {
  if (link.asks_time) return;
  const uint32_t slot = link.TakeSlot(Link::kTimeOwner);
  if (slot == Link::kNoSlot) return;
  link.asks_time = true;
  ++stats_.requests;
  WorkRequest work;
  work.kind = fabric::OpKind::kWriteImm;
  work.signaled = false;
  work.imm = format::kAsksTime | slot;
  posting_.Post(link, {&work, 1});
}

void OwnRequests::SendChunkRequest(Link& link) {
  if (!link.up()) return;
  const uint32_t slot = link.TakeSlot(Link::kChunkOwner);
  if (slot == Link::kNoSlot) return;  // the next one that is free
  Delegated& delegated = link.delegated;
  Request& request = delegated.to_send.front();
  request.id = NextId();
  std::memcpy(link.chunk_message().data(), &request, sizeof(request));
  delegated.to_send.pop_front();
  delegated.sending = true;
  ++stats_.requests;
  Send(link, slot, link.chunk_message());
}

// The message lies in memory that stays as long as the link.
bool OwnRequests::Send(Link& link, uint32_t slot, std::span<std::byte> message) {
  WorkRequest work;
  work.kind = fabric::OpKind::kWriteImm;
  work.signaled = false;
  work.imm = slot;
  work.local = message;
  work.remote = {format::kRequestRegion, link.SlotOffset(slot)};
  return posting_.Post(link, {&work, 1});
}

bool OwnRequests::OnReply(Link& link, OpIndex owner, uint32_t slot) {
  if (owner == Link::kChunkOwner) return OnChunkReply(link, slot);
  if (owner == Link::kTimeOwner) return OnTimeReply(link, slot);
  link.reports = false;
  return true;
}

bool OwnRequests::OnChunkReply(Link& link, uint32_t slot) {
  const auto request = LoadAs<Request>(link.chunk_message());
  const Reply reply = link.ReplyIn(slot);
  const bool ok = reply.code == static_cast<uint8_t>(Code::kOk);
  const bool is_chunk = reply.header.is_chunk() && reply.head == request.head &&
                        SpaceOf(reply.header) >= request.version && SpaceOf(reply.header) <= request.value_size &&
                        reply.number <= UINT32_MAX &&
                        (reply.number != 0) == (link.placing() == format::Placing::kWindow);
  const bool delegate = request.op == static_cast<uint8_t>(RequestOp::kDelegate);
  if (reply.id != request.id || (delegate && ok && !is_chunk)) {
    connections_.CloseSince(link, ": the server answered what nobody asked");
    return false;
  }
  link.delegated.sending = false;
  if (delegate && ok) {
    link.delegated.OnDelegated(request.head, reply);
  } else if (delegate) {
    link.delegated.OnRefused(request.head);
  }
  return true;
}

bool OwnRequests::OnTimeReply(Link& link, uint32_t slot) {
  const Reply reply = link.ReplyIn(slot);
  if (reply.id != 0 || reply.code != static_cast<uint8_t>(Code::kOk)) {
    connections_.CloseSince(link, ": the server answered what nobody asked");
    return false;
  }
  link.asks_time = false;
  link.time_hint.Learn(clock_.Now(), reply.number);
  return true;
}

}  // namespace erda::client
