// What the shard does before it refuses a put for want of room: it settles versions that have arrived, and it has the
// cleaner sweep the index for expired values. Each is done once since puts wait. Owns what is left to do of that. The
// shard's thread calls it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "server/clean_queues.h"
#include "server/versions.h"

namespace erda::server {

class LastResorts {
 public:
  LastResorts(Versions& versions, CleanQueues& queues) : versions_(versions), queues_(queues) {}

  // Puts begin to wait.
  void Begin();
  // Looks at some versions in flight, and settles those that have arrived: each keeps an older version alive. Returns
  // false once it has looked at all that were in flight when puts began to wait.
  bool SettleArrived();
  // Orders a sweep. Returns false if the cleaner has made one since puts wait, or if no value has a deadline.
  bool OrderSweep();
  // The sweep has ended. next_deadline: the earliest that it found not to have passed; 0: none.
  void EndSweep(uint64_t next_deadline) {
    sweeping_ = false;
    next_deadline_ = next_deadline;
  }
  [[nodiscard]] bool is_sweeping() const { return sweeping_; }
  // The deadline that the last sweep found has passed since: another sweep may gain something. Returns true once for
  // each sweep.
  bool TakePassedDeadline();

 private:
  Versions& versions_;
  CleanQueues& queues_;
  size_t unseen_ = 0;   // versions in flight
  bool swept_ = false;  // since puts wait
  bool sweeping_ = false;
  uint64_t next_deadline_ = 0;
};

}  // namespace erda::server
