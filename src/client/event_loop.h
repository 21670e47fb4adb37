// The engine's loop: takes each completion to the operation that it belongs to, and each operation to its next step.
//
// Owns the completions of one Poll. Requires all kinds of operations; each takes its own steps. Only the client's
// thread calls it.
#pragma once

#include <array>
#include <cstdint>

#include "base/clock.h"
#include "client/block.h"
#include "client/connections.h"
#include "client/deadlines.h"
#include "client/get.h"
#include "client/located.h"
#include "client/operations.h"
#include "client/own_requests.h"
#include "client/posting.h"
#include "client/put.h"
#include "fabric/fabric.h"

namespace erda::client {

class EventLoop {
 public:
  EventLoop(Operations& operations, Connections& connections, Posting& posting, KnownLocations& locations,
            OwnRequests& own_requests, Gets& gets, Puts& puts, Blocks& blocks, const EngineOptions& options,
            const Clock& clock)
      : operations_(operations),
        connections_(connections),
        posting_(posting),
        locations_(locations),
        own_requests_(own_requests),
        gets_(gets),
        puts_(puts),
        blocks_(blocks),
        deadlines_(options.timeout, clock, operations, connections) {}

  // A new operation on a key begins now, or when its turn on that key comes.
  void Begin(Operation& op) {
    const bool waits = operations_.Join(op);
    op.step = waits ? Step::kKeyTurn : Step::kFree;
    if (!waits) Run(op);
  }
  // The operation's turn has come.
  void Run(Operation& op);
  // Takes what has completed, and calls back. Throws what a callback of the caller's threw, when all else is done, and
  // nothing else: if a step finds no memory, all operations end with kResourceExhausted. Returns how many have ended.
  size_t Poll();
  // The last Poll brought something, if only a step of an operation.
  [[nodiscard]] bool went_on() const { return went_on_; }
  // Sleeps until Poll may have something, at most so long.
  void Wait(Nanoseconds timeout);

 private:
  // (A Poll that finds nothing to do would pay for the frames of what is not inlined here.)
  void Progress();
  [[gnu::noinline]] void EndAll();
  void Dispatch(const fabric::Completion& completion);
  void MoveOn(Operation& op);
  void OnReply(Link& link, uint32_t slot);
  void OnControlRead(Link& link);
  void BeginSteps(Operation& op);
  void RunReady() {
    while (Operation* op = operations_.TakeReady()) Run(*op);
  }
  [[gnu::noinline]] void DeliverDeferred();
  // Posts what was gathered, and before that what gets that begin together gather.
  void Flush() {
    if (posting_.has_pending()) FlushAll();
  }
  void FlushAll();

  Operations& operations_;
  Connections& connections_;
  Posting& posting_;
  KnownLocations& locations_;
  OwnRequests& own_requests_;
  Gets& gets_;
  Puts& puts_;
  Blocks& blocks_;
  Deadlines deadlines_;
  bool went_on_ = false;
  std::array<fabric::Completion, 64> completions_;
};

}  // namespace erda::client
