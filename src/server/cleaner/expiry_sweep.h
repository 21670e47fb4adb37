// One look through the whole index for expired versions, in small steps, while a put waits for room. Owns the position
// of the sweep, and the earliest deadline that it has found. The cleaner's thread calls it.
#pragma once

#include <cstdint>

#include "server/cleaner/clean_queues.h"
#include "server/cleaner/expiry_look.h"

namespace erda::server {

class ExpirySweep {
 public:
  ExpirySweep(ExpiryLook& look, ProposalQueue& proposals) : look_(look), proposals_(proposals) {}

  // Begins the sweep that the shard has ordered.
  void Begin() {
    active_ = true;
    next_ = 0;
    next_deadline_ = UINT64_MAX;
  }
  [[nodiscard]] bool active() const { return active_; }
  // Looks at a few entries. At the end of the index, tells the shard the earliest deadline that has not passed. Returns
  // false if there was nothing to do, or if the queue of proposals has no room.
  bool Step();

 private:
  ExpiryLook& look_;
  ProposalQueue& proposals_;
  bool active_ = false;
  index::Slot next_ = 0;
  uint64_t next_deadline_ = UINT64_MAX;
};

}  // namespace erda::server
