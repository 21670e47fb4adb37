#include "fabric/verbs/queue.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>

#include <array>
#include <cerrno>

#include "base/bytes.h"
#include "fabric/verbs/channel.h"

namespace erda::fabric::verbs {

namespace {

// Events of rdma_cm for connected channels are heard after at most this number of Polls. Asking costs a system call.
constexpr uint32_t kPollsPerLook = 256;
// Time between two looks at the clock: for connected channels, and while a channel fails or connects.
constexpr std::chrono::seconds kLookEvery{1};
constexpr std::chrono::milliseconds kLookSoon{20};
constexpr uint32_t kEntriesAtFirst = 1024;
constexpr uint32_t kSharedMost = 16384;
constexpr uint32_t kSharedChunk = 128;

void MakeNonBlocking(int fd) { ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK); }

}  // namespace

// --- Making

Result<std::unique_ptr<CompletionQueue>> VerbsQueue::Create(std::shared_ptr<Device> device) {
  std::unique_ptr<VerbsQueue> queue(new VerbsQueue(std::move(device)));
  if (auto status = queue->Prepare(); !status.ok()) return status;
  return std::unique_ptr<CompletionQueue>(std::move(queue));
}

Status VerbsQueue::Prepare() {
  const auto failed = [] { return ErrnoStatus("cannot create a completion queue"); };
  epoll_ = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
  if (!wake_.Create() || !epoll_) return failed();
  events_ = ::rdma_create_event_channel();
  if (events_ == nullptr) return failed();
  completions_ = ibv_create_comp_channel(device_->context());
  if (completions_ == nullptr) return failed();
  entries_ = std::min(kEntriesAtFirst, device_->limits().cq_entries);
  cq_ = ibv_create_cq(device_->context(), static_cast<int>(entries_), nullptr, completions_, 0);
  if (cq_ == nullptr) return failed();
  for (const int fd : {wake_.get(), events_->fd, completions_->fd}) {
    MakeNonBlocking(fd);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return failed();
  }
  return {};
}

VerbsQueue::~VerbsQueue() {
  if (shared_ != nullptr) ibv_destroy_srq(shared_);
  if (cq_ != nullptr) ibv_destroy_cq(cq_);
  if (completions_ != nullptr) ibv_destroy_comp_channel(completions_);
  if (events_ != nullptr) ::rdma_destroy_event_channel(events_);
}

// --- Channels

Status VerbsQueue::Add(VerbsChannel* channel, const Needs& needs) {
  if (needs.shared_receives > 0) {
    if (auto status = GrowShared(needs.shared_receives); !status.ok()) return status;
  }
  if (auto status = GrowEntries(needs.sends + needs.own_receives); !status.ok()) return status;
  entries_needed_ += needs.sends + needs.own_receives;
  shared_needed_ += needs.shared_receives;
  size_t number = 1;
  while (number < members_.size() && members_[number].channel != nullptr) ++number;
  if (number == members_.size()) members_.emplace_back();
  members_[number] = {channel, needs};
  channel->number_ = static_cast<uint32_t>(number);
  ++connecting_;
  return {};
}

// Drops completions and messages of the channel; then its number can be used again. REQUIRES: the channel's queue pair
// is gone.
void VerbsQueue::Remove(VerbsChannel* channel) {
  if (channel->number_ == 0) return;
  Member& member = members_[channel->number_];
  member.channel = nullptr;
  while (TakeCompletions()) continue;
  ready_.EraseIf([&](const Ready& ready) {
    if (ready.completion.channel != channel) return false;
    if (ready.completion.kind == OpKind::kReceive) Repost(ready.receive);
    return true;
  });
  // The data of the channel's separate receives is gone with them. Their number may soon belong to another channel.
  std::erase_if(held_, [&](const auto& held) { return held.second == channel && NumberOf(held.first) != kShared; });
  for (auto& [receive, of] : held_) {
    if (of == channel) of = nullptr;
  }
  using State = VerbsChannel::State;
  if (channel->state_ == State::kFailed) {
    if (!channel->closed_reported_) --failing_;
  } else if (channel->state_ != State::kConnected) {
    --connecting_;
  }
  entries_needed_ -= member.needs.sends + member.needs.own_receives;
  shared_needed_ -= member.needs.shared_receives;
}

// Makes room for all requests and receives, since each of them may complete before the next Poll.
Status VerbsQueue::GrowEntries(uint32_t entries) {
  const uint64_t shared = shared_memory_.size() * uint64_t{kSharedChunk};
  const uint64_t needed = entries_needed_ + shared + entries;
  if (needed <= entries_) return {};
  const uint64_t most = device_->limits().cq_entries;
  const uint64_t wanted = std::min(std::max(needed, 2 * uint64_t{entries_}), most);
  if (needed > most) {
    return {Code::kResourceExhausted, "a completion queue of this device has " + std::to_string(most) +
                                          " entries, and another connection would need more"};
  }
  if (const int error = ibv_resize_cq(cq_, static_cast<int>(wanted)); error != 0) {
    return ErrnoStatus("cannot enlarge a completion queue to " + std::to_string(wanted) + " entries", error);
  }
  entries_ = static_cast<uint32_t>(wanted);
  return {};
}

// --- Receives

// Posts as many receives as the accepted channels may need together, or as the device allows in a shared queue. In the
// latter case a peer that finds no receive asks again.
Status VerbsQueue::GrowShared(uint32_t receives) {
  if (shared_ == nullptr) {
    shared_most_ = std::min(kSharedMost, device_->limits().srq_requests);
    ibv_srq_init_attr attributes{};
    attributes.attr.max_wr = shared_most_;
    attributes.attr.max_sge = 1;
    shared_ = ibv_create_srq(device_->domain(), &attributes);
    if (shared_ == nullptr) return ErrnoStatus("cannot create a shared receive queue");
  }
  while (shared_memory_.size() * kSharedChunk < shared_needed_ + receives &&
         (shared_memory_.size() + 1) * kSharedChunk <= shared_most_) {
    if (auto status = GrowEntries(kSharedChunk); !status.ok()) return status;
    auto memory = OwnMemory::Create(*device_, kSharedChunk * kReceiveBytes, IBV_ACCESS_LOCAL_WRITE);
    if (!memory.ok()) return memory.status();
    const size_t first = shared_memory_.size() * kSharedChunk;
    shared_memory_.push_back(*std::move(memory));
    for (size_t i = 0; i < kSharedChunk; ++i) Repost(kReceiveBit | (first + i));
  }
  return {};
}

std::byte* VerbsQueue::ReceiveMemory(uint64_t receive, uint32_t* key) {
  const uint32_t number = NumberOf(receive);
  const auto index = static_cast<uint32_t>(receive);
  const OwnMemory& memory =
      number == kShared ? shared_memory_[index / kSharedChunk] : members_[number].channel->receives_;
  const size_t at = number == kShared ? index % kSharedChunk : index;
  *key = memory.mr()->lkey;
  return memory.data() + at * kReceiveBytes;
}

// Posts a receive again. A separate receive of a channel that is gone no longer exists.
void VerbsQueue::Repost(uint64_t receive) {
  const uint32_t number = NumberOf(receive);
  if (number != kShared && members_[number].channel == nullptr) return;
  uint32_t key = 0;
  std::byte* const memory = ReceiveMemory(receive, &key);
  ibv_sge piece{reinterpret_cast<uint64_t>(memory), kReceiveBytes, key};
  ibv_recv_wr work{};
  work.wr_id = receive;
  work.sg_list = &piece;
  work.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  if (number == kShared) {
    (void)ibv_post_srq_recv(shared_, &work, &bad);
    return;
  }
  // This fails on a queue pair that has failed, which needs no receive.
  const VerbsChannel& channel = *members_[number].channel;
  if (channel.id_->qp != nullptr) (void)ibv_post_recv(channel.id_->qp, &work, &bad);
}

// --- Completions

bool VerbsQueue::TakeCompletions() {
  std::array<ibv_wc, 32> completions;
  const int n = ibv_poll_cq(cq_, static_cast<int>(completions.size()), completions.data());
  for (int i = 0; i < n; ++i) OnCompletion(completions[static_cast<size_t>(i)]);
  return n > 0;
}

void VerbsQueue::OnCompletion(const ibv_wc& wc) {
  if ((wc.wr_id & kReceiveBit) != 0) return OnReceive(wc);
  VerbsChannel* const channel = members_[wc.wr_id >> 32].channel;
  if (channel != nullptr) channel->OnSendCompletion(wc);
}

void VerbsQueue::OnReceive(const ibv_wc& wc) {
  const auto found = by_queue_pair_.find(wc.qp_num);
  VerbsChannel* const channel = found == by_queue_pair_.end() ? nullptr : found->second;
  if (channel == nullptr || wc.status != IBV_WC_SUCCESS || channel->closed_reported_) {
    // A separate receive of a failed queue pair goes with it. A shared receive is as good as before.
    if (NumberOf(wc.wr_id) == kShared) Repost(wc.wr_id);
    return;
  }
  channel->heard_ = true;
  Completion completion;
  completion.channel = channel;
  completion.bytes = wc.byte_len;
  uint32_t key = 0;
  const std::span<const std::byte> data(ReceiveMemory(wc.wr_id, &key), wc.byte_len);
  if (channel->state_ == VerbsChannel::State::kGreeting && wc.opcode == IBV_WC_RECV) {
    channel->OnGreeting(data);
    return Repost(wc.wr_id);
  }
  if (channel->state_ == VerbsChannel::State::kFailed || !channel->MayArrive(wc)) return Repost(wc.wr_id);
  if (wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
    Repost(wc.wr_id);
    completion.kind = OpKind::kReceiveImm;
    completion.imm = ntohl(wc.imm_data);
    ready_.push_back({completion, 0});
    return;
  }
  completion.kind = OpKind::kReceive;
  completion.data = data;
  ready_.push_back({completion, wc.wr_id});
}

void VerbsQueue::ReleaseHeld() {
  for (const auto& [receive, channel] : held_) {
    Repost(receive);
    if (channel == nullptr) continue;
    channel->Consumed();
    channel->TellCredit();
  }
  held_.clear();
}

size_t VerbsQueue::Poll(std::span<Completion> out) {
  if (++polls_ % kPollsPerLook == 0 || connecting_ > 0) {
    HandleEvents();
    LookAtClock();
  }
  if (!held_.empty()) ReleaseHeld();
  while (ready_.size() < out.size() && TakeCompletions()) continue;
  if (failing_ > 0) FinishFailed();
  size_t n = 0;
  for (; n < out.size() && !ready_.empty(); ++n) {
    out[n] = ready_.front().completion;
    const uint64_t receive = ready_.front().receive;
    ready_.pop_front();
    auto* const channel = static_cast<VerbsChannel*>(out[n].channel);
    if (out[n].kind == OpKind::kReceive) held_.emplace_back(receive, channel);
    if (out[n].kind != OpKind::kReceiveImm) continue;
    channel->Consumed();
    channel->TellCredit();
  }
  return n;
}

// --- Slow work

void VerbsQueue::HandleEvents() {
  for (rdma_cm_event* event = nullptr; ::rdma_get_cm_event(events_, &event) == 0;) {
    if (auto* channel = static_cast<VerbsChannel*>(event->id->context); channel != nullptr) channel->OnEvent(*event);
    ::rdma_ack_cm_event(event);
  }
}

void VerbsQueue::LookAtClock() {
  const Nanoseconds now = SteadyClock::Instance().Now();
  const Nanoseconds every = connecting_ + failing_ > 0 ? Nanoseconds(kLookSoon) : Nanoseconds(kLookEvery);
  if (now - looked_at_ < every) return;
  looked_at_ = now;
  const bool quiet = now - kept_alive_at_ >= kLookEvery;
  if (quiet) kept_alive_at_ = now;
  for (const Member& member : members_) {
    if (member.channel != nullptr && (quiet || !member.channel->connected())) member.channel->OnTime(now);
  }
}

void VerbsQueue::FinishFailed() {
  for (const Member& member : members_) {
    if (member.channel != nullptr && member.channel->FinishFailed()) --failing_;
  }
}

// --- Waiting

// No wake-up is lost: Arm first arms the completion queue, and then empties it. A later completion makes the descriptor
// readable. (A completion in between was taken, and may make it readable for nothing.)
bool VerbsQueue::Arm(std::chrono::nanoseconds* at_most) {
  if (members_.size() > 1) *at_most = std::min<std::chrono::nanoseconds>(*at_most, kLookEvery);
  if (connecting_ + failing_ > 0) *at_most = std::min<std::chrono::nanoseconds>(*at_most, kLookSoon);
  if (!ready_.empty()) return false;
  (void)ibv_req_notify_cq(cq_, 0);
  while (TakeCompletions()) continue;
  if (failing_ > 0) FinishFailed();
  return ready_.empty();
}

void VerbsQueue::Disarm() {
  std::array<epoll_event, 3> events;
  const int n = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < n; ++i) {
    const int fd = events[static_cast<size_t>(i)].data.fd;
    if ((events[static_cast<size_t>(i)].events & EPOLLERR) != 0) {
      // The device was removed, and its descriptor would stay readable forever. rdma_cm reports the fate of the
      // channels.
      ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
    } else if (fd == wake_.get()) {
      wake_.Drain();
    } else if (fd == events_->fd) {
      HandleEvents();
    } else {
      ibv_cq* cq = nullptr;
      void* context = nullptr;
      while (ibv_get_cq_event(completions_, &cq, &context) == 0) ibv_ack_cq_events(cq, 1);
    }
  }
  LookAtClock();
}

void VerbsQueue::Wait(std::chrono::nanoseconds timeout) {
  if (Arm(&timeout)) {
    pollfd watched{epoll_.get(), POLLIN, 0};
    ::poll(&watched, 1, PollMilliseconds(timeout));
  }
  Disarm();
}

void VerbsQueue::Wake() { wake_.Ring(); }

}  // namespace erda::fabric::verbs
