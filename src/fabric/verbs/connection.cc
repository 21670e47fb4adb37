#include "fabric/verbs/connection.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/bytes.h"

namespace erda::fabric::verbs {

namespace {

// The device sends an unacknowledged packet again after 4.096 us * 2^16 = 268 ms, seven times. So a peer that lost its
// power is known to be gone after some two seconds. (rdma_cm would choose eight times that.)
constexpr uint8_t kAckTimeout = 16;
constexpr uint8_t kRetries = 7;
// If the peer has no receive ready, the device sends again every 0.64 ms, without a limit. The message depth makes that
// rare.
constexpr uint8_t kReceiverNotReadyRetries = 7;
constexpr uint8_t kReceiverNotReadyTimer = 12;
constexpr uint32_t kInlineWanted = 256;

constexpr const char* kGaveUp = "the client gave up before the server accepted";

}  // namespace

Connection::~Connection() {
  if (id_ != nullptr) ::rdma_destroy_id(id_);
}

Status Connection::Refused(std::string_view why) const { return {Code::kUnavailable, name_ + ": " + std::string(why)}; }

Status Connection::DeviceRefused(int error) const {
  return Refused(std::string("the device takes no request: ") + std::strerror(error));
}

// --- An asking end

Status Connection::Resolve(rdma_event_channel* events, SocketAddress peer, void* owner) {
  if (::rdma_create_id(events, &id_, owner, RDMA_PS_TCP) != 0) return ErrnoStatus(name_ + ": cannot connect");
  const auto& source = device_->source();
  auto* const from = const_cast<sockaddr*>(source ? source->get() : nullptr);
  if (::rdma_resolve_addr(id_, from, peer.get(), kResolveMs) != 0) return Refused(std::strerror(errno));
  return {};
}

Status Connection::ResolveRoute() {
  if (id_->verbs != device_->context()) {
    return Refused("the route to it now goes over another RDMA device than before");
  }
  return ::rdma_resolve_route(id_, kResolveMs) == 0 ? Status() : Refused(std::strerror(errno));
}

Status Connection::Ask(std::span<const std::byte> knock) {
  rdma_conn_param param{};
  param.private_data = knock.data();
  param.private_data_len = static_cast<uint8_t>(knock.size());
  param.responder_resources = device_->limits().reads_in;
  param.initiator_depth = device_->limits().reads_out;
  param.retry_count = kRetries;
  param.rnr_retry_count = kReceiverNotReadyRetries;
  return ::rdma_connect(id_, &param) == 0 ? Status() : Refused(std::strerror(errno));
}

// --- An accepting end

void Connection::Adopt(rdma_cm_id* id, void* owner) {
  id_ = id;
  id_->context = owner;
}

Status Connection::Migrate(rdma_event_channel* events) {
  // An event that came before says that the peer gave up: accepting fails then.
  return ::rdma_migrate_id(id_, events) == 0 ? Status() : Refused(kGaveUp);
}

Status Connection::Accept(const rdma_conn_param& asked) {
  const Limits& limits = device_->limits();
  rdma_conn_param param{};
  param.responder_resources = std::min(asked.responder_resources, limits.reads_in);
  param.initiator_depth = std::min(asked.initiator_depth, limits.reads_out);
  param.rnr_retry_count = kReceiverNotReadyRetries;
  if (::rdma_accept(id_, &param) != 0) return Refused(kGaveUp);
  TuneReceives();
  return {};
}

void Connection::GiveBack() { std::exchange(id_, nullptr)->context = nullptr; }

// --- The queue pair

Status Connection::CreatePair(const PairParts& parts) {
  uint8_t timeout = kAckTimeout;
  // A kernel that does not know the option keeps its timeout. A dead peer is then noticed later.
  (void)::rdma_set_option(id_, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, sizeof(timeout));
  ibv_qp_init_attr attributes{};
  for (uint32_t inline_wanted = kInlineWanted;; inline_wanted /= 2) {
    attributes = {};
    attributes.send_cq = parts.completions;
    attributes.recv_cq = parts.completions;
    attributes.srq = parts.shared_receives;
    attributes.qp_type = IBV_QPT_RC;
    attributes.cap.max_send_wr = std::min(parts.sends, device_->limits().qp_requests);
    attributes.cap.max_recv_wr = parts.own_receives;
    attributes.cap.max_send_sge = 1;
    attributes.cap.max_recv_sge = 1;
    attributes.cap.max_inline_data = inline_wanted;
    if (::rdma_create_qp(id_, device_->domain(), &attributes) == 0) break;
    if (inline_wanted != 0) continue;
    // The identity of a peer that has given up meanwhile takes no queue pair.
    const std::string message = name_ + ": cannot create a queue pair: " + std::strerror(errno);
    return {errno == ENOMEM ? Code::kResourceExhausted : Code::kUnavailable, message};
  }
  sends_ = std::min(parts.sends, attributes.cap.max_send_wr);
  inline_bytes_ = attributes.cap.max_inline_data;
  return {};
}

// rdma_cm leaves the time at the longest, 655 ms. A device that refuses the setting works, but is slower if it finds no
// receive.
void Connection::TuneReceives() {
  ibv_qp_attr attributes{};
  attributes.min_rnr_timer = kReceiverNotReadyTimer;
  (void)ibv_modify_qp(id_->qp, &attributes, IBV_QP_MIN_RNR_TIMER);
}

void Connection::Disconnect() {
  if (::rdma_disconnect(id_) == 0) return;
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  if (ibv_modify_qp(id_->qp, &attributes, IBV_QP_STATE) != 0) device_dead_ = true;
}

void Connection::DestroyPair() { ::rdma_destroy_qp(id_); }

}  // namespace erda::fabric::verbs
