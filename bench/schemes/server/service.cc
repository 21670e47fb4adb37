#include "bench/schemes/server/service.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/hash.h"

namespace erda::schemes {

using fabric::Access;
using fabric::Completion;
using fabric::OpKind;

namespace {

// Entries applied in one Poll: as many as can have arrived in it.
constexpr size_t kApplyStep = 64;

}  // namespace

// --- Sessions

Result<std::unique_ptr<Service>> Service::Create(Storage& storage, fabric::Fabric& fabric,
                                                 fabric::CompletionQueue& queue, const ServiceOptions& options) {
  std::unique_ptr<Service> service(new Service(storage, fabric, queue, options));
  if (options.scheme == Scheme::kReadAfterWrite) {
    if (auto status = service->RegisterPool(); !status.ok()) return status;
  }
  return service;
}

Status Service::RegisterPool() {
  auto region = fabric_.Register(storage_.scheme_pool().pool().view(), Access::kRemoteReadWrite);
  if (!region.ok()) return region.status();
  pool_region_ = *std::move(region);
  return {};
}

Refusal Service::MakeRefusal(Code code, std::string_view message) {
  static_assert(sizeof(Refusal) <= fabric::kRejectDataMax);
  Refusal refusal{};
  refusal.magic = kMagic;
  refusal.code = static_cast<uint8_t>(code);
  std::copy_n(message.begin(), std::min(message.size(), refusal.message.size() - 1), refusal.message.begin());
  return refusal;
}

void Service::Admit(std::unique_ptr<fabric::Incoming> incoming) {
  const Status status = Accept(*incoming);
  if (!status.ok()) incoming->Reject(BytesOf(MakeRefusal(status.code(), status.message())));
}

Status Service::Accept(fabric::Incoming& incoming) {
  const auto data = incoming.peer_data();
  const Hello hello = data.size() < sizeof(Hello) ? Hello{} : LoadAs<Hello>(data);
  if (hello.magic != kMagic || hello.version != kVersion) {
    return {Code::kInvalidArgument,
            "this server runs a compared scheme, and the client does not speak it; use erda-ycsb --scheme"};
  }
  if (hello.scheme != static_cast<uint8_t>(options_.scheme)) {
    return {Code::kInvalidArgument, "the server runs the scheme " + std::string(SchemeName(options_.scheme))};
  }
  auto made = MakeSession(std::clamp(hello.slots, 1U, kSlotsMax));
  if (!made.ok()) return made.status();
  Session& session = **made;

  HelloReply reply{};
  reply.magic = kMagic;
  reply.version = kVersion;
  reply.scheme = static_cast<uint8_t>(options_.scheme);
  reply.flush_method = static_cast<uint8_t>(options_.flush_method);
  reply.slots = session.slots;
  reply.slot_bytes = options_.slot_bytes;
  reply.seed = storage_.scheme_pool().seed();
  reply.value_bytes_max = std::min(kValueBytesMax, options_.slot_bytes - static_cast<uint32_t>(sizeof(Request)));
  reply.log_offset = storage_.scheme_pool().log_offset();
  reply.log_bytes = storage_.scheme_pool().log_bytes();
  std::vector<fabric::Region*> offer = {session.request_region.get()};
  if (pool_region_) offer.push_back(pool_region_.get());
  auto channel = incoming.Accept({&queue_, offer, BytesOf(reply)});
  if (!channel.ok()) return channel.status();
  session.channel = *std::move(channel);
  session.channel->user = &session;
  session.request_memory.DropDescriptors();
  sessions_[session.id] = *std::move(made);
  return {};
}

Result<std::unique_ptr<Service::Session>> Service::MakeSession(uint32_t slots) {
  const auto free = std::find(sessions_.begin(), sessions_.end(), nullptr);
  const auto id = static_cast<Owner>(free - sessions_.begin());
  if (id >= options_.max_clients) {
    return Status(Code::kResourceExhausted,
                  "the server takes " + std::to_string(options_.max_clients) + " clients, and has as many");
  }
  if (free == sessions_.end()) sessions_.emplace_back();
  auto session = std::make_unique<Session>();
  session->id = id;
  session->slots = slots;
  session->waits.resize(slots);
  auto memory = SharedMemory::Create("erda-scheme-requests", uint64_t{slots} * options_.slot_bytes);
  if (!memory.ok()) return memory.status();
  session->request_memory = *std::move(memory);
  session->reply_memory.resize(uint64_t{slots} * ReplyStride());
  auto request_region = fabric_.Register(session->request_memory.view(), Access::kRemoteReadWrite);
  if (!request_region.ok()) return request_region.status();
  session->request_region = *std::move(request_region);
  auto reply_region = fabric_.Register(MemoryView{session->reply_memory, -1, -1}, Access::kLocal);
  if (!reply_region.ok()) return reply_region.status();
  session->reply_region = *std::move(reply_region);
  return session;
}

// Completions of the session's channel may still follow in the present batch.
void Service::Doom(Session& session) {
  if (session.doomed) return;
  session.doomed = true;
  doomed_.push_back(session.id);
}

void Service::EndDoomed() {
  for (const Owner id : std::exchange(doomed_, {})) {
    sessions_[id]->channel.reset();  // The fence: no operation of the client arrives after this.
    storage_.Abandon(id);
    std::erase_if(waiting_, [id](const Waiting& waiting) { return waiting.session == id; });
    sessions_[id].reset();
  }
}

void Service::Close() {
  for (auto& session : sessions_) {
    if (session) Doom(*session);
  }
  EndDoomed();
  storage_.Close();
}

// --- Requests

size_t Service::Poll() {
  const size_t n = queue_.Poll(completions_);
  for (size_t i = 0; i < n; ++i) Handle(completions_[i]);
  if (!answered_.empty()) {
    storage_.Fence();  // Acknowledged entries are persistent.
    PostReplies();
  }
  if (!doomed_.empty()) EndDoomed();
  const size_t applied = storage_.unapplied() > 0 ? storage_.Apply(kApplyStep) : 0;
  if (!waiting_.empty() && (applied > 0 || storage_.stuck())) ServeWaiting();
  return n + applied;
}

void Service::Handle(const Completion& completion) {
  auto& session = *static_cast<Session*>(completion.channel->user);
  if (session.doomed) return;
  switch (completion.kind) {
    case OpKind::kConnected: {
      const auto offered = session.channel->peer_regions();
      if (offered.empty() || offered[kReplyRegion].size < uint64_t{session.slots} * kReplySlotBytes) Doom(session);
      return;
    }
    case OpKind::kReceiveImm:
      if (completion.imm >= session.slots || !Serve(session, completion.imm)) return Doom(session);
      if (session.waits[completion.imm]) ++counters_.waits;
      return;
    case OpKind::kReceive:  // The protocol has no such messages.
    case OpKind::kClosed:
      return Doom(session);
    default:  // An answer that could not be sent: kClosed follows.
      return;
  }
}

void Service::Wait(Session& session, uint32_t slot) {
  waiting_.push_back({session.id, slot});
  session.waits[slot] = true;
}

void Service::ServeWaiting() {
  for (const auto& [id, slot] : std::exchange(waiting_, {})) {
    Session& session = *sessions_[id];
    session.waits[slot] = false;
    if (!session.doomed && !Serve(session, slot)) Doom(session);
  }
  if (answered_.empty()) return;
  storage_.Fence();
  PostReplies();
}

bool Service::Serve(Session& session, uint32_t slot) {
  const auto bytes =
      std::as_const(session).request_memory.bytes().subspan(uint64_t{slot} * options_.slot_bytes, options_.slot_bytes);
  const auto request = LoadAs<Request>(bytes);  // A private copy: the client can still write to the slot.
  if (session.waits[slot]) return false;        // The slot's earlier request was not answered yet.
  if (request.op == static_cast<uint8_t>(RequestOp::kCommit)) {
    if (!storage_.Commit(request.position, session.id)) return false;
    Answer(session, slot, Code::kOk);
    return true;
  }
  if (!waiting_.empty()) {  // Waits after the earlier requests.
    Wait(session, slot);
    return true;
  }
  if (request.op == static_cast<uint8_t>(RequestOp::kCounters)) {
    ServeCounters(session, slot);
    return true;
  }
  const PairSizes sizes(request.sizes);
  if (!sizes.valid() || sizes.pair() > options_.slot_bytes - sizeof(Request)) return false;
  const auto pair = bytes.subspan(sizeof(Request), sizes.pair());
  const std::string_view key = AsString(pair.first(sizes.key()));
  switch (RequestOp{request.op}) {
    case RequestOp::kGet:
      return ServeGet(session, slot, key);
    case RequestOp::kPut:
    case RequestOp::kReserve:
      return !sizes.deletes() && ServePut(session, slot, request, pair);
    case RequestOp::kDelete: {
      const Admission admission = storage_.AppendDelete(key, HashKey(key, kHashSeed));
      AnswerAdmission(session, slot, admission, 0);
      return true;
    }
    default:
      return false;
  }
}

bool Service::ServePut(Session& session, uint32_t slot, const Request& request, std::span<const std::byte> pair) {
  const PairSizes sizes(request.sizes);
  const std::string_view key = AsString(pair.first(sizes.key()));
  const bool carries_value = request.op == static_cast<uint8_t>(RequestOp::kPut);
  if (carries_value != (options_.scheme == Scheme::kRedoLogging)) return false;
  uint64_t position = 0;
  Admission admission{};
  if (carries_value) {
    // The paper: "the server verifies the integrity of the message in the redo log". The server does so before the
    // entry is in the log. The entry's checksum there is the client's, bound to its place.
    if (PairCrc(storage_.scheme_pool().seed(), sizes, pair) != request.crc) return false;
    admission = storage_.AppendPut(sizes, HashKey(key, kHashSeed), pair, request.crc);
  } else {
    // A copy of the key, since the server looks at it more than once.
    const std::string own_key(key);
    const bool flushed = options_.flush_method != format::FlushMethod::kServerFlush;
    admission = storage_.Reserve(sizes, HashKey(own_key, kHashSeed), own_key, session.id, flushed, &position);
  }
  if (admission != Admission::kWait) ++counters_.puts;
  AnswerAdmission(session, slot, admission, position);
  return true;
}

// The paper: "the server first looks for the object in the redo log. If the requested object isn't in the redo log, the
// server searches the destination address with the object key through a hash table, and then reads the object and
// returns it". The server copies the value once, since the next put may overwrite its destination before a NIC has read
// it.
bool Service::ServeGet(Session& session, uint32_t slot, std::string_view key) {
  const auto found = storage_.Find(key, HashKey(key, kHashSeed));
  if (!found) {
    Answer(session, slot, Code::kNotFound);
    return true;
  }
  const auto to = ReplySlot(session, slot).subspan(sizeof(Reply));
  if (found->value.size() > to.size()) {  // Put by a server with larger slots.
    Answer(session, slot, Code::kInvalidArgument);
    return true;
  }
  if (!found->value.empty()) std::memcpy(to.data(), found->value.data(), found->value.size());
  Answer(session, slot, Code::kOk, static_cast<uint32_t>(found->value.size()));
  return true;
}

void Service::ServeCounters(Session& session, uint32_t slot) {
  storage_.Fence();
  storage_.ApplyAll();
  counters_.nvm_bytes = storage_.written().bytes;
  counters_.applied = storage_.applied();
  counters_.unapplied = storage_.unapplied();
  counters_.keys = storage_.keys();
  std::memcpy(ReplySlot(session, slot).data() + sizeof(Reply), &counters_, sizeof(counters_));
  Answer(session, slot, Code::kOk, sizeof(counters_));
}

void Service::AnswerAdmission(Session& session, uint32_t slot, Admission admission, uint64_t position) {
  switch (admission) {
    case Admission::kTaken:
      return Answer(session, slot, Code::kOk, 0, position);
    case Admission::kFull:
      return Answer(session, slot, Code::kResourceExhausted);
    case Admission::kAbsent:
      return Answer(session, slot, Code::kNotFound);
    case Admission::kWait:
      return Wait(session, slot);
  }
}

std::span<std::byte> Service::ReplySlot(Session& session, uint32_t slot) const {
  return std::span(session.reply_memory).subspan(uint64_t{slot} * ReplyStride(), options_.slot_bytes);
}

void Service::Answer(Session& session, uint32_t slot, Code code, uint32_t value_size, uint64_t position) {
  Reply reply{};
  reply.code = static_cast<uint8_t>(code);
  reply.value_size = value_size;
  reply.position = position;
  // The slot's last answer has arrived: otherwise the client could not have sent another request in it.
  const auto memory = ReplySlot(session, slot);
  std::memcpy(memory.data(), &reply, sizeof(reply));
  if (session.replies.empty()) answered_.push_back(&session);
  fabric::WorkRequest work;
  work.kind = OpKind::kWriteImm;
  work.signaled = false;
  work.imm = slot;
  work.local = memory.first(sizeof(reply) + value_size);
  work.remote = {kReplyRegion, uint64_t{slot} * kReplySlotBytes};
  session.replies.push_back(work);
}

void Service::PostReplies() {
  for (Session* session : std::exchange(answered_, {})) {
    const Status status = session->channel->Post(session->replies);
    session->replies.clear();
    // A failed channel reports that by a separate completion.
    if (status.code() == Code::kResourceExhausted) Doom(*session);
  }
}

}  // namespace erda::schemes
