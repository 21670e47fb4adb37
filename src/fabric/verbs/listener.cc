#include "fabric/verbs/listener.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/bytes.h"
#include "fabric/verbs/channel.h"
#include "fabric/verbs/event_channel.h"
#include "fabric/verbs/introduction.h"
#include "fabric/verbs/queue.h"

namespace erda::fabric::verbs {

namespace {

constexpr int kBacklog = 128;

class VerbsIncoming final : public Incoming {
 public:
  VerbsIncoming(std::shared_ptr<Device> device, std::shared_ptr<rdma_event_channel> events, rdma_cm_id* id,
                const rdma_conn_param& asked, uint32_t message_depth, std::vector<std::byte> data)
      : device_(std::move(device)),
        events_(std::move(events)),
        id_(id),
        asked_(asked),
        message_depth_(message_depth),
        data_(std::move(data)) {}
  ~VerbsIncoming() override { Reject({}); }

  [[nodiscard]] std::span<const std::byte> peer_data() const override { return data_; }

  [[nodiscard]] std::string peer_name() const override {
    if (id_ == nullptr) return "verbs";
    SocketAddress peer;
    const sockaddr* const from = ::rdma_get_peer_addr(id_);
    const size_t size = from->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
    std::memcpy(&peer.storage, from, size);
    return FormatAddress(peer, ntohs(::rdma_get_dst_port(id_)));
  }

  Result<std::unique_ptr<Channel>> Accept(const ChannelOptions& options) override {
    auto* queue = dynamic_cast<VerbsQueue*>(options.queue);
    if (queue == nullptr || id_ == nullptr) {
      return Status(Code::kInvalidArgument, "a channel needs a completion queue of the same fabric");
    }
    // The queue's device, and so the regions' device. It may be the same one in another domain (ForReaders).
    const std::shared_ptr<Device>& device = queue->device();
    if (id_->verbs != device->context()) {
      return Status(Code::kInvalidArgument, "the peer came over another RDMA device than the one of this address");
    }
    if (auto status = Introduction::Check(*device, options, kAcceptDataMax); !status.ok()) return status;
    auto channel = VerbsChannel::Accept(queue, device, id_, asked_, message_depth_, data_, options);
    if (channel.ok()) id_ = nullptr;  // The channel owns it now.
    return channel;
  }

  void Reject(std::span<const std::byte> private_data) override {
    if (id_ == nullptr) return;
    const auto knock = MakeKnock(private_data.first(std::min(private_data.size(), kRejectDataMax)), kRejectDataMax, 0);
    // A peer that is gone already need not receive the answer.
    (void)::rdma_reject(id_, knock.data(), static_cast<uint8_t>(knock.size()));
    ::rdma_destroy_id(std::exchange(id_, nullptr));
  }

 private:
  const std::shared_ptr<Device> device_;
  const std::shared_ptr<rdma_event_channel> events_;
  rdma_cm_id* id_;
  const rdma_conn_param asked_;
  const uint32_t message_depth_;
  const std::vector<std::byte> data_;
};

}  // namespace

Result<std::unique_ptr<Listener>> VerbsListener::Create(std::shared_ptr<Device> device, std::string_view address) {
  std::unique_ptr<VerbsListener> listener(new VerbsListener(std::move(device)));
  if (auto status = listener->Prepare(address); !status.ok()) return status;
  return std::unique_ptr<Listener>(std::move(listener));
}

Status VerbsListener::Prepare(std::string_view address) {
  auto parsed = ParseAddress(address);
  if (!parsed.ok()) return parsed.status();
  const std::string what = "cannot listen at " + std::string(address);
  events_ = MakeEventChannel();
  if (!doorbell_.Create() || !events_) return ErrnoStatus(what);
  if (::rdma_create_id(events_.get(), &id_, nullptr, RDMA_PS_TCP) != 0) return ErrnoStatus(what);

  auto found = Lookup(*parsed);
  if (!found.ok()) return found.status();
  SocketAddress socket = *found;
  int only_its_family = 1;  // An IPv6 address does not stand for IPv4 addresses.
  (void)::rdma_set_option(id_, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &only_its_family, sizeof(only_its_family));
  if (::rdma_bind_addr(id_, socket.get()) != 0 || ::rdma_listen(id_, kBacklog) != 0) {
    return {Code::kUnavailable, what + ": " + std::strerror(errno)};
  }
  const uint16_t port = ntohs(::rdma_get_src_port(id_));
  if (socket.any()) socket = device_->OwnAddress(socket.storage.ss_family).value_or(socket);
  address_ = FormatAddress(socket, port);
  return {};
}

VerbsListener::~VerbsListener() {
  if (id_ != nullptr) ::rdma_destroy_id(id_);  // It refuses peers that asked and were not heard.
}

std::unique_ptr<Incoming> VerbsListener::Poll() {
  for (rdma_cm_event* event = nullptr; ::rdma_get_cm_event(events_.get(), &event) == 0;) {
    auto incoming = Take(*event);
    if (incoming) return incoming;
  }
  return nullptr;
}

// Takes a request. Any other event concerns a peer that asked and is not accepted yet: accepting it will report the
// event.
std::unique_ptr<Incoming> VerbsListener::Take(const rdma_cm_event& event) {
  auto* const acknowledged = const_cast<rdma_cm_event*>(&event);
  if (event.event != RDMA_CM_EVENT_CONNECT_REQUEST) {
    ::rdma_ack_cm_event(acknowledged);
    return nullptr;
  }
  rdma_cm_id* const id = event.id;
  rdma_conn_param asked = event.param.conn;
  Knock knock;
  std::vector<std::byte> data;
  const bool ours = ReadKnock(asked.private_data, asked.private_data_len, &knock, &data) && knock.message_depth > 0 &&
                    knock.message_depth <= kMessageDepthMax;
  asked.private_data = nullptr;
  asked.private_data_len = 0;
  ::rdma_ack_cm_event(acknowledged);  // Must come before the identity may go.
  auto incoming = std::make_unique<VerbsIncoming>(device_, events_, id, asked, knock.message_depth, std::move(data));
  return ours ? std::move(incoming) : nullptr;  // A peer that is no client of Erda is refused.
}

void VerbsListener::Wait(std::chrono::nanoseconds timeout) {
  std::array<pollfd, 2> watched = {{{doorbell_.get(), POLLIN, 0}, {events_->fd, POLLIN, 0}}};
  ::poll(watched.data(), watched.size(), PollMilliseconds(timeout));
  doorbell_.Drain();
}

void VerbsListener::Wake() { doorbell_.Ring(); }

}  // namespace erda::fabric::verbs
