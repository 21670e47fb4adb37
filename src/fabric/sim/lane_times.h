// The virtual times at which the operations of one lane begin, complete and arrive. They keep the order that the
// contract of the fabric (fabric/fabric.h) promises. The one thread of the simulation calls it.
#pragma once

#include <algorithm>

#include "base/clock.h"

namespace erda::fabric {

class SimLaneTimes {
 public:
  // Returns the earliest time at which the next operation may begin: everything before it is placed. An operation that
  // passes Reads waits only for Writes.
  [[nodiscard]] Nanoseconds BeginsAt(bool passes_reads) const { return passes_reads ? written_by_ : idle_at_; }
  // Returns true if a Read that has begun is placed later than all Writes that have begun.
  [[nodiscard]] bool ends_with_read() const { return idle_at_ > written_by_; }

  // An operation has begun, and will be placed at this time.
  void PlaceBy(Nanoseconds time, bool is_read) {
    idle_at_ = std::max(idle_at_, time);
    if (!is_read) written_by_ = idle_at_;
  }
  // Returns the time at which an operation completes that is ready to complete at `time`. Completions keep their order.
  Nanoseconds CompleteBy(Nanoseconds time) { return completed_by_ = std::max(completed_by_, time); }
  // Returns the time at which a message arrives that is ready to arrive at `time`. Messages keep their order.
  Nanoseconds DeliverBy(Nanoseconds time) { return delivered_by_ = std::max(delivered_by_, time); }

  // Returns the time at which all operations that have begun are placed.
  [[nodiscard]] Nanoseconds idle_at() const { return idle_at_; }
  // Returns the time at which the last completion comes.
  [[nodiscard]] Nanoseconds completed_by() const { return completed_by_; }
  // Returns the time at which the last message sent so far arrives.
  [[nodiscard]] Nanoseconds delivered_by() const { return delivered_by_; }

 private:
  Nanoseconds idle_at_{0};
  Nanoseconds written_by_{0};  // All Writes that have begun are placed at this time.
  Nanoseconds completed_by_{0};
  Nanoseconds delivered_by_{0};
};

}  // namespace erda::fabric
