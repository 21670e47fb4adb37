// Ends a get: with the version that counts, or without a value. If the version has expired, the key is absent.
//
// Owns nothing. Only the client's thread calls it.
#pragma once

#include "base/clock.h"
#include "client/get_op.h"
#include "client/operations.h"
#include "client/own_requests.h"
#include "client/posting.h"
#include "erda/client.h"
#include "format/object.h"

namespace erda::client {

// The functions that are not inlined are rare, and other steps would pay for their frames.
class GetEnding {
 public:
  GetEnding(Operations& operations, Posting& posting, OwnRequests& own_requests, const Clock& clock, ClientStats& stats)
      : operations_(operations), posting_(posting), own_requests_(own_requests), clock_(clock), stats_(stats) {}

  // Ends the get with the version that counts, or Reads the shard's time first and comes back at step kTime. Returns
  // false if the deadline has passed meanwhile, and the get has to look for a newer version.
  [[nodiscard]] bool EndWith(GetOp& op, const format::ObjectView& view) {
    if (view.deadline != 0) return EndWithDeadline(op, view);
    EndFound(op, view);
    return true;
  }
  // Ends the get without a value: now, or in the next Poll if no callback may run inside the call that began it.
  void Fail(GetOp& op, Status status);
  [[gnu::noinline]] void FailWith(GetOp& op, Code code);
  // Ends the get without a value, now. REQUIRES: callbacks may run.
  void End(GetOp& op, Status status);

 private:
  [[gnu::noinline]] bool EndWithDeadline(GetOp& op, const format::ObjectView& view);
  void EndFound(GetOp& op, const format::ObjectView& view);
  [[gnu::noinline]] void EndInBuffer(GetOp& op, const format::ObjectView& view);
  void EndWithValue(GetOp& op, const VersionedView& found);

  Operations& operations_;
  Posting& posting_;
  OwnRequests& own_requests_;
  const Clock& clock_;
  ClientStats& stats_;
};

}  // namespace erda::client
