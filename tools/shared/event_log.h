// Logs lines about errors of clients. Clients must not be able to fill the log, so it takes few lines in a second, and
// says how many it left out.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"

namespace erda::tools {

class EventLog {
 public:
  // Lines at once after a pause, and lines in a second while more come.
  static constexpr uint64_t kAtOnce = 20;
  static constexpr uint64_t kPerSecond = 1;

  // `print` writes a line.
  EventLog(const Clock& clock, std::function<void(std::string_view line)> print)
      : clock_(clock), print_(std::move(print)), since_(clock.Now()) {}

  // Any thread may call it.
  void Tell(std::string_view line) {
    const std::scoped_lock lock(mutex_);
    constexpr Nanoseconds kEach = Nanoseconds(std::chrono::seconds(1)) / kPerSecond;
    const Nanoseconds now = clock_.Now();
    if (const auto more = static_cast<uint64_t>((now - since_) / kEach); more > 0) {
      may_ = std::min(may_ + std::min(more, kAtOnce), kAtOnce);
      since_ = now;
    }
    if (may_ == 0) {
      ++left_out_;
      return;
    }
    --may_;
    SayLeftOut();
    print_(line);
  }
  // Prints how many lines were left out since the last one.
  void End() {
    const std::scoped_lock lock(mutex_);
    SayLeftOut();
  }

 private:
  void SayLeftOut() {
    if (left_out_ == 0) return;
    print_(std::to_string(std::exchange(left_out_, 0)) + " more lines like these were left out");
  }

  const Clock& clock_;
  const std::function<void(std::string_view)> print_;
  std::mutex mutex_;
  uint64_t may_ = kAtOnce;
  Nanoseconds since_;
  uint64_t left_out_ = 0;
};

}  // namespace erda::tools
