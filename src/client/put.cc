// Puts and deletes, step by step (docs/protocol.md, "Put", "Delete"):
//
//   inline, delete, increment
//                    request -> reply
//   delegated        behind one doorbell, the value straight into the log, where the client has a chunk of it, and the
//                    request -> reply
//                    (through a window to the chunk, if it has no right to write elsewhere)
//   staged           the same into memory of its own at the server, where it has no right to write into the log, or no
//                    chunk
//   reserve          request -> reply with the address; then, behind one doorbell, the value straight into the log and
//                    what makes the put done: a Read that flushes it out of the NIC (placed, or nothing more is
//                    needed), or a commit request (the server flushes)
#include <cstring>
#include <utility>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/planted.h"
#include "client/engine.h"

namespace erda::client {

using fabric::OpKind;
using fabric::WorkRequest;
using format::Reason;
using format::Reply;
using format::Request;
using format::RequestOp;

namespace {

// The reply says that it has arrived. But memory that goes with the operation must stay until the device needs it no
// more, which its own completion says: an acknowledgement that was lost makes it send again.
WorkRequest RequestWork(Operation& op, std::span<std::byte> message) {
  WorkRequest work;
  work.kind = OpKind::kWriteImm;
  work.signaled = op.sends_own_memory();
  if (work.signaled) ++op.sending;
  work.id = op.index;
  work.imm = op.slot;
  work.local = message;
  work.remote = {format::kRequestRegion, op.link->SlotOffset(op.slot)};
  return work;
}

}  // namespace

bool Engine::FitsInline(const Link& link, const Operation& op) const {
  return format::InlineValueOffset(op.key_size) + op.value_size <= link.hello().slot_bytes;
}

// What cannot be asked is told later: this may run inside the call that starts the operation, from a callback too.
void Engine::StartRequest(Operation& op) {
  Link& link = *op.link;
  if (link.hello().read_only != 0) {
    return Defer(op, {Code::kPermissionDenied, address_ + ": this client's token is for reading only"});
  }
  if (op.type == OpType::kPut) {
    if (op.value_size > format::ValueBytesMax(link.geometry(), op.key_size, op.ttl != 0)) {
      return Defer(op, {Code::kInvalidArgument, "the value is larger than a segment of this pool holds"});
    }
    if (op.way == PutWay::kUndecided) DecideWay(op);
    if (op.way == PutWay::kTooLarge) {
      const uint64_t most = link.hello().slot_bytes - format::InlineValueOffset(op.key_size);
      return Defer(op,
                   {Code::kInvalidArgument, "an inline put of a key of " + std::to_string(op.key_size) +
                                                " bytes takes a value of at most " + std::to_string(most) + " bytes"});
    }
    if (op.way == PutWay::kNoRight) {
      return Defer(op,
                   {Code::kPermissionDenied, address_ + ": the server does not let this client write into the pool"});
    }
    // Before the slot: who waits for room keeps nobody else from a slot, and who has room waits for answers alone.
    if (op.way == PutWay::kStaged && op.staged == Operation::kNotStaged) {
      const auto place = link.waiting_for_staging.empty() ? link.staging.Take(op.value_size) : std::nullopt;
      if (!place) {
        op.step = Step::kStagingRoom;
        link.waiting_for_staging.push_back(op.index);
        return;
      }
      op.staged = *place;
    }
  }
  op.slot = link.TakeSlot(op.index);
  if (op.slot == Link::kNoSlot) {
    op.step = Step::kRequestSlot;
    link.waiting_for_slot.push_back(op.index);
    return;
  }
  SendRequest(op);
}

void Engine::DecideWay(Operation& op) {
  Link& link = *op.link;
  PutFacts facts;
  facts.asked = options_.put_path;
  facts.fits_inline = FitsInline(link, op);
  facts.placing = link.placing();
  facts.may_have_chunk = !op.if_version && !op.lost_chunk;
  facts.first_large = !link.puts_large;
  link.puts_large |= !facts.fits_inline;
  op.way = DecidePutWay(facts);
}

void Engine::SendRequest(Operation& op) {
  Link& link = *op.link;
  op.step = Step::kReply;  // from here on it ends with the connection
  if (op.way == PutWay::kStaged) {
    SendChunkRequests(link);  // what had no chunk may have asked for one
    if (link.up()) PutStaged(op);
    return;
  }
  if (op.way == PutWay::kDelegated) {
    if (PutDelegated(op)) return;
    return GoWithoutChunk(op);
  }
  RequestOp kind = RequestOp::kReserve;
  if (op.type == OpType::kIncrement) kind = RequestOp::kIncrement;
  if (op.type == OpType::kDelete) kind = RequestOp::kDelete;
  if (op.type == OpType::kClean) kind = RequestOp::kClean;
  if (op.way == PutWay::kInline) kind = RequestOp::kPutInline;
  const bool has_value = kind == RequestOp::kPutInline || kind == RequestOp::kIncrement;
  const uint64_t bytes =
      has_value ? format::InlineValueOffset(op.key_size) + op.value_size : sizeof(Request) + op.key_size;
  WriteRequest(op, MakeRequest(op, kind));
  const WorkRequest work = RequestWork(op, op.message().first(bytes));
  Post(link, {&work, 1});
}

// The put has a request slot, and no chunk: it takes the way that is left. A staged put may have to wait for room, and
// must not hold a slot meanwhile.
void Engine::GoWithoutChunk(Operation& op) {
  op.lost_chunk = true;
  DecideWay(op);
  if (op.way != PutWay::kStaged && op.way != PutWay::kNoRight) return SendRequest(op);
  ReleaseSlot(op);
  if (op.step == Step::kReply) StartRequest(op);  // else it ended: the slot's next user found the channel closed
}

Request Engine::MakeRequest(const Operation& op, RequestOp kind) {
  Request request{};
  request.op = static_cast<uint8_t>(kind);
  request.ack = static_cast<uint8_t>(options_.ack);
  request.key_size = op.key_size;
  request.value_size = op.value_size;
  request.id = next_request_id_++;
  request.ttl = op.ttl;
  if (op.if_version) {
    request.condition = static_cast<uint8_t>(format::Condition::kVersion);
    request.version = *op.if_version;
  }
  return request;
}

// The request's key and value stand behind it in the message already.
void Engine::WriteRequest(Operation& op, const Request& request) {
  std::memcpy(op.message().data(), &request, sizeof(request));
  ++stats_.requests;
}

// --- Staged path

void Engine::PutStaged(Operation& op) {
  const auto message = op.message();
  Request request = MakeRequest(op, RequestOp::kPutStaged);
  request.address = op.staged;
  WriteRequest(op, request);
  WorkRequest works[2];
  works[0].kind = OpKind::kWrite;
  works[0].signaled = false;
  works[0].local = message.subspan(format::InlineValueOffset(op.key_size), op.value_size);
  works[0].remote = {format::kStagingRegion, op.staged};
  works[1] = RequestWork(op, message.first(sizeof(Request) + op.key_size));
  Post(*op.link, works);
}

// Answered: the shard has its copy. Those that wait go on in their order, as far as there is room.
void Engine::GiveStagingBack(Operation& op) {
  Link& link = *op.link;
  link.staging.GiveBack(std::exchange(op.staged, Operation::kNotStaged));
  while (!link.waiting_for_staging.empty()) {
    Operation& next = ops_[link.waiting_for_staging.front()];
    const auto place = link.staging.Take(next.value_size);
    if (!place) return;
    link.waiting_for_staging.pop_front();
    next.staged = *place;
    StartRequest(next);
  }
}

// --- Delegated path

// False if there is no chunk to put it in: it goes another way, which is slower, and waits for nothing.
bool Engine::PutDelegated(Operation& op) {
  Link& link = *op.link;
  const uint32_t head = link.geometry().HeadOf(op.key_hash);
  const uint64_t object_bytes = format::ObjectSpace(op.label_size(), op.value_size);
  Delegated::Chunk* chunk = link.delegated.Find(head, object_bytes);
  SendChunkRequests(link);
  if (!link.up()) return true;  // the connection failed
  if (chunk == nullptr) return false;
  // (I10) The region may have been linked, or used anew, since the slots were read.
  uint64_t offset = 0;
  uint64_t in_segment = 0;
  const format::HeadSlot region = link.SlotOf(head, chunk->address);
  if (region.generation() != chunk->generation || !link.Resolve(region, chunk->address, &offset, &in_segment)) {
    if (auto status = link.ReadControl(); !status.ok()) {
      CloseLink(link, status);
      return true;
    }
    return false;
  }
  offset += chunk->tail;
  const uint32_t window = chunk->window;
  const format::LogAddress address = link.delegated.Place(*chunk, object_bytes);

  const auto message = op.message();
  const auto value = message.subspan(format::InlineValueOffset(op.key_size), op.value_size);
  Request request = MakeRequest(op, RequestOp::kPutDelegated);
  request.address = address.raw();
  request.value_crc = Crc32c(0, value);
  WriteRequest(op, request);
  stats_.nvm_bytes_written += value.size();
  WorkRequest works[2];
  works[0].kind = OpKind::kWrite;
  works[0].signaled = false;
  works[0].local = value;
  const uint32_t to = window != 0 ? format::kPoolRegion : format::kPoolWriteRegion;
  works[0].remote = {to, offset + format::ValueOffset(op.label_size()), window};
  works[1] = RequestWork(op, message.first(sizeof(Request) + op.key_size));
  Post(link, works);
  return true;
}

void Engine::SendChunkRequests(Link& link) {
  Delegated& delegated = link.delegated;
  if (delegated.sending || delegated.to_send.empty() || !link.up()) return;
  const uint32_t slot = link.TakeSlot(Link::kChunkOwner);
  if (slot == Link::kNoSlot) return;  // the next one that is free
  Request& request = delegated.to_send.front();
  request.id = next_request_id_++;
  std::memcpy(link.chunk_message().data(), &request, sizeof(request));
  delegated.to_send.pop_front();
  delegated.sending = true;
  ++stats_.requests;
  SendOwn(link, slot, link.chunk_message());
}

// In memory that stays as long as the link.
bool Engine::SendOwn(Link& link, uint32_t slot, std::span<std::byte> message) {
  WorkRequest work;
  work.kind = OpKind::kWriteImm;
  work.signaled = false;
  work.imm = slot;
  work.local = message;
  work.remote = {format::kRequestRegion, link.SlotOffset(slot)};
  return Post(link, {&work, 1});
}

void Engine::OnChunkReply(Link& link, uint32_t slot) {
  const auto request = LoadAs<Request>(link.chunk_message());
  const Reply reply = link.ReplyIn(slot);
  const bool ok = reply.code == static_cast<uint8_t>(Code::kOk);
  const bool is_chunk = reply.header.is_chunk() && reply.head == request.head &&
                        SpaceOf(reply.header) >= request.version && SpaceOf(reply.header) <= request.value_size &&
                        reply.number <= UINT32_MAX &&
                        (reply.number != 0) == (link.placing() == format::Placing::kWindow);
  const bool delegate = request.op == static_cast<uint8_t>(RequestOp::kDelegate);
  if (reply.id != request.id || (delegate && ok && !is_chunk)) {
    return CloseLink(link, {Code::kUnavailable, address_ + ": the server answered what nobody asked"});
  }
  link.delegated.sending = false;
  if (delegate && ok) {
    link.delegated.OnDelegated(request.head, reply);
  } else if (delegate) {
    link.delegated.OnRefused(request.head);
  }
  PassSlotOn(link, slot);
}

// --- Time

// Without a slot to spare whoever needs it comes again.
void Engine::AskTime(Link& link) {
  if (link.asks_time) return;
  const uint32_t slot = link.TakeSlot(Link::kTimeOwner);
  if (slot == Link::kNoSlot) return;
  link.asks_time = true;
  ++stats_.requests;
  WorkRequest work;
  work.kind = OpKind::kWriteImm;
  work.signaled = false;
  work.imm = format::kAsksTime | slot;
  Post(link, {&work, 1});
}

void Engine::OnTimeReply(Link& link, uint32_t slot) {
  const Reply reply = link.ReplyIn(slot);
  if (reply.id != 0 || reply.code != static_cast<uint8_t>(Code::kOk)) {
    return CloseLink(link, {Code::kUnavailable, address_ + ": the server answered what nobody asked"});
  }
  link.asks_time = false;
  link.time_hint.Learn(clock_.Now(), reply.number);
  PassSlotOn(link, slot);
}

// --- Slots

void Engine::ReleaseSlot(Operation& op) {
  if (op.slot == Link::kNoSlot) return;
  const uint32_t slot = op.slot;
  op.slot = Link::kNoSlot;
  PassSlotOn(*op.link, slot);
}

// A slot is free: whoever waits longest for one has it.
void Engine::PassSlotOn(Link& link, uint32_t slot) {
  link.FreeSlot(slot);
  SendChunkRequests(link);
  if (link.waiting_for_slot.empty() || !link.has_slot()) return;
  Operation& next = ops_[link.waiting_for_slot.front()];
  link.waiting_for_slot.pop_front();
  StartRequest(next);
}

// --- Replies

void Engine::OnReply(Link& link, uint32_t slot) {
  const OpIndex owner = link.OwnerOf(slot);
  if (owner == Link::kReportOwner) {
    report_link_ = nullptr;
    return PassSlotOn(link, slot);
  }
  if (owner == Link::kChunkOwner) return OnChunkReply(link, slot);
  if (owner == Link::kTimeOwner) return OnTimeReply(link, slot);
  const auto give_up = [&] {
    CloseLink(link, {Code::kUnavailable, address_ + ": the server answered what nobody asked"});
  };
  if (owner == Link::kFreeSlot) return give_up();
  Operation& op = ops_[owner];
  const Reply reply = link.ReplyIn(slot);
  const auto sent = LoadAs<Request>(op.message());
  if (op.slot != slot || reply.id != sent.id || reply.code > static_cast<uint8_t>(Code::kInternal)) {
    return give_up();
  }
  if (op.step != Step::kReply && op.step != Step::kCommitted) return give_up();
  if (op.way == PutWay::kDelegated) {
    const bool refused = reply.reason == static_cast<uint8_t>(Reason::kNoChunk);
    link.delegated.OnAnswer(link.geometry().HeadOf(op.key_hash), format::LogAddress(sent.address), refused);
    SendChunkRequests(link);
    if (!link.up()) return;
    if (refused) return GoWithoutChunk(op);
  }
  if (reply.code != static_cast<uint8_t>(Code::kOk)) return Finish(op, ReplyStatus(op, reply));
  if (op.step == Step::kReply && sent.op == static_cast<uint8_t>(RequestOp::kReserve)) {
    op.reply = reply;
    return OnReserved(op);
  }
  if (op.type == OpType::kDelete) {
    locations_.Erase(op.key_hash);
  } else if (op.type == OpType::kPut || op.type == OpType::kIncrement) {
    return FinishPut(op, op.step == Step::kReply ? reply : op.reply);
  }
  Finish(op, Status());
}

// The put is acknowledged. placed: the reply that said where.
void Engine::FinishPut(Operation& op, const Reply& placed) {
  op.number = op.type == OpType::kIncrement ? placed.number : placed.header.version;
  Locate(op, format::LogAddress(placed.address), placed.generation,
         format::ObjectBytes(placed.header.label_size(), op.value_size), placed.header.expires());
  Finish(op, Status());
}

void Engine::OnSent(Operation& op) {
  if (--op.sending == 0 && op.step == Step::kSent) Finish(op, std::move(op.result));
}

Status Engine::ReplyStatus(const Operation& op, const Reply& reply) const {
  const auto code = static_cast<Code>(reply.code);
  const std::string shard = address_ + ": shard " + std::to_string(op.link->shard());
  if (code == Code::kConflict) {
    const uint64_t version = reply.header.version;
    return {code, version == 0 ? "the key is absent" : "the key has version " + std::to_string(version)};
  }
  switch (static_cast<Reason>(reply.reason)) {
    case Reason::kIndexFull:
      return {code, shard + " has no room in its index"};
    case Reason::kLogFull:
      return {code, shard + " has no room in its log"};
    case Reason::kTooManyReservations:
      return {code, shard + " lets a client have " + std::to_string(reply.number) + " puts in flight"};
    case Reason::kNotWhole:
      return {code, shard + " did not find the value whole that was written"};
    case Reason::kReadOnly:
      return {code, shard + " does not let this client write"};
    case Reason::kDamaged:
      return {code, shard + " found its data damaged"};
    case Reason::kNotANumber:
      return {code, "the value is not a number of 8 bytes"};
    case Reason::kOverflow:
      return {code, "the sum does not fit into 64 bits"};
    case Reason::kNoChunk:  // the put went another way
    case Reason::kNone:
      break;
  }
  return Status(code);
}

// --- Reserve path: the value

void Engine::OnReserved(Operation& op) {
  const format::ObjectHeader& header = op.reply.header;
  const bool ours = header.key_size == op.key_size && header.value_size == op.value_size &&
                    header.key_hash == op.key_hash && header.label_size() == op.label_size();
  if (!ours) return CloseLink(*op.link, {Code::kUnavailable, address_ + ": the server reserved what nobody asked for"});
  op.next_control_read = op.link->NextControlRead();
  if (Planted(Flaw::kAcknowledgesEarly)) return Finish(op, Status());
  WriteValue(op);
}

void Engine::WriteValue(Operation& op) {
  Link& link = *op.link;
  const format::LogAddress address(op.reply.address);
  uint64_t offset = 0;
  uint64_t in_segment = 0;
  const format::HeadSlot slot = link.SlotOf(op.reply.head, address);
  // (I10) The region may have been linked, or used anew, since the slots were read.
  if (slot.generation() != op.reply.generation || !link.Resolve(slot, address, &offset, &in_segment)) {
    if (link.control_reads < op.next_control_read) return WaitForHeads(op);
    return CloseLink(link, {Code::kUnavailable, address_ + ": the server reserved a place that is none"});
  }
  // checksum and value stand behind the key, here as in the log
  const auto message = op.message();
  const auto body = message.subspan(sizeof(Request) + op.key_size, format::kChecksumBytes + op.value_size);
  const uint32_t checksum = format::ObjectChecksum(op.reply.header, body.subspan(format::kChecksumBytes));
  std::memcpy(body.data(), &checksum, sizeof(checksum));
  stats_.nvm_bytes_written += body.size();

  WorkRequest works[3];
  size_t count = 0;
  const auto write = [&](std::span<std::byte> bytes, uint64_t at) {
    WorkRequest& work = works[count++];
    work.kind = OpKind::kWrite;
    work.signaled = false;
    work.local = bytes;
    work.remote = {format::kPoolWriteRegion, offset + at};
  };
  const uint64_t checksum_at = format::ChecksumOffset(op.label_size());
  if (options_.ack == Ack::kPersisted && link.flush_method() == format::FlushMethod::kServerFlush) {
    Request commit{};
    commit.op = static_cast<uint8_t>(RequestOp::kCommit);
    commit.id = next_request_id_++;
    commit.key_hash = op.key_hash;
    commit.address = address.raw();
    commit.head = op.reply.head;
    commit.version = op.reply.header.version;
    std::memcpy(message.data(), &commit, sizeof(commit));
    op.step = Step::kCommitted;
    ++stats_.requests;
    write(body, checksum_at);
    works[count++] = RequestWork(op, message.first(sizeof(commit)));
  } else {
    // (I8) Without a commit, the shard takes the put for done once it finds the value whole. So the checksum comes
    // last: a value that ends in zeroes is whole in a place of zeroes before all of it is written.
    write(body.subspan(format::kChecksumBytes), checksum_at + format::kChecksumBytes);
    write(body.first(format::kChecksumBytes), checksum_at);
    // A Write that completed may not be placed yet; a Read behind it on the same channel comes back after it is.
    op.step = Step::kPlaced;
    works[count++] = ReadWork(op, op.readings().first(sizeof(uint64_t)), {format::kPoolRegion, offset}, true);
  }
  if (Planted(Flaw::kNoReadBehindWrite) && op.step == Step::kPlaced) {
    works[1].signaled = true;
    works[1].id = op.index;
    Post(link, std::span(works).first(2));
    return;
  }
  Post(link, std::span(works).first(count));
}

}  // namespace erda::client
