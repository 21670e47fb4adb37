// What keeps one client from taking what the others need, and what is told of those who break the protocol.
#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

#include "server/shard.h"

namespace erda::server {

using format::Counter;

std::string NameOfClient(uint64_t client_id, std::string_view peer) {
  std::array<char, 32> number{};
  std::snprintf(number.data(), number.size(), "client %016llx", static_cast<unsigned long long>(client_id));
  std::string name = number.data();
  if (!peer.empty()) name.append(" (").append(peer).append(")");
  return name;
}

// --- Events

void Shard::TellOf(const Session& session, std::string_view what) const {
  if (!on_event_) return;
  on_event_(NameOfClient(session.client_id, session.peer) + ", shard " + std::to_string(number_) + ": " +
            std::string(what));
}

void Shard::Violate(Session& session, const char* what) {
  if (session.doomed) return;
  Doom(session);
  counters_.Add(Counter::kViolations);
  activity_.CountViolation(session.fabric);
  TellOf(session, "it broke the protocol: " + std::string(what));
}

// --- Connections

Status Shard::MayConnect(const format::HelloRequest& hello, const Admission& admission) const {
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

// All of a device are one fabric, with the port of those who may only read.
void Shard::NameFabrics() {
  for (size_t port = 0; port < ports_.size(); ++port) {
    const auto of = std::ranges::find(ports_, std::optional(port), &Port::for_readers);
    fabric_of_port_.push_back(of != ports_.end() ? static_cast<size_t>(of - ports_.begin()) : port);
  }
  // What comes by more of them than there is room for is not told apart.
  for (size_t& fabric : fabric_of_port_) fabric = std::min(fabric, ActivityCounts::kFabrics - 1);
  for (size_t port = ports_.size(); port-- > 0;) {
    if (fabric_of_port_[port] != port) continue;
    activity_.NameFabric(port, ports_[port].fabric.scheme(), ports_[port].fabric.capabilities().device);
  }
}

void Shard::CountRefused(size_t fabric) {
  counters_.Add(Counter::kRefused);
  activity_.CountRefused(fabric);
}

void Shard::CountRegistered() {
  uint64_t bytes = 0;
  for (const Port& port : ports_) {
    bytes += control_.bytes().size();
    // For all shards: to be read, and to be written, if anybody may.
    if (number_ == 0) bytes += (port.pool_regions.writable ? 2 : 1) * pool_.pool().view().bytes.size();
  }
  counters_.Set(Counter::kRegisteredBytes, bytes);
}

void Shard::CountRegistered(const Session& session, bool comes) {
  const uint64_t bytes =
      session.reply_memory.size() + session.request_memory.bytes().size() + session.staging.bytes().size();
  const uint64_t before = counters_.Get(Counter::kRegisteredBytes);
  counters_.Set(Counter::kRegisteredBytes, comes ? before + bytes : before - bytes);
}

// --- Requests per second

// By the limit of this moment. Counts the request if it is not too fast.
bool Shard::IsTooFast(Session& session) {
  const uint32_t per_second = requests_per_second_.load(std::memory_order_relaxed);
  if (per_second == 0) return false;
  if (now_micros_ == 0) now_micros_ = options_.time->Micros();
  session.rate.Change(per_second);
  return !session.rate.Take(now_micros_);
}

// Behind those that it holds back already.
bool Shard::IsHeldBack(Session& session, uint32_t imm, Nanoseconds seen) {
  if (session.held.empty() && !IsTooFast(session)) return false;
  if (session.held.empty()) holding_.push_back(session.id);
  session.held.push_back({imm, seen});
  return true;
}

size_t Shard::ServeHeld() {
  size_t served = 0;
  std::erase_if(holding_, [&](SessionId id) {
    Session& session = *sessions_[id];
    while (!session.doomed && !session.held.empty() && !IsTooFast(session)) {
      const auto [imm, seen] = session.held.front();
      session.held.pop_front();
      if (const Violation violation = HearNow(session, imm, seen)) Violate(session, violation.what());
      ++served;
    }
    return session.doomed || session.held.empty();
  });
  return served;
}

Nanoseconds Shard::held_for() const {
  uint64_t least = UINT64_MAX;
  const uint64_t now = options_.time->Micros();
  for (const SessionId id : holding_) least = std::min(least, sessions_[id]->rate.WaitNanos(now));
  return Nanoseconds(least);
}

}  // namespace erda::server
