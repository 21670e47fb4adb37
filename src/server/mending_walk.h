// Walks through the index of a shard to mend its entries, some when the cleaner says that it is time. Owns the place
// that it has come to. The shard's thread calls it.
#pragma once

#include "index/index.h"
#include "server/counters.h"
#include "server/entry_proposals.h"
#include "server/versions.h"

namespace erda::server {

class MendingWalk {
 public:
  MendingWalk(Versions& versions, Counters counters) : versions_(versions), counters_(counters) {}

  // The next Step looks at some more entries.
  void Begin() { is_due_ = true; }
  // Tells of damage that anybody met. Returns true if it has mended anything: to look is no work, so that a shard which
  // has nothing else to do goes to sleep as it would.
  bool Step(EntryProposals& entries, const EntryProposals::TellDamage& tell) {
    const bool changed = is_due_ && Walk();
    if (versions_.index().has_kept()) Tell(entries, tell);
    return changed;
  }

 private:
  bool Walk();
  void Tell(EntryProposals& entries, const EntryProposals::TellDamage& tell);

  Versions& versions_;
  Counters counters_;
  bool is_due_ = false;
  index::Slot next_ = 0;
};

}  // namespace erda::server
