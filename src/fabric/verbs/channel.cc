#include "fabric/verbs/channel.h"

#include <cstring>
#include <utility>

#include "fabric/verbs/cm_event.h"
#include "fabric/verbs/device.h"
#include "fabric/verbs/queue.h"
#include "fabric/verbs/receive_work.h"
#include "fabric/verbs/region.h"

namespace erda::fabric::verbs {

namespace {

constexpr uint32_t kSendRequests = 128;

// Returns the completion that tells the caller of a new stage.
Completion StageCompletion(Channel* channel, OpKind kind, Code code) {
  Completion completion;
  completion.channel = channel;
  completion.kind = kind;
  completion.code = code;
  return completion;
}

// Returns a request of the channel itself, which asks for a completion unless it says otherwise.
Request OwnRequest(Purpose purpose, OpKind kind, std::span<std::byte> local = {}, uint32_t local_key = 0) {
  Request request;
  request.work.kind = kind;
  request.work.local = local;
  request.local_key = local_key;
  request.purpose = purpose;
  return request;
}

// A binding is like a Write: it asks for no completion, since a binding that fails ends the channel.
Request WindowRequest(Purpose purpose, uint32_t key, bool signaled, uint64_t id) {
  Request request = OwnRequest(purpose, OpKind::kWrite);
  request.work.signaled = signaled;
  request.work.id = id;
  request.window = key;
  return request;
}

std::span<std::byte> BytesOfCount(uint64_t& count) { return std::as_writable_bytes(std::span(&count, 1)); }

bool IsDenial(ibv_wc_status status) { return status == IBV_WC_REM_ACCESS_ERR || status == IBV_WC_REM_INV_REQ_ERR; }

}  // namespace

// --- Making

VerbsChannel::VerbsChannel(VerbsQueue* queue, std::shared_ptr<Device> device, std::string name, uint32_t message_depth,
                           bool asking)
    : queue_(queue),
      asking_(asking),
      connection_(std::move(device), std::move(name)),
      life_(asking, SteadyClock::Instance().Now()),
      credit_(message_depth) {}

Result<std::unique_ptr<Channel>> VerbsChannel::Connect(VerbsQueue* queue, std::shared_ptr<Device> device,
                                                       const Address& address, std::string name,
                                                       const ChannelOptions& options) {
  if (auto status = Introduction::Check(*device, options, kConnectDataMax); !status.ok()) return status;
  auto socket = device->Lookup(address);
  if (!socket.ok()) return Status(socket.status().code(), name + ": " + std::string(socket.status().message()));
  std::unique_ptr<VerbsChannel> channel(
      new VerbsChannel(queue, std::move(device), std::move(name), options.message_depth, true));
  if (auto status = channel->Join(options); !status.ok()) return status;
  auto status = channel->connection_.Resolve(queue->events(), *socket, channel.get());
  if (!status.ok()) return status;
  return std::unique_ptr<Channel>(std::move(channel));
}

Result<std::unique_ptr<Channel>> VerbsChannel::Accept(VerbsQueue* queue, std::shared_ptr<Device> device, rdma_cm_id* id,
                                                      const rdma_conn_param& asked, uint32_t message_depth,
                                                      std::vector<std::byte> peer_data, const ChannelOptions& options) {
  std::unique_ptr<VerbsChannel> channel(new VerbsChannel(queue, std::move(device), "a client", message_depth, false));
  Connection& connection = channel->connection_;
  channel->peer_.SetData(std::move(peer_data));
  connection.Adopt(id, channel.get());
  Status status = channel->Join(options);
  if (status.ok()) status = connection.Migrate(queue->events());
  if (status.ok()) status = channel->CreatePair();
  if (status.ok()) status = connection.Accept(asked);
  if (status.ok()) return std::unique_ptr<Channel>(std::move(channel));
  if (connection.pair() != nullptr) channel->DestroyPair();
  connection.GiveBack();  // The caller refuses it with a reason.
  return status;
}

Status VerbsChannel::Join(const ChannelOptions& options) {
  if (auto status = introduction_.Prepare(connection_.device(), options); !status.ok()) return status;
  credit_.Begin(&introduction_.credit_page());
  const uint32_t receives = ReceivesFor(credit_.depth());
  return queue_->Add(this, &life_, {kSendRequests, asking_ ? receives : 0, asking_ ? 0 : receives});
}

Status VerbsChannel::CreatePair() {
  const uint32_t own_receives = asking_ ? ReceivesFor(credit_.depth()) : 0;
  const PairParts parts = {queue_->completions(), asking_ ? nullptr : queue_->shared_receives(), own_receives,
                           kSendRequests};
  if (auto status = connection_.CreatePair(parts); !status.ok()) return status;
  ibv_qp* const pair = connection_.pair();
  const uint32_t number = queue_->channels().NumberOf(this);
  queue_->channels().AddPair(pair->qp_num, this);
  sends_.Open(pair, number, connection_.sends(), connection_.inline_bytes());
  return asking_ ? own_receives_.Open(connection_.device(), pair, number, own_receives) : Status();
}

// --- Connecting

void VerbsChannel::OnEvent(const rdma_cm_event& event) {
  if (life_.failed()) return;
  switch (event.event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      return FailIf(connection_.ResolveRoute());
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      return FailIf(Ask());
    case RDMA_CM_EVENT_ESTABLISHED:
      if (!asking_) return;
      connection_.TuneReceives();
      life_.Advance(Stage::kGreeting);
      return Greet();
    case RDMA_CM_EVENT_REJECTED:
      if (life_.stage() == Stage::kAsking) {
        Refusal refusal = ReadRefusal(event);
        peer_.SetData(std::move(refusal.data));
        return FailIf(connection_.Refused(refusal.why));
      }
      [[fallthrough]];  // The kernel reports an end so if it comes before the last step of its handshake.
    case RDMA_CM_EVENT_DISCONNECTED:
      // Earlier messages of the peer have arrived: they are in the completion queue, and come first.
      while (queue_->TakeCompletions()) continue;
      break;
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
      connection_.DeclareDeviceDead();
      break;
    default:
      break;
  }
  if (const auto why = EndOf(event.event); !why.empty()) FailIf(connection_.Refused(why));
}

Status VerbsChannel::Ask() {
  if (auto status = CreatePair(); !status.ok()) return status;
  auto status = connection_.Ask(MakeKnock(introduction_.data(), kConnectDataMax, credit_.depth()));
  if (status.ok()) life_.Advance(Stage::kAsking);
  return status;
}

void VerbsChannel::OnGreeting(std::span<const std::byte> bytes) {
  const auto greeting = ReadGreeting(bytes);
  if (!greeting.ok()) return FailIf(connection_.Refused(greeting.status().message()));
  peer_.Learn(*greeting);
  if (asking_) {
    const auto first = greeting->data.begin();
    peer_.SetData({first, first + greeting->data_bytes});
  } else {
    Greet();
    if (life_.failed()) return;
  }
  life_.Advance(Stage::kConnected);
  queue_->Complete(StageCompletion(this, OpKind::kConnected, Code::kOk));
}

// --- Posting

Status VerbsChannel::Post(std::span<const WorkRequest> batch) {
  if (life_.failed()) return {Code::kUnavailable, std::string(error().message())};
  if (!connected()) return connection_.Refused("not connected yet");
  if (auto status = batch_.Take(batch, queue_->keys()); !status.ok()) return status;
  switch (credit_.Take(batch_.messages(), sends_.messages())) {
    case MessageRoom::kTaken:
      break;
    case MessageRoom::kBrokenRules:
      FailIf(connection_.Refused("the peer broke the fabric's rules"), Blame::kPeer);
      break;
    case MessageRoom::kAsk:
      PostOwn(OwnRequest(Purpose::kAskCredit, OpKind::kRead, BytesOfCount(credit_.page().asked),
                         introduction_.credit_key()));
      [[fallthrough]];
    case MessageRoom::kNone:
      if (life_.failed()) break;
      return {Code::kResourceExhausted, connection_.name() + ": the peer has not consumed its messages"};
  }
  if (life_.failed()) return {Code::kUnavailable, std::string(error().message())};
  // A caller that only posts must make room, too.
  if (batch_.requests().size() > sends_.room()) (void)queue_->TakeCompletions();
  if (const int error = sends_.Post(batch_.requests()); error != 0) FailIf(connection_.DeviceRefused(error));
  return {};
}

void VerbsChannel::PostOwn(const Request& request) {
  if (const int error = sends_.Post({&request, 1}); error != 0) FailIf(connection_.DeviceRefused(error));
}

Result<uint32_t> VerbsChannel::OpenWindow(const Region& region, uint64_t offset, uint64_t bytes) {
  if (!connected()) return connection_.Refused("not connected");
  const auto* of = dynamic_cast<const VerbsRegion*>(&region);
  if (of == nullptr || region.access() != Access::kRemoteReadWindows ||
      !IsPiece(region.bytes().size(), offset, bytes)) {
    return Status(Code::kInvalidArgument, "a window needs bytes inside a region that was registered for windows");
  }
  const auto piece = region.bytes().subspan(offset, bytes);
  Device& device = connection_.device();
  UniqueMr own;
  if (!device.limits().windows_have_bounds) {
    auto registered = device.Register(piece, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
    if (!registered.ok()) return registered.status();
    own.reset(*registered);
  }
  auto key = windows_.Allocate(device.domain(), piece, of->mr(), std::move(own));
  if (!key.ok()) {
    return Status(key.status().code(), connection_.name() + ": " + std::string(key.status().message()));
  }
  PostOwn(WindowRequest(Purpose::kOpenWindow, *key, false, 0));
  return key;
}

Status VerbsChannel::CloseWindow(uint32_t key, uint64_t id) {
  if (!connected()) return connection_.Refused("not connected");
  if (windows_.Find(key) == nullptr) return {Code::kInvalidArgument, "there is no such window"};
  PostOwn(WindowRequest(Purpose::kCloseWindow, key, true, id));
  return {};
}

// --- Completing

void VerbsChannel::OnSendCompletion(const ibv_wc& wc) {
  PostedRequest posted;
  if (!sends_.Take(WorkId(wc.wr_id).number(), &posted)) return;
  if (wc.status != IBV_WC_SUCCESS) {
    const Code code = IsDenial(wc.status) ? Code::kPermissionDenied : Code::kUnavailable;
    FailIf({code, connection_.name() + ": " + ibv_wc_status_str(wc.status)});
    if (IsTold(posted.purpose)) queue_->Complete(CompletionOf(this, posted, code));
    return;
  }
  life_.Hear();
  switch (posted.purpose) {
    case Purpose::kCaller:
      if (posted.signaled) queue_->Complete(CompletionOf(this, posted, Code::kOk));
      break;
    case Purpose::kAskCredit:
      credit_.OnAnswer();
      break;
    case Purpose::kKeepAlive:
      life_.OnProbed();
      break;
    case Purpose::kCloseWindow:
      windows_.Free(posted.window);
      queue_->Complete(CompletionOf(this, posted, Code::kOk));
      break;
    default:
      break;
  }
  if (const int error = sends_.PostWaiting(); error != 0) FailIf(connection_.DeviceRefused(error));
}

std::optional<OpKind> VerbsChannel::OnReceive(const ibv_wc& wc, const std::byte* data) {
  const bool immediate = wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM;
  life_.Hear();
  if (connected() && (immediate || wc.byte_len <= kSendBytesMax) && credit_.Arrive()) {
    return immediate ? OpKind::kReceiveImm : OpKind::kReceive;
  }
  if (life_.stage() == Stage::kGreeting && wc.opcode == IBV_WC_RECV) {
    OnGreeting({data, wc.byte_len});
    return std::nullopt;
  }
  if (life_.failed()) return std::nullopt;
  // A peer may not send before its greeting, nor too long a message, nor more messages than were consumed.
  FailIf(connection_.Refused("the peer broke the fabric's rules"), Blame::kPeer);
  return std::nullopt;
}

void VerbsChannel::OnConsumed() {
  credit_.Consume();
  if (!connected() || !credit_.MustTell()) return;
  // Sends from the counter itself. The device may fetch a later count, which is right, too.
  Request tell = OwnRequest(Purpose::kTellCredit, OpKind::kWrite, BytesOfCount(credit_.page().consumed),
                            introduction_.credit_key());
  tell.work.signaled = false;
  PostOwn(tell);
}

void VerbsChannel::OnLook(Nanoseconds now) {
  switch (life_.Look(now)) {
    case Due::kProbe:
      return PostOwn(OwnRequest(Purpose::kKeepAlive, OpKind::kWrite));  // Without a byte.
    case Due::kTimeout:
      return FailIf({Code::kTimeout, connection_.name() + ": no answer in 5 s"});
    case Due::kDeviceDead:
      return connection_.DeclareDeviceDead();
    case Due::kNothing:
      return;
  }
}

// --- Ending

void VerbsChannel::FailIf(Status status, Blame blame) {
  if (status.ok() || life_.failed()) return;
  life_.Fail(std::move(status), blame, SteadyClock::Instance().Now());
  sends_.Close();
  if (connection_.pair() == nullptr) return;
  connection_.Disconnect();
  if (!sends_.idle() && !connection_.device_dead() && !sends_.PostLast()) connection_.DeclareDeviceDead();
}

void VerbsChannel::CloseIfDone() {
  if (life_.stage() != Stage::kFailed) return;
  if (!sends_.idle()) {
    if (!connection_.device_dead()) return;
    // The device will report nothing more. But nothing may touch the peer's memory any more.
    DestroyPair();
    while (queue_->TakeCompletions()) continue;
  }
  const auto complete = [this](const PostedRequest& posted) {
    if (IsTold(posted.purpose)) queue_->Complete(CompletionOf(this, posted, Code::kUnavailable));
  };
  sends_.Flush(complete);
  life_.Close();
  queue_->Complete(StageCompletion(this, OpKind::kClosed, error().code()));
}

VerbsChannel::~VerbsChannel() {
  // Destroys the queue pair first. After that nothing of the peer arrives, and nothing of this end is under way. Then
  // the queue drops the last completions.
  if (connection_.pair() != nullptr) {
    if (!life_.failed()) connection_.Disconnect();
    DestroyPair();
  }
  queue_->Remove(this);
}

// REQUIRES: the queue pair is disconnected, or was never connected. Takes completions first, so that the shared
// receives among them are posted again. Some devices drop the remaining completions of a queue pair with it. Those
// receives would be lost to all channels. Frees the windows before the queue pair, since the device may count them as
// its users. Nothing is placed through windows of a queue pair in error.
void VerbsChannel::DestroyPair() {
  queue_->channels().RemovePair(connection_.pair()->qp_num);
  while (queue_->TakeCompletions()) continue;
  windows_.FreeAll();
  own_receives_.Close();
  connection_.DestroyPair();
}

}  // namespace erda::fabric::verbs
