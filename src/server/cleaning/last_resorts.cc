#include "server/cleaning/last_resorts.h"

#include <algorithm>

namespace erda::server {

namespace {

constexpr size_t kSeenPerStep = 8;

}  // namespace

void LastResorts::Begin() {
  unseen_ = versions_.in_flight();
  swept_ = false;
}

bool LastResorts::SettleArrived() {
  if (unseen_ == 0) return false;
  unseen_ -= std::min(unseen_, kSeenPerStep);
  (void)versions_.Sweep(kSeenPerStep);
  return true;
}

bool LastResorts::OrderSweep() {
  if (swept_ || !queues_.MayExpire()) return false;
  swept_ = true;
  sweeping_ = true;
  queues_.Send(SweepOrder{});
  return true;
}

bool LastResorts::TakePassedDeadline() {
  if (!versions_.part().clock().HasPassed(next_deadline_)) return false;
  next_deadline_ = 0;
  return true;
}

}  // namespace erda::server
