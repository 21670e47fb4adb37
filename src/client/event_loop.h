// The engine's loop: finds the operation of each completion, and lets the operation take its next step.
//
// Owns the completions of one Poll. Kinds (kinds.h) take the steps. Only the client's thread calls it.
#pragma once

#include <array>
#include <cstdint>

#include "base/clock.h"
#include "client/connections.h"
#include "client/deadlines.h"
#include "client/engine_options.h"
#include "client/kinds.h"
#include "client/operations.h"
#include "client/own_requests.h"
#include "client/posting.h"
#include "fabric/fabric.h"

namespace erda::client {

class EventLoop {
 public:
  EventLoop(Operations& operations, Connections& connections, Posting& posting, OwnRequests& own_requests, Kinds& kinds,
            const EngineOptions& options, const Clock& clock)
      : operations_(operations),
        connections_(connections),
        posting_(posting),
        own_requests_(own_requests),
        kinds_(kinds),
        deadlines_(options.timeout, clock, operations, connections) {}

  // Begins a new operation on a key now, or when its turn on that key comes.
  void Begin(Operation& op) {
    const bool waits = operations_.Join(op);
    op.step = waits ? Step::kKeyTurn : Step::kFree;
    if (!waits) Run(op);
  }
  // Runs the operation, whose turn has come.
  void Run(Operation& op);
  // Takes the completions, and calls the callbacks. If a callback of the caller throws, Poll throws that exception
  // after all other work. It throws nothing else: if a step finds no memory, all operations end with
  // kResourceExhausted. Returns how many have ended.
  size_t Poll();
  // Returns how many operations have ended in the last Poll, also if that has thrown.
  [[nodiscard]] size_t finished() const { return operations_.finished(); }
  // Returns true if the last Poll had work, even if that was only a step of an operation.
  [[nodiscard]] bool went_on() const { return went_on_; }
  // Sleeps until Poll may have work, and at most for `timeout`.
  void Wait(Nanoseconds timeout);
  // Arm prepares a sleep of the caller, which waits for the descriptor. It returns how long the caller may sleep; 0 if
  // Poll has work. Disarm ends that.
  [[nodiscard]] int descriptor() const { return connections_.links().queue().descriptor(); }
  Nanoseconds Arm();
  void Disarm();

 private:
  void Progress();
  // The functions that are not inlined have large frames, and a Poll without work would pay for them.
  [[gnu::noinline]] void GoOn();
  [[gnu::noinline]] void TakeCompletions(size_t n);
  [[gnu::noinline]] void EndClosed();
  [[gnu::noinline]] void EndAll();
  void Dispatch(const fabric::Completion& completion);
  [[gnu::noinline]] void DispatchOther(Link& link, const fabric::Completion& completion);
  void OnReply(Link& link, uint32_t slot);
  [[gnu::noinline]] void OnOwnReply(Link& link, OpIndex owner, uint32_t slot);
  void OnControlRead(Link& link);
  void BeginSteps(Operation& op);
  [[gnu::noinline]] void WaitForLink(Operation& op);
  // Runs each operation whose turn has come, and then those after it that may follow it at once.
  void RunReady() {
    while (Operation* op = operations_.TakeReady()) {
      for (; op != nullptr; op = operations_.FollowerOf(*op)) Run(*op);
    }
  }
  [[gnu::noinline]] void DeliverDeferred();
  // Lets the gets that begin together gather their Reads, and then posts all gathered requests.
  void Flush() {
    if (posting_.has_pending()) FlushAll();
  }
  void FlushAll();

  Operations& operations_;
  Connections& connections_;
  Posting& posting_;
  OwnRequests& own_requests_;
  Kinds& kinds_;
  Deadlines deadlines_;
  bool went_on_ = false;
  std::array<fabric::Completion, 64> completions_;
};

}  // namespace erda::client
