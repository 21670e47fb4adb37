// A client's guess of the server's time: the server's last answer, and the time since then by the client's clock. The
// guess decides nothing. If by the guess a deadline has passed, and by the shard's word it has not, the client asks the
// shard. The shard then raises the word (docs/protocol.md, "Expiry"). Only the client's thread calls it.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/clock.h"
#include "base/server_time.h"

namespace erda::client {

class TimeHint {
 public:
  // Notes the server's answer, which came at this reading of the client's clock.
  void Learn(Nanoseconds answered, uint64_t micros) {
    answered_ = answered;
    said_ = std::min(micros, ServerTime::kMicrosMax);
    asks_ = false;
  }
  // Notes that the client asks the server for its time. The question is open until the next Learn.
  void Ask() { asks_ = true; }
  [[nodiscard]] bool asks() const { return asks_; }
  // Returns true if a deadline, in milliseconds, has passed by the guess.
  [[nodiscard]] bool HasPassed(uint64_t deadline, Nanoseconds now) const {
    const auto since = std::chrono::floor<std::chrono::microseconds>(std::max(now - answered_, Nanoseconds(0)));
    return (said_ + static_cast<uint64_t>(since.count())) / 1000 >= deadline;
  }

 private:
  Nanoseconds answered_{0};
  uint64_t said_ = 0;  // microseconds
  bool asks_ = false;
};

}  // namespace erda::client
