#include "server/cleaner/expiry_rounds.h"

#include <algorithm>

namespace erda::server {

namespace {

// Looks in one step, at least and at most. With ten steps in a second, the least takes a thousandth of a processor, and
// the most a few hundredths.
constexpr uint64_t kLooksMin = 1024;
constexpr uint64_t kLooksMax = 64 << 10;
// The next step looks at more entries if one in this many of those with a deadline has expired.
constexpr uint64_t kManyExpired = 8;

}  // namespace

void ExpiryRounds::Step() {
  if (!expiring_puts_.MayExpire()) return;
  if (next_ == 0) round_ = {expiring_puts_.counted(), false};
  looks_ = std::clamp(looks_, kLooksMin, kLooksMax);
  const ExpiryLook::Seen seen = look_.Look(&next_, looks_);
  round_.found |= seen.expiring > 0 || seen.unsettled;
  const bool many = seen.expired * kManyExpired > seen.expiring;
  looks_ = many ? looks_ * 2 : looks_ / 2;
  if (look_.IsEnd(next_)) EndRound();
}

// The shard counts a put before it publishes it. So a round may miss the entry of a put that was counted just before
// the round began. The next round finds it.
void ExpiryRounds::EndRound() {
  next_ = 0;
  const bool none = !round_.found && !round_before_.found && round_.expiring_puts == round_before_.expiring_puts;
  if (none) expiring_puts_.NoneLeft(round_before_.expiring_puts);
  round_before_ = round_;
}

}  // namespace erda::server
