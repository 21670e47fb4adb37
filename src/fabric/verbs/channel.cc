// Connecting and ending a verbs channel. channel_datapath.cc has the work for each operation.
//
//   asking end                                accepting end
//   resolve address, route
//   connect: Knock, data          ----->      an Incoming
//                                             accept (or reject: Knock, data)
//   established                   <-----
//   Greeting                      ----->      knows what the peer offers
//   knows what the peer offers    <-----      Greeting; connected
//   connected
#include "fabric/verbs/channel.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "base/bytes.h"
#include "fabric/verbs/queue.h"

namespace erda::fabric::verbs {

namespace {

// The time from the first step to the last. rdma_cm itself would try for a minute.
constexpr std::chrono::seconds kConnectIn{5};
// The longest wait for a device to give back the requests of a failed queue pair. A sound device gives them back at
// once.
constexpr std::chrono::seconds kFlushIn{2};
// The device sends an unacknowledged packet again after 4.096 us * 2^16 = 268 ms, seven times. So a peer that lost its
// power is known to be gone after some two seconds. (rdma_cm would choose eight times that.)
constexpr uint8_t kAckTimeout = 16;
constexpr uint8_t kRetries = 7;
// A peer that has no receive at hand is asked again without end, every 0.64 ms. The message depth makes that rare.
constexpr uint8_t kReceiverNotReadyRetries = 7;
constexpr uint8_t kReceiverNotReadyTimer = 12;
constexpr uint32_t kSendRequests = 128;
constexpr uint32_t kInlineWanted = 256;
// Receives beside the message depth: for the greeting, and some to spare.
constexpr uint32_t kSpareReceives = 4;

uint32_t ReceivesOf(uint32_t message_depth) { return message_depth + kSpareReceives; }

Status Refused(const std::string& name, std::string_view why) {
  return {Code::kUnavailable, name + ": " + std::string(why)};
}

}  // namespace

// --- Making

VerbsChannel::VerbsChannel(VerbsQueue* queue, std::shared_ptr<Device> device, rdma_cm_id* id, uint32_t message_depth,
                           bool asking)
    : queue_(queue),
      device_(std::move(device)),
      id_(id),
      message_depth_(message_depth),
      asking_(asking),
      state_(asking ? State::kResolving : State::kGreeting),
      since_(SteadyClock::Instance().Now()) {}

Status VerbsChannel::CheckOffer(const Device& device, const ChannelOptions& options, size_t data_max) {
  if (options.offer.size() > kOfferedRegionsMax || options.private_data.size() > data_max) {
    return {Code::kInvalidArgument, "too many regions or too much private data for a channel"};
  }
  for (const Region* offered : options.offer) {
    const auto* region = dynamic_cast<const VerbsRegion*>(offered);
    if (region == nullptr || region->access() == Access::kLocal || region->device() != &device) {
      return {Code::kInvalidArgument, "an offered region gives its peer no right; register it for remote use"};
    }
  }
  return {};
}

Status VerbsChannel::TakeOptions(const ChannelOptions& options) {
  offer_.assign(options.offer.begin(), options.offer.end());
  private_data_.assign(options.private_data.begin(), options.private_data.end());
  auto greeting = OwnMemory::Create(*device_, sizeof(Greeting), 0);
  if (!greeting.ok()) return greeting.status();
  greeting_ = *std::move(greeting);
  auto credit = OwnMemory::Create(*device_, sizeof(CreditPage),
                                  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
  if (!credit.ok()) return credit.status();
  credit_ = *std::move(credit);
  new (credit_.data()) CreditPage();
  return {};
}

Result<std::unique_ptr<Channel>> VerbsChannel::Connect(VerbsQueue* queue, std::shared_ptr<Device> device,
                                                       const Address& address, std::string name,
                                                       const ChannelOptions& options) {
  if (auto status = CheckOffer(*device, options, kConnectDataMax); !status.ok()) return status;
  auto socket = device->Lookup(address);
  if (!socket.ok()) return Status(socket.status().code(), name + ": " + std::string(socket.status().message()));
  std::unique_ptr<VerbsChannel> channel(
      new VerbsChannel(queue, std::move(device), nullptr, options.message_depth, true));
  channel->name_ = std::move(name);
  if (auto status = channel->TakeOptions(options); !status.ok()) return status;
  const uint32_t receives = ReceivesOf(options.message_depth);
  if (auto status = queue->Add(channel.get(), {kSendRequests, receives, 0}); !status.ok()) return status;
  if (::rdma_create_id(queue->events_, &channel->id_, channel.get(), RDMA_PS_TCP) != 0) {
    return ErrnoStatus(channel->name_ + ": cannot connect");
  }
  const auto& source = channel->device_->source();
  auto* const from = const_cast<sockaddr*>(source ? source->get() : nullptr);
  if (::rdma_resolve_addr(channel->id_, from, socket->get(), kResolveMs) != 0) {
    return Refused(channel->name_, std::strerror(errno));
  }
  return std::unique_ptr<Channel>(std::move(channel));
}

Result<std::unique_ptr<Channel>> VerbsChannel::Accept(VerbsQueue* queue, std::shared_ptr<Device> device, rdma_cm_id* id,
                                                      const rdma_conn_param& asked, uint32_t message_depth,
                                                      std::vector<std::byte> peer_data, const ChannelOptions& options) {
  std::unique_ptr<VerbsChannel> channel(new VerbsChannel(queue, std::move(device), id, message_depth, false));
  channel->name_ = "a client";
  channel->peer_data_ = std::move(peer_data);
  id->context = channel.get();
  if (auto status = channel->Begin(asked, options); !status.ok()) {
    channel->GiveBack();
    return status;
  }
  return std::unique_ptr<Channel>(std::move(channel));
}

Status VerbsChannel::Begin(const rdma_conn_param& asked, const ChannelOptions& options) {
  if (auto status = TakeOptions(options); !status.ok()) return status;
  if (auto status = queue_->Add(this, {kSendRequests, 0, ReceivesOf(message_depth_)}); !status.ok()) return status;
  // From here on its events come to the queue. One that came before says that the peer gave up: accepting fails then.
  if (::rdma_migrate_id(id_, queue_->events_) != 0)
    return Refused(name_, "the client gave up before the server accepted");
  if (auto status = CreateQueuePair(); !status.ok()) return status;
  const Limits& limits = device_->limits();
  rdma_conn_param param{};
  param.responder_resources = std::min(asked.responder_resources, limits.reads_in);
  param.initiator_depth = std::min(asked.initiator_depth, limits.reads_out);
  param.rnr_retry_count = kReceiverNotReadyRetries;
  if (::rdma_accept(id_, &param) != 0) return Refused(name_, "the client gave up before the server accepted");
  TuneQueuePair();
  return {};
}

// Gives the identity back to the caller that asked to accept it. The caller refuses it with a reason.
void VerbsChannel::GiveBack() {
  if (id_->qp != nullptr) DestroyQueuePair();
  id_->context = nullptr;
  id_ = nullptr;
}

Status VerbsChannel::CreateQueuePair() {
  uint8_t timeout = kAckTimeout;
  // A kernel that does not know the option keeps its timeout. A dead peer is then noticed later.
  (void)::rdma_set_option(id_, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, sizeof(timeout));
  ibv_qp_init_attr attributes{};
  for (uint32_t inline_wanted = kInlineWanted;; inline_wanted /= 2) {
    attributes = {};
    attributes.send_cq = queue_->cq_;
    attributes.recv_cq = queue_->cq_;
    attributes.srq = asking_ ? nullptr : queue_->shared();
    attributes.qp_type = IBV_QPT_RC;
    attributes.cap.max_send_wr = std::min(kSendRequests, device_->limits().qp_requests);
    attributes.cap.max_recv_wr = asking_ ? ReceivesOf(message_depth_) : 0;
    attributes.cap.max_send_sge = 1;
    attributes.cap.max_recv_sge = 1;
    attributes.cap.max_inline_data = inline_wanted;
    if (::rdma_create_qp(id_, device_->domain(), &attributes) == 0) break;
    if (inline_wanted != 0) continue;
    // The identity of a peer that has given up meanwhile takes no queue pair.
    const std::string message = name_ + ": cannot create a queue pair: " + std::strerror(errno);
    return {errno == ENOMEM ? Code::kResourceExhausted : Code::kUnavailable, message};
  }
  inline_bytes_ = attributes.cap.max_inline_data;
  posted_.resize(std::bit_floor(std::min(attributes.cap.max_send_wr, kSendRequests)));
  queue_->AddQueuePair(id_->qp->qp_num, this);
  return asking_ ? PostOwnReceives() : Status();
}

// Sets the time after which the peer may ask again when no receive was at hand. rdma_cm leaves it at the longest, 655
// ms. A device that refuses the setting works, but is slower in that case.
void VerbsChannel::TuneQueuePair() {
  ibv_qp_attr attributes{};
  attributes.min_rnr_timer = kReceiverNotReadyTimer;
  (void)ibv_modify_qp(id_->qp, &attributes, IBV_QP_MIN_RNR_TIMER);
}

Status VerbsChannel::PostOwnReceives() {
  const uint32_t count = ReceivesOf(message_depth_);
  auto memory = OwnMemory::Create(*device_, count * kReceiveBytes, IBV_ACCESS_LOCAL_WRITE);
  if (!memory.ok()) return memory.status();
  receives_ = *std::move(memory);
  for (uint32_t i = 0; i < count; ++i) {
    queue_->Repost(VerbsQueue::kReceiveBit | (uint64_t{number_} << 32) | i);
  }
  return {};
}

// --- Connecting

void VerbsChannel::OnEvent(const rdma_cm_event& event) {
  if (state_ == State::kFailed) return;
  switch (event.event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      return OnAddressResolved();
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      return OnRouteResolved();
    case RDMA_CM_EVENT_ESTABLISHED:
      if (asking_) {
        TuneQueuePair();
        state_ = State::kGreeting;
        SendGreeting();
      }
      return;
    case RDMA_CM_EVENT_REJECTED:
      if (state_ == State::kAsking) return OnRejected(event);
      [[fallthrough]];  // The kernel reports an end so if it comes before the last step of its handshake.
    case RDMA_CM_EVENT_DISCONNECTED:
      // Earlier messages of the peer have arrived: they are in the completion queue, and come first.
      while (queue_->TakeCompletions()) continue;
      return Fail(Refused(name_, "the peer closed the connection"));
    case RDMA_CM_EVENT_ADDR_ERROR:
      return Fail(Refused(name_, "no RDMA device reaches it: no machine answers for this address"));
    case RDMA_CM_EVENT_ROUTE_ERROR:
      return Fail(Refused(name_, "no RDMA route leads there"));
    case RDMA_CM_EVENT_CONNECT_ERROR:
      return Fail(Refused(name_, "the connection could not be made"));
    case RDMA_CM_EVENT_UNREACHABLE:
      return Fail(Refused(name_, "it does not answer"));
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
      dead_device_ = true;
      return Fail(Refused(name_, "the RDMA device was removed"));
    default:
      return;
  }
}

void VerbsChannel::OnAddressResolved() {
  if (id_->verbs != device_->context()) {
    return Fail(Refused(name_, "the route to it now goes over another RDMA device than before"));
  }
  if (::rdma_resolve_route(id_, kResolveMs) != 0) Fail(Refused(name_, std::strerror(errno)));
}

void VerbsChannel::OnRouteResolved() {
  if (auto status = CreateQueuePair(); !status.ok()) return Fail(std::move(status));
  const auto knock = MakeKnock(private_data_, kConnectDataMax, message_depth_);
  rdma_conn_param param{};
  param.private_data = knock.data();
  param.private_data_len = static_cast<uint8_t>(knock.size());
  param.responder_resources = device_->limits().reads_in;
  param.initiator_depth = device_->limits().reads_out;
  param.retry_count = kRetries;
  param.rnr_retry_count = kReceiverNotReadyRetries;
  if (::rdma_connect(id_, &param) != 0) return Fail(Refused(name_, std::strerror(errno)));
  state_ = State::kAsking;
}

void VerbsChannel::OnRejected(const rdma_cm_event& event) {
  Knock knock;
  std::vector<std::byte> data;
  if (ReadKnock(event.param.conn.private_data, event.param.conn.private_data_len, &knock, &data)) {
    peer_data_ = std::move(data);
    return Fail(Refused(name_, "the server refused the connection"));
  }
  constexpr int kInvalidServiceId = 8;  // of the InfiniBand specification
  Fail(Refused(name_,
               event.status == kInvalidServiceId ? "no server listens there" : "the peer refused the connection"));
}

// --- Greetings

void VerbsChannel::SendGreeting() {
  Greeting greeting;
  greeting.regions = static_cast<uint8_t>(offer_.size());
  greeting.data_bytes = static_cast<uint16_t>(asking_ ? 0 : private_data_.size());
  greeting.credit_address = reinterpret_cast<uint64_t>(credit_.data());
  greeting.credit_key = credit_.mr()->rkey;
  for (size_t i = 0; i < offer_.size(); ++i) {
    const auto* region = dynamic_cast<const VerbsRegion*>(offer_[i]);
    greeting.region[i] = {reinterpret_cast<uint64_t>(region->bytes().data()), region->bytes().size(),
                          region->mr()->rkey, static_cast<uint32_t>(region->told_access())};
  }
  std::copy_n(private_data_.begin(), greeting.data_bytes, greeting.data.begin());
  std::memcpy(greeting_.data(), &greeting, sizeof(greeting));
  WorkRequest work;
  work.kind = OpKind::kSend;
  work.local = {greeting_.data(), sizeof(greeting)};
  PostOwn(Purpose::kGreet, work, greeting_.mr()->lkey);
}

void VerbsChannel::OnGreeting(std::span<const std::byte> bytes) {
  const auto read = ReadGreeting(bytes);
  if (!read.ok()) return Fail(Refused(name_, read.status().message()));
  const Greeting& greeting = *read;
  for (const OfferedRegion& region : std::span(greeting.region).first(greeting.regions)) {
    peer_memory_.push_back(region);
    peer_regions_.push_back({region.size, static_cast<Access>(region.access)});
  }
  peer_credit_address_ = greeting.credit_address;
  peer_credit_key_ = greeting.credit_key;
  if (asking_) {
    peer_data_.assign(greeting.data.begin(), greeting.data.begin() + greeting.data_bytes);
  } else {
    SendGreeting();
    if (state_ == State::kFailed) return;
  }
  state_ = State::kConnected;
  --queue_->connecting_;
  Completion completion;
  completion.channel = this;
  completion.kind = OpKind::kConnected;
  queue_->Complete(completion);
}

// --- Ending

void VerbsChannel::OnTime(Nanoseconds now) {
  switch (state_) {
    case State::kConnected:
      // The peer is silent: an empty Write finds out whether it is still there.
      if (!heard_ && !keep_alive_out_) {
        WorkRequest work;
        work.kind = OpKind::kWrite;
        keep_alive_out_ = true;
        PostOwn(Purpose::kKeepAlive, work, 0);
      }
      heard_ = false;
      return;
    case State::kFailed:
      if (now - since_ > kFlushIn) dead_device_ = true;
      return;
    default:
      if (now - since_ > kConnectIn) Fail({Code::kTimeout, name_ + ": no answer in 5 s"});
      return;
  }
}

void VerbsChannel::Fail(Status error) {
  if (state_ == State::kFailed) return;
  if (state_ != State::kConnected) --queue_->connecting_;
  ++queue_->failing_;
  state_ = State::kFailed;
  error_ = std::move(error);
  since_ = SteadyClock::Instance().Now();
  EndConnection();
}

// Flushes the posted requests, and tells the peer of the end.
void VerbsChannel::EndConnection() {
  if (id_ == nullptr || id_->qp == nullptr) return;
  if (::rdma_disconnect(id_) != 0) {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_ERR;
    if (ibv_modify_qp(id_->qp, &attributes, IBV_QP_STATE) != 0) dead_device_ = true;
  }
  if (InQueuePair() > 0 && !dead_device_) PostLast();
}

bool VerbsChannel::FinishFailed() {
  if (state_ != State::kFailed || closed_reported_) return false;
  if (InQueuePair() > 0) {
    if (!dead_device_) return false;
    // The device will report nothing more. But nothing may touch the peer's memory any more.
    DestroyQueuePair();
    while (queue_->TakeCompletions()) continue;
  }
  FlushAll();
  closed_reported_ = true;
  Completion closed;
  closed.channel = this;
  closed.kind = OpKind::kClosed;
  closed.code = error_.code();
  queue_->Complete(closed);
  return true;
}

VerbsChannel::~VerbsChannel() {
  // Destroys the queue pair first. After that nothing of the peer arrives, and nothing of this end is under way. Then
  // takes the last completions, and drops them.
  if (id_ != nullptr && id_->qp != nullptr) {
    if (state_ != State::kFailed) (void)::rdma_disconnect(id_);
    DestroyQueuePair();
  }
  queue_->Remove(this);
  if (id_ != nullptr) ::rdma_destroy_id(id_);
}

// REQUIRES: the queue pair is disconnected. Takes completions first, and posts the shared receives that it used again.
// Some devices drop the remaining completions of a queue pair with it. Those receives would be lost to all channels.
// Destroys the windows before the queue pair, since the device may count them as its users. Nothing is placed through
// windows of a queue pair in error.
void VerbsChannel::DestroyQueuePair() {
  queue_->by_queue_pair_.erase(id_->qp->qp_num);
  while (queue_->TakeCompletions()) continue;
  while (!windows_.empty()) DropWindow(windows_.back().key);
  ::rdma_destroy_qp(id_);
}

}  // namespace erda::fabric::verbs
