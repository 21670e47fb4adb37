// Looks through the index for expired versions in the background, in rounds, some entries at a time. Owns the position
// of the round, and the findings of this round and the one before it. Ends when two rounds find no deadline, and begins
// again with the next put that has one. The cleaner's thread calls it.
#pragma once

#include <cstdint>

#include "server/cleaner/expiring_puts.h"
#include "server/cleaner/expiry_look.h"

namespace erda::server {

class ExpiryRounds {
 public:
  ExpiryRounds(ExpiryLook& look, ExpiringPuts& expiring_puts) : look_(look), expiring_puts_(expiring_puts) {}

  // Looks at some entries, and at more if many of the last ones had expired.
  void Step();

 private:
  struct Round {
    uint64_t expiring_puts = 0;  // the shard's count when the round began
    bool found = true;           // a version with a deadline, or an entry that may go back to one
  };
  void EndRound();

  ExpiryLook& look_;
  ExpiringPuts& expiring_puts_;
  index::Slot next_ = 0;
  uint64_t looks_ = 0;  // looks in the next step
  Round round_;
  Round round_before_;
};

}  // namespace erda::server
