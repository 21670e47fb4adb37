// Shared by the programs that serve until a signal stops them.
#pragma once

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>

namespace erda::tools {

// Create it before any thread starts. Every thread inherits its mask, so that only Wait sees the signals.
class StopSignals {
 public:
  StopSignals() {
    sigemptyset(&signals_);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals_, signal);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
    signal(SIGPIPE, SIG_IGN);
  }
  // Waits for one of them. Returns its name.
  [[nodiscard]] std::string Wait() const {
    std::fflush(stdout);
    int received = 0;
    sigwait(&signals_, &received);
    return NameOf(received);
  }
  // Waits at most this time. Returns 0 if no signal came.
  [[nodiscard]] int WaitFor(std::chrono::seconds most) const {
    const timespec time{most.count(), 0};
    return std::max(sigtimedwait(&signals_, nullptr, &time), 0);
  }
  static std::string NameOf(int signal) { return std::string("SIG") + sigabbrev_np(signal); }

 private:
  sigset_t signals_{};
};

// Raises the limit of descriptors: each connection takes one.
inline void AllowManyDescriptors() {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
}

}  // namespace erda::tools
