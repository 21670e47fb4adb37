// An operation on a lane of the simulated network, from its Post to its last event.
//
// Owns copies of the bytes that the caller may change before they are placed. The lane owns the operation. The one
// thread of the simulation calls it.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "base/random.h"
#include "fabric/fabric.h"
#include "fabric/sim/world.h"

namespace erda::fabric {

struct SimOperation {
  // A part of a transfer that is not placed yet.
  struct Piece {
    size_t offset = 0;
    size_t size = 0;
    SimEvents::Id placing;
    std::vector<std::byte> kept;  // For a Write that completed: its bytes, since the caller may reuse the buffer.
  };

  [[nodiscard]] bool is_read() const { return request.kind == OpKind::kRead; }
  [[nodiscard]] bool is_message() const { return request.kind == OpKind::kWriteImm || request.kind == OpKind::kSend; }
  // Returns true if no event of the operation is to come, and it has completed.
  [[nodiscard]] bool is_over() const { return completed && pieces.empty() && delivery == SimEvents::Id{}; }

  // Makes the operation independent of its local bytes: each piece of a Write keeps its bytes.
  void Detach();
  // Decides by chance whether a piece survives that is under way at a cut, or at the end of the target. With
  // keep_completed, each piece of a completed operation survives.
  [[nodiscard]] bool Survives(Random& random, bool keep_completed) const;
  // The message, if there is one, never arrives.
  void LoseMessage(SimEvents& events);
  // Takes back what lost pieces prevent. A message is not delivered without the bytes before it. A Read does not
  // complete without its bytes. A Write does not complete without them, either, if `lose_completed` is false: then
  // completing promises that they arrive.
  void LosePieces(SimEvents& events, bool lose_completed);

  WorkRequest request;
  Code code = Code::kOk;
  bool executed = false;
  bool completed = false;
  std::vector<std::byte> message;  // Of a Send.
  std::map<size_t, Piece> pieces;  // By offset.
  SimEvents::Id completion;
  SimEvents::Id delivery;  // {}: there is no message, or it has arrived, or is lost.
};

}  // namespace erda::fabric
