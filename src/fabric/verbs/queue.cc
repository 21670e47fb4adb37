#include "fabric/verbs/queue.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>

#include "base/bytes.h"
#include "fabric/verbs/channel.h"

namespace erda::fabric::verbs {

// --- Making

Result<std::unique_ptr<CompletionQueue>> VerbsQueue::Create(std::shared_ptr<Device> device) {
  std::unique_ptr<VerbsQueue> queue(new VerbsQueue(std::move(device)));
  if (auto status = queue->Prepare(); !status.ok()) return status;
  return std::unique_ptr<CompletionQueue>(std::move(queue));
}

Status VerbsQueue::Prepare() {
  events_ = MakeEventChannel();
  if (!events_) return ErrnoStatus("cannot create a completion queue");
  if (auto status = cq_.Create(*device_); !status.ok()) return status;
  if (auto status = wake_ups_.Create(); !status.ok()) return status;
  if (auto status = wake_ups_.Watch(events_->fd); !status.ok()) return status;
  return wake_ups_.Watch(cq_.descriptor());
}

// --- Channels

Status VerbsQueue::Add(VerbsChannel* channel, ChannelLife* life, const ChannelNeeds& needs) {
  if (needs.shared_receives > 0) {
    auto status = shared_receives_.Reserve(*device_, cq_, needs.shared_receives);
    if (!status.ok()) return status;
  }
  if (auto status = cq_.Reserve(needs.entries()); !status.ok()) {
    shared_receives_.Release(needs.shared_receives);
    return status;
  }
  channels_.Add(channel, needs);
  life->Join(&population_);
  return {};
}

void VerbsQueue::Remove(VerbsChannel* channel) {
  if (channels_.NumberOf(channel) == 0) return;
  const ChannelNeeds needs = channels_.Remove(channel);
  while (TakeCompletions()) continue;
  deliveries_.Forget(channel, [this](WorkId receive) { PostAgain(receive); });
  cq_.Release(needs.entries());
  shared_receives_.Release(needs.shared_receives);
}

// --- Receives

const std::byte* VerbsQueue::DataOf(WorkId receive) const {
  if (receive.channel() == kSharedReceives) return shared_receives_.Data(receive.number());
  return channels_.Find(receive.channel())->own_receives().Data(receive.number());
}

void VerbsQueue::PostAgain(WorkId receive) {
  if (receive.channel() == kSharedReceives) return shared_receives_.Post(receive.number());
  VerbsChannel* const channel = channels_.Find(receive.channel());
  if (channel != nullptr) channel->own_receives().Post(receive.number());
}

void VerbsQueue::OnReceive(const ibv_wc& wc) {
  const WorkId receive(wc.wr_id);
  VerbsChannel* const channel = channels_.FindByPair(wc.qp_num);
  if (channel == nullptr || wc.status != IBV_WC_SUCCESS) {
    // A channel's own receive goes with its failed queue pair. A shared receive is as good as before.
    if (receive.channel() == kSharedReceives) PostAgain(receive);
    return;
  }
  const std::byte* const data = DataOf(receive);
  const auto kind = channel->OnReceive(wc, data);
  if (kind != OpKind::kReceive) PostAgain(receive);
  if (!kind) return;
  Completion completion;
  completion.channel = channel;
  completion.kind = *kind;
  completion.bytes = wc.byte_len;
  if (*kind == OpKind::kReceive) {
    completion.data = {data, wc.byte_len};
    deliveries_.AddMessage(completion, receive);
  } else {
    completion.imm = ntohl(wc.imm_data);
    deliveries_.Add(completion);
  }
}

void VerbsQueue::ReleaseHeld() {
  for (const HeldReceive& held : deliveries_.held()) {
    PostAgain(held.receive);
    if (held.channel != nullptr) static_cast<VerbsChannel*>(held.channel)->OnConsumed();
  }
  deliveries_.Release();
}

// --- Completions

bool VerbsQueue::TakeCompletions() {
  std::array<ibv_wc, 32> completions;
  const int n = cq_.Poll(completions);
  for (int i = 0; i < n; ++i) {
    const ibv_wc& wc = completions[static_cast<size_t>(i)];
    const WorkId id(wc.wr_id);
    if (id.is_receive()) {
      OnReceive(wc);
    } else if (VerbsChannel* const channel = channels_.Find(id.channel()); channel != nullptr) {
      channel->OnSendCompletion(wc);
    }
  }
  return n > 0;
}

size_t VerbsQueue::Poll(std::span<Completion> out) {
  if (pace_.CountPoll(population_)) {
    HandleEvents();
    LookAtClock();
  }
  if (!deliveries_.held().empty()) ReleaseHeld();
  while (deliveries_.size() < out.size() && TakeCompletions()) continue;
  if (population_.failing > 0) CloseFailed();
  size_t n = 0;
  for (; n < out.size() && !deliveries_.empty(); ++n) {
    deliveries_.Take(&out[n]);
    // A message without bytes is consumed at once. A message with bytes is consumed when its data is released.
    if (out[n].kind == OpKind::kReceiveImm) static_cast<VerbsChannel*>(out[n].channel)->OnConsumed();
  }
  return n;
}

// --- Slow work

void VerbsQueue::HandleEvents() {
  for (rdma_cm_event* event = nullptr; ::rdma_get_cm_event(events_.get(), &event) == 0;) {
    if (auto* channel = static_cast<VerbsChannel*>(event->id->context); channel != nullptr) channel->OnEvent(*event);
    ::rdma_ack_cm_event(event);
  }
}

void VerbsQueue::LookAtClock() {
  const Nanoseconds now = SteadyClock::Instance().Now();
  const LookAt concerned = pace_.Look(now, population_);
  if (concerned == LookAt::kNone) return;
  channels_.ForEach([&](VerbsChannel& channel) {
    if (concerned == LookAt::kAll || !channel.connected()) channel.OnLook(now);
  });
}

void VerbsQueue::CloseFailed() {
  channels_.ForEach([](VerbsChannel& channel) { channel.CloseIfDone(); });
}

// --- Waiting

// No wake-up is lost: Arm first arms the completion queue, and then empties it. A later completion makes the descriptor
// readable. (A completion in between was taken, and may make it readable for nothing.)
bool VerbsQueue::Arm(std::chrono::nanoseconds* at_most) {
  if (!channels_.unused()) *at_most = std::min<std::chrono::nanoseconds>(*at_most, LookPace::Period(population_));
  if (!deliveries_.empty()) return false;
  cq_.Arm();
  while (TakeCompletions()) continue;
  if (population_.failing > 0) CloseFailed();
  return deliveries_.empty();
}

void VerbsQueue::Disarm() {
  for (const int fd : wake_ups_.TakeReadable()) {
    if (fd == cq_.descriptor()) {
      cq_.Acknowledge();
    } else {
      HandleEvents();
    }
  }
  LookAtClock();
}

void VerbsQueue::Wait(std::chrono::nanoseconds timeout) {
  if (Arm(&timeout)) wake_ups_.Sleep(timeout);
  Disarm();
}

}  // namespace erda::fabric::verbs
