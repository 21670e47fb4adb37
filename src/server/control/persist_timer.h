// Measures how long a shard waits for the medium. The shard's thread calls it.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "nvm/writer.h"
#include "server/control/activity.h"

namespace erda::server {

// Times one in 64 of the steps that persist something, since each time needs two looks at the clock.
class PersistTimer {
 public:
  PersistTimer(const nvm::Writer& nvm, ActivityCounts& activity, const Clock& clock)
      : nvm_(nvm), activity_(activity), clock_(clock) {}

  // Runs the step. persists: the caller expects the step to fence. A step that does not fence is not counted.
  template <class Step>
  void Run(bool persists, Step&& step) {
    const uint64_t fences = nvm_.counters().fences;
    const bool timed = persists && persists_ % kPersistsPerTime == 0;
    const Nanoseconds begin = timed ? clock_.Now() : Nanoseconds(0);
    step();
    if (nvm_.counters().fences == fences) return;
    ++persists_;
    if (timed) activity_.TimePersist(clock_.Now() - begin);
  }

 private:
  static constexpr uint32_t kPersistsPerTime = 64;

  const nvm::Writer& nvm_;
  ActivityCounts& activity_;
  const Clock& clock_;
  uint32_t persists_ = 0;
};

}  // namespace erda::server
