#include "server/mending_walk.h"

#include <algorithm>

namespace erda::server {

namespace {

constexpr uint64_t kSlotsAtATime = 4096;
// A request may have to wait for this many.
constexpr uint64_t kSlotsPerStep = 512;

}  // namespace

void MendingWalk::Begin() { left_ = std::min(left_ + kSlotsAtATime, versions_.index().size()); }

bool MendingWalk::Step(EntryProposals& entries, const EntryProposals::TellDamage& tell) {
  if (left_ == 0) return false;
  const uint64_t slots = std::min(left_, kSlotsPerStep);
  if (next_ >= versions_.index().size()) next_ = 0;
  const bool changed = versions_.mending().Mend(versions_.PublishPuts(), next_, slots);
  left_ -= slots;
  next_ += slots;
  versions_.mending().TellKept([&](std::string_view key) { entries.Tell(key, tell); });
  counters_.Set(format::Counter::kFlipsUndone, versions_.index().flips_undone());
  return changed;
}

}  // namespace erda::server
