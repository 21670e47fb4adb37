// The last measures of a shard before it refuses a put because there is no room. It settles versions that have arrived,
// and it has the cleaner sweep the index for expired values. It does each of these once after puts began to wait. Owns
// the measures that are left. The shard's thread calls it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "server/cleaner/clean_queues.h"
#include "server/versions/versions.h"

namespace erda::server {

class LastResorts {
 public:
  LastResorts(Versions& versions, CleanQueues& queues) : versions_(versions), queues_(queues) {}

  // Notes that puts begin to wait.
  void Begin();
  // Looks at some versions in flight, and settles those that have arrived: each keeps an older version alive. Returns
  // false once it has looked at all that were in flight when puts began to wait.
  bool SettleArrived();
  // Orders a sweep. Returns false if the cleaner has made a sweep since puts began to wait, or if no value has a
  // deadline.
  bool OrderSweep();
  // Notes that the sweep has ended. next_deadline: the earliest deadline that has not passed; 0: no deadline is left.
  void EndSweep(uint64_t next_deadline) {
    sweeping_ = false;
    next_deadline_ = next_deadline;
  }
  [[nodiscard]] bool is_sweeping() const { return sweeping_; }
  // Returns true, once for each sweep, if the deadline that the last sweep found has passed since. Another sweep may
  // then free something.
  bool TakePassedDeadline();

 private:
  Versions& versions_;
  CleanQueues& queues_;
  size_t unseen_ = 0;   // versions in flight
  bool swept_ = false;  // The cleaner has swept since puts began to wait.
  bool sweeping_ = false;
  uint64_t next_deadline_ = 0;
};

}  // namespace erda::server
