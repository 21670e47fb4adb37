// Walks through the index of a shard to mend its entries, some when the cleaner says that it is time. Owns the place
// that it has come to. The shard's thread calls it.
#pragma once

#include <cstdint>

#include "index/index.h"
#include "server/counters.h"
#include "server/entry_proposals.h"
#include "server/versions.h"

namespace erda::server {

class MendingWalk {
 public:
  MendingWalk(Versions& versions, Counters counters) : versions_(versions), counters_(counters) {}

  // It is time to look at some more entries.
  void Begin();
  // Looks at some of them. Returns true if it has changed anything: to look is no work, so that a shard which has
  // nothing else to do goes to sleep as it would.
  bool Step(EntryProposals& entries, const EntryProposals::TellDamage& tell);

 private:
  Versions& versions_;
  Counters counters_;
  uint64_t left_ = 0;  // slots, from next_ on
  index::Slot next_ = 0;
};

}  // namespace erda::server
