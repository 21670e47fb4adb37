#include "client/get_end.h"

#include <utility>

#include "client/expiry.h"
#include "client/link.h"

namespace erda::client {

using format::ObjectView;

bool GetEnding::EndWithDeadline(GetOp& op, const ObjectView& view) {
  Link& link = *op.link;
  switch (ExpiryOf(link, clock_, view.deadline, op.time_before, op.time_behind)) {
    case Expiry::kLives:
      EndFound(op, view);
      return true;
    case Expiry::kOver:
      FailWith(op, Code::kNotFound);
      return true;
    case Expiry::kUnknown:
      op.found = view;
      posting_.PostRead(op, Step::kTime, op.time_copy(), kTimeWord);
      return true;
    case Expiry::kOverdue:
      own_requests_.AskTime(link);
      return !link.up();  // if it is not up, the get has ended with its connection
    case Expiry::kMeanwhile:
      break;
  }
  return false;
}

void GetEnding::EndFound(GetOp& op, const ObjectView& view) {
  if (op.buffer) return EndInBuffer(op, view);
  EndWithValue(op, ViewOf(view));
}

void GetEnding::EndInBuffer(GetOp& op, const ObjectView& view) {
  VersionedView found = ViewOf(view);
  const auto value = op.buffer->Take(found.value);
  if (!value.ok()) return End(op, value.status());
  found.value = *value;
  EndWithValue(op, found);
}

void GetEnding::EndWithValue(GetOp& op, const VersionedView& found) {
  ++stats_.gets;
  operations_.Retire(op, [&] { op.Tell(found); });
}

void GetEnding::Fail(GetOp& op, Status status) {
  if (!operations_.polling()) return operations_.Defer(op, std::move(status));
  End(op, std::move(status));
}

void GetEnding::FailWith(GetOp& op, Code code) { Fail(op, Status(code)); }

void GetEnding::End(GetOp& op, Status status) {
  const Code code = status.code();
  ++stats_.gets;
  if (code != Code::kOk && code != Code::kNotFound && code != Code::kConflict) ++stats_.failures;
  operations_.Retire(op, [&] { op.Tell(status); });
}

}  // namespace erda::client
