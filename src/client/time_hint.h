// What a client guesses of the server's time: what the server said, and how far the client's own clock has gone since.
// It decides nothing. When it says that a deadline has passed, and the shard's word does not, the client asks the
// shard, which then raises the word (docs/protocol.md, "Expiry").
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/clock.h"
#include "base/server_time.h"

namespace erda::client {

class TimeHint {
 public:
  // The server's answer came at this reading of the client's clock.
  void Learn(Nanoseconds answered, uint64_t micros) {
    answered_ = answered;
    said_ = std::min(micros, ServerTime::kMicrosMax);
  }
  // Of a deadline in milliseconds.
  [[nodiscard]] bool HasPassed(uint64_t deadline, Nanoseconds now) const {
    const auto since = std::chrono::floor<std::chrono::microseconds>(std::max(now - answered_, Nanoseconds(0)));
    return (said_ + static_cast<uint64_t>(since.count())) / 1000 >= deadline;
  }

 private:
  Nanoseconds answered_{0};
  uint64_t said_ = 0;  // microseconds
};

}  // namespace erda::client
