#include "fabric/shm/queue.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/bytes.h"
#include "fabric/shm/channel.h"

namespace erda::fabric::shm {

namespace {

// A queue that owes a peer a ring sleeps at most this long before it tries again.
constexpr std::chrono::milliseconds kOwingSleep{1};
// This number of silent channels costs a Poll next to nothing, since their rings stay in the caches.
constexpr size_t kPolledAlways = 16;

}  // namespace

Result<std::unique_ptr<ShmQueue>> ShmQueue::Create() {
  EventFd wake;
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!wake.Create() || !epoll) return ErrnoStatus("cannot create a completion queue");
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = nullptr;
  if (::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, wake.get(), &event) != 0) {
    return ErrnoStatus("cannot create a completion queue");
  }
  std::unique_ptr<ShmQueue> queue(new ShmQueue(std::move(wake), std::move(epoll)));
  // The number of completions that an owner has under way between two Polls. Beyond it the queue grows once.
  constexpr size_t kReady = 512;
  queue->ready_.Reserve(kReady);
  return queue;
}

Status ShmQueue::Add(ShmChannel* channel) {
  // Reserves room for the parked channels, too: neither the end of this channel nor Unpark can then fail for want of
  // memory.
  const size_t all = polled_.size() + pace_.parked() + 1;
  if (polled_.capacity() < all) polled_.reserve(std::max(all, 2 * polled_.capacity()));
  if (owing_.capacity() < all) owing_.reserve(polled_.capacity());
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP;
  event.data.ptr = channel;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, channel->doorbell().fd(), &event) != 0) {
    return ErrnoStatus("cannot watch a channel");
  }
  polled_.push_back(channel);
  if (!channel->connected()) {
    channel->notes().asks = true;
    pace_.BeginAsking();
  }
  return {};
}

void ShmQueue::Remove(ShmChannel* channel) {
  const Notes& notes = channel->notes();
  if (notes.owes_ring) std::erase(owing_, channel);
  if (notes.parked) {
    pace_.CountUnparked();
  } else if (std::erase(polled_, channel) == 0) {
    return;
  }
  Unwatch(channel);
  Forget(channel);
}

void ShmQueue::Unwatch(ShmChannel* channel) {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, channel->doorbell().fd(), nullptr);
  EndAsking(channel);
}

void ShmQueue::EndAsking(ShmChannel* channel) {
  if (std::exchange(channel->notes().asks, false)) pace_.EndAsking();
}

void ShmQueue::Forget(const ShmChannel* channel) {
  ready_.EraseIf([&](const Completion& completion) { return completion.channel == channel; });
}

size_t ShmQueue::Poll(std::span<Completion> out) {
  if (pace_.is_due()) {
    HearSockets(std::chrono::nanoseconds(0));
    pace_.CountHearing();
  }
  if (!owing_.empty()) RingAgain();
  size_t n = ready_.empty() ? 0 : TakeReady(out);
  if (!inbox_.empty()) inbox_.clear();
  // Begins at another channel each time, so that a busy one does not keep the others waiting.
  const std::span<ShmChannel* const> polled(polled_);  // Receive does not change it.
  if (++first_ >= polled.size()) first_ = 0;
  size_t next = first_;
  for (size_t left = polled.size(); left > 0; --left) {
    ShmChannel& channel = *polled[next];
    if (++next == polled.size()) next = 0;
    if (channel.HasMessage()) n += channel.Receive(out.subspan(n), &inbox_);
  }
  if (polled.size() > kPolledAlways) CountLook(n, out.size());
  // Takes completions of channels that failed meanwhile, after their last messages.
  if (!ready_.empty()) n += TakeReady(out.subspan(n));
  pace_.CountPoll(n > 0);
  return n;
}

size_t ShmQueue::TakeReady(std::span<Completion> out) {
  const size_t taken = std::min(out.size(), ready_.size());
  for (size_t i = 0; i < taken; ++i) out[i] = ready_[i];
  ready_.pop_front(taken);
  return taken;
}

// A look counts only if there was room for all messages. Otherwise it did not reach the last channels.
void ShmQueue::CountLook(size_t found, size_t room) {
  if (found == 0 || found == room || ++busy_looks_ < kBusyLooksPerPark) return;
  busy_looks_ = 0;
  ParkSilent();
}

// Sets the sleeping flag in the rings of the chosen channels, then fences. The caller looks into each ring after that.
// The fence pairs with the one in Ring::Publish: a peer that published too late for the look sees the flag, and rings
// the doorbell.
template <class Which>
void ShmQueue::AskForRings(const Which& which) {
  for (ShmChannel* channel : polled_) {
    if (which(channel)) channel->receive_ring().BeginSleep();
  }
  Ring::FenceSleep();
}

// Does for single channels what Arm does for the queue. The socket of a parked channel stays readable until the queue
// hears it, and unparks the channel.
void ShmQueue::ParkSilent() {
  const auto is_silent = [](ShmChannel* channel) {
    return !channel->notes().heard && !channel->doorbell().peer_is_gone() && channel->connected();
  };
  AskForRings(is_silent);
  std::erase_if(polled_, [&](ShmChannel* channel) {
    if (!is_silent(channel)) {
      channel->notes().heard = false;
      return false;
    }
    if (channel->HasMessage()) {
      channel->receive_ring().EndSleep();
      return false;
    }
    channel->notes().parked = true;
    pace_.CountParked();
    return true;
  });
}

void ShmQueue::Unpark(ShmChannel* channel) {
  Notes& notes = channel->notes();
  if (!std::exchange(notes.parked, false)) return;
  pace_.CountUnparked();
  notes.heard = true;
  channel->receive_ring().EndSleep();
  polled_.push_back(channel);
}

bool ShmQueue::SomethingToPoll() {
  return !ready_.empty() || std::any_of(polled_.begin(), polled_.end(), [](auto* c) { return c->HasMessage(); });
}

// Does the same as Arm, sleep and Disarm. But the one epoll_wait that sleeps also brings the reports of the sockets.
void ShmQueue::Wait(std::chrono::nanoseconds timeout) {
  if (Arm(&timeout) && HearSockets(timeout)) wake_.Drain();
  EndSleep();
}

// No wake-up is lost: AskForRings sets the flags, then Arm looks into the rings once more. A message that comes after
// the look makes the descriptor readable. It stays readable until the doorbell is heard. Parked channels have set their
// flags already, and ParkSilent looked after that.
bool ShmQueue::Arm(std::chrono::nanoseconds* at_most) {
  if (!ready_.empty()) return false;
  if (!owing_.empty()) RingAgain();
  if (!owing_.empty()) *at_most = std::min<std::chrono::nanoseconds>(*at_most, kOwingSleep);
  AskForRings([](ShmChannel*) { return true; });
  return !SomethingToPoll();
}

void ShmQueue::OweRing(ShmChannel* channel) {
  if (std::exchange(channel->notes().owes_ring, true)) return;
  owing_.push_back(channel);  // Add has reserved the room.
}

void ShmQueue::RingAgain() {
  std::erase_if(owing_, [](ShmChannel* channel) {
    bool& owes_ring = channel->notes().owes_ring;
    owes_ring = !channel->doorbell().Ring();
    return !owes_ring;
  });
}

void ShmQueue::Disarm() {
  EndSleep();
  if (HearSockets(std::chrono::nanoseconds(0))) wake_.Drain();
}

void ShmQueue::EndSleep() {
  for (ShmChannel* channel : polled_) channel->receive_ring().EndSleep();
}

bool ShmQueue::HearSockets(std::chrono::nanoseconds timeout) {
  std::array<epoll_event, 32> events;
  const int n = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), PollMilliseconds(timeout));
  bool woken = false;
  for (int i = 0; i < n; ++i) {
    auto* channel = static_cast<ShmChannel*>(events[static_cast<size_t>(i)].data.ptr);
    if (channel == nullptr) {
      woken = true;
    } else {
      channel->OnSocket();
    }
  }
  return woken;
}

void ShmQueue::CompleteConnected(ShmChannel* channel) {
  EndAsking(channel);
  Completion completion;
  completion.channel = channel;
  completion.kind = OpKind::kConnected;
  Complete(completion);
}

void ShmQueue::Wake() { wake_.Ring(); }

}  // namespace erda::fabric::shm
