#include "lab/raw_rdma_peer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <rdma/rdma_verbs.h>

#include <cerrno>
#include <cstring>

#include "base/bytes.h"
#include "fabric/verbs/address.h"

namespace erda {

using fabric::verbs::CreditPage;
using fabric::verbs::Greeting;
using fabric::verbs::kReceiveBytes;

namespace {

constexpr int kResolveMs = 5000;
constexpr uint32_t kSends = 512;
constexpr uint32_t kReceives = 8;
// The memory has room for bytes to send, then receives, then the credit page.
constexpr size_t kSendBytes = 4096;
constexpr size_t kCreditAt = kSendBytes + kReceives * kReceiveBytes;

}  // namespace

Result<std::unique_ptr<RawRdmaPeer>> RawRdmaPeer::Connect(const std::string& address,
                                                          std::span<const std::byte> private_data) {
  std::unique_ptr<RawRdmaPeer> peer(new RawRdmaPeer());
  if (auto status = peer->Ask(address, private_data); !status.ok()) return status;
  return peer;
}

Status RawRdmaPeer::Ask(const std::string& address, std::span<const std::byte> private_data) {
  const auto failed = [](const char* what) {
    return Status(Code::kInternal, std::string(what) + std::strerror(errno));
  };
  const auto parsed = fabric::verbs::ParseAddress(address);
  if (!parsed.ok()) return parsed.status();
  auto socket = fabric::verbs::Lookup(*parsed);
  if (!socket.ok()) return socket.status();
  // Without an event channel, the calls wait for their outcome.
  if (::rdma_create_id(nullptr, &id_, nullptr, RDMA_PS_TCP) != 0) return failed("rdma_create_id: ");
  if (::rdma_resolve_addr(id_, nullptr, socket->get(), kResolveMs) != 0) return failed("rdma_resolve_addr: ");
  if (::rdma_resolve_route(id_, kResolveMs) != 0) return failed("rdma_resolve_route: ");

  ibv_qp_init_attr attributes{};
  attributes.qp_type = IBV_QPT_RC;
  attributes.sq_sig_all = 1;
  attributes.cap = {kSends, kReceives, 1, 1, 0};
  if (::rdma_create_qp(id_, nullptr, &attributes) != 0) return failed("rdma_create_qp: ");
  memory_.resize(kCreditAt + sizeof(CreditPage));
  region_ = ibv_reg_mr(id_->pd, memory_.data(), memory_.size(),
                       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
  if (region_ == nullptr) return failed("ibv_reg_mr: ");
  for (uint32_t i = 0; i < kReceives; ++i) {
    std::byte* const at = memory_.data() + kSendBytes + i * kReceiveBytes;
    if (::rdma_post_recv(id_, nullptr, at, kReceiveBytes, region_) != 0) return failed("rdma_post_recv: ");
  }

  rdma_conn_param param{};
  param.private_data = private_data.data();
  param.private_data_len = static_cast<uint8_t>(private_data.size());
  param.responder_resources = 1;
  param.initiator_depth = 1;
  param.retry_count = 7;
  param.rnr_retry_count = 7;
  if (::rdma_connect(id_, &param) != 0) {
    return errno == ECONNREFUSED ? Status(Code::kUnavailable, "refused") : failed("rdma_connect: ");
  }
  ::fcntl(id_->channel->fd, F_SETFL, ::fcntl(id_->channel->fd, F_GETFL) | O_NONBLOCK);
  return {};
}

RawRdmaPeer::~RawRdmaPeer() {
  if (id_ == nullptr) return;
  if (id_->qp != nullptr) ::rdma_destroy_qp(id_);
  if (region_ != nullptr) ibv_dereg_mr(region_);
  ::rdma_destroy_id(id_);
}

ibv_sge RawRdmaPeer::Stage(std::span<const std::byte> bytes) {
  EXPECT_LE(send_at_ + bytes.size(), kSendBytes);
  std::byte* const at = memory_.data() + send_at_;
  send_at_ += AlignUp(bytes.size(), sizeof(uint64_t));
  std::memcpy(at, bytes.data(), bytes.size());
  return {reinterpret_cast<uint64_t>(at), static_cast<uint32_t>(bytes.size()), region_->lkey};
}

void RawRdmaPeer::Send(std::span<const std::byte> bytes, size_t times) {
  ibv_sge piece = Stage(bytes);
  ibv_send_wr work{};
  work.opcode = IBV_WR_SEND;
  work.sg_list = &piece;
  work.num_sge = 1;
  for (size_t i = 0; i < times; ++i) Post(work);
}

void RawRdmaPeer::TellConsumed(uint64_t count) {
  ibv_sge piece = Stage(BytesOf(count));
  ibv_send_wr work{};
  work.opcode = IBV_WR_RDMA_WRITE;
  work.sg_list = &piece;
  work.num_sge = 1;
  work.wr.rdma.remote_addr = greeting_->credit_address + offsetof(CreditPage, told);
  work.wr.rdma.rkey = greeting_->credit_key;
  Post(work);
}

void RawRdmaPeer::KeepConsumed(uint64_t count) {
  std::memcpy(memory_.data() + kCreditAt + offsetof(CreditPage, consumed), &count, sizeof(count));
}

void RawRdmaPeer::WriteImm() {
  ibv_send_wr work{};
  work.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  Post(work);
}

void RawRdmaPeer::Post(ibv_send_wr work) {
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_send(id_->qp, &work, &bad), 0);
  ++posted_;
}

void RawRdmaPeer::Look() {
  ibv_wc wc;
  while (ibv_poll_cq(id_->send_cq, 1, &wc) > 0) {
    ++done_;
    if (wc.status != IBV_WC_SUCCESS) closed_ = true;
  }
  for (rdma_cm_event* event = nullptr; ::rdma_get_cm_event(id_->channel, &event) == 0;) {
    // The event is a rejection if the other end went before it knew that this end is connected.
    closed_ = true;
    ::rdma_ack_cm_event(event);
  }
}

bool RawRdmaPeer::idle() {
  Look();
  return done_ == posted_;
}

bool RawRdmaPeer::closed() {
  Look();
  return closed_;
}

// The greeting is the first message of the other end.
bool RawRdmaPeer::greeted() {
  ibv_wc wc;
  if (!greeting_ && ibv_poll_cq(id_->recv_cq, 1, &wc) > 0 && wc.status == IBV_WC_SUCCESS &&
      wc.byte_len == sizeof(Greeting)) {
    greeting_ = LoadAs<Greeting>(std::span(memory_).subspan(kSendBytes));
  }
  return greeting_.has_value();
}

Greeting RawRdmaPeer::HonestGreeting() const {
  Greeting greeting;
  greeting.credit_address = reinterpret_cast<uint64_t>(memory_.data() + kCreditAt);
  greeting.credit_key = region_->rkey;
  return greeting;
}

Greeting RawRdmaPeer::GreetingWithRegion() const {
  Greeting greeting = HonestGreeting();
  greeting.regions = 1;
  greeting.region[0] = {reinterpret_cast<uint64_t>(memory_.data()), memory_.size(), region_->rkey,
                        static_cast<uint32_t>(fabric::Access::kRemoteReadWrite)};
  return greeting;
}

}  // namespace erda
