#include "verbs/fixture.h"

#include <arpa/inet.h>

#include <algorithm>
#include <utility>

#include "base/bytes.h"

namespace erda::fabric::verbs {

void DeviceTest::Open() {
  auto device = Device::Open({"127.0.0.1", 7700, {}, {}}, Role::kConnect);
  ASSERT_TRUE(device.ok()) << device.status().ToString();
  device_ = *std::move(device);
}

std::unique_ptr<VerbsRegion> DeviceTest::Register(size_t at, size_t bytes, Access access) {
  const auto piece = std::span(memory_).subspan(at, bytes);
  auto mr = device_->Register(piece, 0);
  EXPECT_TRUE(mr.ok()) << mr.status().ToString();
  return mr.ok() ? std::make_unique<VerbsRegion>(device_, *mr, piece, access) : nullptr;
}

void QueueTest::SetUp() {
  Open();
  ASSERT_NE(device_, nullptr);
  auto queue = VerbsQueue::Create(device_);
  ASSERT_TRUE(queue.ok()) << queue.status().ToString();
  queue_.reset(dynamic_cast<VerbsQueue*>(queue->release()));
  region_ = Register(0, memory_.size(), Access::kRemoteReadWindows);
}

void QueueTest::TearDown() {
  region_.reset();
  queue_.reset();
  device_.reset();
}

std::unique_ptr<Channel> QueueTest::Ask(const ChannelOptions& options) {
  auto channel = VerbsChannel::Connect(queue_.get(), device_, {"127.0.0.1", 7700, {}, {}}, "peer", options);
  EXPECT_TRUE(channel.ok()) << channel.status().ToString();
  return channel.ok() ? *std::move(channel) : nullptr;
}

std::unique_ptr<Channel> QueueTest::Ask(uint32_t depth) {
  Region* const offer[] = {region_.get()};
  return Ask({queue_.get(), offer, {}, depth});
}

Result<std::unique_ptr<Channel>> QueueTest::Accept(uint32_t depth) {
  rdma_cm_id* id = nullptr;
  ::rdma_create_id(nullptr, &id, nullptr, RDMA_PS_TCP);
  rdma_conn_param asked{};
  Region* const offer[] = {region_.get()};
  auto channel = VerbsChannel::Accept(queue_.get(), device_, id, asked, depth, {}, {queue_.get(), offer, {}, depth});
  if (!channel.ok()) ::rdma_destroy_id(id);  // As the listener does.
  return channel;
}

std::unique_ptr<Channel> QueueTest::Connect(bool asking, uint32_t depth) {
  std::unique_ptr<Channel> channel;
  if (asking) {
    channel = Ask(depth);
    for (const auto event : {RDMA_CM_EVENT_ADDR_RESOLVED, RDMA_CM_EVENT_ROUTE_RESOLVED, RDMA_CM_EVENT_ESTABLISHED}) {
      Happen(event);
    }
  } else if (auto accepted = Accept(depth); accepted.ok()) {
    channel = *std::move(accepted);
  }
  const Greeting greeting = PeersGreeting();
  Arrive(rdma_.last_id, BytesOf(greeting));
  CompleteSent();
  EXPECT_TRUE(channel && channel->connected());
  TakePolled();
  rdma_.TakeSent();
  rdma_.doorbells.clear();
  return channel;
}

Greeting QueueTest::PeersGreeting() const {
  const std::array regions = {
      OfferedRegion{kPeersRegion, 4096, kPeersRegionKey, static_cast<uint32_t>(Access::kRemoteReadWrite)}};
  return MakeGreeting(regions, {}, kPeersCreditPage, kPeersCreditKey);
}

void QueueTest::Happen(rdma_cm_event_type event) {
  rdma_.Happen(rdma_.last_id, event);
  queue_->Disarm();  // Looks at the events if their descriptor is readable.
  Poll();
}

void QueueTest::Receive(rdma_cm_id* id, ibv_wc wc, std::span<const std::byte> message) {
  void* const receiver = id->qp->srq != nullptr ? static_cast<void*>(id->qp->srq) : id->qp;
  const auto receive = std::ranges::find(rdma_.receives, receiver, &FakeRdma::Receive::queue);
  ASSERT_NE(receive, rdma_.receives.end()) << "the peer found no receive";
  std::ranges::copy(message, receive->data);
  wc.wr_id = receive->id;
  wc.qp_num = id->qp->qp_num;
  rdma_.receives.erase(receive);
  rdma_.Complete(wc);
  Poll();
}

void QueueTest::Arrive(rdma_cm_id* id, std::span<const std::byte> message) {
  ibv_wc wc{};
  wc.opcode = IBV_WC_RECV;
  wc.byte_len = static_cast<uint32_t>(message.size());
  Receive(id, wc, message);
}

void QueueTest::ArriveImm(rdma_cm_id* id, uint32_t imm) {
  ibv_wc wc{};
  wc.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
  wc.imm_data = htonl(imm);
  Receive(id, wc, {});
}

void QueueTest::Poll() {
  std::array<Completion, 8> completions;
  for (size_t n = 1; n > 0;) {
    n = queue_->Poll(completions);
    polled_.insert(polled_.end(), completions.begin(), completions.begin() + static_cast<ptrdiff_t>(n));
  }
}

std::vector<Completion> QueueTest::TakePolled() { return std::exchange(polled_, {}); }

void QueueTest::CompleteSent(ibv_wc_status status) {
  for (const auto& sent : rdma_.TakeSent()) {
    if ((sent.work.send_flags & IBV_SEND_SIGNALED) != 0 || status != IBV_WC_SUCCESS) rdma_.Complete(sent, status);
  }
  Poll();
}

WorkRequest QueueTest::Work(OpKind kind, size_t bytes) {
  WorkRequest work;
  work.kind = kind;
  work.local = std::span(memory_).first(bytes);
  return work;
}

}  // namespace erda::fabric::verbs
