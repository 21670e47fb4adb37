#include "server/shard.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/planted.h"

namespace erda::server {

using fabric::Access;
using fabric::Completion;
using fabric::OpKind;
using format::Condition;
using format::Counter;
using format::Reply;
using format::Request;
using format::RequestOp;

namespace {

// Reservations looked at in one Tidy.
constexpr size_t kSweepStep = 64;
// Slots of the index counted in one CountKeys: some microseconds, since it looks at an object for each key.
constexpr uint64_t kCountStep = 128;
// What a while is for the chunks of a shard that is never idle: so many Polls that served something.
constexpr uint32_t kPollsOfAWhile = 1 << 16;
// That takes so long at least: a Poll that serves something, a microsecond.
constexpr Nanoseconds kLeastOfAWhile = std::chrono::milliseconds(65);
// A client that was in the middle of a Write is looked at again after so many Polls with work.
constexpr uint32_t kPollsPerFence = 64;
// What decides a request's condition may come without a message: looked at after so many Polls.
constexpr uint32_t kPollsPerLook = 64;
// Who writes it has so long while others wait.
constexpr Nanoseconds kWriterAwaitedMax = std::chrono::seconds(3);

// A delegated put has its space: if it waited, its client would have to keep its chunk, which may be in the way of what
// it waits for.
bool MayWait(const Request& request) {
  switch (RequestOp{request.op}) {
    case RequestOp::kPutInline:
    case RequestOp::kReserve:
    case RequestOp::kDelete:
    case RequestOp::kClean:
    case RequestOp::kIncrement:
      return true;
    default:
      return false;
  }
}

bool ConditionIsValid(const Request& request) {
  if (request.condition == static_cast<uint8_t>(Condition::kNone)) return true;
  const RequestOp op{request.op};
  const bool may = op == RequestOp::kPutInline || op == RequestOp::kReserve || op == RequestOp::kDelete;
  return may && request.condition == static_cast<uint8_t>(Condition::kVersion);
}

}  // namespace

// --- Setting up

Result<PoolRegions> PoolRegions::Register(fabric::Fabric& fabric, const nvm::Pool& pool) {
  auto readable = fabric.Register(pool.view(), Access::kRemoteRead);
  if (!readable.ok()) return readable.status();
  auto writable = fabric.Register(pool.view(), Access::kRemoteReadWrite);
  if (!writable.ok()) return writable.status();
  return PoolRegions{*std::move(readable), *std::move(writable)};
}

Result<std::unique_ptr<Shard>> Shard::Create(FormattedPool& pool, uint32_t number, std::span<const Port> ports,
                                             const ShardOptions& options) {
  auto control = SharedMemory::Create("erda-control", format::ControlBytes(pool.geometry().heads_per_shard),
                                      SharedMemory::Writers::kOwner);
  if (!control.ok()) return control.status();
  std::unique_ptr<Shard> shard(new Shard(pool, number, ports, options, *std::move(control)));
  if (auto status = shard->Register(); !status.ok()) return status;
  return shard;
}

Shard::Shard(FormattedPool& pool, uint32_t number, std::span<const Port> ports, const ShardOptions& options,
             SharedMemory control)
    : pool_(pool),
      geometry_(pool.geometry()),
      number_(number),
      ports_(ports.begin(), ports.end()),
      options_(options),
      nvm_(pool.pool()),
      control_(std::move(control)),
      counters_(control_.bytes()),
      versions_(std::make_unique<Versions>(nvm_, geometry_, pool_.seed(), number_, control_.bytes(),
                                           VersionsOptions{options_.reservations_per_client})),
      cleaner_(pool.pool(), geometry_, pool_.seed(), number_, control_.bytes(), clean_queues_),
      cleaning_(*versions_, geometry_, control_.bytes(), clean_queues_) {}

Shard::~Shard() = default;

Status Shard::TakeUp() { return pool_.needs_recovery() ? versions_->Look() : versions_->Open(); }

Status Shard::Register() {
  for (const Port& port : ports_) {
    auto region = port.fabric.Register(control_.view(), Access::kRemoteRead);
    if (!region.ok()) return region.status();
    control_regions_.push_back(*std::move(region));
  }
  return {};
}

bool Shard::EndSessions() {
  for (auto& session : sessions_) {
    if (session) Doom(*session, false);
  }
  EndDoomed();
  return doomed_.empty();
}

void Shard::Close() {
  if (!EndSessions()) {
    for (const SessionId id : std::exchange(doomed_, {})) EndSession(id);
  }
  versions_->Close();
}

// --- Sessions

format::HelloRefusal Shard::Refusal(Code code, std::string_view message) {
  static_assert(sizeof(format::HelloRefusal) <= fabric::kRejectDataMax);
  format::HelloRefusal refusal{};
  refusal.magic = format::kHelloMagic;
  refusal.protocol_version = format::kProtocolVersion;
  refusal.code = static_cast<uint8_t>(code);
  const size_t n = std::min(message.size(), refusal.message.size() - 1);
  std::copy_n(message.begin(), n, refusal.message.begin());
  return refusal;
}

void Shard::Admit(std::unique_ptr<fabric::Incoming> incoming, const format::HelloRequest& hello, size_t port) {
  const Status status = Accept(*incoming, hello, port);
  if (status.ok()) return;
  counters_.Add(Counter::kRefused);
  incoming->Reject(BytesOf(Refusal(status.code(), status.message())));
}

Result<std::unique_ptr<Shard::Session>> Shard::MakeSession(const format::HelloRequest& hello, size_t port) {
  const auto free = std::find(sessions_.begin(), sessions_.end(), nullptr);
  const auto id = static_cast<SessionId>(free - sessions_.begin());
  if (id >= options_.max_clients) {
    return Status(Code::kResourceExhausted,
                  "the server takes " + std::to_string(options_.max_clients) + " clients, and has as many");
  }
  if (free == sessions_.end()) sessions_.emplace_back();

  auto session = std::make_unique<Session>();
  session->id = id;
  session->port = port;
  session->slots = std::clamp(hello.slots, 1U, std::min(options_.slots_per_client, format::kSlotsMax));
  session->writable = true;
  auto memory = SharedMemory::Create("erda-requests", uint64_t{session->slots} * options_.slot_bytes);
  if (!memory.ok()) return memory.status();
  session->request_memory = *std::move(memory);
  session->reply_memory.resize(session->slots * sizeof(Reply));
  fabric::Fabric& fabric = ports_[port].fabric;
  auto request_region = fabric.Register(session->request_memory.view(), Access::kRemoteReadWrite);
  if (!request_region.ok()) return request_region.status();
  session->request_region = *std::move(request_region);
  auto reply_region = fabric.Register(MemoryView{session->reply_memory, -1, -1}, Access::kLocal);
  if (!reply_region.ok()) return reply_region.status();
  session->reply_region = *std::move(reply_region);
  return session;
}

Status Shard::Accept(fabric::Incoming& incoming, const format::HelloRequest& hello, size_t port) {
  auto made = MakeSession(hello, port);
  if (!made.ok()) return made.status();
  Session& session = **made;

  format::HelloReply reply{};
  reply.magic = format::kHelloMagic;
  reply.protocol_version = format::kProtocolVersion;
  reply.flush_method = static_cast<uint8_t>(ports_[port].flush_method);
  reply.pool_uuid = pool_.superblock().uuid;
  reply.server_id = options_.server_id;
  reply.slots = session.slots;
  reply.slot_bytes = options_.slot_bytes;
  reply.durability = static_cast<uint8_t>(pool_.pool().durability());
  reply.pool_writable = session.writable ? 1 : 0;
  reply.geometry = geometry_;

  const PoolRegions& pool_regions = ports_[port].pool_regions;
  std::vector<fabric::Region*> offer = {pool_regions.readable.get(), control_regions_[port].get(),
                                        session.request_region.get()};
  if (session.writable) offer.push_back(pool_regions.writable.get());
  const fabric::ChannelOptions options{&ports_[port].queue, offer, BytesOf(reply)};
  auto channel = incoming.Accept(options);
  if (!channel.ok()) return channel.status();
  session.channel = *std::move(channel);
  session.channel->user = &session;
  session.request_memory.DropDescriptors();  // handed over: each session keeps one descriptor, its channel's
  sessions_[session.id] = *std::move(made);
  return {};
}

void Shard::OnConnected(Session& session) {
  session.connected = true;
  counters_.Add(Counter::kClients);
  const auto offered = session.channel->peer_regions();
  const bool holds_replies = !offered.empty() && offered[format::kReplyRegion].size >= session.slots * sizeof(Reply);
  if (!holds_replies) Doom(session, true);
}

// The channel is not destroyed at once: completions of it may stand further down in the batch at hand.
void Shard::Doom(Session& session, bool violated) {
  if (session.doomed) return;
  session.doomed = true;
  ends_ = true;
  if (violated) counters_.Add(Counter::kViolations);
  doomed_.push_back(session.id);
}

// (I8) As long as a client is in the middle of a Write, what its session holds is held.
size_t Shard::EndDoomed() {
  if (doomed_.empty()) return 0;
  ends_ = false;
  const size_t ended = std::erase_if(doomed_, [&](SessionId id) {
    if (!sessions_[id]->channel->Fence() && !Planted(Flaw::kEndsUnfenced)) return false;
    EndSession(id);
    return true;
  });
  versions_->PublishGauges();
  return ended;
}

void Shard::EndSession(SessionId id) {
  sessions_[id]->channel.reset();  // the fence: nothing of it arrives from here on
  versions_->EndSession(id);
  std::erase_if(waiting_, [id](const Waiting& waiting) { return waiting.session == id; });
  std::erase_if(undecided_, [id](const Undecided& undecided) { return undecided.session == id; });
  std::erase_if(commits_, [id](const Commit& commit) { return commit.begun.session == id; });
  if (sessions_[id]->connected) counters_.Set(Counter::kClients, counters_.Get(Counter::kClients) - 1);
  sessions_[id].reset();
}

// --- Requests

size_t Shard::Poll() {
  size_t served = 0;
  // From another port on each time, and as much of each at most, so that a busy one does not keep the others waiting.
  if (++first_port_ >= ports_.size()) first_port_ = 0;
  for (size_t port = first_port_, i = 0; i < ports_.size(); ++i) {
    const size_t n = ports_[port].queue.Poll(completions_);
    for (size_t k = 0; k < n; ++k) Handle(completions_[k]);
    served += n;
    if (++port == ports_.size()) port = 0;
  }
  versions_->PublishPuts();
  EndCommits();
  if (!undecided_.empty() && (versions_->decisions() != decisions_seen_ || ++polls_undecided_ % kPollsPerLook == 0)) {
    served += ServeUndecided();
  }
  if (!waiting_.empty()) CountKeys();  // nothing is cleaned before
  const size_t cleaned = cleaning_.Step();
  if (served > 0 && ++busy_polls_ % kPollsOfAWhile == 0) {
    versions_->AgeChunks();
    if (!waiting_.empty()) cleaning_.AwaitChunks(kLeastOfAWhile);
  }
  TellTakenBack();
  DoomOverdue();
  if (!waiting_.empty() && rooms_seen_ != cleaning_.rooms()) served += ServeWaiting();
  if (served == 0 && cleaned == 0 && answered_.empty() && !ends_) return 0;
  versions_->PublishGauges();  // before the answers: who has one finds itself counted
  PostReplies();
  if (ends_ || ++polls_since_fence_ % kPollsPerFence == 0) EndDoomed();
  return served + cleaned;
}

size_t Shard::Tidy(Nanoseconds since) {
  if (!waiting_.empty()) cleaning_.LosePatience(since);
  versions_->AgeChunks();
  TellTakenBack();
  DoomOverdue();
  PostReplies();
  const size_t ended = EndDoomed();
  if (versions_->in_flight() == 0) return ended;
  const size_t settled = versions_->Sweep(kSweepStep);
  if (!undecided_.empty()) ServeUndecided();
  if (settled > 0) versions_->PublishGauges();
  PostReplies();
  return ended + settled;
}

bool Shard::CountKeys() { return versions_->CountKeys(kCountStep); }

void Shard::Handle(const Completion& completion) {
  auto& session = *static_cast<Session*>(completion.channel->user);
  if (session.doomed) return;
  switch (completion.kind) {
    case OpKind::kConnected:
      return OnConnected(session);
    case OpKind::kReceiveImm:
      if (completion.imm >= session.slots || !Serve(session, completion.imm)) Doom(session, true);
      return;
    case OpKind::kReceive:  // nothing in the protocol is sent
      Doom(session, true);
      return;
    case OpKind::kClosed:
      Doom(session, false);
      return;
    default:  // a reply that could not be sent: kClosed follows
      return;
  }
}

// waited: it is served once more. What it says now may be something else: the client can still write there.
bool Shard::Serve(Session& session, uint32_t slot, bool waited) {
  const auto bytes = session.request_memory.bytes().subspan(uint64_t{slot} * options_.slot_bytes, options_.slot_bytes);
  const auto request = LoadAs<Request>(bytes);  // a private copy: the client can still write to the slot
  if (IsWaiting(session, slot)) return false;
  if (waited && !MayWait(request)) return false;
  if (!ConditionIsValid(request)) return false;
  Outcome outcome;
  Present present;
  if (request.op == static_cast<uint8_t>(RequestOp::kCommit)) {
    commits_.push_back(
        {{request.key_hash, request.head, format::LogAddress(request.address), request.version, session.id},
         slot,
         request.id});
    versions_->BeginCommit(&commits_.back().begun);
    return true;  // answered in EndCommits
  } else if (request.op == static_cast<uint8_t>(RequestOp::kGiveBack)) {
    versions_->GiveBack(request.head, format::LogAddress(request.address), request.version, session.id);
  } else if (request.op == static_cast<uint8_t>(RequestOp::kDelegate)) {
    const uint32_t first_head = number_ * geometry_.heads_per_shard;
    if (!session.writable || request.head - first_head >= geometry_.heads_per_shard) return false;
    outcome = versions_->Delegate(request.head, request.version, request.value_size, session.id);
  } else if (session.waiting > 0 && MayWait(request)) {
    Wait(session, slot);  // behind what came before it
    return true;
  } else if (!ServeKeyed(session, request, bytes, &outcome, &present)) {
    return false;
  }
  if (present.state == Present::State::kUndecided) {
    undecided_.push_back({session.id, slot, present});
    return true;
  }
  if (outcome.reason == format::Reason::kLogFull && cleaning_.Expects(outcome.head, waited)) {
    Wait(session, slot);
    return true;
  }
  const bool told = outcome.code == Code::kOk || outcome.code == Code::kNotFound || outcome.code == Code::kConflict;
  if (!told && outcome.reason != format::Reason::kNoChunk) counters_.Add(Counter::kRefused);
  Answer(session, slot, request.id, outcome);
  return true;
}

void Shard::EndCommits() {
  for (const Commit& commit : commits_) {
    Session& session = *sessions_[commit.begun.session];
    if (session.doomed) continue;
    const auto outcome = versions_->EndCommit(commit.begun);
    if (!outcome) {
      Doom(session, true);
      continue;
    }
    if (outcome->code != Code::kOk) counters_.Add(Counter::kRefused);
    Answer(session, commit.slot, commit.id, *outcome);
  }
  commits_.clear();
}

// Its client sends nothing else in the slot before it is answered.
void Shard::Wait(Session& session, uint32_t slot) {
  waiting_.push_back({session.id, slot});
  ++session.waiting;
  rooms_seen_ = cleaning_.rooms();
  counters_.Add(Counter::kPutsDelayed);
}

bool Shard::IsWaiting(const Session& session, uint32_t slot) const {
  const auto is_it = [&](const auto& waiting) { return waiting.session == session.id && waiting.slot == slot; };
  return (session.waiting > 0 && std::ranges::any_of(waiting_, is_it)) || std::ranges::any_of(undecided_, is_it);
}

size_t Shard::ServeWaiting() {
  rooms_seen_ = cleaning_.rooms();
  const std::deque<Waiting> waiting = std::exchange(waiting_, {});
  for (const auto& [session, slot] : waiting) sessions_[session]->waiting = 0;
  for (const auto& [id, slot] : waiting) {
    Session& session = *sessions_[id];
    if (!session.doomed && !Serve(session, slot, true)) Doom(session, true);
  }
  versions_->PublishPuts();
  return waiting.size();
}

size_t Shard::ServeUndecided() {
  decisions_seen_ = versions_->decisions();
  const std::deque<Undecided> undecided = std::exchange(undecided_, {});
  for (const Undecided& each : undecided) {
    Session& session = *sessions_[each.session];
    const size_t before = undecided_.size();
    if (!session.doomed && !Serve(session, each.slot)) Doom(session, true);
    const bool goes_on = undecided_.size() > before && undecided_.back().present.version == each.present.version;
    if (goes_on) undecided_.back().waited = each.waited;
  }
  versions_->PublishPuts();
  return undecided.size() - undecided_.size();
}

// Whoever keeps others waiting for so long is overdue.
void Shard::PassTime(Nanoseconds since) {
  ServeUndecided();
  for (Undecided& each : undecided_) {
    each.waited += since;
    Session& writer = *sessions_[each.present.writer];
    if (each.waited < kWriterAwaitedMax || writer.doomed) continue;
    counters_.Add(Counter::kOverdue);
    Doom(writer, false);
  }
  versions_->PublishGauges();
  PostReplies();
}

bool Shard::ServeKeyed(Session& session, const Request& request, std::span<std::byte> slot, Outcome* outcome,
                       Present* present) {
  if (request.key_size == 0 || request.key_size > format::kKeyBytesMax) return false;
  if (request.ack > static_cast<uint8_t>(Ack::kPersisted)) return false;
  std::array<char, format::kKeyBytesMax> key_copy;
  std::memcpy(key_copy.data(), slot.data() + sizeof(Request), request.key_size);
  const std::string_view key(key_copy.data(), request.key_size);
  const uint64_t key_hash = HashKey(key);
  if (geometry_.ShardOf(key_hash) != number_) return false;
  const Ack ack{request.ack};
  const bool conditional = request.condition != static_cast<uint8_t>(Condition::kNone);
  if (conditional || request.op == static_cast<uint8_t>(RequestOp::kIncrement)) {
    *present = versions_->Judge(key, key_hash);
    if (present->state == Present::State::kUndecided) return true;
    if (present->state == Present::State::kDamaged) {
      *outcome = {Code::kCorruption, format::Reason::kDamaged, {}, 0, {}};
      return true;
    }
  }
  if (conditional && present->version != request.version && !Planted(Flaw::kConditionNotJudged)) {
    outcome->code = Code::kConflict;
    outcome->header.version = present->version;
    return true;
  }

  switch (RequestOp{request.op}) {
    case RequestOp::kPutInline: {
      const uint64_t value_at = format::InlineValueOffset(request.key_size);
      if (value_at + request.value_size > slot.size()) return false;
      if (request.value_size > format::ValueBytesMax(geometry_, request.key_size)) return false;
      *outcome = versions_->PutInline(key, key_hash, slot.subspan(value_at, request.value_size), ack);
      return true;
    }
    case RequestOp::kReserve:
      if (!session.writable || request.value_size > format::ValueBytesMax(geometry_, request.key_size)) return false;
      *outcome =
          versions_->Reserve(key, key_hash, request.value_size, ack, session.id, ports_[session.port].flush_method);
      return true;
    case RequestOp::kPutDelegated: {
      if (!session.writable || request.value_size > format::ValueBytesMax(geometry_, request.key_size)) return false;
      const auto put = versions_->PutDelegated(key, key_hash, request.value_size, request.value_crc, ack,
                                               format::LogAddress(request.address), session.id);
      if (put) *outcome = *put;
      return put.has_value();
    }
    case RequestOp::kIncrement: {
      const uint64_t delta_at = format::InlineValueOffset(request.key_size);
      if (request.value_size != sizeof(int64_t) || delta_at + sizeof(int64_t) > slot.size()) return false;
      *outcome = versions_->Increment(key, key_hash, *present, LoadAs<int64_t>(slot.subspan(delta_at)), ack);
      return true;
    }
    case RequestOp::kDelete:
      *outcome = versions_->Delete(key, key_hash);
      return true;
    case RequestOp::kReport:
      versions_->Report(key, key_hash);
      return true;
    case RequestOp::kClean:
      cleaning_.Ask();
      return true;
    case RequestOp::kCommit:
    case RequestOp::kDelegate:
    case RequestOp::kGiveBack:
      break;
  }
  return false;
}

void Shard::Answer(Session& session, uint32_t slot, uint64_t id, const Outcome& outcome) {
  Reply reply{};
  reply.id = id;
  reply.code = static_cast<uint8_t>(outcome.code);
  reply.reason = static_cast<uint8_t>(outcome.reason);
  reply.address = outcome.address.raw();
  reply.head = outcome.head;
  reply.generation = outcome.generation;
  const bool too_many = outcome.reason == format::Reason::kTooManyReservations;
  reply.number = too_many ? options_.reservations_per_client : outcome.number;
  reply.header = outcome.header;
  // The slot's last reply has arrived, or the client could not have sent another request in it.
  const std::span<std::byte> local = std::span(session.reply_memory).subspan(slot * sizeof(Reply), sizeof(Reply));
  std::memcpy(local.data(), &reply, sizeof(reply));
  Say(session, slot, local);
}

void Shard::Say(Session& session, uint32_t imm, std::span<std::byte> reply) {
  if (session.replies.empty()) answered_.push_back(&session);
  fabric::WorkRequest work;
  work.kind = OpKind::kWriteImm;
  work.signaled = false;
  work.imm = imm;
  work.local = reply;
  work.remote = {format::kReplyRegion, reply.empty() ? 0 : imm * sizeof(Reply)};
  session.replies.push_back(work);
}

void Shard::TellTakenBack() {
  versions_->TellTakenBack([&](SessionId id, format::LogAddress chunk) {
    if (!sessions_[id]->doomed) Say(*sessions_[id], format::kTakesBack | chunk.raw(), {});
  });
}

// They keep what others need; who is called again connects anew.
void Shard::DoomOverdue() {
  versions_->EndOverdue([&](SessionId id) {
    if (!sessions_[id]->doomed) counters_.Add(Counter::kOverdue);
    Doom(*sessions_[id], false);
  });
}

void Shard::PostReplies() {
  while (!answered_.empty()) {
    Session* session = answered_.back();
    answered_.pop_back();
    const Status status = session->channel->Post(session->replies);
    session->replies.clear();
    // No room: the client asked more at once than its slots allow, or does not take its replies. A failed channel says
    // so by a completion of its own.
    if (status.code() == Code::kResourceExhausted) Doom(*session, true);
  }
}

}  // namespace erda::server
