#include "server/requests/rate_queue.h"

#include <algorithm>

namespace erda::server {

bool RateQueue::Park(Session& session, uint32_t imm, Nanoseconds seen) {
  if (session.held.empty() && !IsTooFast(session)) return false;
  if (session.held.empty()) sessions_.push_back(&session);
  session.held.push_back({imm, seen});
  return true;
}

bool RateQueue::IsTooFast(Session& session) {
  const uint32_t per_second = per_second_.load(std::memory_order_relaxed);
  if (per_second == 0) return false;
  if (now_micros_ == 0) now_micros_ = time_.Micros();
  session.rate.Change(per_second);
  return !session.rate.Take(now_micros_);
}

Nanoseconds RateQueue::wait() const {
  uint64_t least = UINT64_MAX;
  const uint64_t now = time_.Micros();
  for (const Session* session : sessions_) least = std::min(least, session->rate.WaitNanos(now));
  return Nanoseconds(least);
}

}  // namespace erda::server
