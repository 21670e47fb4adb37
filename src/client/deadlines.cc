#include "client/deadlines.h"

namespace erda::client {

// The time of an operation begins when a look first finds it waiting.
void Deadlines::Check() {
  const Nanoseconds now = clock_.Now();
  if (now < next_check_) return;
  next_check_ = now + timeout_ / kChecksPerTimeout;
  for (OpIndex i = 0; i < operations_.size(); ++i) {
    Operation& op = operations_[i];
    if (!op.waits_for_link()) continue;
    if (op.deadline.count() == 0) {
      op.deadline = now + timeout_;
    } else if (now > op.deadline) {
      connections_.Close(*op.link,
                         {Code::kTimeout, connections_.address() +
                                              ": the connection was given up, since another operation got no answer"},
                         op.index);
    }
  }
}

}  // namespace erda::client
