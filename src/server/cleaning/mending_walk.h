// Walks through the index of a shard to mend its entries, some of them each time that the cleaner proposes it. Owns its
// place in the index. The shard's thread calls it.
#pragma once

#include "index/index.h"
#include "server/cleaning/entry_proposals.h"
#include "server/control/counters.h"
#include "server/versions/versions.h"

namespace erda::server {

class MendingWalk {
 public:
  MendingWalk(Versions& versions, Counters counters) : versions_(versions), counters_(counters) {}

  // The next Step looks at some more entries.
  void Begin() { is_due_ = true; }
  // Returns true if the next Step has something to look at or to tell.
  [[nodiscard]] bool is_due() const { return is_due_ || versions_.index().mender().has_news(); }
  // Mends entries if a walk is due, and tells of damage that anybody met. Returns true if it has changed an entry. A
  // look alone does not count as work, so that it does not keep an idle shard awake.
  bool Step(EntryProposals& entries, const EntryProposals::TellDamage& tell) {
    const bool changed = is_due_ && Walk();
    if (versions_.index().mender().has_news()) Tell(entries, tell);
    return changed;
  }
  // Undoes a flip at rest as soon as all slots are counted. Tells of damage that was met since the last call.
  void Tell(EntryProposals& entries, const EntryProposals::TellDamage& tell);

 private:
  bool Walk();

  Versions& versions_;
  Counters counters_;
  bool is_due_ = false;
  index::Slot next_ = 0;
};

}  // namespace erda::server
