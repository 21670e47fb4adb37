#include "fabric/sim/node.h"

#include <functional>

#include "fabric/sim/link.h"

namespace erda::fabric {

bool SimNode::Knows(std::span<const std::byte> buffer) const {
  return std::any_of(regions.begin(), regions.end(), [buffer](const SimRegion* region) {
    const std::span<const std::byte> bytes = region->bytes();
    return std::less_equal<>()(bytes.data(), buffer.data()) &&
           std::less_equal<>()(buffer.data() + buffer.size(), bytes.data() + bytes.size());
  });
}

size_t SimQueue::Poll(std::span<Completion> out) {
  polled_.clear();
  size_t count = 0;
  for (; count < out.size() && !ready_.empty(); ++count) {
    Entry entry = std::move(ready_.front());
    ready_.pop_front();
    polled_.push_back(std::move(entry.message));
    out[count] = entry.completion;
    out[count].data = polled_.back();
    const OpKind kind = entry.completion.kind;
    if (kind == OpKind::kReceive || kind == OpKind::kReceiveImm)
      static_cast<SimChannel*>(entry.completion.channel)->Consumed();
  }
  return count;
}

}  // namespace erda::fabric
