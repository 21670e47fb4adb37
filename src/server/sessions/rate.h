// Limits how fast the shard serves the requests of one client, or how fast clients may connect. The limit is a number
// for each second, and some more after a pause. One thread at a time uses each object.
#pragma once

#include <algorithm>
#include <cstdint>

namespace erda::server {

class Rate {
 public:
  // The longest pause that counts. After it, as many requests as the rate allows in this time may come at once.
  static constexpr uint64_t kBurstMicros = 100'000;

  // per_second: more than 0.
  explicit Rate(uint32_t per_second = 1, uint64_t burst_micros = kBurstMicros)
      : nanos_each_(NanosEach(per_second)), burst_(burst_micros * 1000) {}

  // Changes the rate, from the next request on. Requests that were taken stay taken. per_second: more than 0.
  void Change(uint32_t per_second) { nanos_each_ = NanosEach(per_second); }

  // Takes one more request, and returns true, if the rate allows that now.
  [[nodiscard]] bool Take(uint64_t now_micros) {
    if (WaitNanos(now_micros) != 0) return false;
    next_ = std::max(next_, now_micros * 1000) + nanos_each_;
    return true;
  }
  // Returns the time until the rate allows the next request.
  [[nodiscard]] uint64_t WaitNanos(uint64_t now_micros) const {
    const uint64_t now = now_micros * 1000;
    const uint64_t burst = burst_ - std::min(burst_, nanos_each_);
    return next_ > now + burst ? next_ - now - burst : 0;
  }

 private:
  static uint64_t NanosEach(uint32_t per_second) { return std::max<uint64_t>(1'000'000'000 / per_second, 1); }

  uint64_t nanos_each_;
  uint64_t burst_;
  uint64_t next_ = 0;  // when the next request would be due if requests came evenly
};

}  // namespace erda::server
