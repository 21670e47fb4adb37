#include "client/put.h"

#include <cstring>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/planted.h"
#include "client/reply_status.h"
#include "client/requests.h"
#include "format/object.h"

namespace erda::client {

using fabric::OpKind;
using fabric::WorkRequest;
using format::Reason;
using format::Reply;
using format::Request;
using format::RequestOp;

namespace {

// Returns a Write without a completion. REQUIRES: a signaled operation or a request follows it on the channel.
WorkRequest WriteWork(std::span<std::byte> bytes, fabric::RemoteAddress to) {
  WorkRequest work;
  work.kind = OpKind::kWrite;
  work.signaled = false;
  work.local = bytes;
  work.remote = to;
  return work;
}

// Returns true if a segment of the pool holds the value.
[[gnu::noinline]] bool FitsPool(const PutOp& op) {
  return op.value_size <= format::ValueBytesMax(op.link->geometry(), op.key_size, op.ttl != 0);
}

}  // namespace

// --- Asking

[[gnu::always_inline]] inline void Puts::WriteRequest(PutOp& op, std::span<std::byte> message, Request request) {
  op.request_id = own_requests_.NextId();
  request.id = op.request_id;
  ++stats_.requests;
  std::memcpy(message.data(), &request, sizeof(request));
}

void Puts::WriteRequest(PutOp& op, Request request) { WriteRequest(op, op.message(), request); }

[[gnu::always_inline]] inline void Puts::SendInline(PutOp& op) {
  op.step = Step::kReply;  // As in Send.
  const auto message = op.message();
  WriteRequest(op, message, MakeKeyed(op, RequestOp::kPutInline, options_.ack));
  const WorkRequest work = op.RequestWork(message, format::InlineValueOffset(op.key_size) + op.value_size);
  posting_.Post(*op.link, {&work, 1});
}

void Puts::Start(PutOp& op) {
  Link& link = *op.link;
  if (op.way == PutWay::kUndecided) op.way = DecideWay(op);
  if (op.way != PutWay::kInline && op.way != PutWay::kKeyed && !CanGo(op)) return;
  op.slot = link.slots.Take(op.index);
  if (op.slot == RequestSlots::kNoSlot) {
    op.step = Step::kRequestSlot;
    link.puts.waiting_for_slot.push_back(op.index);
    return;
  }
  return op.way == PutWay::kInline ? SendInline(op) : Send(op);
}

[[gnu::always_inline]] inline PutWay Puts::DecideWay(const PutOp& op) const {
  const Link& link = *op.link;
  PutFacts facts;
  facts.may_write = link.hello().read_only == 0;
  facts.is_put = op.kind == PutKind::kPut;
  facts.fits_pool = op.value_size <= format::kValueBytesOfEveryPool || FitsPool(op);
  facts.asked = options_.put_path;
  facts.fits_inline = op.FitsInline(link);
  facts.placing = link.placing();
  facts.may_have_chunk = !op.if_version && !op.places.lost_chunk;
  facts.first_large = !link.puts.had_large;
  return DecidePutWay(facts);
}

bool Puts::CanGo(PutOp& op) {
  if (Status why = RefusalOf(op); !why.ok()) {
    operations_.Defer(op, std::move(why));
    return false;
  }
  op.link->puts.had_large |= !op.FitsInline(*op.link);
  return op.way != PutWay::kStaged || HasStagingRoom(op);
}

Status Puts::RefusalOf(const PutOp& op) const {
  switch (op.way) {
    case PutWay::kReadOnly:
      return {Code::kPermissionDenied, connections_.address() + ": this client's token is for reading only"};
    case PutWay::kTooLargeForPool:
      return {Code::kInvalidArgument, "the value is larger than a segment of this pool holds"};
    case PutWay::kTooLargeForRequest: {
      const uint64_t most = op.link->hello().slot_bytes - format::InlineValueOffset(op.key_size);
      return {Code::kInvalidArgument, "an inline put of a key of " + std::to_string(op.key_size) +
                                          " bytes takes a value of at most " + std::to_string(most) + " bytes"};
    }
    case PutWay::kNoRight:
      return {Code::kPermissionDenied,
              connections_.address() + ": the server does not let this client write into the pool"};
    default:
      return {};
  }
}

// The operation takes room before it takes a slot. So while it waits for room, it keeps no slot from another
// operation. Once it has room, it waits for replies alone.
bool Puts::HasStagingRoom(PutOp& op) {
  if (op.places.staged != PutOp::kNotStaged) return true;
  LinkPuts& puts = op.link->puts;
  const auto place = puts.waiting_for_staging.empty() ? puts.staging.Take(op.value_size) : std::nullopt;
  if (!place) {
    op.step = Step::kStagingRoom;
    puts.waiting_for_staging.push_back(op.index);
    return false;
  }
  op.places.staged = *place;
  return true;
}

void Puts::Send(PutOp& op) {
  op.step = Step::kReply;  // From here on the operation ends with the connection.
  if (op.way == PutWay::kStaged) {
    SendStaged(op);
  } else if (op.way == PutWay::kDelegated) {
    if (!SendDelegated(op)) GoWithoutChunk(op);
  } else if (op.way == PutWay::kInline) {
    SendInline(op);
  } else {
    SendWithKey(op);
  }
}

// Sends the put another way: it has a request slot, and no chunk. A staged put may have to wait for room, and must not
// hold a slot meanwhile.
void Puts::GoWithoutChunk(PutOp& op) {
  op.places.lost_chunk = true;
  op.way = DecideWay(op);
  if (op.way != PutWay::kStaged && op.way != PutWay::kNoRight) return Send(op);
  ReleaseSlot(op);
  // (The put has ended if the next user of the slot found the channel closed.)
  if (op.step == Step::kReply) Start(op);
}

// Sends the request and the key, and the amount of an increment, as one message.
void Puts::SendWithKey(PutOp& op) {
  RequestOp kind = RequestOp::kReserve;
  if (op.kind == PutKind::kIncrement) kind = RequestOp::kIncrement;
  if (op.kind == PutKind::kDelete) kind = RequestOp::kDelete;
  if (op.kind == PutKind::kClean) kind = RequestOp::kClean;
  const bool has_value = kind == RequestOp::kIncrement;
  WriteRequest(op, MakeKeyed(op, kind, options_.ack));
  const WorkRequest work = op.RequestWork(has_value ? format::InlineValueOffset(op.key_size) + op.value_size
                                                    : sizeof(Request) + op.key_size);
  posting_.Post(*op.link, {&work, 1});
}

void Puts::SendStaged(PutOp& op) {
  WriteRequest(op, MakeKeyed(op, RequestOp::kPutStaged, options_.ack, op.places.staged));
  const WorkRequest works[] = {WriteWork(op.value(), {format::kStagingRegion, op.places.staged}),
                               op.RequestWork(sizeof(Request) + op.key_size)};
  posting_.Post(*op.link, works);
}

// Returns false if no chunk has room for the value. The put then goes another way, which is slower, and does not wait
// for a chunk.
bool Puts::SendDelegated(PutOp& op) {
  Link& link = *op.link;
  const uint32_t head = link.geometry().HeadOf(op.key_hash);
  const uint64_t object_bytes = format::ObjectSpace(op.label_size(), op.value_size);
  Delegated::Chunk* chunk = nullptr;
  if (!own_requests_.FindChunk(link, head, object_bytes, &chunk)) return true;  // The put has ended.
  if (chunk == nullptr) return false;
  // (I10) The region may have been linked, or may have another use, since the slots were read.
  uint64_t offset = 0;
  uint64_t in_segment = 0;
  const format::HeadSlot region = link.known.SlotOf(head, chunk->address);
  if (region.generation() != chunk->generation || !link.known.Resolve(region, chunk->address, &offset, &in_segment)) {
    return !connections_.ReadControl(link);  // If that fails, the connection failed, and the put has ended.
  }
  offset += chunk->tail;
  const uint32_t window = chunk->window;
  const format::LogAddress address = OwnRequests::PlaceInChunk(link, *chunk, object_bytes);
  const auto value = op.value();
  WriteRequest(op, MakeKeyed(op, RequestOp::kPutDelegated, options_.ack, address.raw(), Crc32c(0, value)));
  stats_.nvm_bytes_written += value.size();
  const uint32_t to = window != 0 ? format::kPoolRegion : format::kPoolWriteRegion;
  const WorkRequest works[] = {WriteWork(value, {to, offset + format::ValueOffset(op.label_size()), window}),
                               op.RequestWork(sizeof(Request) + op.key_size)};
  posting_.Post(link, works);
  return true;
}

// --- Replies

// Gives the operation's slot back. If its connection was lost, the slot is gone with that.
void Puts::ReleaseSlot(PutOp& op) {
  if (op.slot == RequestSlots::kNoSlot || op.link_lost) return;
  PassSlotOn(*op.link, std::exchange(op.slot, RequestSlots::kNoSlot));
}

void Puts::StartWaiting(Link& link) {
  if (!link.slots.has_free()) return;
  PutOp& next = ops_[link.puts.waiting_for_slot.front()];
  link.puts.waiting_for_slot.pop_front();
  Start(next);
}

[[gnu::always_inline]] inline void Puts::End(PutOp& op) {
  op.step = Step::kDone;
  const Code code = op.result.code();
  if (op.kind == PutKind::kPut || op.kind == PutKind::kIncrement) ++stats_.puts;
  if (op.kind == PutKind::kDelete) ++stats_.deletes;
  if (code != Code::kOk && code != Code::kNotFound && code != Code::kConflict) ++stats_.failures;
  try {
    ReleaseSlot(op);
    if (op.places.staged != PutOp::kNotStaged) GiveStagingBack(op);
  } catch (const std::bad_alloc&) {
    connections_.GiveUp();  // The next user of the slot could not go on. This operation ends all the same.
  }
  operations_.Retire(op, [&] { op.Tell(std::move(op.result)); });
}

void Puts::Deliver(PutOp& op) { End(op); }

// Ends a put that is acknowledged. placed: the reply with the place of the version.
[[gnu::always_inline]] inline void Puts::FinishPut(PutOp& op, const Reply& placed) {
  op.number = op.kind == PutKind::kIncrement ? placed.number : placed.header.version;
  locations_.Store(*op.link, op.key_hash,
                   {format::LogAddress(placed.address), placed.generation,
                    format::ObjectBytes(placed.header.label_size(), op.value_size), placed.header.expires()});
  if (op.sending > 0 || !operations_.polling()) return Finish(op, Status());
  op.result = Status();
  End(op);
}

void Puts::OnReply(OpIndex owner, uint32_t slot) {
  PutOp& op = ops_[owner];
  Link& link = *op.link;
  const Reply reply = link.connection().ReplyIn(slot);
  const bool fits = op.slot == slot && reply.id == op.request_id && reply.code <= static_cast<uint8_t>(Code::kInternal);
  if (!fits || (op.step != Step::kReply && op.step != Step::kCommitted)) {
    return connections_.CloseSince(link,
                                   ": unexpected reply from the server: it fits no request of this client; use a "
                                   "server and a client of one version");
  }
  if (op.way == PutWay::kDelegated) {
    const bool refused = reply.reason == static_cast<uint8_t>(Reason::kNoChunk);
    const auto sent = LoadAs<Request>(op.message());
    const uint32_t head = link.geometry().HeadOf(op.key_hash);
    if (!own_requests_.OnPutAnswered(link, head, format::LogAddress(sent.address), refused)) return;
    if (refused) return GoWithoutChunk(op);
  }
  if (reply.code != static_cast<uint8_t>(Code::kOk)) return FinishRefused(op, reply);
  if (op.step == Step::kReply && op.way == PutWay::kReserved) {
    op.places.reserved = reply;
    return OnReserved(op);
  }
  if (op.kind == PutKind::kPut || op.kind == PutKind::kIncrement) {
    return FinishPut(op, op.step == Step::kReply ? reply : op.places.reserved);
  }
  if (op.kind == PutKind::kDelete) locations_.Erase(op.key_hash);
  Finish(op, Status());
}

void Puts::FinishRefused(PutOp& op, const Reply& reply) { Finish(op, StatusOf(*op.link, reply)); }

void Puts::OnPlaced(PutOp& op) { FinishPut(op, op.places.reserved); }

void Puts::OnReserved(PutOp& op) {
  const format::ObjectHeader& header = op.places.reserved.header;
  const bool ours = header.key_size == op.key_size && header.value_size == op.value_size &&
                    header.key_hash == op.key_hash && header.label_size() == op.label_size();
  if (!ours)
    return connections_.CloseSince(
        *op.link,
        ": the server reserved space for another key or size than requested; use a server and a client of one version");
  op.places.next_control_read = op.link->control().NextRead();
  if (Planted(Flaw::kAcknowledgesEarly)) return Finish(op, Status());
  WriteValue(op);
}

// Writes the value into the place that the server reserved.
void Puts::WriteValue(PutOp& op) {
  Link& link = *op.link;
  const format::LogAddress address(op.places.reserved.address);
  uint64_t offset = 0;
  uint64_t in_segment = 0;
  const format::HeadSlot slot = link.known.SlotOf(op.places.reserved.head, address);
  // (I10) The region may have been linked, or may have another use, since the slots were read.
  if (slot.generation() != op.places.reserved.generation || !link.known.Resolve(slot, address, &offset, &in_segment)) {
    if (link.control().reads() < op.places.next_control_read) return connections_.WaitForHeads(op);
    return connections_.CloseSince(link, ": the server reserved a place outside its log");
  }
  // Checksum and value stand after the key, here as in the log.
  const auto body = op.message().subspan(sizeof(Request) + op.key_size, format::kChecksumBytes + op.value_size);
  const uint32_t checksum = format::ObjectChecksum(op.places.reserved.header, body.subspan(format::kChecksumBytes));
  std::memcpy(body.data(), &checksum, sizeof(checksum));
  stats_.nvm_bytes_written += body.size();

  const uint64_t body_at = offset + format::ChecksumOffset(op.label_size());
  if (options_.ack == Ack::kPersisted && link.flush_method() == format::FlushMethod::kServerFlush) {
    op.step = Step::kCommitted;
    WriteRequest(op, MakeCommit(op, address));
    const WorkRequest works[] = {WriteWork(body, {format::kPoolWriteRegion, body_at}), op.RequestWork(sizeof(Request))};
    posting_.Post(link, works);
    return;
  }
  // (I8) Without a commit, the shard takes the put for done once it finds the value whole. So the checksum comes last:
  // a value that ends in zeroes is whole in a place of zeroes before all of it is written. A Write that completed may
  // not be placed yet. A Read after it on the same channel comes back after it is placed.
  op.step = Step::kPlaced;
  WorkRequest works[] = {
      WriteWork(body.subspan(format::kChecksumBytes), {format::kPoolWriteRegion, body_at + format::kChecksumBytes}),
      WriteWork(body.first(format::kChecksumBytes), {format::kPoolWriteRegion, body_at}),
      posting_.ReadWork(op, op.readings().first(sizeof(uint64_t)), {format::kPoolRegion, offset}, true)};
  if (Planted(Flaw::kNoReadBehindWrite)) {
    works[1].signaled = true;
    works[1].id = op.index;
    posting_.Post(link, std::span(works).first(2));
    return;
  }
  posting_.Post(link, works);
}

// --- Ending

void Puts::Finish(PutOp& op, Status status) {
  if (op.sending > 0) {
    op.result = std::move(status);
    op.step = Step::kSent;
  } else if (!operations_.polling()) {
    operations_.Defer(op, std::move(status));
  } else {
    op.result = std::move(status);
    Deliver(op);
  }
}

void Puts::OnSent(OpIndex index) {
  PutOp& op = ops_[index];
  if (--op.sending == 0 && op.step == Step::kSent) Finish(op, std::move(op.result));
}

// Gives the operation's place in the staging buffer back, since the shard has its copy. If the connection was lost, the
// place is gone with that. Operations that wait for room go on in their order, as far as there is room.
void Puts::GiveStagingBack(PutOp& op) {
  if (op.link_lost) return;
  Link& link = *op.link;
  link.puts.staging.GiveBack(std::exchange(op.places.staged, PutOp::kNotStaged));
  while (!link.puts.waiting_for_staging.empty()) {
    PutOp& next = ops_[link.puts.waiting_for_staging.front()];
    const auto place = link.puts.staging.Take(next.value_size);
    if (!place) return;
    link.puts.waiting_for_staging.pop_front();
    next.places.staged = *place;
    Start(next);
  }
}

}  // namespace erda::client
