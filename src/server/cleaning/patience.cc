#include "server/cleaning/patience.h"

namespace erda::server {

namespace {

// How many intervals of TidyTimer puts wait for versions in flight. The first takes 5 ms, and each next one twice as
// long.
constexpr uint32_t kIntervalsMax = 8;
constexpr uint64_t kLooksPerInterval = 1 << 18;
// Puts wait for at most this long until clients give chunks back.
constexpr Nanoseconds kChunksAwaitedMax = std::chrono::seconds(3);

}  // namespace

void Patience::Begin(bool again) {
  intervals_ = 0;
  if (again) return;
  waited_ = Nanoseconds(0);
  chunks_.BeginAwaiting();
}

void Patience::PassTime(Nanoseconds since) {
  waited_ += since;
  chunks_.Await(since);
}

void Patience::CountLook() {
  if (++looks_ % kLooksPerInterval == 0) ++intervals_;
}

bool Patience::is_over() const {
  return intervals_ >= kIntervalsMax && (waited_ >= kChunksAwaitedMax || !chunks_.IsAwaiting());
}

}  // namespace erda::server
