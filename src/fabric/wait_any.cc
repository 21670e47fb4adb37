#include <poll.h>

#include <algorithm>
#include <vector>

#include "fabric/fabric.h"

namespace erda::fabric {

// No wake-up is lost, since every queue is armed before the sleep begins. Arm reports completions that come before it.
// A later one makes the queue's descriptor readable, which ends the ppoll, or keeps it from sleeping.
void WaitAny(std::span<CompletionQueue* const> queues, std::chrono::nanoseconds timeout) {
  if (queues.size() == 1) return queues.front()->Wait(timeout);
  std::vector<pollfd> watched;
  watched.reserve(queues.size());
  bool nothing_there = true;
  for (CompletionQueue* queue : queues) {
    watched.push_back({queue->descriptor(), POLLIN, 0});
    nothing_there = queue->Arm(&timeout);
    if (!nothing_there) break;
  }
  if (nothing_there) {
    const auto rest = std::max(timeout, std::chrono::nanoseconds(0));
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(rest);
    const timespec until{seconds.count(), (rest - seconds).count()};
    ::ppoll(watched.data(), watched.size(), &until, nullptr);
  }
  for (CompletionQueue* queue : queues.first(watched.size())) queue->Disarm();
}

}  // namespace erda::fabric
