#include "server/shard.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/bytes.h"
#include "base/planted.h"
#include "format/proof.h"

namespace erda::server {

using fabric::Access;
using fabric::Completion;
using fabric::OpKind;
using format::Counter;
using format::Reply;

namespace {

// Reservations looked at in one Tidy.
constexpr size_t kSweepStep = 64;
// Slots of the index counted in one CountKeys: some microseconds, since it looks at an object for each key.
constexpr uint64_t kCountStep = 128;
// What a while is for the chunks of a shard that is never idle: so many Polls that served something.
constexpr uint32_t kPollsOfAWhile = 1 << 16;
// That takes so long at least: a Poll that serves something, a microsecond.
constexpr Nanoseconds kLeastOfAWhile = std::chrono::milliseconds(65);
// Of the steps that persist something one in so many is timed: that takes two more looks at the clock.
constexpr uint32_t kPersistsPerTime = 64;
// A client that was in the middle of a Write is looked at again after so many Polls with work.
constexpr uint32_t kPollsPerFence = 64;
// Of those that wait for what a client writes, looked at in one Poll that has other work.
constexpr size_t kUndecidedStep = 16;

}  // namespace

// --- Setting up

Result<PoolRegions> PoolRegions::Register(fabric::Fabric& fabric, const nvm::Pool& pool, PoolWrites writes) {
  // A NIC stores into pages that were pinned when the pool was registered. Once the kernel has written such a page to
  // the disk it counts as clean, and a NIC's later store does not change that: syncs would miss it, and the pool would
  // be marked as closed cleanly without it. So clients stage there, and the shard's CPU stores. (A device with
  // on-demand paging would do, but pages are pinned where that can be, windows need pinned ones, and nobody can tell
  // which it was.)
  if (pool.written_back() && fabric.capabilities().nic_writes) writes = PoolWrites::kNobody;
  // A device that pins no such memory may do so without windows: all stage then.
  const bool windows = writes == PoolWrites::kSameUser && fabric.capabilities().memory_windows;
  auto readable = fabric.Register(pool.view(), windows ? Access::kRemoteReadWindows : Access::kRemoteRead);
  if (windows && !readable.ok()) readable = fabric.Register(pool.view(), Access::kRemoteRead);
  if (!readable.ok()) return readable.status();
  // Where nobody is known to be the server's own user, nobody would be offered it.
  const bool is_somebodys =
      writes == PoolWrites::kEverybody || (writes == PoolWrites::kSameUser && fabric.capabilities().knows_users);
  if (!is_somebodys) return PoolRegions{*std::move(readable), nullptr};
  auto writable = fabric.Register(pool.view(), Access::kRemoteReadWrite);
  if (!writable.ok()) return writable.status();
  return PoolRegions{*std::move(readable), *std::move(writable)};
}

Result<std::unique_ptr<Shard>> Shard::Create(FormattedPool& pool, uint32_t number, std::span<const Port> ports,
                                             const ShardOptions& options) {
  auto control =
      SharedMemory::Create("erda-control", format::ControlRegionBytes(pool.geometry()), SharedMemory::Writers::kOwner);
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
      activity_(control_.bytes(), geometry_),
      versions_(std::make_unique<Versions>(
          nvm_, geometry_, pool_.seed(), number_, control_.bytes(),
          VersionsOptions{options_.reservations_per_client, options_.time, options_.note_ahead,
                          pool_.superblock().hash_seed, options_.index_grows})),
      cleaner_(pool.pool(), geometry_, pool_.seed(), number_, control_.bytes(), clean_queues_, *options_.time),
      cleaning_(*versions_, geometry_, control_.bytes(), clean_queues_),
      clients_per_token_(options_.clients_per_token),
      requests_per_second_(options_.requests_per_second) {
  cleaning_.on_merge = [this](bool begins) {
    const Nanoseconds now = options_.clock->Now();
    if (!begins) activity_.TimeCleanRegion(now - merging_since_);
    merging_since_ = now;
  };
}

Shard::~Shard() = default;

void Shard::CountRecovery(const RecoveryReport& report) {
  counters_.Set(Counter::kRecoveryNanos, static_cast<uint64_t>(report.time.count()));
  counters_.Set(Counter::kRecoveryObjects, report.objects);
  counters_.Set(Counter::kRecoverySettled, report.settled);
  counters_.Set(Counter::kRecoveryTakenBack, report.taken_back);
  counters_.Set(Counter::kRecoveryDropped, report.dropped);
  counters_.Set(Counter::kRecoveryDeletesFinished, report.deletes_finished);
  counters_.Set(Counter::kRecoveryDamaged, report.damaged);
  counters_.Set(Counter::kRecoveryShardsVerified, report.shards_verified);
}

Status Shard::TakeUp() {
  if (pool_.needs_verification()) return versions_->part().LookUnvouched();
  return pool_.needs_recovery() ? versions_->part().Look() : versions_->part().Open();
}

Status Shard::Register() {
  for (const Port& port : ports_) {
    auto region = port.fabric.Register(control_.view(), Access::kRemoteRead);
    if (!region.ok()) return region.status();
    control_regions_.push_back(*std::move(region));
  }
  NameFabrics();
  CountRegistered();
  return {};
}

bool Shard::EndSessions() {
  for (auto& session : sessions_) {
    if (session) Doom(*session);
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

void Shard::Admit(std::unique_ptr<fabric::Incoming> incoming, const format::HelloRequest& hello, size_t port,
                  const Admission& admission) {
  const size_t own = admission.read_only ? ports_[port].for_readers.value_or(port) : port;
  const Status status = Accept(*incoming, hello, own, admission);
  if (status.ok()) return;
  CountRefused(fabric_of_port_[port]);
  if (on_event_ && status.code() != Code::kUnavailable) {  // who has left already did nothing wrong
    on_event_(NameOfClient(hello.client_id, incoming->peer_name()) + ", shard " + std::to_string(number_) +
              ": refused: " + std::string(status.message()));
  }
  incoming->Reject(BytesOf(Refusal(status.code(), status.message())));
}

void Shard::EndOthers(const TokenIds& tokens) {
  for (const auto& session : sessions_) {
    if (session && session->token != 0 && !tokens.contains(session->token)) Doom(*session);
  }
}

// Over a NIC nobody is known to be the server's own user: a writable pool is for the operator to allow there.
bool Shard::MayWritePool(fabric::PeerUser user) const {
  switch (options_.pool_writes) {
    case PoolWrites::kNobody:
      return false;
    case PoolWrites::kSameUser:
      return user == fabric::PeerUser::kSame;
    case PoolWrites::kEverybody:
      return true;
  }
  return false;
}

bool Shard::MayHaveWindows(size_t port) const {
  return ports_[port].pool_regions.readable->access() == Access::kRemoteReadWindows;
}

// The server's memory: what a client made could vanish, or come for ever, while the shard copies from it.
Status Shard::GiveStaging(Session& session) {
  auto memory = SharedMemory::Create("erda-staging", std::max(options_.staging_bytes, geometry_.segment_size));
  if (!memory.ok()) return memory.status();
  session.staging = *std::move(memory);
  auto region = ports_[session.port].fabric.Register(session.staging.view(), Access::kRemoteReadWrite);
  if (!region.ok()) return region.status();
  session.staging_region = *std::move(region);
  return {};
}

Result<std::unique_ptr<Session>> Shard::MakeSession(const format::HelloRequest& hello, size_t port,
                                                    const Admission& admission, fabric::PeerUser user) {
  if (auto status = MayConnect(hello, admission); !status.ok()) return status;
  const auto free = std::find(sessions_.begin(), sessions_.end(), nullptr);
  const auto id = static_cast<SessionId>(free - sessions_.begin());
  if (id >= options_.max_clients) {
    return Status(Code::kResourceExhausted,
                  "the server takes " + std::to_string(options_.max_clients) + " clients, and has as many");
  }
  if (free == sessions_.end()) sessions_.emplace_back();

  auto session = std::make_unique<Session>();
  session->id = id;
  session->client_id = hello.client_id;
  session->port = port;
  session->fabric = fabric_of_port_[port];
  session->slots = std::clamp(hello.slots, 1U, std::min(options_.slots_per_client, format::kSlotsMax));
  session->token = admission.token;
  session->read_only = admission.read_only;
  session->writable = !session->read_only && MayWritePool(user) && ports_[port].pool_regions.writable != nullptr;
  session->windowed = !session->read_only && !session->writable && MayHaveWindows(port);
  session->reply_memory.resize(session->slots * sizeof(Reply));
  fabric::Fabric& fabric = ports_[port].fabric;
  auto reply_region = fabric.Register(MemoryView{session->reply_memory, -1, -1}, Access::kLocal);
  if (!reply_region.ok()) return reply_region.status();
  session->reply_region = *std::move(reply_region);
  if (session->read_only) return session;
  auto memory = SharedMemory::Create("erda-requests", uint64_t{session->slots} * options_.slot_bytes);
  if (!memory.ok()) return memory.status();
  session->request_memory = *std::move(memory);
  auto request_region = fabric.Register(session->request_memory.view(), Access::kRemoteReadWrite);
  if (!request_region.ok()) return request_region.status();
  session->request_region = *std::move(request_region);
  if (!session->writable) {
    if (auto status = GiveStaging(*session); !status.ok()) return status;
  }
  return session;
}

Status Shard::Accept(fabric::Incoming& incoming, const format::HelloRequest& hello, size_t port,
                     const Admission& admission) {
  auto made = MakeSession(hello, port, admission, incoming.peer_user());
  if (!made.ok()) return made.status();
  Session& session = **made;
  session.peer = incoming.peer_name();

  format::HelloReply reply{};
  reply.time = options_.time->Micros();
  reply.magic = format::kHelloMagic;
  reply.protocol_version = format::kProtocolVersion;
  reply.flush_method = static_cast<uint8_t>(ports_[port].flush_method);
  reply.pool_uuid = pool_.superblock().uuid;
  reply.server_id = options_.server_id;
  reply.slots = session.slots;
  reply.slot_bytes = options_.slot_bytes;
  reply.durability = static_cast<uint8_t>(pool_.pool().durability());
  reply.placing = static_cast<uint8_t>(session.writable         ? format::Placing::kPool
                                       : session.windowed       ? format::Placing::kWindow
                                       : session.staging_region ? format::Placing::kStaging
                                                                : format::Placing::kNone);
  reply.read_only = session.read_only ? 1 : 0;
  reply.geometry = geometry_;
  reply.hash_seed = pool_.superblock().hash_seed;
  if (!admission.secret.empty()) reply.proof = format::ServerProof(admission.secret, admission.nonce, reply);

  const PoolRegions& pool_regions = ports_[port].pool_regions;
  std::vector<fabric::Region*> offer = {pool_regions.readable.get(), control_regions_[port].get()};
  if (!session.read_only) offer.push_back(session.request_region.get());
  if (session.writable) offer.push_back(pool_regions.writable.get());
  if (session.staging_region) offer.push_back(session.staging_region.get());
  const fabric::ChannelOptions options{&ports_[port].queue, offer, BytesOf(reply)};
  CountRegistered(session, true);  // before the answer: who is let in finds itself counted
  auto channel = incoming.Accept(options);
  if (!channel.ok()) {
    CountRegistered(session, false);
    return channel.status();
  }
  session.channel = *std::move(channel);
  session.channel->user = &session;
  session.request_memory.DropDescriptors();  // handed over: each session keeps one descriptor, its channel's
  session.staging.DropDescriptors();
  sessions_[session.id] = *std::move(made);
  return {};
}

void Shard::OnConnected(Session& session) {
  session.connected = true;
  counters_.Add(Counter::kClients);
  activity_.CountConnection(session.fabric, true);
  const auto offered = session.channel->peer_regions();
  const bool holds_replies = !offered.empty() && offered[format::kReplyRegion].size >= session.slots * sizeof(Reply);
  if (!holds_replies) Violate(session, "it offers no memory for its replies");
}

// The channel is not destroyed at once: completions of it may stand further down in the batch at hand.
void Shard::Doom(Session& session) {
  if (session.doomed) return;
  session.doomed = true;
  ends_ = true;
  doomed_.push_back(session.id);
}

// (I8) As long as a client is in the middle of a Write, what its session holds is held. Who writes into no pool,
// through no window either, holds nothing, and is not waited for, whatever it says.
size_t Shard::EndDoomed() {
  if (doomed_.empty()) return 0;
  ends_ = false;
  const size_t ended = std::erase_if(doomed_, [&](SessionId id) {
    const bool writes = sessions_[id]->writable || sessions_[id]->windowed;
    if (writes && !sessions_[id]->channel->Fence() && !Planted(Flaw::kEndsUnfenced)) return false;
    EndSession(id);
    return true;
  });
  versions_->PublishGauges();
  return ended;
}

void Shard::EndSession(SessionId id) {
  sessions_[id]->channel.reset();  // the fence: nothing of it arrives from here on, through no window either
  versions_->EndSession(id);
  std::erase_if(waiting_, [id](const Waiting& waiting) { return waiting.session == id; });
  std::erase_if(undecided_, [id](const Undecided& undecided) { return undecided.session == id; });
  std::erase_if(commits_, [id](const Commit& commit) { return commit.begun.session == id; });
  if (sessions_[id]->connected) {
    counters_.Set(Counter::kClients, counters_.Get(Counter::kClients) - 1);
    activity_.CountConnection(sessions_[id]->fabric, false);
  }
  if (!sessions_[id]->held.empty()) std::erase(holding_, id);
  CountRegistered(*sessions_[id], false);
  sessions_[id].reset();
}

// --- Requests

size_t Shard::Poll() {
  now_micros_ = 0;
  size_t served = holding_.empty() ? 0 : ServeHeld();
  bool looked = false;  // at the clock
  Nanoseconds seen{0};
  // From another port on each time, and as much of each at most, so that a busy one does not keep the others waiting.
  if (++first_port_ >= ports_.size()) first_port_ = 0;
  for (size_t port = first_port_, i = 0; i < ports_.size(); ++i) {
    const size_t n = ports_[port].queue.Poll(completions_);
    if (n > 0 && !std::exchange(looked, true)) {
      seen = options_.clock->Now();
      KeepTime();
    }
    for (size_t k = 0; k < n; ++k) Handle(completions_[k], seen);
    served += n;
    if (++port == ports_.size()) port = 0;
  }
  PublishAndCommit();
  if (!answered_.empty()) {
    versions_->PublishGauges();  // before the answers: who has one finds itself counted
    PostReplies(versions_->PublishPuts());
  }
  // Nobody waits for what comes behind the answers.
  if (!undecided_.empty()) served += ServeUndecided(served > 0 ? kUndecidedStep : undecided_.size(), false);
  if (!waiting_.empty()) CountKeys();  // nothing is cleaned before
  const size_t cleaned = cleaning_.Step();
  if (cleaned > 0 && !looked) KeepTime();
  if (served > 0 && ++busy_polls_ % kPollsOfAWhile == 0) {
    versions_->delegating().Age();
    if (!waiting_.empty()) cleaning_.AwaitChunks(kLeastOfAWhile);
  }
  TellTakenBack();
  CloseWindows();
  DoomOverdue();
  if (!waiting_.empty() && rooms_seen_ != cleaning_.rooms()) served += ServeWaiting();
  if (served == 0 && cleaned == 0 && answered_.empty() && !ends_) return 0;
  versions_->PublishGauges();
  PostReplies(versions_->PublishPuts());
  versions_->growth().Grow();
  if (ends_ || ++polls_since_fence_ % kPollsPerFence == 0) served += EndDoomed();
  return served + cleaned;
}

size_t Shard::Tidy(Nanoseconds since) {
  if (!waiting_.empty()) cleaning_.LosePatience(since);
  versions_->delegating().Age();
  TellTakenBack();
  CloseWindows();
  DoomOverdue();
  PostReplies(versions_->PublishPuts());
  size_t done = EndDoomed();
  if (versions_->in_flight() > 0) done += versions_->Sweep(kSweepStep);
  if (!undecided_.empty()) done += ServeUndecided(undecided_.size(), true);
  if (done > 0) versions_->PublishGauges();
  PostReplies(versions_->PublishPuts());
  return done;
}

// One in some is timed, if it waits for the medium.
void Shard::PublishAndCommit() {
  const uint64_t fences = nvm_.counters().fences;
  const bool timed = persists_ % kPersistsPerTime == 0 && (versions_->has_unpublished() || !commits_.empty());
  const Nanoseconds begin = timed ? options_.clock->Now() : Nanoseconds(0);
  versions_->PublishPuts();
  EndCommits();
  if (nvm_.counters().fences == fences) return;
  ++persists_;
  if (timed) activity_.TimePersist(options_.clock->Now() - begin);
}

bool Shard::CountKeys() { return versions_->growth().CountKeys(kCountStep); }

Violation Shard::Hear(Session& session, const Completion& message, Nanoseconds seen) {
  const uint32_t slot = message.imm & ~format::kAsksTime;
  if (slot >= session.slots) return Violation("a message for a slot that it does not have");
  if (slot != message.imm && message.bytes != 0) return Violation("it asks for the time, with bytes");
  if (slot == message.imm && session.read_only) return Violation("a request, though it may only read");
  if (MayHoldBack(session) && IsHeldBack(session, message.imm, seen)) {
    return session.held.size() <= session.slots ? Violation() : Violation("more requests at once than it has slots");
  }
  return HearNow(session, message.imm, seen);
}

Violation Shard::HearNow(Session& session, uint32_t imm, Nanoseconds seen) {
  const uint32_t slot = imm & ~format::kAsksTime;
  const Asked asked{session, slot, seen};
  return slot != imm ? TellTime(asked) : Serve(asked);
}

void Shard::Handle(const Completion& completion, Nanoseconds seen) {
  auto& session = *static_cast<Session*>(completion.channel->user);
  if (session.doomed) return;
  switch (completion.kind) {
    case OpKind::kConnected:
      return OnConnected(session);
    case OpKind::kReceiveImm:
      if (const Violation violation = Hear(session, completion, seen)) Violate(session, violation.what());
      return;
    case OpKind::kReceive:  // nothing in the protocol is sent
      return Violate(session, "a message that is no request");
    case OpKind::kClosed:
      if (session.channel->peer_broke_rules()) return Violate(session, "it did what its fabric does not allow");
      return Doom(session);
    case OpKind::kWindowClosed:  // (else kClosed follows, and the session's end closes it)
      if (completion.code == Code::kOk) versions_->chunks().OnWindowClosed(session.id, completion.id);
      return;
    default:  // a reply that could not be sent: kClosed follows
      return;
  }
}

}  // namespace erda::server
