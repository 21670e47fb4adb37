#include "fabric/sim/operation.h"

#include <utility>

namespace erda::fabric {

void SimOperation::Detach() {
  if (is_read()) return;  // Its pieces were all placed, or are cut.
  for (auto& [offset, piece] : pieces) {
    const auto bytes = request.local.subspan(offset, piece.size);
    piece.kept.assign(bytes.begin(), bytes.end());
  }
}

bool SimOperation::Survives(Random& random, bool keep_completed) const {
  return random.Chance(0.5) || (completed && keep_completed);
}

void SimOperation::LoseMessage(SimEvents& events) { events.Cancel(std::exchange(delivery, {})); }

void SimOperation::LosePieces(SimEvents& events, bool lose_completed) {
  LoseMessage(events);
  if (is_read() || !lose_completed) events.Cancel(completion);
}

}  // namespace erda::fabric
