#include "server/cleaning/mending_walk.h"

namespace erda::server {

namespace {

// 64 KiB of the index, once in a second. A request may have to wait for it, for some microseconds.
constexpr uint64_t kSlotsAtATime = 4096;

}  // namespace

bool MendingWalk::Walk() {
  is_due_ = false;
  if (next_ >= versions_.index().size()) next_ = 0;
  const bool changed = versions_.mending().Mend(versions_.PublishPuts(), next_, kSlotsAtATime);
  next_ += kSlotsAtATime;
  counters_.Set(format::Counter::kFlipsUndone, versions_.index().mender().flips_undone());
  return changed;
}

void MendingWalk::Tell(EntryProposals& entries, const EntryProposals::TellDamage& tell) {
  if (versions_.index().mender().may_end_rest()) {
    versions_.mending().EndRest(versions_.PublishPuts());
    counters_.Set(format::Counter::kFlipsUndone, versions_.index().mender().flips_undone());
  }
  versions_.mending().TellNews([&](std::string_view key) { entries.Tell(key, tell); });
}

}  // namespace erda::server
