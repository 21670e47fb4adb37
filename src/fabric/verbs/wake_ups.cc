#include "fabric/verbs/wake_ups.h"

#include <poll.h>
#include <sys/epoll.h>

#include <array>

#include "base/bytes.h"

namespace erda::fabric::verbs {

namespace {

constexpr size_t kEventsAtOnce = 4;

}  // namespace

Status WakeUps::Create() {
  epoll_ = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_ || !rung_.Create()) return ErrnoStatus("cannot create a completion queue");
  readable_.reserve(kEventsAtOnce);  // So a sleep needs no memory.
  return Watch(rung_.get());
}

Status WakeUps::Watch(int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0) return {};
  return ErrnoStatus("cannot create a completion queue");
}

void WakeUps::Sleep(std::chrono::nanoseconds timeout) const {
  pollfd watched{epoll_.get(), POLLIN, 0};
  ::poll(&watched, 1, PollMilliseconds(timeout));
}

const std::vector<int>& WakeUps::TakeReadable() {
  readable_.clear();
  std::array<epoll_event, kEventsAtOnce> events;
  const int n = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < n; ++i) {
    const epoll_event& event = events[static_cast<size_t>(i)];
    const int fd = event.data.fd;
    if ((event.events & EPOLLERR) != 0) {
      ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
    } else if (fd == rung_.get()) {
      rung_.Drain();
    } else {
      readable_.push_back(fd);
    }
  }
  return readable_;
}

}  // namespace erda::fabric::verbs
