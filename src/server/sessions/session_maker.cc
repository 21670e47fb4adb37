#include "server/sessions/session_maker.h"

#include <algorithm>
#include <utility>

#include "base/bytes.h"
#include "format/proof.h"

namespace erda::server {

using fabric::Access;

namespace {

// REQUIRES: all other fields of the reply are set.
void Prove(const Admission& admission, format::HelloReply* reply) {
  if (!admission.secret.empty()) reply->proof = format::ServerProof(admission.secret, admission.nonce, *reply);
}

}  // namespace

SessionMaker::SessionMaker(FormattedPool& pool, std::span<const Port> ports, const ShardOptions& options)
    : pool_(pool), ports_(ports.begin(), ports.end()), options_(options) {}

Result<SessionMaker> SessionMaker::Create(FormattedPool& pool, const SharedMemory& control, std::span<const Port> ports,
                                          const ShardOptions& options) {
  SessionMaker maker(pool, ports, options);
  for (const Port& port : ports) {
    auto region = port.fabric.Register(control.view(), Access::kRemoteRead);
    if (!region.ok()) return region.status();
    maker.control_regions_.push_back(*std::move(region));
  }
  return maker;
}

uint64_t SessionMaker::RegisteredBytes(bool with_pool) const {
  uint64_t bytes = 0;
  for (size_t port = 0; port < ports_.size(); ++port) {
    bytes += control_regions_[port]->bytes().size();
    // The pool is registered for reading, and once more for writing if a client may write.
    if (with_pool) bytes += (ports_[port].pool_regions.writable ? 2 : 1) * pool_.pool().view().bytes.size();
  }
  return bytes;
}

// Over a NIC the server cannot tell that a client is its own user. There only the operator can allow a writable pool.
bool SessionMaker::MayWritePool(fabric::PeerUser user) const {
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

Result<std::unique_ptr<Session>> SessionMaker::Make(SessionId id, const format::HelloRequest& hello, size_t port,
                                                    const Admission& admission, fabric::PeerUser user) const {
  const PoolRegions& pool_regions = ports_[port].pool_regions;
  auto session = std::make_unique<Session>();
  session->id = id;
  session->client_id = hello.client_id;
  session->port = port;
  session->flush_method = ports_[port].flush_method;
  session->slots = std::clamp(hello.slots, 1U, std::min(options_.slots_per_client, format::kSlotsMax));
  session->token = admission.token;
  session->read_only = admission.rights == TokenRights::kRead;
  session->writable = !session->read_only && MayWritePool(user) && pool_regions.writable != nullptr;
  const bool has_windows = pool_regions.readable->access() == Access::kRemoteReadWindows;
  if (!session->read_only && !session->writable && has_windows) session->windowed_pool = pool_regions.readable.get();
  session->reply_memory.resize(session->slots * sizeof(format::Reply));
  auto reply_region = ports_[port].fabric.Register(MemoryView{session->reply_memory, -1, -1}, Access::kLocal);
  if (!reply_region.ok()) return reply_region.status();
  session->reply_region = *std::move(reply_region);
  if (session->read_only) return session;
  if (auto status = GiveRequestMemory(*session); !status.ok()) return status;
  if (session->writable) return session;
  if (auto status = GiveStaging(*session); !status.ok()) return status;
  return session;
}

Status SessionMaker::GiveRequestMemory(Session& session) const {
  auto memory = SharedMemory::Create("erda-requests", uint64_t{session.slots} * options_.slot_bytes);
  if (!memory.ok()) return memory.status();
  session.request_memory = *std::move(memory);
  auto region = ports_[session.port].fabric.Register(session.request_memory.view(), Access::kRemoteReadWrite);
  if (!region.ok()) return region.status();
  session.request_region = *std::move(region);
  return {};
}

// The server makes the staging buffer. If the client made it, the client could take pages of it away, or never provide
// them, while the shard copies from it.
Status SessionMaker::GiveStaging(Session& session) const {
  auto memory = SharedMemory::Create("erda-staging", std::max(options_.staging_bytes, pool_.geometry().segment_size));
  if (!memory.ok()) return memory.status();
  session.staging = *std::move(memory);
  auto region = ports_[session.port].fabric.Register(session.staging.view(), Access::kRemoteReadWrite);
  if (!region.ok()) return region.status();
  session.staging_region = *std::move(region);
  return {};
}

format::HelloReply SessionMaker::CommonGreeting() const {
  format::HelloReply reply{};
  reply.time = options_.time->Micros();
  reply.magic = format::kHelloMagic;
  reply.protocol_version = format::kProtocolVersion;
  reply.pool_uuid = pool_.superblock().uuid;
  reply.server_id = options_.server_id;
  reply.durability = static_cast<uint8_t>(pool_.pool().vouched());
  reply.geometry = pool_.geometry();
  reply.hash_seed = pool_.superblock().hash_seed;
  return reply;
}

format::HelloReply SessionMaker::GreetingForMirror(const Admission& admission) const {
  format::HelloReply reply = CommonGreeting();
  Prove(admission, &reply);
  return reply;
}

format::HelloReply SessionMaker::Greeting(const Session& session, const Admission& admission) const {
  format::HelloReply reply = CommonGreeting();
  reply.flush_method = static_cast<uint8_t>(session.flush_method);
  reply.slots = session.slots;
  reply.slot_bytes = options_.slot_bytes;
  reply.placing = static_cast<uint8_t>(session.writable         ? format::Placing::kPool
                                       : session.windowed()     ? format::Placing::kWindow
                                       : session.staging_region ? format::Placing::kStaging
                                                                : format::Placing::kNone);
  reply.read_only = session.read_only ? 1 : 0;
  Prove(admission, &reply);
  return reply;
}

Status SessionMaker::Accept(fabric::Incoming& incoming, const Admission& admission, Session& session) const {
  session.peer = incoming.peer_name();
  const format::HelloReply reply = Greeting(session, admission);
  const Port& port = ports_[session.port];
  std::vector<fabric::Region*> offer = {port.pool_regions.readable.get(), control_regions_[session.port].get()};
  if (!session.read_only) offer.push_back(session.request_region.get());
  if (session.writable) offer.push_back(port.pool_regions.writable.get());
  if (session.staging_region) offer.push_back(session.staging_region.get());
  const fabric::ChannelOptions options{&port.queue, offer, BytesOf(reply)};
  auto channel = incoming.Accept(options);
  if (!channel.ok()) return channel.status();
  session.channel = *std::move(channel);
  session.channel->user = &session;
  session.request_memory.DropDescriptors();  // the client has them now; a session keeps one, its channel's
  session.staging.DropDescriptors();
  return {};
}

}  // namespace erda::server
