#include "server/sessions/sessions.h"

#include <algorithm>
#include <string>

#include "base/bytes.h"
#include "base/planted.h"

namespace erda::server {

using format::Counter;

Sessions::Sessions(SessionMaker maker, uint32_t shard, Counters counters, ActivityCounts& activity,
                   const ShardOptions& options)
    : maker_(std::move(maker)),
      shard_(shard),
      max_clients_(options.max_clients),
      counters_(counters),
      activity_(activity),
      fabric_of_port_(NameFabrics(maker_.ports(), activity)),
      clients_per_token_(options.clients_per_token) {
  counters_.Set(Counter::kRegisteredBytes, maker_.RegisteredBytes(shard == 0));  // counts the pool only once
}

// --- Opening

void Sessions::Open(std::unique_ptr<fabric::Incoming> incoming, const format::HelloRequest& hello, size_t port,
                    const Admission& admission) {
  const size_t own = admission.rights == TokenRights::kRead ? maker_.ports()[port].for_readers.value_or(port) : port;
  const Status status = LetIn(*incoming, hello, own, admission);
  if (!status.ok()) Refuse(*incoming, hello, port, status);
}

void Sessions::OpenMirror(std::unique_ptr<fabric::Incoming> incoming, const format::HelloRequest& hello, size_t port,
                          const Admission& admission, mirror::Links& links) {
  fabric::Region* const offer[] = {&maker_.OfferForMirror(port)};
  const Status status =
      links.Admit(*incoming, hello, port, offer, maker_.GreetingForMirror(admission), admission.token);
  if (!status.ok()) Refuse(*incoming, hello, port, status);
}

void Sessions::Refuse(fabric::Incoming& incoming, const format::HelloRequest& hello, size_t port, const Status& why) {
  CountRefused(fabric_of_port_[port]);
  if (tell_ && why.code() != Code::kUnavailable) {  // a client that has left already did nothing wrong
    tell_(NameOfClient(hello.client_id, incoming.peer_name()) + ", shard " + std::to_string(shard_) +
          ": refused: " + std::string(why.message()));
  }
  incoming.Reject(BytesOf(Refusal(why.code(), why.message())));
}

Status Sessions::LetIn(fabric::Incoming& incoming, const format::HelloRequest& hello, size_t port,
                       const Admission& admission) {
  if (auto status = MayConnect(hello, admission); !status.ok()) return status;
  const auto free = std::find(sessions_.begin(), sessions_.end(), nullptr);
  const auto id = static_cast<SessionId>(free - sessions_.begin());
  if (id >= max_clients_) {
    return {Code::kResourceExhausted, "the server takes " + std::to_string(max_clients_) + " clients, and has as many"};
  }
  if (free == sessions_.end()) sessions_.emplace_back();
  auto made = maker_.Make(id, hello, port, admission, incoming.peer_user());
  if (!made.ok()) return made.status();
  Session& session = **made;
  session.fabric = fabric_of_port_[port];
  CountRegistered(session, true);  // before the answer, so that a client that is let in finds itself counted
  if (auto status = maker_.Accept(incoming, admission, session); !status.ok()) {
    CountRegistered(session, false);
    return status;
  }
  sessions_[id] = *std::move(made);
  return {};
}

Status Sessions::MayConnect(const format::HelloRequest& hello, const Admission& admission) const {
  const uint32_t most = clients_per_token_.load(std::memory_order_relaxed);
  if (most == 0) return {};
  const auto is_same = [&](const std::unique_ptr<Session>& session) {
    if (!session) return false;
    return admission.token != 0 ? session->token == admission.token : session->client_id == hello.client_id;
  };
  if (std::ranges::count_if(sessions_, is_same) < most) return {};
  const std::string who = admission.token != 0 ? "the clients of this token" : "clients of this number";
  return {Code::kResourceExhausted,
          who + " have " + std::to_string(most) + " connections already, which is their limit"};
}

void Sessions::Connect(Session& session) {
  session.connected = true;
  counters_.Add(Counter::kClients);
  activity_.CountConnection(session.fabric, true);
  const auto offered = session.channel->peer_regions();
  const size_t bytes = session.slots * sizeof(format::Reply);
  const bool holds_replies = !offered.empty() && offered[format::kReplyRegion].size >= bytes;
  if (!holds_replies) Violate(session, "it offers no memory for its replies");
}

// --- Closing

void Sessions::Doom(Session& session) {
  if (session.doomed) return;
  session.doomed = true;
  has_new_doomed_ = true;
  doomed_.push_back(&session);
}

void Sessions::DoomAll() {
  for (const auto& session : sessions_) {
    if (session) Doom(*session);
  }
}

void Sessions::DoomOthers(const TokenIds& tokens) {
  for (const auto& session : sessions_) {
    if (session && session->token != 0 && !tokens.contains(session->token)) Doom(*session);
  }
}

void Sessions::Violate(Session& session, std::string_view what) {
  if (session.doomed) return;
  Doom(session);
  counters_.Add(Counter::kViolations);
  activity_.CountViolation(session.fabric);
  TellOf(session, "it broke the protocol: " + std::string(what));
}

void Sessions::EndOverdue(Session& session, std::string_view what) {
  if (session.doomed) return;
  counters_.Add(Counter::kOverdue);
  TellOf(session, "ended: " + std::string(what));
  Doom(session);
}

bool Sessions::MayClose(const Session& session) {
  const bool writes = session.writable || session.windowed();
  return !writes || session.channel->Fence() || Planted(Flaw::kEndsUnfenced);
}

void Sessions::Remove(Session& session) {
  if (session.connected) {
    counters_.Set(Counter::kClients, counters_.Get(Counter::kClients) - 1);
    activity_.CountConnection(session.fabric, false);
  }
  CountRegistered(session, false);
  sessions_[session.id].reset();
}

// --- Numbers and events

void Sessions::CountRefused(size_t fabric) {
  counters_.Add(Counter::kRefused);
  activity_.CountRefused(fabric);
}

void Sessions::CountRegistered(const Session& session, bool comes) {
  const uint64_t bytes =
      session.reply_memory.size() + session.request_memory.bytes().size() + session.staging.bytes().size();
  const uint64_t before = counters_.Get(Counter::kRegisteredBytes);
  counters_.Set(Counter::kRegisteredBytes, comes ? before + bytes : before - bytes);
}

void Sessions::TellOf(const Session& session, std::string_view what) const {
  if (!tell_) return;
  tell_(NameOfClient(session.client_id, session.peer) + ", shard " + std::to_string(shard_) + ": " + std::string(what));
}

}  // namespace erda::server
