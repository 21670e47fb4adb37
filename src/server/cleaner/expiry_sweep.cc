#include "server/cleaner/expiry_sweep.h"

#include <algorithm>

namespace erda::server {

namespace {

// Looks in one step. They are few, since a shard on the same processor may have to wait for a step.
constexpr uint64_t kLooksPerStep = 16;

}  // namespace

bool ExpirySweep::Step() {
  if (!active_) return false;
  const ExpiryLook::Seen seen = look_.Look(&next_, kLooksPerStep);
  next_deadline_ = std::min(next_deadline_, seen.next_deadline);
  if (!look_.IsEnd(next_)) return seen.slots > 0;
  if (proposals_.room() == 0) return false;
  (void)proposals_.Push(SweepEnded{next_deadline_ == UINT64_MAX ? 0 : next_deadline_});
  active_ = false;
  return true;
}

}  // namespace erda::server
